//! `--endpoint`: parses the user's text and resolves it to an address that an adapter can use.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use pubmark_model::secret::{MASK, Secret, without_password};
use pubmark_model::workload::Credentials;
use pubmark_protocol::capabilities::{Capabilities, OverWebSocket};
use pubmark_protocol::endpoint::{Endpoint, Identity, Tls, Upgrade};

use crate::error::{ErrorKind, RunError};
use crate::relay::RelayProcess;
use crate::suggestion;

/// Longest wait for a connection to each address of a host name before the next is tried.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for an error after a datagram was sent to a closed port.
const REFUSED_WITHIN: Duration = Duration::from_millis(50);

/// An endpoint as it is written, checked but not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Scheme, lowercase.
    pub scheme: String,
    /// Name, IPv4 address, or IPv6 address without brackets.
    pub host: String,
    /// The given port, or the default port of the scheme.
    pub port: u16,
    /// The scheme requires TLS.
    pub encrypted: bool,
    /// The scheme requires a WebSocket.
    pub upgrade: Option<Upgrade>,
    /// Log-in before the host.
    pub credentials: Option<Credentials>,
    /// Settings after the port, for protocols whose endpoints have them.
    pub settings: Option<String>,
}

/// Why an endpoint cannot be used. No error message contains a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No `://`.
    #[error("endpoint `{shown}` has no scheme")]
    NoScheme {
        /// The endpoint without its log-in.
        shown: String,
        /// Scheme to put in front.
        scheme: &'static str,
    },
    /// A scheme the protocol does not have.
    #[error("endpoint scheme `{scheme}` is not one of {protocol}")]
    OtherScheme {
        /// The scheme as written.
        scheme: String,
        /// The protocol's name.
        protocol: &'static str,
        /// Schemes of the protocol.
        schemes: &'static [&'static str],
    },
    /// The host is missing.
    #[error("endpoint `{shown}` names no host")]
    NoHost {
        /// The endpoint without its log-in.
        shown: String,
        /// The scheme as written.
        scheme: String,
    },
    /// A port that is not a number from 1 to 65535.
    #[error("endpoint port `{port}` is not a number from 1 to 65535")]
    BadPort {
        /// The port as written.
        port: String,
    },
    /// An IPv6 address that is not in brackets, or not an address.
    #[error("endpoint host `{host}` is not an address")]
    BadAddress {
        /// The host as written.
        host: String,
    },
    /// Text after the port.
    #[error("endpoint has `{rest}` behind its port")]
    Trailing {
        /// This text.
        rest: String,
    },
    /// A WebSocket path that no HTTP request can contain.
    #[error("endpoint path `{path}` cannot be asked for")]
    BadPath {
        /// The path as written.
        path: String,
    },
    /// Settings that the protocol does not have, or cannot use.
    #[error("endpoint has settings that {protocol} cannot take: {reason}")]
    BadSettings {
        /// The protocol's name.
        protocol: &'static str,
        /// The reason.
        reason: String,
    },
    /// A `%` in the log-in that is not followed by two hexadecimal digits, or bytes that are no UTF-8.
    #[error("endpoint log-in is not percent-encoded")]
    BadEncoding,
}

impl EndpointError {
    /// Hint for the user.
    pub fn hint(&self) -> String {
        match self {
            EndpointError::NoScheme { shown, scheme } => format!("`--endpoint {scheme}://{shown}`"),
            EndpointError::OtherScheme { scheme, schemes, .. } => suggestion::choices(scheme, schemes.iter().copied()),
            EndpointError::NoHost { scheme, .. } => format!("`--endpoint {scheme}://localhost`"),
            EndpointError::BadPort { .. } => "leave it out for the protocol's own port".to_owned(),
            EndpointError::BadAddress { .. } => "an IPv6 address stands in brackets: `mqtt://[::1]:1883`".to_owned(),
            EndpointError::Trailing { .. } => "an endpoint ends with its port: `mqtt://host:1883`".to_owned(),
            EndpointError::BadPath { .. } => {
                "a path has letters, digits and signs without `#`; others are written `%` and two digits".to_owned()
            }
            EndpointError::BadSettings { protocol, .. } => {
                format!("docs/how-to/set-protocol-options.md says which settings an endpoint of {protocol} has")
            }
            EndpointError::BadEncoding => {
                "write `%` as `%25`, `@` as `%40`, `:` as `%3A`; or use `--user` with `--password-env` or `--password-file`".to_owned()
            }
        }
    }
}

impl EndpointError {
    /// Shows a part of a URL with a log-in only if it is after the log-in: in a malformed URL it may be the password.
    fn without_password_of(self, url: &str) -> EndpointError {
        let masked = without_password(url);
        if masked == url {
            return self;
        }
        let behind = masked.rsplit(MASK).next().unwrap_or_default();
        // A numeric address is not a likely password.
        let is_address = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.[]".contains(&byte));
        let is_shown = |part: &str| behind.contains(part) || (is_address(part) && part.matches(':').count() > 1);
        let shown = |part: String| if is_shown(&part) { part } else { MASK.to_owned() };
        match self {
            EndpointError::OtherScheme { scheme, protocol, schemes } => {
                let is_word = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
                let scheme = if is_word { scheme } else { MASK.to_owned() };
                EndpointError::OtherScheme { scheme, protocol, schemes }
            }
            EndpointError::BadPort { port } => EndpointError::BadPort { port: shown(port) },
            EndpointError::BadAddress { host } => EndpointError::BadAddress { host: shown(host) },
            EndpointError::Trailing { rest } => EndpointError::Trailing { rest: shown(rest) },
            EndpointError::BadPath { path } => EndpointError::BadPath { path: shown(path) },
            error @ (EndpointError::NoScheme { .. }
            | EndpointError::NoHost { .. }
            | EndpointError::BadSettings { .. }
            | EndpointError::BadEncoding) => error,
        }
    }
}

impl From<EndpointError> for RunError {
    fn from(error: EndpointError) -> RunError {
        RunError::from_error(ErrorKind::Input, &error).hint(error.hint())
    }
}

impl Written {
    /// Reads `scheme://[user[:password]@]host[:port][/]` for the protocol with these capabilities; over WebSocket a path may
    /// follow.
    pub fn parse(text: &str, protocol: &Capabilities) -> Result<Written, EndpointError> {
        Written::read(text, protocol).map_err(|error| error.without_password_of(text))
    }

    fn read(text: &str, protocol: &Capabilities) -> Result<Written, EndpointError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            let host_port = text.rsplit_once('@').map_or(text, |(_, host_port)| host_port);
            let shown = without_password(&format!("://{host_port}")).trim_start_matches("://").to_owned();
            return Err(EndpointError::NoScheme { shown, scheme: protocol.schemes.first().copied().unwrap_or("") });
        };
        let scheme = scheme.to_ascii_lowercase();
        let encrypted = protocol.tls_schemes.contains(&scheme.as_str());
        if !encrypted && !protocol.schemes.contains(&scheme.as_str()) {
            let (protocol, schemes) = (protocol.name, protocol.schemes);
            return Err(EndpointError::OtherScheme { scheme, protocol, schemes });
        }
        let over = protocol.features.websocket.filter(|over| over.schemes.contains(&scheme.as_str()));
        // Settings of endpoints without a log-in, and a path, may hold an `@`.
        let begin = protocol.features.settings.and_then(|settings| {
            // A sign in a log-in that is not percent-encoded has always been read as a part of the log-in.
            let has_log_in = protocol.features.log_in || settings.begins_with == '/';
            let from = if has_log_in { rest.rfind('@').map_or(0, |at| at + 1) } else { 0 };
            rest[from..].find(settings.begins_with).map(|at| from + at)
        });
        let (rest, settings) = match begin {
            // A single slash, which any endpoint may end with, has no meaning.
            Some(at) => (&rest[..at], Some(rest[at..].to_owned()).filter(|settings| settings != "/")),
            None => (rest, None),
        };
        if let (Some(has), Some(settings)) = (protocol.features.settings, &settings) {
            (has.check)(settings).map_err(|reason| {
                // Settings that begin inside a log-in are a part of it.
                let reason = if settings.contains('@') { MASK.to_owned() } else { reason };
                EndpointError::BadSettings { protocol: protocol.name, reason }
            })?;
        }
        let (rest, path) = match rest.find('/').filter(|_| over.is_some()) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (login, host_port) = match rest.rsplit_once('@') {
            Some((login, host_port)) => (Some(login), host_port),
            None => (None, rest),
        };
        let host_port = host_port.strip_suffix('/').unwrap_or(host_port);
        let default_port = match over {
            Some(_) => OverWebSocket::PORTS[usize::from(encrypted)],
            None if encrypted => protocol.default_tls_port,
            None => protocol.default_port,
        };
        let (host, port) = split_host_port(host_port)?;
        if host.is_empty() {
            return Err(EndpointError::NoHost { shown: format!("{scheme}://{host_port}"), scheme });
        }
        let port = port.map_or(Ok(default_port), read_port)?;
        let credentials = login.map(read_login).transpose()?;
        let upgrade = over.map(|over| upgrade(&over, &host, port, path)).transpose()?;
        Ok(Written { scheme, host, port, encrypted, upgrade, credentials, settings })
    }

    /// Without the log-in; for messages and records.
    pub fn shown(&self) -> String {
        let path = self.upgrade.as_ref().map_or("", |upgrade| upgrade.path.as_str());
        let settings = self.settings.as_deref().unwrap_or("");
        format!("{}://{}{path}{settings}", self.scheme, authority(&self.host, self.port))
    }

    /// Resolves the host; through the relay if this process has left the machine's network.
    pub fn resolve(
        self,
        authorities: Option<PathBuf>,
        identity: Option<Identity>,
        relay: Option<&RelayProcess>,
    ) -> Result<Endpoint, RunError> {
        let shown = self.shown();
        let address = match relay {
            Some(relay) => relay.resolve(&self.host, self.port),
            None => address_of(&self.host, self.port),
        }?;
        let tls = self.encrypted.then(|| Tls { server_name: self.host.clone(), authorities, identity });
        let settings = self.settings.map(Into::into);
        Ok(Endpoint { shown, address, tls, credentials: self.credentials, upgrade: self.upgrade, settings })
    }
}

/// Resolves a host. Of several addresses it returns the first that accepts a connection, or the first of all if none does: `localhost` is
/// often `::1` and `127.0.0.1`, and a broker listens on one of them. A UDP server does not confirm a connection, but this machine reports a
/// closed local port at once.
///
/// # Errors
/// The host has no address.
pub fn address_of(host: &str, port: u16) -> Result<SocketAddr, RunError> {
    let addresses: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error)
                .during(format!("failed to find the address of `{host}`"))
                .hint("check the name, or write the address")
        })?
        .collect();
    let answers =
        |address: &&SocketAddr| addresses.len() == 1 || TcpStream::connect_timeout(address, REPORT_TIMEOUT).is_ok();
    let answering = addresses.iter().find(answers);
    let found = answering.or_else(|| addresses.iter().find(|address| !refuses_datagrams(**address)));
    found.or(addresses.first()).copied().ok_or_else(|| RunError::input(format!("`{host}` has no address")))
}

/// Host and port, as URLs write them.
fn authority(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// The HTTP request of a WebSocket. Each value is written into one line of HTTP, so it must not contain a line end.
pub fn upgrade(over: &OverWebSocket, host: &str, port: u16, path: &str) -> Result<Upgrade, EndpointError> {
    let can_be_asked_for = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !can_be_asked_for(path) {
        return Err(EndpointError::BadPath { path: path.to_owned() });
    }
    if !can_be_asked_for(host) {
        return Err(EndpointError::BadAddress { host: host.to_owned() });
    }
    let path = if path.len() > 1 { path } else { over.path };
    Ok(Upgrade { host: authority(host, port), path: path.to_owned(), subprotocol: over.subprotocol.to_owned() })
}

/// Whether the port is known to be closed for datagrams. Sends an empty datagram; the error of a closed port arrives at
/// once, if it arrives.
fn refuses_datagrams(address: SocketAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let sent = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.set_read_timeout(Some(REFUSED_WITHIN))?;
        socket.connect(address)?;
        socket.send(&[])?;
        socket.recv(&mut [0; 1])
    });
    // A server that waits for more data sends nothing.
    sent.is_err_and(|error| !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}

fn split_host_port(host_port: &str) -> Result<(String, Option<&str>), EndpointError> {
    if let Some(bracketed) = host_port.strip_prefix('[') {
        let Some((host, behind)) = bracketed.split_once(']') else {
            return Err(EndpointError::BadAddress { host: host_port.to_owned() });
        };
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(EndpointError::BadAddress { host: host.to_owned() });
        }
        return match behind.strip_prefix(':') {
            Some(port) => Ok((host.to_owned(), Some(port))),
            None if behind.is_empty() => Ok((host.to_owned(), None)),
            None => Err(EndpointError::Trailing { rest: behind.to_owned() }),
        };
    }
    if let Some(at) = host_port.find(['/', '?', '#']) {
        return Err(EndpointError::Trailing { rest: host_port[at..].to_owned() });
    }
    match host_port.split_once(':') {
        Some((_, port)) if port.contains(':') => Err(EndpointError::BadAddress { host: host_port.to_owned() }),
        Some((host, port)) => Ok((host.to_owned(), Some(port))),
        None => Ok((host_port.to_owned(), None)),
    }
}

fn read_port(port: &str) -> Result<u16, EndpointError> {
    match port.parse::<u16>() {
        Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
        _ => Err(EndpointError::BadPort { port: port.to_owned() }),
    }
}

fn read_login(login: &str) -> Result<Credentials, EndpointError> {
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    Ok(Credentials { user: decode(user)?, password: Secret::new(decode(password)?) })
}

/// Percent-decoding (RFC 3986 §2.1).
fn decode(text: &str) -> Result<String, EndpointError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = behind;
            continue;
        }
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or(EndpointError::BadEncoding)?);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| EndpointError::BadEncoding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_protocol::capabilities::{EndpointSettings, Features, SentMeans};

    const PROTOCOL: Capabilities = Capabilities {
        name: "mqtt5",
        title: "MQTT 5.0",
        schemes: &["mqtt", "mqtts", "ws", "wss"],
        tls_schemes: &["mqtts", "wss"],
        default_port: 1883,
        default_tls_port: 8883,
        levels: &[],
        wildcards: true,
        retain: true,
        persistent_sessions: true,
        ends_sessions: true,
        features: Features {
            websocket: Some(OverWebSocket { schemes: ["ws", "wss"], subprotocol: "mqtt", path: "/mqtt" }),
            ..Features::NONE
        },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: 268_435_455,
        check_topic: None,
        filter_matches: None,
    };

    fn parse(text: &str) -> Result<Written, EndpointError> {
        Written::parse(text, &PROTOCOL)
    }

    #[test]
    fn datagrams_without_a_receiver_are_reported() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("an address");
        assert!(!refuses_datagrams(address));
        drop(socket);
        assert!(refuses_datagrams(address));
    }

    #[test]
    fn every_form_is_read() {
        for (text, host, port, encrypted) in [
            ("mqtt://localhost", "localhost", 1883, false),
            ("mqtt://localhost/", "localhost", 1883, false),
            ("MQTTS://broker.example", "broker.example", 8883, true),
            ("mqtt://10.0.0.1:2000", "10.0.0.1", 2000, false),
            ("mqtt://[::1]", "::1", 1883, false),
            ("mqtts://[fe80::1]:99/", "fe80::1", 99, true),
        ] {
            let written = parse(text).expect(text);
            assert_eq!((written.host.as_str(), written.port, written.encrypted), (host, port, encrypted), "{text}");
        }
    }

    #[test]
    fn a_websocket_has_a_path_and_ports_of_its_own() {
        for (text, shown, host, path) in [
            ("ws://broker.example", "ws://broker.example:80/mqtt", "broker.example:80", "/mqtt"),
            ("wss://broker.example/", "wss://broker.example:443/mqtt", "broker.example:443", "/mqtt"),
            ("ws://ann:pw@[::1]:9001/a/b?c=@d", "ws://[::1]:9001/a/b?c=@d", "[::1]:9001", "/a/b?c=@d"),
        ] {
            let written = parse(text).expect(text);
            let upgrade = written.upgrade.clone().expect("a WebSocket");
            assert_eq!((written.shown().as_str(), upgrade.host.as_str(), upgrade.path.as_str()), (shown, host, path));
            assert_eq!(upgrade.subprotocol, "mqtt");
        }
        assert_eq!(parse("mqtt://h").expect("an endpoint").upgrade, None);
        for wrong in ["ws://h/a b", "ws://h/a\r\nX: y", "ws://h/a#b", "ws://h/ä"] {
            let error = parse(wrong).expect_err(wrong);
            assert!(error.to_string().contains("cannot be asked for"), "{error}");
        }
        assert!(parse("ws://a b/").is_err());
    }

    #[test]
    fn the_log_in_is_decoded_and_never_shown() {
        let written = parse("mqtt://ann:p%40ss%3Aw@host:1").expect("an endpoint");
        assert_eq!(written.credentials, Some(Credentials { user: "ann".into(), password: "p@ss:w".into() }));
        assert_eq!(written.shown(), "mqtt://host:1");
        for wrong in [
            "ann:secret@host",
            "ann:secret",
            "mqtt:/ann:secret@host",
            "mqtt://ann:secret",
            "mqtt://ann:?secret",
            "ws://ann:x/secret@host",
            "mqtt://ann:secret@host:0",
            "mqtt://ann:secret@",
            "x://ann:secret@host",
        ] {
            let error = parse(wrong).expect_err(wrong);
            assert!(!error.to_string().contains("secret") && !error.hint().contains("secret"), "{error}");
        }
    }

    #[test]
    fn each_fault_says_what_to_type() {
        for (wrong, message, hint) in [
            ("localhost:1883", "endpoint `localhost:1883` has no scheme", "`--endpoint mqtt://localhost:1883`"),
            (
                "mqt://h",
                "endpoint scheme `mqt` is not one of mqtt5",
                "did you mean `mqtt`? There are: `mqtt`, `mqtts`, `ws`, `wss`",
            ),
            ("mqtt://", "endpoint `mqtt://` names no host", "`--endpoint mqtt://localhost`"),
            ("mqtt://h:70000", "endpoint port `70000` is not a number from 1 to 65535", "leave it out"),
            ("mqtt://h:+1", "endpoint port `…` is not", "leave it out"),
            ("mqtt://::1:1883", "endpoint host `::1:1883` is not an address", "`mqtt://[::1]:1883`"),
            ("mqtt://[::1", "endpoint host `[::1` is not an address", "brackets"),
            ("mqtt://[::1]x", "endpoint has `x` behind its port", "ends with its port"),
            ("mqtt://h:1/topic", "endpoint has `/topic` behind its port", "ends with its port"),
            ("mqtt://a%zz@h", "endpoint log-in is not percent-encoded", "%25"),
        ] {
            let error = parse(wrong).expect_err(wrong);
            assert!(error.to_string().contains(message), "{wrong}: {error}");
            assert!(error.hint().contains(hint), "{wrong}: {}", error.hint());
        }
    }

    #[test]
    fn what_a_protocol_has_behind_the_port_is_kept_as_it_was_written() {
        let check = |settings: &str| if settings.ends_with('!') { Err("it ends with `!`".to_owned()) } else { Ok(()) };
        let settings = Some(EndpointSettings { begins_with: '/', check, finds: None });
        let features = Features { settings, ..Features::NONE };
        let hosted = Capabilities { schemes: &["amqp"], tls_schemes: &[], features, ..PROTOCOL };
        for (text, shown, expected) in [
            ("amqp://ann:pw@h:5/a%2Fb", "amqp://h:5/a%2Fb", Some("/a%2Fb")),
            ("amqp://ann:a/b@h:5/x", "amqp://h:5/x", Some("/x")),
            ("amqp://[::1]:5/x", "amqp://[::1]:5/x", Some("/x")),
            ("amqp://h/", "amqp://h:1883", None),
            ("amqp://h", "amqp://h:1883", None),
        ] {
            let written = Written::parse(text, &hosted).expect(text);
            assert_eq!((written.shown().as_str(), written.settings.as_deref()), (shown, expected));
        }
        let error = Written::parse("amqp://h:5/a!", &hosted).expect_err("no name");
        assert!(error.to_string().contains("it ends with `!`"), "{error}");
    }

    #[test]
    fn a_sign_in_a_log_in_begins_no_settings() {
        let check = |settings: &str| if settings == "?a=b" { Ok(()) } else { Err("it is not `?a=b`".to_owned()) };
        let settings = Some(EndpointSettings { begins_with: '?', check, finds: None });
        let features = Features { settings, log_in: true, ..Features::NONE };
        let with_log_in = Capabilities { schemes: &["nats"], tls_schemes: &[], features, ..PROTOCOL };
        for text in ["nats://ann:p?w@h:5?a=b", "nats://h:5?a=b", "nats://h:5/?a=b"] {
            let written = Written::parse(text, &with_log_in).expect(text);
            assert_eq!((written.host.as_str(), written.port, written.settings.as_deref()), ("h", 5, Some("?a=b")));
        }
        let written = Written::parse("nats://ann:p?w@h:5", &with_log_in).expect("a log-in");
        assert_eq!((written.settings, written.credentials.is_some()), (None, true));
    }

    #[test]
    fn an_ipv6_address_is_shown_in_brackets() {
        assert_eq!(parse("mqtt://[::1]:5").expect("an endpoint").shown(), "mqtt://[::1]:5");
    }
}
