//! What happened to connections: how they were made and how fast, what TLS took of it, and what ended them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::Summary;

/// What happened to connections; planned churn is apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Connects tried.
    pub attempted: u64,
    /// Connects that succeeded.
    pub established: u64,
    /// Not reached or turned away.
    pub refused: u64,
    /// Wrong or missing user name or password.
    pub auth_failed: u64,
    /// Of `dropped`, ended by the system because the log-in holds no longer: a token that expired, rights that were taken away.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub log_in_ended: u64,
    /// New tokens that the system took on open connections (MQTT 5 re-authentication).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reauthenticated: u64,
    /// TLS could not be agreed.
    pub tls_failed: u64,
    /// Ended without our asking.
    pub dropped: u64,
    /// Connects tried again after a failure or a drop.
    pub retried: u64,
    /// Planned leaves by churn.
    pub planned_leaves: u64,
    /// Subscriptions refused by the server.
    pub subscriptions_refused: u64,
    /// Each cause with its count, most frequent first, at most 32.
    pub causes: Vec<CauseCount>,
    /// Time from connect to the server's acceptance: TCP, TLS, and the protocol's own opening.
    pub connect_time: Option<Summary>,
    /// How sessions came up before the schedule began, by side.
    #[serde(default)]
    pub ramp_up: Vec<RampUp>,
    /// Subscriptions granted a lower level than asked for.
    pub granted_qos_lower: u64,
    /// Messages sent again after a reconnect.
    pub resent: u64,
    /// What TLS took; `null` without TLS.
    #[serde(default)]
    pub tls: Option<TlsFigures>,
    /// What became of wills; `null` where no device leaves one.
    #[serde(default)]
    pub wills: Option<WillCounts>,
    /// What client programs (`--client`) reported; `null` without.
    #[serde(default)]
    pub client_programs: Option<ClientPrograms>,
}

/// A count that records leave out: those before it was counted lack it as well.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What client programs reported of themselves, and what it costs to speak with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientPrograms {
    /// Name and version of the client library, as the program says.
    pub library: String,
    /// Ping to pong, ten times a second: the way to the program and back, which is in the upper bound of each latency.
    pub round_trip: Option<Summary>,
    /// Reports that cannot be true, by their name (docs/reference/client-protocol.md).
    pub misreports: BTreeMap<String, u64>,
    /// How a program ended before the end of the run; `null` if none did.
    pub ended: Option<String>,
}

/// Wills: messages that the system publishes for devices that go without a goodbye. No schedule offers them, so they are not in
/// the message accounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WillCounts {
    /// Connections with a will that were open and ended without a goodbye of ours.
    pub due: u64,
    /// Wills that arrived, once for each subscription that got one.
    pub delivered: u64,
}

/// How often a cause was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CauseCount {
    /// The cause in words.
    pub cause: String,
    /// How often.
    pub count: u64,
}

/// How the sessions of one side came up before the schedule began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RampUp {
    /// Whose sessions; those of subscribers come first.
    pub side: Side,
    /// Sessions that the system accepted.
    pub accepted: u64,
    /// From the first try to the last acceptance, seconds.
    pub seconds: f64,
    /// Accepted per second over that time; `null` below ten sessions, where it says nothing. At most what `connects_per_s` of the
    /// settings lets be tried.
    pub per_s: Option<f64>,
}

/// A side of the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Publishers, requesters.
    #[default]
    Devices,
    /// Subscribers, responders.
    Subscribers,
}

impl Side {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Side::Devices => "devices",
            Side::Subscribers => "subscribers",
        }
    }
}

impl RampUp {
    /// Sessions from which on a rate is told.
    const FEWEST: u64 = 10;

    /// Of a side, `seconds` from the first try to the last acceptance.
    pub fn new(side: Side, accepted: u64, seconds: f64) -> RampUp {
        let per_s = (accepted >= RampUp::FEWEST && seconds > 0.0).then(|| accepted as f64 / seconds);
        RampUp { side, accepted, seconds, per_s }
    }
}

/// What TLS took, from the first connect to the last of the run: reconnects are in it. How it is measured:
/// docs/explanation/tls-and-websocket.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TlsFigures {
    /// Clients kept their own last session, to take it up when they connect again.
    pub resumption: bool,
    /// Handshakes with certificates and a key exchange.
    pub full: u64,
    /// Handshakes that took up an earlier session of the same client.
    pub resumed: u64,
    /// From TCP connected to TLS agreed on, of full handshakes.
    pub full_handshake: Option<Summary>,
    /// The same of those that took up a session.
    pub resumed_handshake: Option<Summary>,
    /// From TLS agreed on to the server's acceptance: the protocol's own opening, and WebSocket's.
    pub opening: Option<Summary>,
    /// What was agreed on, most frequent first.
    pub agreed: Vec<AgreedOn>,
}

/// Version and algorithms of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgreedOn {
    /// `TLS 1.3`.
    pub version: String,
    /// Cipher suite, by its registered name.
    pub suite: String,
    /// Group of the key exchange; `null` where there was none.
    pub group: Option<String>,
    /// An earlier session was taken up.
    pub resumed: bool,
    /// Connections.
    pub count: u64,
}

impl AgreedOn {
    /// From the names that rustls has: `TLSv1_3`, `TLS13_AES_256_GCM_SHA384`.
    pub fn new(version: &str, suite: &str, group: Option<&str>, resumed: bool, count: u64) -> AgreedOn {
        let version = version
            .strip_prefix("TLSv")
            .map_or_else(|| version.to_owned(), |number| format!("TLS {}", number.replace('_', ".")));
        let suite = suite.strip_prefix("TLS13_").map_or_else(|| suite.to_owned(), |rest| format!("TLS_{rest}"));
        AgreedOn { version, suite, group: group.map(str::to_owned), resumed, count }
    }

    /// Is all the same but the number of connections?
    pub fn is_like(&self, other: &AgreedOn) -> bool {
        let same_algorithms = (&self.suite, &self.group) == (&other.suite, &other.group);
        self.version == other.version && self.resumed == other.resumed && same_algorithms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_registered_ones() {
        let new = AgreedOn::new("TLSv1_3", "TLS13_AES_256_GCM_SHA384", Some("X25519"), false, 3);
        assert_eq!((new.version.as_str(), new.suite.as_str()), ("TLS 1.3", "TLS_AES_256_GCM_SHA384"));
        let old = AgreedOn::new("TLSv1_2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", None, true, 1);
        assert_eq!((old.version.as_str(), old.suite.as_str()), ("TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"));
    }

    #[test]
    fn a_rate_is_told_of_ten_sessions_on() {
        assert_eq!(RampUp::new(Side::Devices, 9, 0.5).per_s, None);
        assert_eq!(RampUp::new(Side::Devices, 10, 0.5).per_s, Some(20.0));
        assert_eq!(RampUp::new(Side::Devices, 10, 0.0).per_s, None);
    }
}
