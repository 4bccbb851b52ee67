//! From TCP to a log-in: INFO, TLS, CONNECT. What NATS and JetStream have in common.

use pubmark_protocol::events::{Cause, Connected, Reason};
use pubmark_protocol::log_in::LogIn;
use pubmark_protocol::nkey::NKey;
use pubmark_wire::front::Front;
use pubmark_wire::nats::{Connect, Info, Operation, PING, encode_connect, next, subjects};

use crate::connection::{Link, Phase, Refusal, Shared, Times};
use crate::payload;

/// What clients in Rust call themselves.
const LANGUAGE: &str = "rust";
/// Largest `max_payload` that a server can be set to, bytes (nats-server, `MAX_PAYLOAD_MAX_SIZE`).
pub const LARGEST_PAYLOAD_BYTES: u32 = 64 << 20;

/// Start of a server's error about a subject that may not be subscribed to.
const FORBIDDEN: &str = "permissions violation for subscription to \"";
/// Starts of its errors about a message that it does not pass on. It goes on with the connection.
const REFUSED_MESSAGES: [&str; 2] = ["permissions violation for publish", "invalid publish subject"];
/// Its error about a subscription beyond the most of a connection. It goes on with the connection.
pub const TOO_MANY_SUBSCRIPTIONS: &str = "maximum subscriptions exceeded";

/// What is known of the server, and of ourselves.
#[derive(Debug, Default)]
pub struct Opening {
    /// Why a topic or a filter has no subject.
    unusable: Option<String>,
    maximum_payload_bytes: u32,
    /// The server's first INFO of this connection was handled: a PONG may be that of the log-in.
    greeted: bool,
}

impl Opening {
    /// The subjects of a topic or filter; none if it has none, which [`Opening::begin`] reports.
    pub fn subjects(&mut self, topic: &str) -> Vec<String> {
        subjects(topic).unwrap_or_else(|error| {
            self.unusable = Some(error.to_string());
            vec![]
        })
    }

    /// TCP is connected: the server begins.
    pub fn begin(&mut self) -> Result<(), Cause> {
        self.greeted = false;
        self.unusable.as_ref().map_or(Ok(()), |why| Err(Cause::Dropped(format!("ended by us: {why}"))))
    }

    /// What the server is; the first time it waits for our words.
    pub fn on_info(&mut self, link: &mut Link, shared: &mut Shared, json: &[u8], times: Times) -> Result<(), Cause> {
        let info = Info::read(json).map_err(|error| Cause::Protocol(error.to_string()))?;
        self.maximum_payload_bytes = info.max_payload;
        // Later ones bring news of limits; TLS is not agreed twice.
        if std::mem::replace(&mut self.greeted, true) {
            return Ok(());
        }
        let encrypts = link.wants_tls(shared);
        if encrypts && !info.tls_required && !info.tls_available {
            return Err(Cause::Tls("the server offers none".to_owned()));
        }
        if info.tls_required && !encrypts {
            return Err(Cause::Refused(Reason::words("it takes connections with TLS only")));
        }
        if !info.headers && link.config.publications.iter().any(payload::has_properties) {
            return Err(Cause::Refused(Reason::words("it carries no headers")));
        }
        if encrypts {
            // Bytes inserted after INFO would be taken for encrypted data of the server.
            if !times.ends_the_read() {
                return Err(Cause::Protocol("bytes in the clear behind the INFO that begins TLS".to_owned()));
            }
            link.encrypt(shared)?;
        }
        let key = nkey(link, &info)?;
        send_connect(link, shared, encrypts, key.as_ref());
        Ok(())
    }

    /// Was CONNECT sent? An earlier PONG responds to nothing, and must not open a session that is to be encrypted.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// What the server is, for the engine.
    pub fn connected(&self) -> Connected {
        Connected { maximum_packet_bytes: Some(self.maximum_payload_bytes), ..Connected::default() }
    }

    /// Does the server take a payload of this size?
    pub fn check_size(&self, payload_bytes: usize) -> Result<(), Refusal> {
        let most = self.maximum_payload_bytes;
        if payload_bytes > most as usize { Err(Refusal::TooLarge(most)) } else { Ok(()) }
    }
}

/// An NKey's public half, and its signature of the server's nonce.
struct Signed {
    public: String,
    signature: String,
}

/// The signed nonce and the public key, if the session has an NKey.
fn nkey(link: &Link, info: &Info) -> Result<Option<Signed>, Cause> {
    let Some(seed) = &link.config.nkey else { return Ok(None) };
    let refused = |words: String| Cause::NotAuthorized(Reason::words(words));
    let key = NKey::of_seed(seed.expose()).map_err(|reason| refused(format!("the NKey cannot be used: {reason}")))?;
    let nonce = info.nonce.as_deref().ok_or_else(|| refused("it asks for no NKey".to_owned()))?;
    Ok(Some(Signed { public: key.public(), signature: key.sign(nonce) }))
}

/// CONNECT, and a PING whose PONG shows that it was accepted.
fn send_connect(link: &mut Link, shared: &mut Shared, encrypts: bool, key: Option<&Signed>) {
    // Beside an NKey no log-in of the endpoint's.
    let own = link.config.credentials.as_ref();
    let credentials = if key.is_some() { own.map(LogIn::from) } else { link.config.log_in(&shared.config) };
    // A token alone is one of the server's (`authorization: {token: …}`), beside an NKey the user's that names it.
    let alone = credentials.as_ref().filter(|one| one.user.is_empty()).map(|one| &*one.password);
    let named = credentials.as_ref().filter(|credentials| !credentials.user.is_empty());
    let connect = Connect {
        verbose: false,
        pedantic: false,
        tls_required: encrypts,
        name: &link.config.client_id,
        lang: LANGUAGE,
        version: env!("CARGO_PKG_VERSION"),
        protocol: 1,
        echo: true,
        headers: true,
        no_responders: true,
        user: named.map(|credentials| credentials.user),
        pass: named.map(|credentials| &*credentials.password),
        auth_token: alone.filter(|_| key.is_none()),
        nkey: key.filter(|_| alone.is_none()).map(|key| key.public.as_str()),
        jwt: alone.filter(|_| key.is_some()),
        sig: key.map(|key| key.signature.as_str()),
    };
    link.pings = link.pings.wrapping_add(1);
    link.outbox.append(&mut shared.pool, |out| {
        encode_connect(&connect, out);
        out.extend_from_slice(PING);
    });
}

/// The line at the front of some bytes.
pub fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Operation<'_>>, Cause> {
    next(bytes, most_bytes).map_err(|error| Cause::Protocol(error.to_string()))
}

/// The subject that we may not subscribe to, or no longer, if that is what an error of the server's is about.
pub fn forbidden_subject(words: &str) -> Option<&str> {
    let (start, rest) = words.split_at_checked(FORBIDDEN.len())?;
    rest.split('"').next().filter(|_| start.eq_ignore_ascii_case(FORBIDDEN))
}

/// Is an error of the server's about a message that it does not pass on?
pub fn refuses_message(words: &str) -> bool {
    let lower = words.to_ascii_lowercase();
    REFUSED_MESSAGES.iter().any(|start| lower.starts_with(start))
}

/// What an error of the server's means; as a rule it ends the connection itself.
pub fn cause(phase: Phase, words: &str) -> Cause {
    let lower = words.to_ascii_lowercase();
    let reason = Reason::words(words.to_owned());
    let logins = ["authorization violation", "authentication timeout", "user authentication", "account authentication"];
    // A server says of an open connection that its user or account is known no longer, or that its token has expired.
    let has_ended = |start: &&str| lower.starts_with(*start) && !lower.starts_with("authentication timeout");
    match phase {
        Phase::Open if logins.iter().any(has_ended) => Cause::NotAuthorized(reason),
        Phase::Open => Cause::Server { reason, too_large: lower.starts_with("maximum payload") },
        _ if logins.iter().any(|start| lower.starts_with(start)) => Cause::NotAuthorized(reason),
        _ => Cause::Refused(reason),
    }
}
