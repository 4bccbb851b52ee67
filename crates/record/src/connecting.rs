//! How connections were made: how fast, and what TLS took of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Summary;

/// How the sessions of one side came up before the schedule began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RampUp {
    /// `subscribers`, which come first, or `devices`.
    pub side: String,
    /// Sessions that the system accepted.
    pub accepted: u64,
    /// From the first try to the last acceptance, seconds.
    pub seconds: f64,
    /// Accepted per second over that time; `null` below ten sessions, where it says nothing. At most what `connects_per_s` of the
    /// settings lets be tried.
    pub per_s: Option<f64>,
}

impl RampUp {
    /// Sessions from which on a rate is told.
    const FEWEST: u64 = 10;

    /// Of a side, `seconds` from the first try to the last acceptance.
    pub fn new(side: &str, accepted: u64, seconds: f64) -> RampUp {
        let per_s = (accepted >= RampUp::FEWEST && seconds > 0.0).then(|| accepted as f64 / seconds);
        RampUp { side: side.to_owned(), accepted, seconds, per_s }
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
    /// From TCP connected to TLS agreed on, of full handshakes, µs.
    pub full_us: Option<Summary>,
    /// The same of those that took up a session.
    pub resumed_us: Option<Summary>,
    /// From TLS agreed on to the server's acceptance: the protocol's own opening, and WebSocket's, µs.
    pub opening_us: Option<Summary>,
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
        assert_eq!(RampUp::new("devices", 9, 0.5).per_s, None);
        assert_eq!(RampUp::new("devices", 10, 0.5).per_s, Some(20.0));
        assert_eq!(RampUp::new("devices", 10, 0.0).per_s, None);
    }
}
