//! Where the time of messages went, in a run behind emulated links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Summary;

/// The parts of a message's way, from its due time to its delivery. A part that does not exist (no link on that side) or cannot
/// be told from its neighbour is `null`; `rest` is what could not be divided then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResidenceParts {
    /// From the due time until the message's front came to the device's link: our lag, back-pressure, the device's kernel.
    pub device_us: Option<Summary>,
    /// Until all of it, and what its connection carried before it, had left the device's link, repetitions of TCP included.
    pub network_up_us: Option<Summary>,
    /// Until its front came to the subscriber's link: the system, with its kernel.
    pub system_us: Option<Summary>,
    /// Until all of it had left the subscriber's link.
    pub network_down_us: Option<Summary>,
    /// Until our read of it.
    pub subscriber_us: Option<Summary>,
    /// The system with the side that has no link: these are one then.
    pub rest_us: Option<Summary>,
    /// The whole: delivery − due, of the messages above.
    pub whole_us: Option<Summary>,
}

/// Messages of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResidenceRow {
    /// The device group, and whether the subscriber was behind a link, where some are and some are not; `all` of all.
    pub class: String,
    /// Deliveries that were followed.
    pub followed: u64,
    /// Of these, seen wholly at each link on their way: the parts are theirs.
    pub seen: u64,
    /// Of these, the parts are each at least 0 and add up to the latency within 50 µs.
    pub agreeing: u64,
    /// How long each part took.
    pub parts: ResidenceParts,
}

/// Where the time went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResidenceFigures {
    /// One message in so many was followed, chosen by publisher and sequence number.
    pub one_in: u64,
    /// Deliveries and sightings that were not kept, as there were too many.
    pub dropped: u64,
    /// By class, in the workload's order.
    pub rows: Vec<ResidenceRow>,
}

/// The names of the parts, in the order of a message's way.
pub const PARTS: [&str; 6] = ["device side", "network up", "system", "network down", "subscriber side", "undivided"];

impl ResidenceParts {
    /// The parts in the order of [`PARTS`].
    pub fn in_order(&self) -> [Option<&Summary>; 6] {
        [
            self.device_us.as_ref(),
            self.network_up_us.as_ref(),
            self.system_us.as_ref(),
            self.network_down_us.as_ref(),
            self.subscriber_us.as_ref(),
            self.rest_us.as_ref(),
        ]
    }
}

impl ResidenceFigures {
    /// Followed, seen and agreeing over all rows.
    pub fn totals(&self) -> [u64; 3] {
        let sum = |get: fn(&ResidenceRow) -> u64| self.rows.iter().map(get).sum();
        [sum(|row| row.followed), sum(|row| row.seen), sum(|row| row.agreeing)]
    }
}
