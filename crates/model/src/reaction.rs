//! Reactions: messages that a device sends because it received another (ComBench's reactions, SPECjms2007's chains of messages).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::RandomTime;
use crate::topic::TopicFilter;

/// What a device reacts to, and how. Every first copy of a matching message that the device's client receives triggers
/// a message of its own, or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reaction {
    /// The topics that trigger it, with the device's placeholders.
    pub to: TopicFilter,
    /// Time between the receipt and the first due time.
    pub think: RandomTime,
    /// Messages that each trigger makes due.
    pub burst: Burst,
}

/// Most messages of one burst.
pub const LONGEST_BURST: u32 = 10_000;

/// The messages that one trigger makes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// How many, from 1 to [`LONGEST_BURST`].
    pub messages: u32,
    /// Time between two of them.
    pub interval: Duration,
}

impl Burst {
    /// One message.
    pub const ONE: Burst = Burst { messages: 1, interval: Duration::ZERO };

    /// Those of `length` at one message every `interval`, the first at its beginning; `None` if they are more than [`LONGEST_BURST`].
    pub fn of_length(length: Duration, interval: Duration) -> Option<Burst> {
        let messages = length.as_nanos().div_ceil(interval.as_nanos().max(1)).max(1);
        let messages = u32::try_from(messages).ok().filter(|messages| *messages <= LONGEST_BURST)?;
        Some(Burst { messages, interval })
    }
}
