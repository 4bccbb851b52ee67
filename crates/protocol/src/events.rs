//! Events that an adapter reports to the engine.

use std::borrow::Cow;

use pubmark_model::qos::Qos;

use crate::client_program::Misreport;
use crate::clients::SessionId;
use crate::header::{self, Header};
use crate::requests::ReplyTo;
use crate::tls::Agreed;

/// A message that pubmark sent, as events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Index in the session's publications.
    pub publication: u16,
    /// The publisher's sequence number.
    pub sequence: u32,
}

/// What the server announced when it accepted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Connected {
    /// The server still had the session.
    pub session_present: bool,
    /// In-flight messages the server allows, if it announces that.
    pub receive_maximum: Option<u16>,
    /// Largest packet the server accepts, if it announces that.
    pub maximum_packet_bytes: Option<u32>,
    /// Highest level the server accepts for publishing, if below ours.
    pub maximum_qos: Option<Qos>,
    /// Topic aliases were requested, and the server accepts none.
    pub topic_alias_refused: bool,
}

/// The TLS handshake is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secured {
    /// When it began: TCP was connected, or both sides had agreed on TLS in the clear. ns of `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// When our side of it was complete, same clock; the time for verifying and decrypting is included.
    pub done_ns: u64,
    /// The result of the handshake.
    pub agreed: Agreed,
}

/// Why a server refused or ended something, with the protocol's code if it has codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The code.
    pub code: Option<u8>,
    /// The code's name, or the server's text.
    pub text: Cow<'static, str>,
}

impl Reason {
    /// A code and its name.
    pub fn code(code: u8, text: &'static str) -> Reason {
        Reason { code: Some(code), text: Cow::Borrowed(text) }
    }

    /// A reason with text only.
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

/// In the text of [`Cause::Protocol`], precedes the bytes of a server of another protocol, which follow between backticks.
pub const ANSWERED: &str = "; it answered ";

/// Why a connection ended or failed.
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
    /// The TLS handshake failed.
    Tls(String),
    /// The server closed it with a goodbye.
    Server {
        /// Why.
        reason: Reason,
        /// The server rejects one of our packets as too large.
        too_large: bool,
    },
    /// The connection was reset or closed without a goodbye.
    Dropped(String),
    /// The server stopped responding to our pings.
    Silent,
    /// The server violated the protocol; the violation.
    Protocol(String),
}

/// A message that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery<'a> {
    /// The payload, whole.
    pub payload: &'a [u8],
    /// The text of its header property; `None` if it has none: then its header is at the front of the payload.
    pub header: Option<&'a [u8]>,
    /// Sent because of the subscription, not because it was published now.
    pub retained: bool,
    /// Time after the read that completed it, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Time of the last read that left the socket empty (or of the connect), same clock: the message had not arrived then.
    /// `None` if a library reads its sockets itself: then it is unknown.
    pub empty_at_ns: Option<u64>,
    /// The kernel's receive timestamp of the last byte of the read that completed it, converted to `CLOCK_MONOTONIC`. Only if
    /// the read had nothing else, so that it bounds its lateness.
    pub kernel_ns: Option<u64>,
    /// Before it arrived, bytes of its connection were not read during these times, which do not overlap: before the last read, and
    /// before earlier ones after which the system may have gone on holding something back.
    pub unread: &'a [Unread],
    /// It had surely arrived when its subscriber was done with the message before ([`crate::clients::Clients::resume`]).
    pub has_waited: bool,
    /// Its subscriber took it at most this much later because earlier messages had been handled late, ns. The engine sets it, for
    /// subscribers with a processing time.
    pub behind_ns: u64,
}

/// A time in which bytes of a connection may have waited to be read, ns of `CLOCK_MONOTONIC`. The system may have held back what
/// it had to send next: for the acknowledgement that TCP, Nagle's algorithm or the protocol's in-flight window waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// The bytes had surely not arrived.
    pub from_ns: u64,
    /// They were read and acknowledged.
    pub to_ns: u64,
}

impl Unread {
    /// How much of it is between two times, ns.
    #[inline]
    pub fn between_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.to_ns.min(to_ns).saturating_sub(self.from_ns.max(from_ns))
    }

    /// How much of several that do not overlap is between two times, ns.
    #[inline]
    pub fn all_between_ns(all: &[Unread], from_ns: u64, to_ns: u64) -> u64 {
        all.iter().map(|unread| unread.between_ns(from_ns, to_ns)).sum()
    }
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

    /// The latest time at which the message had surely not arrived, ns of `CLOCK_MONOTONIC`; `None` if unknown.
    #[inline]
    pub fn absent_at_ns(&self) -> Option<u64> {
        self.empty_at_ns.max(self.kernel_ns)
    }

    /// How long the message may have waited for the generator, ns: in the socket to be read, and before, because the system held
    /// it back or its subscriber was behind. Its write began at `sent_ns` at the earliest ([`Header::earliest_write_start_ns`]);
    /// all the time since then if nothing is known.
    #[inline]
    pub fn late_ns(&self, sent_ns: u64) -> u64 {
        // A subscriber that is behind acknowledges late, too, so both may have held back the message one after the other.
        let before_ns = self.held_ns(sent_ns).saturating_add(self.behind_ns);
        self.receive_lateness_ns(sent_ns).saturating_add(before_ns).min(self.at_ns.saturating_sub(sent_ns))
    }

    /// Receive lateness: how long it lay in the socket before it was read, at most, ns.
    #[inline]
    pub fn receive_lateness_ns(&self, sent_ns: u64) -> u64 {
        self.at_ns.saturating_sub(self.absent_at_ns().unwrap_or(0).max(sent_ns))
    }

    /// How long the system may have held it back because earlier bytes were not read, ns.
    #[inline]
    pub fn held_ns(&self, sent_ns: u64) -> u64 {
        Unread::all_between_ns(self.unread, sent_ns, self.absent_at_ns().unwrap_or(0))
    }
}

/// An event of a session or of its messages.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The TLS handshake is complete; the protocol's own handshake follows.
    Secured(Secured),
    /// The server accepted the session.
    Connected(Connected),
    /// The server acknowledged a subscription.
    Subscribed {
        /// Its index in the session's list.
        index: usize,
        /// The level that was granted, or why none was.
        granted: Result<Qos, Reason>,
    },
    /// The session has a will, and its connection ends without the protocol's goodbye: the system publishes the will, or may do
    /// so, if the session was not connected yet. [`Event::Closed`] follows at once.
    WillLeft,
    /// The connection ended or failed.
    Closed(Cause),
    /// The last byte of a message was accepted by the socket.
    Written {
        /// The message.
        token: Token,
        /// When the write of its first byte began, ns of `CLOCK_MONOTONIC`.
        write_start_ns: u64,
        /// When its last byte was accepted, same clock.
        written_ns: u64,
        /// How much of the time from its submission to `written_ns` pubmark caused, or may have caused, ns; `u64::MAX` if that is
        /// unknown.
        own_ns: u64,
    },
    /// A message was accepted and not sent, as the protocol requires: there is no subscriber for it. [`Event::Written`] follows
    /// at once, as for the sender it is handed to the system.
    Withheld(Token),
    /// The server acknowledged a message (QoS 1: PUBACK, QoS 2: PUBREC), or refused it.
    Acknowledged {
        /// The message.
        token: Token,
        /// Why it was refused, if it was.
        outcome: Result<(), Reason>,
    },
    /// The message was handed over but its last byte never reached the socket: its connection ended first.
    Abandoned(Token),
    /// The client library did not accept the message: it was never written, though its connection is open.
    Declined(Token),
    /// Written, not acknowledged, and the session is gone: its delivery is unknown. Reported when the session is known to be
    /// lost (clean session: with [`Event::Closed`]; persistent: on a connect without session, or at the end).
    Unacknowledged(Token),
    /// The server does not permit the session something that its connection goes on without: what.
    NotPermitted(&'static str),
    /// The server took a new token on an open connection.
    Reauthenticated,
    /// Sent again after a reconnect that found the session.
    Resent(Token),
    /// A session that returned [`crate::clients::SendOutcome::WouldBlock`] can accept messages again.
    Writable,
    /// A message arrived that matches none of the session's filters: the subscription in the protocol is wider than the filter.
    Discarded,
    /// So many messages arrived and were dropped by the adapter, because the shard did not read them in time.
    Missed(u64),
    /// The kernel dropped this number of datagrams since the last such event, because the buffer of the session's socket was full:
    /// the shard did not read it in time. Acknowledgements, repetitions and blocks count like messages.
    Overflowed(u64),
    /// The session sent this number of messages with an identifier that its socket had used for another message within the
    /// identifier's lifetime (CoAP). A server that remembers identifiers for that time takes such messages for retransmissions.
    IdsReused(u64),
    /// The client program reported something that cannot be true. Without a session if it names none that exists.
    Misreported(Misreport),
    /// The client program ended, stalled or violated its protocol: how. Each of its connections is closed after it; without a session.
    ProgramEnded(&'a str),
    /// Time until the client program responded to a ping, ns; without a session.
    ProgramRoundTrip(u64),
    /// A message arrived.
    Delivered(Delivery<'a>),
    /// A request arrived; to a client without replies it is a message like any other.
    Requested {
        /// Address and correlation of its reply.
        reply_to: ReplyTo<'a>,
        /// The message.
        delivery: Delivery<'a>,
    },
    /// A reply arrived.
    Replied {
        /// The session's request that its correlation names; `None` if that is no request that pubmark sent.
        request: Option<Token>,
        /// The reply.
        delivery: Delivery<'a>,
    },
}

/// Receives an adapter's events. Called on the shard's thread, from inside [`crate::clients::Clients`]' calls.
pub trait Sink {
    /// Handles an event of a session.
    fn event(&mut self, session: SessionId, event: Event<'_>);

    /// Does the session's subscriber still process the last message? Called after each message; while it is true, adapters with
    /// [`crate::clients::Clients::PAUSES`] deliver and read nothing more, until [`crate::clients::Clients::resume`].
    fn is_at_work(&self, session: SessionId) -> bool {
        let _ = session;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waited_for_its_read_and_while_earlier_bytes_were_unread() {
        let unread = &[Unread { from_ns: 10, to_ns: 30 }, Unread { from_ns: 100, to_ns: 400 }];
        let delivery =
            Delivery { at_ns: 1_000, empty_at_ns: Some(300), kernel_ns: Some(900), unread, ..Delivery::default() };
        for (sent_ns, held_ns) in [(5, 320), (20, 310), (50, 300), (250, 150), (500, 0)] {
            assert_eq!((delivery.receive_lateness_ns(sent_ns), delivery.held_ns(sent_ns)), (100, held_ns));
            assert_eq!(delivery.late_ns(sent_ns), 100 + held_ns);
        }
        let overlapping = Delivery { kernel_ns: None, ..delivery };
        assert_eq!(overlapping.late_ns(50), 700 + 200, "not counted twice after the socket was empty");
        assert_eq!(Delivery { empty_at_ns: None, ..overlapping }.late_ns(50), 950, "all of it, if nothing is known");
    }

    #[test]
    fn a_subscriber_that_is_behind_takes_a_message_later_but_not_before_it_was_sent() {
        let unread = &[Unread { from_ns: 300, to_ns: 400 }];
        let delivery = Delivery { at_ns: 1_000, empty_at_ns: Some(900), unread, ..Delivery::default() };
        let late_ns = |behind_ns: u64| Delivery { behind_ns, ..delivery }.late_ns(200);
        // In the socket for 100 ns, and held back for 100 ns before that.
        assert_eq!([0, 50, 300, 5_000].map(late_ns), [200, 250, 500, 800]);
    }
}
