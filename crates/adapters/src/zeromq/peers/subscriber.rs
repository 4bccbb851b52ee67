//! A subscriber: a listener, and a session below for each device that connected.

use std::net::TcpListener;

use pubmark_protocol::clients::{SessionConfig, SessionId};

/// A subscriber.
pub(super) struct Subscriber {
    /// Its settings, which each session below gets.
    pub(super) config: SessionConfig,
    /// Where it listens, while it does.
    pub(super) listener: Option<TcpListener>,
    /// Sessions below with a connection.
    pub(super) open: Vec<SessionId>,
    /// Sessions below whose device has left: for the next one.
    pub(super) idle: Vec<SessionId>,
}

impl Subscriber {
    pub(super) fn new(config: SessionConfig) -> Subscriber {
        Subscriber { config, listener: None, open: Vec::new(), idle: Vec::new() }
    }

    /// A device has left.
    pub(super) fn left(&mut self, session: SessionId) {
        if let Some(place) = self.open.iter().position(|open| *open == session) {
            self.open.swap_remove(place);
            self.idle.push(session);
        }
    }
}
