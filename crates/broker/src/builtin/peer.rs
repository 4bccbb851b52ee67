//! A connection as the broker sees it: its session and its limits.

use pubmark_wire::mqtt::Version;

use crate::net::{Connection, Key};

/// One connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    /// Its session, once CONNECT was accepted.
    pub(crate) session: Option<Key>,
    pub(crate) version: Version,
    /// Present if the broker requires tokens and the client has named a method or sent one.
    pub(crate) authentication: Option<Box<Authentication>>,
    /// Time without progress that ends the connection, ns; 0 for no limit.
    pub(crate) silence_limit_ns: u64,
    /// When it last sent something, or read something while reading from it was paused, ns of `CLOCK_MONOTONIC`.
    pub(crate) last_progress_ns: u64,
    /// Largest packet that the client accepts.
    pub(crate) maximum_packet_bytes: usize,
    /// Is in the list of those to be flushed.
    pub(crate) is_dirty: bool,
    /// Is in the list of those that have not been read completely.
    pub(crate) is_unfinished: bool,
}

impl Peer {
    /// Notes that the client sends, or reads. Before its CONNECT is accepted this does not count, so that a client that sends
    /// single bytes cannot occupy a connection.
    pub(crate) fn note_progress(&mut self, now_ns: u64) {
        if self.session.is_some() {
            self.last_progress_ns = now_ns;
        }
    }
}

/// The state of a client's authentication, at a broker that requires tokens.
#[derive(Debug)]
pub(crate) struct Authentication {
    /// The client named the method in its CONNECT, so it may send AUTH.
    pub(super) by_method: bool,
    /// The broker has asked for a token.
    pub(super) is_asked: bool,
    /// When the token expires, ns of `CLOCK_MONOTONIC`.
    pub(super) until_ns: u64,
    /// The body of a CONNECT that waits for the token.
    pub(super) connect: Option<Box<[u8]>>,
}

impl Authentication {
    /// Has the client's token expired?
    pub(crate) fn has_expired(&self, now_ns: u64) -> bool {
        self.connect.is_none() && self.until_ns <= now_ns
    }

    /// Does a CONNECT wait for a token?
    pub(crate) fn is_open(&self) -> bool {
        self.connect.is_some()
    }
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// The client sent DISCONNECT, and its will is not published.
    Client,
    /// The connection broke, or the client requests that its will is published.
    Lost,
    /// The broker ends it, and sends the reason if the version supports that.
    Ours(u8),
}
