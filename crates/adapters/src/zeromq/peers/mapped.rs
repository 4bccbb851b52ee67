//! From events of connections to events of sessions.

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Connected, Event, Sink};

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

    /// The device that a connection is part of, and its index there.
    fn publisher(&mut self, below: SessionId) -> Option<(SessionId, &mut Publisher, usize)> {
        let owner = self.owner(below);
        let Session::Publisher(publisher) = &mut self.sessions[owner.0 as usize] else { return None };
        let place = publisher.place(below)?;
        Some((owner, publisher, place))
    }
}

impl<S: Sink> Sink for Mapped<'_, S> {
    fn event(&mut self, below: SessionId, event: Event<'_>) {
        match event {
            Event::Connected(_) => self.connected(below),
            Event::Closed(cause) => self.closed(below, cause),
            Event::Written { write_start_ns, written_ns, own_ns, .. } => {
                self.written(below, write_start_ns, written_ns, own_ns);
            }
            Event::Writable => self.writable(below),
            // Each device learns of it as it connects: a subscription was made when its subscriber listened.
            Event::Subscribed { .. } => {}
            // Reported for all copies together, when the device's connections are ended.
            Event::Abandoned(_) => {}
            event @ (Event::Missed(_)
            | Event::Overflowed(_)
            | Event::IdsReused(_)
            | Event::Misreported(_)
            | Event::ProgramEnded(_)
            | Event::ProgramRoundTrip(_)
            | Event::NotPermitted(_)
            | Event::Discarded
            | Event::Delivered(_)
            | Event::Secured(_)) => {
                self.sink.event(self.owner(below), event);
            }
            // ZeroMQ has no acknowledgements, repetitions, requests or wills. Copies that were withheld are reported as one number for all
            // subscribers.
            Event::Acknowledged { .. }
            | Event::Declined(_)
            | Event::Unacknowledged(_)
            | Event::Resent(_)
            | Event::Reauthenticated
            | Event::WillLeft
            | Event::Withheld(_)
            | Event::Requested { .. }
            | Event::Replied { .. } => {}
        }
    }
}

impl<S: Sink> Mapped<'_, S> {
    /// A device is connected when it is to every subscriber; a subscriber was when it listened.
    fn connected(&mut self, below: SessionId) {
        let Some((owner, publisher, _)) = self.publisher(below) else { return };
        publisher.up += 1;
        if publisher.state == State::Connecting && publisher.up == publisher.links.len() {
            publisher.state = State::Up;
            let was_blocked = std::mem::take(&mut publisher.blocked);
            self.sink.event(owner, Event::Connected(Connected::default()));
            if was_blocked {
                self.sink.event(owner, Event::Writable);
            }
        }
    }

    fn closed(&mut self, below: SessionId, cause: Cause) {
        let owner = self.owner(below);
        match &mut self.sessions[owner.0 as usize] {
            Session::Publisher(publisher) if publisher.state != State::Closed => self.ended.push((owner, cause)),
            Session::Publisher(_) => {}
            Session::Subscriber(subscriber) => subscriber.left(below),
        }
    }

    fn written(&mut self, below: SessionId, write_start_ns: u64, written_ns: u64, own_ns: u64) {
        let Some((_, publisher, place)) = self.publisher(below) else { return };
        publisher.copied(place, write_start_ns, written_ns, own_ns);
        let owner = self.owner(below);
        if let Session::Publisher(publisher) = &mut self.sessions[owner.0 as usize] {
            publisher.settle(owner, self.sink);
        }
    }

    fn writable(&mut self, below: SessionId) {
        let Some((owner, publisher, _)) = self.publisher(below) else { return };
        if publisher.state == State::Up && std::mem::take(&mut publisher.blocked) {
            self.sink.event(owner, Event::Writable);
        }
    }
}
