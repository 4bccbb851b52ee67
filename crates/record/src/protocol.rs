//! What clients spoke, and what `sent` means in it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Protocols of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolInfo {
    /// Protocol of devices, for instance `mqtt5`.
    pub publish: String,
    /// Protocol of subscribers; the same, unless the system hands messages on between two.
    pub subscribe: String,
    /// What `sent` means.
    pub sent_means: SentMeans,
}

/// When a message counts as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SentMeans {
    /// When the socket has accepted its last byte.
    #[default]
    Wire,
    /// When a client library has accepted it, which queues messages and writes them later.
    HandedOver,
}

impl SentMeans {
    /// The word of records.
    pub fn as_str(self) -> &'static str {
        match self {
            SentMeans::Wire => "wire",
            SentMeans::HandedOver => "handed-over",
        }
    }
}

impl fmt::Display for SentMeans {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One protocol, or the devices' and the subscribers'.
impl fmt::Display for ProtocolInfo {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.publish)?;
        if self.subscribe == self.publish { Ok(()) } else { write!(f, " to {}", self.subscribe) }
    }
}
