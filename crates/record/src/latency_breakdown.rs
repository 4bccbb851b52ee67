//! The latency breakdown of a run behind emulated links: latency divided into device, network, system, network and
//! subscriber.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{LatencyBounds, Summary, upper};

/// The parts of a message's way, from its due time to its delivery. A part that does not exist (no link on that side)
/// or cannot be separated from its neighbour is `null`; `rest` then has the part that could not be divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakdownParts {
    /// From the due time until the first byte of the message reached the device's link: scheduler lag, back-pressure
    /// and the device's kernel.
    pub device: Option<LatencyBounds>,
    /// From there until the whole message, and what its connection sent before it, had left the device's link, TCP
    /// retransmissions included.
    pub network_up: Option<LatencyBounds>,
    /// From there until its first byte reached the subscriber's link: the system and its kernel.
    pub system: Option<LatencyBounds>,
    /// From there until the whole message had left the subscriber's link.
    pub network_down: Option<LatencyBounds>,
    /// From there until our read of the message.
    pub subscriber: Option<LatencyBounds>,
    /// The system together with the side that has no link, because the two cannot be separated.
    pub rest: Option<LatencyBounds>,
    /// Delivery − due of the same messages.
    pub whole: Option<LatencyBounds>,
}

/// Messages of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakdownRow {
    /// The device group, and whether the subscriber was behind a link if only some are; `all` for the total.
    pub class: String,
    /// Deliveries that were selected to be followed.
    pub followed: u64,
    /// Of these, deliveries that were seen completely at each link on their way; the parts are computed from these.
    #[serde(alias = "seen")]
    pub complete: u64,
    /// Of these, deliveries whose parts are each at least 0 and add up to the latency within 50 µs.
    #[serde(alias = "agreeing")]
    pub consistent: u64,
    /// Duration of each part.
    pub parts: BreakdownParts,
}

/// The latency breakdown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBreakdown {
    /// Sampling interval: one of this many messages was followed, chosen by publisher and sequence number.
    pub one_in: u64,
    /// Deliveries and sightings that were not stored because there were too many.
    pub dropped: u64,
    /// Rows by class, in the order of the workload.
    pub rows: Vec<BreakdownRow>,
}

/// Names of the parts, in the order of a message's way.
pub const PARTS: [&str; 6] = ["device side", "network up", "system", "network down", "subscriber side", "undivided"];

impl BreakdownParts {
    /// The parts in the order of [`PARTS`].
    pub fn in_order(&self) -> [Option<&Summary>; 6] {
        [
            upper(&self.device),
            upper(&self.network_up),
            upper(&self.system),
            upper(&self.network_down),
            upper(&self.subscriber),
            upper(&self.rest),
        ]
    }
}

impl LatencyBreakdown {
    /// Sums of followed, complete and consistent over all rows.
    pub fn totals(&self) -> [u64; 3] {
        let sum = |get: fn(&BreakdownRow) -> u64| self.rows.iter().map(get).sum();
        [sum(|row| row.followed), sum(|row| row.complete), sum(|row| row.consistent)]
    }
}
