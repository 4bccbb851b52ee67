//! Devices that send less for some time because they received a message: back-off, duty cycling.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::topic::TopicFilter;

/// What makes a device send less, how much less, and for how long. Every first copy of a matching message that the device's
/// client receives begins the time anew. The schedule is not changed: the device leaves out messages that are due too early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slowdown {
    /// Topics of the messages that begin it, with the device's placeholders.
    pub on: TopicFilter,
    /// Least time between two messages; `None`: the device is silent.
    pub interval: Option<Duration>,
    /// How long it lasts after a message was received.
    pub length: Duration,
}
