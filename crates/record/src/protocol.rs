//! Protocols of the clients, and the meaning of `sent` in them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Protocols of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolInfo {
    /// Protocol of the devices, for instance `mqtt5`.
    pub publish: String,
    /// Protocol of the subscribers; the same, unless the system forwards messages between two protocols.
    pub subscribe: String,
    /// Meaning of `sent`.
    pub sent_means: SentMeans,
    /// Does a client library or a client program read the sockets of the subscribers? `null` in older records; there it is taken to
    /// do so if the devices hand their messages over.
    #[serde(default)]
    pub read_by_library: Option<bool>,
    /// Most messages that subscribers let the system send ahead of their acknowledgements, where they acknowledge, or of further credit,
    /// or of their next request (a prefetch, a link credit, `COUNT`); `null` if there is no limit or it is not known: where they ask
    /// for none, as in MQTT and at QoS 0 over AMQP 0-9-1 and JetStream, with client programs, and in older records. If groups
    /// differ, the smallest of those that have one: slow subscribers over JetStream ask for fewer.
    #[serde(default)]
    pub delivery_window: Option<u32>,
}

impl ProtocolInfo {
    /// Does a client library or a client program write to the sockets of the devices?
    pub fn writes_by_library(&self) -> bool {
        self.sent_means == SentMeans::HandedOver
    }

    /// Does a client library or a client program read the sockets of the subscribers?
    pub fn reads_by_library(&self) -> bool {
        self.read_by_library.unwrap_or_else(|| self.writes_by_library())
    }
}

/// When a message counts as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SentMeans {
    /// When the socket has accepted its last byte.
    #[default]
    Wire,
    /// When a client library has accepted it; the library queues messages and writes them later.
    HandedOver,
}

impl SentMeans {
    /// Name in records.
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

/// One protocol if both sides use the same, otherwise that of the devices and that of the subscribers.
impl fmt::Display for ProtocolInfo {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.publish)?;
        if self.subscribe == self.publish { Ok(()) } else { write!(f, " to {}", self.subscribe) }
    }
}
