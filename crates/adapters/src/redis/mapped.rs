//! From events of connections to events of sessions.

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Connected, Event, Sink};

/// State of a session of two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has none.
    Closed,
    /// One of them is still to come.
    Connecting,
    /// Both are there.
    Up,
}

/// Two connections, of which the one that sends is made first.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) sends: SessionId,
    /// Its commands wait at the server for what arrives.
    pub(super) waits: SessionId,
    pub(super) state: State,
    /// The engine waits for [`Event::Writable`].
    pub(super) blocked: bool,
}

/// A session of the engine's.
#[derive(Debug)]
pub(super) enum Session {
    /// One connection.
    One(SessionId),
    /// Two connections.
    Two(Pair),
}

/// What is to be done behind a call, because it takes the connections.
#[derive(Debug)]
pub(super) enum Next {
    /// A connection is to be made.
    Connect(SessionId),
    /// A connection of a session has ended: so does the other one.
    End(SessionId, Cause),
}

/// Puts events together.
pub(super) struct Mapped<'a, S> {
    /// The engine's.
    pub(super) sink: &'a mut S,
    pub(super) sessions: &'a mut [Session],
    /// By connection: the session that it is part of, if that has another number.
    pub(super) owners: &'a [SessionId],
    pub(super) next: &'a mut Vec<Next>,
}

impl<S: Sink> Mapped<'_, S> {
    fn owner(&self, connection: SessionId) -> SessionId {
        self.owners.get(connection.0 as usize).copied().unwrap_or(connection)
    }

    fn pair(&mut self, connection: SessionId) -> Option<(SessionId, &mut Pair)> {
        let owner = self.owner(connection);
        match &mut self.sessions[owner.0 as usize] {
            Session::One(_) => None,
            Session::Two(pair) => Some((owner, pair)),
        }
    }
}

impl<S: Sink> Mapped<'_, S> {
    fn connected(&mut self, connection: SessionId, connected: Connected) {
        let Some((owner, pair)) = self.pair(connection) else {
            return self.sink.event(self.owner(connection), Event::Connected(connected));
        };
        if pair.state != State::Connecting {
            return;
        }
        if connection == pair.sends {
            let waits = pair.waits;
            self.next.push(Next::Connect(waits));
            return;
        }
        pair.state = State::Up;
        let was_blocked = std::mem::take(&mut pair.blocked);
        self.sink.event(owner, Event::Connected(connected));
        if was_blocked {
            self.sink.event(owner, Event::Writable);
        }
    }

    /// For two connections, reported when both are closed.
    fn closed(&mut self, connection: SessionId, cause: Cause) {
        match self.pair(connection) {
            None => self.sink.event(self.owner(connection), Event::Closed(cause)),
            Some((owner, pair)) if pair.state != State::Closed => self.next.push(Next::End(owner, cause)),
            Some(_) => {}
        }
    }

    /// For two connections, reported when both are writable.
    fn writable(&mut self, connection: SessionId) {
        match self.pair(connection) {
            Some((_, pair)) if pair.state != State::Up => pair.blocked = true,
            _ => self.sink.event(self.owner(connection), Event::Writable),
        }
    }
}

impl<S: Sink> Sink for Mapped<'_, S> {
    fn event(&mut self, connection: SessionId, event: Event<'_>) {
        match event {
            Event::Connected(connected) => self.connected(connection, connected),
            Event::Closed(cause) => self.closed(connection, cause),
            Event::Writable => self.writable(connection),
            event => self.sink.event(self.owner(connection), event),
        }
    }

    fn is_at_work(&self, connection: SessionId) -> bool {
        self.sink.is_at_work(self.owner(connection))
    }
}
