//! The latency breakdown of a run behind emulated links: latency divided into device, network, system, network, subscriber.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{LatencyBounds, Summary, upper};

/// The parts of a message's way, from its due time to its delivery. A part that does not exist (no link on that side) or cannot
/// be told from its neighbour is `null`; `rest` is what could not be divided then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakdownParts {
    /// From the due time until the message's front came to the device's link: our lag, back-pressure, the device's kernel.
    pub device: Option<LatencyBounds>,
    /// Until all of it, and what its connection carried before it, had left the device's link, repetitions of TCP included.
    pub network_up: Option<LatencyBounds>,
    /// Until its front came to the subscriber's link: the system, with its kernel.
    pub system: Option<LatencyBounds>,
    /// Until all of it had left the subscriber's link.
    pub network_down: Option<LatencyBounds>,
    /// Until our read of it.
    pub subscriber: Option<LatencyBounds>,
    /// The system with the side that has no link: these are one then.
    pub rest: Option<LatencyBounds>,
    /// The whole: delivery − due, of the messages above.
    pub whole: Option<LatencyBounds>,
}

/// Messages of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakdownRow {
    /// The device group, and whether the subscriber was behind a link, where some are and some are not; `all` of all.
    pub class: String,
    /// Deliveries that were followed.
    pub followed: u64,
    /// Of these, seen wholly at each link on their way: the parts are theirs.
    pub seen: u64,
    /// Of these, the parts are each at least 0 and add up to the latency within 50 µs.
    pub agreeing: u64,
    /// How long each part took.
    pub parts: BreakdownParts,
}

/// The latency breakdown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBreakdown {
    /// One message in so many was followed, chosen by publisher and sequence number.
    pub one_in: u64,
    /// Deliveries and sightings that were not kept, as there were too many.
    pub dropped: u64,
    /// By class, in the workload's order.
    pub rows: Vec<BreakdownRow>,
}

/// The names of the parts, in the order of a message's way.
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
    /// Followed, seen and agreeing over all rows.
    pub fn totals(&self) -> [u64; 3] {
        let sum = |get: fn(&BreakdownRow) -> u64| self.rows.iter().map(get).sum();
        [sum(|row| row.followed), sum(|row| row.seen), sum(|row| row.agreeing)]
    }
}
