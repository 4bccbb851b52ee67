//! What an adapter tells the engine.

use std::borrow::Cow;

use pubmark_model::qos::Qos;

use crate::clients::SessionId;
use crate::requests::ReplyTo;
use crate::tls::Agreed;

/// A message of ours, as events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Index in the session's publications.
    pub publication: u16,
    /// The publisher's sequence number.
    pub sequence: u32,
}

/// What the server said when it accepted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Connected {
    /// The server still had our session.
    pub session_present: bool,
    /// In-flight messages the server allows, if it says so.
    pub receive_maximum: Option<u16>,
    /// Largest packet the server takes, if it says so.
    pub maximum_packet_bytes: Option<u32>,
    /// Highest level the server takes for publishing, if below ours.
    pub maximum_qos: Option<Qos>,
    /// A number in place of topics was asked for, and the server takes none.
    pub topic_alias_refused: bool,
}

/// TLS was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secured {
    /// When it began: TCP was connected, or both sides had said in the clear that they want it. ns of `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// When our side of it was done, same clock; what checking and deciphering took is in it.
    pub done_ns: u64,
    /// How.
    pub agreed: Agreed,
}

/// A server's words, with the protocol's code if it has codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The code.
    pub code: Option<u8>,
    /// The code's name, or the words themselves.
    pub reason: Cow<'static, str>,
}

impl Said {
    /// A code and its name.
    pub fn code(code: u8, reason: &'static str) -> Said {
        Said { code: Some(code), reason: Cow::Borrowed(reason) }
    }

    /// Words alone.
    pub fn words(reason: impl Into<Cow<'static, str>>) -> Said {
        Said { code: None, reason: reason.into() }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.reason)?;
        self.code.map_or(Ok(()), |code| write!(formatter, " (0x{code:02x})"))
    }
}

/// Why a connection ended, or was never made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// We ended it ([`crate::clients::Clients::disconnect`]).
    Ours,
    /// No connection: refused, unreachable, timed out.
    Unreachable(String),
    /// The server refused the session, not for its log-in.
    Refused(Said),
    /// Wrong or missing user name or password.
    NotAuthorized(Said),
    /// TLS could not be agreed.
    Tls(String),
    /// The server said goodbye.
    Server {
        /// Why.
        said: Said,
        /// The server calls one of our packets too large.
        too_large: bool,
    },
    /// The connection was reset or closed without a word.
    Dropped(String),
    /// The server stopped answering our pings.
    Silent,
    /// The server broke the protocol; what it did.
    Protocol(String),
}

/// A message that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// The payload, whole.
    pub payload: &'a [u8],
    /// Sent because we subscribed, not because it was published now.
    pub retained: bool,
    /// Time after the read that completed it, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Time of the last read that left the socket empty (or of the connect), same clock: the message was not there then.
    /// `None` where a library reads its sockets itself: then nobody knows.
    pub empty_at_ns: Option<u64>,
    /// The kernel's receive stamp of the last byte of the read that completed it, moved to `CLOCK_MONOTONIC`; and it is
    /// this message's own (the last one completed by that read), so that it bounds its lateness.
    pub kernel_ns: Option<u64>,
}

/// Where an adapter's events go. Called on the shard's thread, from inside [`crate::clients::Clients`]' calls.
pub trait Sink {
    /// TLS was agreed on; the protocol's own opening follows.
    fn secured(&mut self, session: SessionId, secured: Secured) {
        let _ = (session, secured);
    }
    /// The server accepted the session.
    fn connected(&mut self, session: SessionId, connected: Connected);
    /// The server answered subscription `index` (of the session's list) with a level, or refused it.
    fn subscribed(&mut self, session: SessionId, index: usize, granted: Result<Qos, Said>);
    /// The connection ended or was not made.
    fn closed(&mut self, session: SessionId, cause: Cause);
    /// The last byte of a message was accepted by the socket at `written_ns`; the write of its first byte began at `write_start_ns`.
    fn written(&mut self, session: SessionId, token: Token, write_start_ns: u64, written_ns: u64);
    /// A message was taken and goes nowhere, as the protocol has it: its sender keeps back what nobody at the other end asked for.
    /// [`Sink::written`] follows at once, as it is handed to the system for all that its sender can know.
    fn withheld(&mut self, session: SessionId, token: Token) {
        let _ = (session, token);
    }
    /// The server took responsibility for a message (QoS 1: PUBACK, QoS 2: PUBREC), or refused it.
    fn acknowledged(&mut self, session: SessionId, token: Token, outcome: Result<(), Said>);
    /// The message was handed over but its last byte never reached the socket: its connection ended first.
    fn abandoned(&mut self, session: SessionId, token: Token);
    /// Written, not acknowledged, and the session is gone: nobody can know. Comes when the session is known to be lost
    /// (clean session: with `closed`; persistent: on a connect without session, or at the end).
    fn unanswered(&mut self, session: SessionId, token: Token);
    /// Sent again after a reconnect that found the session.
    fn resent(&mut self, session: SessionId, token: Token);
    /// A session that said [`crate::clients::Taken::NotReady`] can take messages again.
    fn writable(&mut self, session: SessionId);
    /// A message arrived that none of the session's filters chooses: what it asks for in the protocol's words is more.
    fn passed_over(&mut self, session: SessionId) {
        let _ = session;
    }
    /// So many messages arrived and were dropped by the adapter, because the shard did not take them in time.
    fn missed(&mut self, messages: u64);
    /// Is the session's subscriber still at work on the message before? Asked behind each; while it is, adapters that can
    /// ([`crate::clients::Clients::PAUSES`]) hand it nothing more and read no further, until [`crate::clients::Clients::resume`].
    fn is_at_work(&self, session: SessionId) -> bool {
        let _ = session;
        false
    }
    /// A message arrived.
    fn delivered(&mut self, session: SessionId, delivery: Delivery<'_>);
    /// A message arrived that asks for an answer; a message like any other to who answers nothing.
    fn requested(&mut self, session: SessionId, reply_to: ReplyTo<'_>, delivery: Delivery<'_>) {
        let _ = reply_to;
        self.delivered(session, delivery);
    }
    /// An answer arrived, as it says to this request of the session's; `None` if what it names is no request of ours.
    fn answered(&mut self, session: SessionId, request: Option<Token>, delivery: Delivery<'_>) {
        let _ = request;
        self.delivered(session, delivery);
    }
}
