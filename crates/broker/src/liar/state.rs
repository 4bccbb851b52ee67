//! The lying broker's state of connections, sessions and messages.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use pubmark_model::qos::Qos;
use pubmark_wire::mqtt::Version;

use crate::net::{Connection, Key};
use crate::outgoing::Outgoing;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// CONNECT has not arrived.
    Stranger,
    /// It has a session.
    Open,
    /// The sending direction is closed; the broker reads until the client closes, or until this time (ns).
    Cut { until_ns: u64 },
}

/// A connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) connection: Connection,
    pub(super) phase: Phase,
    pub(super) client: Rc<str>,
    pub(super) session: Option<Key>,
    pub(super) version: Version,
    /// Bytes appended to the connection's output since its beginning.
    pub(super) appended_bytes: u64,
    /// Offsets in these bytes at which packets end, with their journal lines; removed when they were written.
    pub(super) marks: VecDeque<(u64, u64)>,
    /// The last of these lines whose packet the connection accepted, until the socket has all of it.
    pub(super) accepted: Option<u64>,
    pub(super) is_dirty: bool,
    /// Is in the list of those that have not been read completely.
    pub(super) is_unfinished: bool,
}

/// A client's state.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Rc<str>,
    pub(super) peer: Option<Key>,
    pub(super) is_persistent: bool,
    pub(super) filters: HashSet<Box<str>>,
    pub(super) outgoing: Outgoing<Copy>,
    /// Messages at QoS 2 received and not yet released.
    pub(super) unreleased: HashSet<u16>,
}

/// A message that was received, or one that the broker made up.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) topic: Box<str>,
    pub(super) payload: Box<[u8]>,
    pub(super) qos: Qos,
    /// Its journal line; for a made-up one, the line of the message that it was made from.
    pub(super) line: u64,
}

/// Why a subscriber gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// As a correct broker would send it.
    First,
    /// For another matching filter.
    Overlap,
    Duplicate,
    Foreign,
    /// A copy that its publisher never sent: [`super::script::Lie::Forge`].
    Forged,
    /// As a retained message.
    Retained,
    /// Again, because the client reconnected without having acknowledged it.
    Resend,
}

impl Why {
    pub(super) fn word(self) -> &'static str {
        match self {
            Why::First => "first",
            Why::Overlap => "overlap",
            Why::Duplicate => "duplicate",
            Why::Foreign => "foreign",
            Why::Forged => "forged",
            Why::Retained => "retained",
            Why::Resend => "resend",
        }
    }
}

/// A copy for one client.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) message: Rc<Message>,
    pub(super) to: Key,
    pub(super) client: Rc<str>,
    pub(super) qos: Qos,
    pub(super) why: Why,
    /// The client's connection ends after it.
    pub(super) cut: Option<super::script::Ending>,
}

/// An item that waits for a time or a number of messages; ordered with the earliest first.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    pub(super) due: u64,
    pub(super) order: u64,
    pub(super) what: T,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    /// Reversed, because the standard library's heap has the largest at its top.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

/// An item that waits for a time.
#[derive(Debug)]
pub(super) enum Timed {
    /// A delayed copy.
    Copy(Copy),
    /// A message held back that none followed: its publisher and topic, and its line.
    Release(HeldKey, u64),
}

/// Publisher and topic of a message held back.
pub(super) type HeldKey = (Rc<str>, Box<str>);
