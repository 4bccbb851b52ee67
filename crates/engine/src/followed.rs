//! Records of the messages that a run follows on their path, as they arrived.

use serde::{Deserialize, Serialize};

/// First copy of a followed message at a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedDelivery {
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Size of the whole payload, bytes.
    pub payload_bytes: u32,
    /// Index of the subscriber's network, if it has a separate one: [`crate::plan::Networks`].
    pub network: Option<u16>,
    /// Due time, ns of `CLOCK_MONOTONIC`.
    pub due_ns: u64,
    /// Delivery, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Upper bound of the generator's part in the time from due to the write, ns.
    pub lag_ns: u64,
    /// Upper bound of the time that the system held it back because earlier bytes were not read, ns.
    pub held_ns: u64,
    /// Upper bound of the time that it waited for the generator afterwards, ns: in the socket before it was read, and for
    /// a subscriber that was behind because earlier messages were read late.
    pub late_ns: u64,
}

/// All recorded deliveries.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FollowedDeliveries {
    /// By shard, in the order of their arrival there.
    pub arrived: Vec<FollowedDelivery>,
    /// Deliveries that were not recorded because of the limit.
    pub dropped: u64,
}

impl FollowedDeliveries {
    /// Adds the deliveries of another shard.
    pub fn merge(&mut self, other: FollowedDeliveries) {
        self.arrived.extend(other.arrived);
        self.dropped += other.dropped;
    }
}
