//! Messages that a run follows on their way, as they arrived.

use serde::{Deserialize, Serialize};

/// A followed message that arrived, for the first time at this subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Whole payload, bytes.
    pub payload_bytes: u32,
    /// The subscriber's network, if it has one of its own: [`crate::plan::Networks`].
    pub network: Option<u16>,
    /// Due time, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// Delivery, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// How much of the time from due to the write was the generator's, at most, ns.
    pub lag_ns: u64,
    /// How long it lay in the socket before it was read, at most, ns.
    pub late_ns: u64,
}

/// All that were noted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Followed {
    /// By shard, in the order of their arrival there.
    pub arrived: Vec<Arrived>,
    /// Those that were not noted, as there were too many.
    pub dropped: u64,
}

impl Followed {
    /// Adds another shard's.
    pub fn merge(&mut self, other: Followed) {
        self.arrived.extend(other.arrived);
        self.dropped += other.dropped;
    }
}
