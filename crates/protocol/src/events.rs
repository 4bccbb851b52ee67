//! What an adapter tells the engine.

use std::borrow::Cow;

use pubmark_model::qos::Qos;

use crate::client_program::Misreport;
use crate::clients::SessionId;
use crate::header::{self, Header};
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

/// Why a server refused or ended something, with the protocol's code if it has codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The code.
    pub code: Option<u8>,
    /// The code's name, or the words themselves.
    pub text: Cow<'static, str>,
}

impl Reason {
    /// A code and its name.
    pub fn code(code: u8, text: &'static str) -> Reason {
        Reason { code: Some(code), text: Cow::Borrowed(text) }
    }

    /// Words alone.
    pub fn words(text: impl Into<Cow<'static, str>>) -> Reason {
        Reason { code: None, text: text.into() }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)?;
        self.code.map_or(Ok(()), |code| write!(formatter, " (0x{code:02x})"))
    }
}

/// Stands in the words of [`Cause::Protocol`] before what a server said that speaks another protocol, which follows between backticks.
pub const ANSWERED: &str = "; it answered ";

/// Why a connection ended, or was never made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// We ended it ([`crate::clients::Clients::disconnect`]).
    Ours,
    /// No connection: refused, unreachable, timed out.
    Unreachable(String),
    /// The server refused the session, not for its log-in.
    Refused(Reason),
    /// Wrong or missing user name or password; of a session that was up, the log-in holds no longer.
    NotAuthorized(Reason),
    /// TLS could not be agreed.
    Tls(String),
    /// The server said goodbye.
    Server {
        /// Why.
        reason: Reason,
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
    /// The text of its property for a header; `None` if it has none: then its header is at the front of the payload.
    pub header: Option<&'a [u8]>,
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

impl Delivery<'_> {
    /// Its header, if pubmark wrote one.
    #[inline]
    pub fn read_header(&self) -> Option<Header> {
        match self.header {
            None => header::read(self.payload, self.at_ns),
            Some(text) => header::read_text(text, self.at_ns),
        }
    }

    /// The latest time at which the message had surely not come, ns of `CLOCK_MONOTONIC`; `None` where nobody knows.
    #[inline]
    pub fn absent_at_ns(&self) -> Option<u64> {
        self.empty_at_ns.max(self.kernel_ns)
    }

    /// How long the message, due at `due_ns`, lay in the socket before it was read, at most, ns: all of its time if nobody knows.
    #[inline]
    pub fn late_ns(&self, due_ns: u64) -> u64 {
        self.at_ns.saturating_sub(self.absent_at_ns().unwrap_or(0).max(due_ns))
    }
}

/// Something that became of a session or of its messages.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// TLS was agreed on; the protocol's own opening follows.
    Secured(Secured),
    /// The server accepted the session.
    Connected(Connected),
    /// The server responded to a subscription.
    Subscribed {
        /// Its index in the session's list.
        index: usize,
        /// The level that was granted, or why none was.
        granted: Result<Qos, Reason>,
    },
    /// The connection ended or was not made.
    Closed(Cause),
    /// The last byte of a message was accepted by the socket.
    Written {
        /// The message.
        token: Token,
        /// When the write of its first byte began, ns of `CLOCK_MONOTONIC`.
        write_start_ns: u64,
        /// When its last byte was accepted, same clock.
        written_ns: u64,
    },
    /// A message was taken and goes nowhere, as the protocol has it: its sender keeps back what nobody at the other end asked for.
    /// [`Event::Written`] follows at once, as it is handed to the system for all that its sender can know.
    Withheld(Token),
    /// The server took responsibility for a message (QoS 1: PUBACK, QoS 2: PUBREC), or refused it.
    Acknowledged {
        /// The message.
        token: Token,
        /// Why it was refused, if it was.
        outcome: Result<(), Reason>,
    },
    /// The message was handed over but its last byte never reached the socket: its connection ended first.
    Abandoned(Token),
    /// Written, not acknowledged, and the session is gone: nobody can know. Comes when the session is known to be lost
    /// (clean session: with [`Event::Closed`]; persistent: on a connect without session, or at the end).
    Unacknowledged(Token),
    /// The server took a new token on an open connection.
    Reauthenticated,
    /// Sent again after a reconnect that found the session.
    Resent(Token),
    /// A session that said [`crate::clients::SendOutcome::WouldBlock`] can take messages again.
    Writable,
    /// A message arrived that none of the session's filters chooses: what it asks for in the protocol's words is more.
    PassedOver,
    /// So many messages arrived and were dropped by the adapter, because the shard did not take them in time.
    Missed(u64),
    /// The client program said something that cannot be true. Of no session where it names none that there is.
    Misreported(Misreport),
    /// The client program ended, stalled or broke its protocol: how. Each of its connections is closed behind it; of no session.
    ProgramEnded(&'a str),
    /// So long it took until the client program had answered a ping, ns; of no session.
    ProgramRoundTrip(u64),
    /// A message arrived.
    Delivered(Delivery<'a>),
    /// A message arrived that asks for a reply; a message like any other to a client that replies to nothing.
    Requested {
        /// Where its reply shall go.
        reply_to: ReplyTo<'a>,
        /// The message.
        delivery: Delivery<'a>,
    },
    /// A reply arrived.
    Replied {
        /// The request of the session's that it says it belongs to; `None` if what it names is no request of ours.
        request: Option<Token>,
        /// The reply.
        delivery: Delivery<'a>,
    },
}

/// Where an adapter's events go. Called on the shard's thread, from inside [`crate::clients::Clients`]' calls.
pub trait Sink {
    /// Takes an event of a session.
    fn event(&mut self, session: SessionId, event: Event<'_>);

    /// Is the session's subscriber still at work on the message before? Asked behind each; while it is, adapters that can
    /// ([`crate::clients::Clients::PAUSES`]) hand it nothing more and read no further, until [`crate::clients::Clients::resume`].
    fn is_at_work(&self, session: SessionId) -> bool {
        let _ = session;
        false
    }
}
