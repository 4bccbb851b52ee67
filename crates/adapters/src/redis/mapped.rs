//! From events of connections to events of sessions.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Connected, Delivery, Said, Secured, Sink, Token};
use pubmark_protocol::requests::ReplyTo;

/// How far a session of two connections has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has none.
    Closed,
    /// One of them is still to come.
    Connecting,
    /// Both are there.
    Up,
}

/// A session that asks or answers: two connections, of which the one that pushes is made first.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) pushes: SessionId,
    pub(super) pops: SessionId,
    pub(super) state: State,
    /// The engine waits for [`Sink::writable`].
    pub(super) blocked: bool,
}

/// A session of the engine's.
#[derive(Debug)]
pub(super) enum Session {
    /// It publishes and subscribes, over one connection.
    One(SessionId),
    /// It asks or answers.
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

impl<S: Sink> Sink for Mapped<'_, S> {
    /// Of two connections, told of each.
    fn secured(&mut self, connection: SessionId, secured: Secured) {
        self.sink.secured(self.owner(connection), secured);
    }

    fn connected(&mut self, connection: SessionId, connected: Connected) {
        let Some((owner, pair)) = self.pair(connection) else {
            return self.sink.connected(self.owner(connection), connected);
        };
        if pair.state != State::Connecting {
            return;
        }
        if connection == pair.pushes {
            let pops = pair.pops;
            self.next.push(Next::Connect(pops));
            return;
        }
        pair.state = State::Up;
        let was_blocked = std::mem::take(&mut pair.blocked);
        self.sink.connected(owner, connected);
        if was_blocked {
            self.sink.writable(owner);
        }
    }

    fn subscribed(&mut self, connection: SessionId, index: usize, granted: Result<Qos, Said>) {
        self.sink.subscribed(self.owner(connection), index, granted);
    }

    /// Of two connections, told when both are gone.
    fn closed(&mut self, connection: SessionId, cause: Cause) {
        match self.pair(connection) {
            None => self.sink.closed(self.owner(connection), cause),
            Some((owner, pair)) if pair.state != State::Closed => self.next.push(Next::End(owner, cause)),
            Some(_) => {}
        }
    }

    fn written(&mut self, connection: SessionId, token: Token, write_start_ns: u64, written_ns: u64) {
        self.sink.written(self.owner(connection), token, write_start_ns, written_ns);
    }

    fn acknowledged(&mut self, connection: SessionId, token: Token, outcome: Result<(), Said>) {
        self.sink.acknowledged(self.owner(connection), token, outcome);
    }

    fn abandoned(&mut self, connection: SessionId, token: Token) {
        self.sink.abandoned(self.owner(connection), token);
    }

    fn unanswered(&mut self, connection: SessionId, token: Token) {
        self.sink.unanswered(self.owner(connection), token);
    }

    fn resent(&mut self, connection: SessionId, token: Token) {
        self.sink.resent(self.owner(connection), token);
    }

    fn writable(&mut self, connection: SessionId) {
        match self.pair(connection) {
            // Told when both are there.
            Some((_, pair)) if pair.state != State::Up => pair.blocked = true,
            _ => self.sink.writable(self.owner(connection)),
        }
    }

    fn withheld(&mut self, connection: SessionId, token: Token) {
        self.sink.withheld(self.owner(connection), token);
    }

    fn passed_over(&mut self, connection: SessionId) {
        self.sink.passed_over(self.owner(connection));
    }

    fn missed(&mut self, messages: u64) {
        self.sink.missed(messages);
    }

    fn is_at_work(&self, connection: SessionId) -> bool {
        self.sink.is_at_work(self.owner(connection))
    }

    fn delivered(&mut self, connection: SessionId, delivery: Delivery<'_>) {
        self.sink.delivered(self.owner(connection), delivery);
    }

    fn requested(&mut self, connection: SessionId, reply_to: ReplyTo<'_>, delivery: Delivery<'_>) {
        self.sink.requested(self.owner(connection), reply_to, delivery);
    }

    fn answered(&mut self, connection: SessionId, request: Option<Token>, delivery: Delivery<'_>) {
        self.sink.answered(self.owner(connection), request, delivery);
    }
}
