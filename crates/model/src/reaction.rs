//! Reactions: messages that a device sends because it received another message (ComBench's reactions, SPECjms2007's chains
//! of messages).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::RandomTime;
use crate::topic::TopicFilter;

/// What a device reacts to, and how. Every first copy of a matching message that the device's client receives triggers one
/// or more messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reaction {
    /// Topics of the triggering messages, with the device's placeholders.
    pub to: TopicFilter,
    /// Think time between the receipt and the first due time.
    pub think: RandomTime,
    /// Messages that each trigger makes due.
    pub burst: Burst,
}

/// Maximum number of messages of one burst.
pub const LONGEST_BURST: u32 = 10_000;

/// The messages that one trigger makes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Number of messages, from 1 to [`LONGEST_BURST`].
    pub messages: u32,
    /// Time between two of them.
    pub interval: Duration,
}

impl Burst {
    /// One message.
    pub const ONE: Burst = Burst { messages: 1, interval: Duration::ZERO };

    /// A burst of `length` with one message every `interval`, the first at its beginning; `None` if it would have more than
    /// [`LONGEST_BURST`] messages.
    pub fn of_length(length: Duration, interval: Duration) -> Option<Burst> {
        let messages = length.as_nanos().div_ceil(interval.as_nanos().max(1)).max(1);
        let messages = u32::try_from(messages).ok().filter(|messages| *messages <= LONGEST_BURST)?;
        Some(Burst { messages, interval })
    }
}
