//! The library's settings for one session. What is not set here has the library's default (DEFAULT_CONFIG.json5 of the zenoh
//! repository).

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pubmark_model::workload::Credentials;

/// Longest time for making a connection and agreeing on a transport.
pub const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// Longest time that a peer waits for the one that it is to connect to.
const PEER_WITHIN_MS: u64 = 3_000;
/// Longest wait of a peer for what those know that it connects to. The library's own is 500 ms, and it waits in full where one
/// of them knows a peer that does not listen, which publishers do not.
const KNOWN_WITHIN_MS: u64 = 100;
/// The library's lease, s: a side that receives nothing from the other for so long ends the transport. Each side announces its own.
const DEFAULT_LEASE_S: u16 = 10;

/// Who connects to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// To a router.
    Router(SocketAddr),
    /// A peer that others connect to at the first of these addresses, and that connects to the others.
    Listening(Vec<SocketAddr>),
    /// A peer with a port of its own on the machine of the first of these addresses, which it makes known through those at them.
    Announced(Vec<SocketAddr>),
    /// A peer that connects to those at these addresses, and to all that these know.
    Connecting(Vec<SocketAddr>),
}

/// What a session is opened with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address that it connects from, if it is to be a certain one.
    pub source: Option<IpAddr>,
    /// Seconds of silence after which a side may be given up; 0 for the library's own.
    pub keep_alive_s: u16,
    /// Largest message that is accepted, bytes.
    pub maximum_message_bytes: usize,
    /// Log-in.
    pub credentials: Option<Credentials>,
}

impl Settings {
    /// The library's configuration.
    ///
    /// # Errors
    /// Why the library does not accept it.
    pub fn config(&self, place: &Role) -> Result<::zenoh::Config, String> {
        ::zenoh::Config::from_json5(&self.text(place)).map_err(|error| error.to_string())
    }

    fn text(&self, place: &Role) -> String {
        let any_port = |address: &SocketAddr| SocketAddr::new(address.ip(), 0);
        let (mode, listen, connect) = match place {
            Role::Router(address) => ("client", None, std::slice::from_ref(address)),
            Role::Listening(all) => ("peer", all.first().copied(), all.get(1..).unwrap_or_default()),
            Role::Announced(all) => ("peer", all.first().map(any_port), all.as_slice()),
            Role::Connecting(all) => ("peer", None, all.as_slice()),
        };
        let peer = mode == "peer";
        let source = self.source.map_or(String::new(), |source| format!("#bind={}", SocketAddr::new(source, 0)));
        let locator = |address: SocketAddr, options: &str| format!("\"tcp/{address}{options}\"");
        let listen = listen.map_or(String::new(), |address| locator(address, ""));
        let connect = connect.iter().map(|address| locator(*address, &source)).collect::<Vec<_>>().join(", ");
        // A client tries once; our engine tries again. A peer waits for the one that listens, which may be opening, too.
        let timeout_ms = if peer { PEER_WITHIN_MS } else { 0 };
        let lease_ms = u64::from(if self.keep_alive_s == 0 { DEFAULT_LEASE_S } else { self.keep_alive_s })
            .min(u64::from(DEFAULT_LEASE_S))
            * 1_000;
        let (open_ms, most) = (OPEN_WITHIN.as_millis(), self.maximum_message_bytes);
        let login = self.credentials.as_ref().map_or(String::new(), |login| {
            format!(
                "auth: {{usrpwd: {{user: {}, password: {}}}}},",
                quoted(&login.user),
                quoted(login.password.expose())
            )
        });
        format!(
            "{{mode: \"{mode}\",
              listen: {{endpoints: [{listen}], timeout_ms: 0, exit_on_failure: true}},
              connect: {{endpoints: [{connect}], timeout_ms: {timeout_ms}, exit_on_failure: true,
                retry: {{period_init_ms: 20, period_max_ms: 200, period_increase_factor: 2}}}},
              scouting: {{delay: {KNOWN_WITHIN_MS}, multicast: {{enabled: false}}, gossip: {{enabled: {peer}}}}},
              transport: {{unicast: {{open_timeout: {open_ms}}}, {login}
                link: {{tx: {{lease: {lease_ms}}}, rx: {{max_message_size: {most}}}}}}}}}"
        )
    }
}

/// A string of JSON5.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        if character.is_alphanumeric() || " -_.,:;!/()=+@".contains(character) {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings { source: None, keep_alive_s: 60, maximum_message_bytes: 1 << 20, credentials: None }
    }

    #[test]
    fn the_library_takes_the_settings_of_every_place() {
        let address: SocketAddr = "127.0.0.1:7447".parse().unwrap();
        let all = vec![address, "127.0.0.2:7448".parse().unwrap()];
        for place in [
            Role::Router(address),
            Role::Listening(all.clone()),
            Role::Announced(all.clone()),
            Role::Connecting(all.clone()),
        ] {
            let config = settings().config(&place).unwrap();
            assert_eq!(config.get_json("transport/link/tx/lease").unwrap(), "10000");
            assert_eq!(config.get_json("transport/link/rx/max_message_size").unwrap(), "1048576");
            assert_eq!(config.get_json("scouting/multicast/enabled").unwrap(), "false");
        }
        let text = |place: &Role, key: &str| settings().config(place).unwrap().get_json(key).unwrap();
        let both = "[\"tcp/127.0.0.1:7447\",\"tcp/127.0.0.2:7448\"]";
        assert_eq!(text(&Role::Connecting(all.clone()), "connect/endpoints"), both);
        assert_eq!(text(&Role::Announced(all.clone()), "listen/endpoints"), "[\"tcp/127.0.0.1:0\"]");
        assert_eq!(text(&Role::Listening(all), "connect/endpoints"), "[\"tcp/127.0.0.2:7448\"]");
        let config = Settings { source: Some("127.0.0.9".parse().unwrap()), ..settings() };
        let config = config.config(&Role::Router("[::1]:7447".parse().unwrap())).unwrap();
        assert_eq!(config.get_json("connect/endpoints").unwrap(), "[\"tcp/[::1]:7447#bind=127.0.0.9:0\"]");
    }

    #[test]
    fn a_log_in_stays_what_it_is() {
        let password = "q\"uo\\te}\n\u{2028}ü 🦀";
        let credentials = Some(Credentials { user: "ann".to_owned(), password: password.into() });
        let config = Settings { credentials, ..settings() }.config(&Role::Router("127.0.0.1:1".parse().unwrap()));
        let found = config.unwrap().get_json("transport/auth/usrpwd/password").unwrap();
        assert_eq!(found, format!("{password:?}").replace("\\u{2028}", "\u{2028}"));
    }
}
