//! Reactions: messages that a device sends because it received another (ComBench's reactions, SPECjms2007's chains of messages).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::Stream;
use crate::topic::TopicFilter;

/// What a device reacts to, and how fast. Every first copy of a matching message that the device's client receives triggers
/// one message of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reaction {
    /// The topics that trigger it, with the device's placeholders.
    pub to: TopicFilter,
    /// Time between the receipt and the due time.
    pub think: Think,
}

/// Time that a device thinks before it reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Think {
    /// Always the same; zero for none.
    Fixed(Duration),
    /// Exponentially distributed with this mean (ComBench's `exponentialDistribution`).
    Exponential(Duration),
}

impl Think {
    /// The time for a draw, ns.
    pub fn draw_ns(&self, stream: Stream, index: u64) -> u64 {
        let nanoseconds = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Think::Fixed(time) => nanoseconds(time),
            Think::Exponential(mean) => (nanoseconds(mean) as f64 * stream.exponential(index)) as u64,
        }
    }
}
