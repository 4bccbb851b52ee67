//! From events of connections to events of sessions.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Connected, Delivery, Said, Sink, Token};

use super::publisher::{Publisher, State};
use super::subscriber::Subscriber;

/// A session of the engine's.
pub(super) enum Session {
    Publisher(Box<Publisher>),
    Subscriber(Box<Subscriber>),
}

/// What is put together.
pub(super) struct Mapped<'a, S> {
    /// The engine's.
    pub(super) sink: &'a mut S,
    pub(super) sessions: &'a mut [Session],
    /// By session below: the session that it is part of.
    pub(super) owners: &'a [SessionId],
    /// Sessions of which a connection has ended, and why.
    pub(super) ended: &'a mut Vec<(SessionId, Cause)>,
}

impl<S: Sink> Mapped<'_, S> {
    fn owner(&self, below: SessionId) -> SessionId {
        self.owners[below.0 as usize]
    }

    /// The device that a connection is part of, and its place there.
    fn publisher(&mut self, below: SessionId) -> Option<(SessionId, &mut Publisher, usize)> {
        let owner = self.owner(below);
        let Session::Publisher(publisher) = &mut self.sessions[owner.0 as usize] else { return None };
        let place = publisher.place(below)?;
        Some((owner, publisher, place))
    }
}

impl<S: Sink> Sink for Mapped<'_, S> {
    /// A device is connected when it is to every subscriber; a subscriber was when it listened.
    fn connected(&mut self, below: SessionId, _connected: Connected) {
        let Some((owner, publisher, _)) = self.publisher(below) else { return };
        publisher.up += 1;
        if publisher.state == State::Connecting && publisher.up == publisher.links.len() {
            publisher.state = State::Up;
            let was_blocked = std::mem::take(&mut publisher.blocked);
            self.sink.connected(owner, Connected::default());
            if was_blocked {
                self.sink.writable(owner);
            }
        }
    }

    /// Each device is asked as it connects: a subscription was made when its subscriber listened.
    fn subscribed(&mut self, _below: SessionId, _index: usize, _granted: Result<Qos, Said>) {}

    fn closed(&mut self, below: SessionId, cause: Cause) {
        let owner = self.owner(below);
        match &mut self.sessions[owner.0 as usize] {
            Session::Publisher(publisher) if publisher.state != State::Closed => self.ended.push((owner, cause)),
            Session::Publisher(_) => {}
            Session::Subscriber(subscriber) => subscriber.left(below),
        }
    }

    fn written(&mut self, below: SessionId, _token: Token, write_start_ns: u64, written_ns: u64) {
        let Some((_, publisher, place)) = self.publisher(below) else { return };
        publisher.copied(place, write_start_ns, written_ns);
        self.settle(below);
    }

    fn acknowledged(&mut self, _below: SessionId, _token: Token, _outcome: Result<(), Said>) {}

    /// Told for all copies together, when the device's connections are ended.
    fn abandoned(&mut self, _below: SessionId, _token: Token) {}

    fn unanswered(&mut self, _below: SessionId, _token: Token) {}

    fn resent(&mut self, _below: SessionId, _token: Token) {}

    fn writable(&mut self, below: SessionId) {
        let Some((owner, publisher, _)) = self.publisher(below) else { return };
        if publisher.state == State::Up && std::mem::take(&mut publisher.blocked) {
            self.sink.writable(owner);
        }
    }

    fn missed(&mut self, messages: u64) {
        self.sink.missed(messages);
    }

    fn passed_over(&mut self, below: SessionId) {
        self.sink.passed_over(self.owner(below));
    }

    fn delivered(&mut self, below: SessionId, delivery: Delivery<'_>) {
        self.sink.delivered(self.owner(below), delivery);
    }
}

impl<S: Sink> Mapped<'_, S> {
    fn settle(&mut self, below: SessionId) {
        let owner = self.owner(below);
        if let Session::Publisher(publisher) = &mut self.sessions[owner.0 as usize] {
            publisher.settle(owner, self.sink);
        }
    }
}
