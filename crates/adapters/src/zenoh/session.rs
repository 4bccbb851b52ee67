//! One session as its shard sees it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ::zenoh::query::Query;
use pubmark_protocol::clients::{SessionConfig, SessionId};
use pubmark_protocol::events::Token;

use super::connection::Connection;
use super::mailbox::Key;

/// State of a session.
pub enum Phase {
    /// No connection.
    Closed,
    /// A helper is opening one.
    Opening,
    /// There is one.
    Open(Arc<Connection>),
}

/// A session.
pub struct Session {
    pub(super) id: SessionId,
    pub(super) config: SessionConfig,
    pub(super) phase: Phase,
    /// Number of its connection.
    generation: u32,
    /// The same for a helper that is about to open one.
    pub(super) wanted: Arc<AtomicU32>,
    /// Messages that the sender has, in order.
    pub(super) pending: VecDeque<Token>,
    /// Messages of this connection that came back from the sender.
    pub(super) settled: u64,
    /// A send would have blocked.
    pub(super) blocked: bool,
    /// Requests that can be replied to, each with a unique number.
    pub(super) requests: BTreeMap<u64, Query>,
    /// The next of these numbers.
    pub(super) next_request: u64,
}

impl Session {
    /// One without a connection.
    pub fn new(id: SessionId, config: SessionConfig) -> Session {
        Session {
            id,
            config,
            phase: Phase::Closed,
            generation: 0,
            wanted: Arc::new(AtomicU32::new(0)),
            pending: VecDeque::new(),
            settled: 0,
            blocked: false,
            requests: BTreeMap::new(),
            next_request: 0,
        }
    }

    /// Its connection by number.
    pub fn key(&self) -> Key {
        Key { session: self.id.0, generation: self.generation }
    }

    /// What comes of connections before is not its own any more.
    pub fn next_generation(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.wanted.store(self.generation, Ordering::Release);
        self.settled = 0;
    }
}
