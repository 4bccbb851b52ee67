//! QoS, in terms that fit every protocol.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A QoS; each protocol maps it to its own term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Qos {
    /// Sent once, never repeated (MQTT QoS 0).
    BestEffort,
    /// Repeated until acknowledged (MQTT QoS 1).
    AtLeastOnce,
    /// Acknowledged in two steps, so that it counts once (MQTT QoS 2).
    ExactlyOnce,
}

impl Qos {
    /// All levels, weakest first.
    pub const ALL: [Qos; 3] = [Qos::BestEffort, Qos::AtLeastOnce, Qos::ExactlyOnce];

    /// The MQTT number, 0 to 2 (MQTT 5.0 §4.3).
    pub fn level(self) -> u8 {
        self as u8
    }

    /// The name in files and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Qos::BestEffort => "best-effort",
            Qos::AtLeastOnce => "at-least-once",
            Qos::ExactlyOnce => "exactly-once",
        }
    }

    /// The level with this MQTT number, if there is one.
    pub fn from_level(level: u8) -> Option<Qos> {
        Qos::ALL.get(usize::from(level)).copied()
    }
}

impl fmt::Display for Qos {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
