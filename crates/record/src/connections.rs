//! Connections: how many were opened and how fast, the cost of TLS, and why connections ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::Summary;
use crate::verdict::subscriptions::{NOT_PERMITTED, REFUSED, REVOKED};

/// Counts and times of connections; planned churn is counted separately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Connects attempted.
    pub attempted: u64,
    /// Connects that succeeded.
    pub established: u64,
    /// Connects that failed: the system was not reached, or refused the connection.
    pub refused: u64,
    /// Connects refused because of a wrong or missing user name or password.
    pub auth_failed: u64,
    /// Of `dropped`, connections that the system ended because the log-in was no longer valid: a token expired, or
    /// permissions were revoked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub log_in_ended: u64,
    /// New tokens that the system accepted on open connections (MQTT 5 re-authentication).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reauthenticated: u64,
    /// Connects that failed in the TLS handshake.
    pub tls_failed: u64,
    /// Connections that ended without a request of pubmark.
    pub dropped: u64,
    /// Connects repeated after a failure or a drop.
    pub retried: u64,
    /// Clients that should have been connected and never were; `null` in records of older versions.
    #[serde(default)]
    pub never_connected: Option<u64>,
    /// Planned disconnects by churn.
    pub planned_leaves: u64,
    /// Subscriptions refused by the server; a refusal that is repeated after a reconnect counts once.
    pub subscriptions_refused: u64,
    /// Subscriptions that the server granted, and ended in the run while their connection lasted: permissions were taken away, or
    /// a stream or consumer was deleted. Each counts once, here or in `subscriptions_refused`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub subscriptions_revoked: u64,
    /// Each cause with its count, most frequent first, at most 32.
    pub causes: Vec<CauseCount>,
    /// Time from connect to the server's acceptance: TCP, TLS, and the opening handshake of the protocol.
    pub connect_time: Option<Summary>,
    /// Session establishment before the schedule began, by side.
    #[serde(default)]
    pub ramp_up: Vec<RampUp>,
    /// Subscriptions granted at a lower QoS than requested, each counted once.
    pub granted_qos_lower: u64,
    /// Messages sent again after a reconnect.
    pub resent: u64,
    /// Handshakes and session resumption of TLS; `null` without TLS.
    #[serde(default)]
    pub tls: Option<TlsFigures>,
    /// Outcomes of wills; `null` if no device has one.
    #[serde(default)]
    pub wills: Option<WillCounts>,
    /// Reports of client programs (`--client`); `null` without them.
    #[serde(default)]
    pub client_programs: Option<ClientPrograms>,
}

impl Connections {
    /// Subscriptions that the system refused, or granted and revoked.
    pub fn subscriptions_not_held(&self) -> u64 {
        self.subscriptions_refused + self.subscriptions_revoked
    }

    /// Starts of the causes of a refusal or an end by the system.
    const BY_THE_SYSTEM: [&str; 4] = ["refused: ", "not authorized: ", "ended by the server", "dropped: "];

    /// Most frequent cause for which connections failed or ended; `None` if none did.
    pub fn main_cause(&self) -> Option<&str> {
        let of_other = |cause: &str| [REFUSED, REVOKED, NOT_PERMITTED].iter().any(|start| cause.starts_with(start));
        self.causes.iter().map(|cause| cause.cause.as_str()).find(|cause| !of_other(cause))
    }

    /// Whether the most frequent cause is a refusal or an end of the connection by the system. A missing route, too few ports or
    /// open files, and no response to a connect are not: the network or this machine may have caused them.
    pub fn is_refused(&self) -> bool {
        self.main_cause().is_some_and(|cause| {
            let by_its_kernel =
                cause.starts_with("unreachable: ") && cause.to_lowercase().contains("connection refused");
            by_its_kernel || Self::BY_THE_SYSTEM.iter().any(|start| cause.starts_with(start))
        })
    }

    /// Whether the most frequent cause shows that something responded: it refused or ended the connection, speaks another protocol, or
    /// its TLS and ours did not agree.
    pub fn has_responded(&self) -> bool {
        let is_response =
            |cause: &str| cause.starts_with("protocol error of the server: ") || cause.starts_with("TLS: ");
        self.is_refused() || self.main_cause().is_some_and(is_response)
    }

    /// Whether the most frequent cause is a connect without a response: the system's failure where no network may have lost it.
    pub fn is_unanswered(&self) -> bool {
        self.main_cause().is_some_and(|cause| cause.starts_with("unreachable: no response"))
    }
}

/// Zero counts are omitted: records from before this count existed lack it as well.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Reports of client programs about themselves, and the cost of the exchange with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientPrograms {
    /// Name and version of the client library, as the program reports it.
    pub library: String,
    /// Ping to pong, measured ten times per second: the round trip to the program, which is part of the upper bound of
    /// each latency.
    pub round_trip: Option<Summary>,
    /// Reports that cannot be correct, by name (docs/reference/client-protocol.md).
    pub misreports: BTreeMap<String, u64>,
    /// How a program ended before the end of the run; `null` if none did.
    pub ended: Option<String>,
}

/// Wills: messages that the system publishes for devices that disconnect abnormally. No schedule offers them, so they
/// are not part of the message accounting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WillCounts {
    /// Connections with a will that ended without a DISCONNECT from pubmark.
    pub due: u64,
    /// The same, before the system's acceptance was read, or at the end of the run: whether their wills come is not known. `null` in
    /// records of older versions.
    #[serde(default)]
    pub undetermined: Option<u64>,
    /// Wills that arrived, counted once for each subscription.
    pub delivered: u64,
}

/// How often a cause occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CauseCount {
    /// The cause in words.
    pub cause: String,
    /// Number of occurrences.
    pub count: u64,
}

/// Session establishment of one side before the schedule began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RampUp {
    /// The side of these sessions; the row of subscribers comes first.
    pub side: Side,
    /// Sessions that the system accepted.
    pub accepted: u64,
    /// From the first attempt to the last acceptance, seconds.
    pub seconds: f64,
    /// Sessions accepted per second over that time; `null` below ten sessions, where the rate is not meaningful.
    /// Bounded by `connects_per_s` of the settings.
    pub per_s: Option<f64>,
}

/// A side of the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Publishers and requesters.
    #[default]
    Devices,
    /// Subscribers and responders.
    Subscribers,
}

impl Side {
    /// Name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Side::Devices => "devices",
            Side::Subscribers => "subscribers",
        }
    }
}

impl RampUp {
    /// Fewest sessions for which a rate is reported.
    const FEWEST: u64 = 10;

    /// Sessions of a side that were accepted in `seconds`, from the first attempt to the last acceptance.
    pub fn new(side: Side, accepted: u64, seconds: f64) -> RampUp {
        let per_s = (accepted >= RampUp::FEWEST && seconds > 0.0).then(|| accepted as f64 / seconds);
        RampUp { side, accepted, seconds, per_s }
    }
}

/// Handshakes of TLS, from the first connect to the last of the run, reconnects included. How they are measured:
/// docs/explanation/tls-and-websocket.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TlsFigures {
    /// Each client stored its last TLS session to resume it on the next connect; `null` where a client program or a client
    /// library decides about it.
    pub resumption: Option<bool>,
    /// Handshakes with certificates and a key exchange.
    pub full: u64,
    /// Handshakes that resumed an earlier session of the same client.
    pub resumed: u64,
    /// From the TCP connection to the end of the TLS handshake, for full handshakes.
    pub full_handshake: Option<Summary>,
    /// The same for handshakes that resumed a session.
    pub resumed_handshake: Option<Summary>,
    /// From the end of the TLS handshake to the server's acceptance: the opening handshakes of the protocol and of
    /// WebSocket.
    pub opening: Option<Summary>,
    /// Negotiated versions and algorithms, most frequent first.
    pub agreed: Vec<AgreedOn>,
}

/// Negotiated version and algorithms of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgreedOn {
    /// TLS version, for instance `TLS 1.3`.
    pub version: String,
    /// Cipher suite, by its registered name.
    pub suite: String,
    /// Group of the key exchange; `null` where there was none.
    pub group: Option<String>,
    /// An earlier session was resumed.
    pub resumed: bool,
    /// Number of connections.
    pub count: u64,
}

impl AgreedOn {
    /// Converts the names that rustls uses: `TLSv1_3`, `TLS13_AES_256_GCM_SHA384`.
    pub fn new(version: &str, suite: &str, group: Option<&str>, resumed: bool, count: u64) -> AgreedOn {
        let version = version
            .strip_prefix("TLSv")
            .map_or_else(|| version.to_owned(), |number| format!("TLS {}", number.replace('_', ".")));
        let suite = suite.strip_prefix("TLS13_").map_or_else(|| suite.to_owned(), |rest| format!("TLS_{rest}"));
        AgreedOn { version, suite, group: group.map(str::to_owned), resumed, count }
    }

    /// Whether both are equal except for the number of connections.
    pub fn is_like(&self, other: &AgreedOn) -> bool {
        let same_algorithms = (&self.suite, &self.group) == (&other.suite, &other.group);
        self.version == other.version && self.resumed == other.resumed && same_algorithms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_refuses_by_an_answer_and_not_by_what_this_machine_lacks() {
        let is_refused = |causes: &[&str]| {
            let causes = causes.iter().map(|cause| CauseCount { cause: (*cause).to_owned(), count: 1 }).collect();
            Connections { causes, ..Connections::default() }.is_refused()
        };
        for cause in [
            "refused: server unavailable (0x88)",
            "not authorized: bad user name or password (0x86)",
            "ended by the server: server busy (0x89)",
            "ended by the server, credentials no longer valid: expired",
            "dropped: Connection reset by peer (os error 104)",
            "unreachable: Connection refused (os error 111)",
            "unreachable: dial tcp 10.0.0.1:1883: connect: connection refused",
        ] {
            assert!(is_refused(&[cause]), "{cause}");
        }
        for cause in [
            "unreachable: No route to host (os error 113)",
            "unreachable: Cannot assign requested address (os error 99)",
            "unreachable: Too many open files (os error 24)",
            "unreachable: no response within 10 s",
            "TLS: invalid peer certificate: certificate not valid for name",
            "other causes",
        ] {
            assert!(!is_refused(&[cause]), "{cause}");
            assert!(!is_refused(&[cause, "refused: server unavailable (0x88)"]), "{cause} is more frequent");
        }
        assert!(!is_refused(&[]));
        assert!(is_refused(&["subscription refused: not authorized", "refused: quota exceeded (0x97)"]));
    }

    #[test]
    fn what_speaks_another_protocol_has_responded_and_what_is_silent_has_not() {
        let of = |cause: &str| Connections {
            causes: vec![CauseCount { cause: cause.to_owned(), count: 1 }],
            ..Connections::default()
        };
        for (cause, is_refused, has_responded) in [
            ("unreachable: Connection refused (os error 111)", true, true),
            ("refused: server unavailable (0x88)", true, true),
            ("protocol error of the server: not CONNACK; it answered `HTTP/1.1 400`", false, true),
            ("TLS: received fatal alert: handshake_failure", false, true),
            ("unreachable: no response within 10 s", false, false),
            ("unreachable: No route to host (os error 113)", false, false),
            ("unreachable: Cannot assign requested address (os error 99)", false, false),
        ] {
            let connections = of(cause);
            assert_eq!((connections.is_refused(), connections.has_responded()), (is_refused, has_responded), "{cause}");
        }
        assert!(!Connections::default().has_responded());
    }

    #[test]
    fn names_are_the_registered_ones() {
        let new = AgreedOn::new("TLSv1_3", "TLS13_AES_256_GCM_SHA384", Some("X25519"), false, 3);
        assert_eq!((new.version.as_str(), new.suite.as_str()), ("TLS 1.3", "TLS_AES_256_GCM_SHA384"));
        let old = AgreedOn::new("TLSv1_2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", None, true, 1);
        assert_eq!((old.version.as_str(), old.suite.as_str()), ("TLS 1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"));
    }

    #[test]
    fn a_rate_is_shown_from_ten_sessions_on() {
        assert_eq!(RampUp::new(Side::Devices, 9, 0.5).per_s, None);
        assert_eq!(RampUp::new(Side::Devices, 10, 0.5).per_s, Some(20.0));
        assert_eq!(RampUp::new(Side::Devices, 10, 0.0).per_s, None);
    }
}
