//! A connection as the broker sees it: who is behind it and what it may do.

use pubmark_wire::mqtt::Version;

use crate::net::{Connection, Key};

/// One connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    /// Its session, once CONNECT was accepted.
    pub(crate) session: Option<Key>,
    pub(crate) version: Version,
    /// Silence that ends the connection, ns; 0 for none.
    pub(crate) silence_limit_ns: u64,
    pub(crate) last_heard_ns: u64,
    /// Largest packet that the client takes.
    pub(crate) maximum_packet_bytes: usize,
    /// Is in the list of those to be flushed.
    pub(crate) is_dirty: bool,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// The client said goodbye and wants no will.
    Client,
    /// The connection broke, or the client wants its will.
    Lost,
    /// We end it and say why where the version can.
    Ours(u8),
}
