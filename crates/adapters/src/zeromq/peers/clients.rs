//! All sessions of a shard.

use std::io;
use std::net::TcpListener;

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features};
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::events::{Cause, Connected, Event, Sink, Token};

use super::mapped::{Mapped, Session};
use super::publisher::{Publisher, State};
use super::subscriber::Subscriber;
use crate::connection::{Dialect, StreamClients};
use crate::zeromq::ZeroMq;

/// Clients for ZeroMQ's publish/subscribe between each other.
pub struct ZeroMqPeersClients {
    below: StreamClients<ZeroMq>,
    sessions: Vec<Session>,
    /// By session below: the session that it is part of.
    owners: Vec<SessionId>,
    /// Sessions of which a connection has ended.
    ended: Vec<(SessionId, Cause)>,
    /// Places of links that a message goes to.
    places: Vec<usize>,
}

impl ZeroMqPeersClients {
    /// What these clients can do.
    pub const fn capabilities() -> Capabilities {
        Capabilities {
            name: "zeromq-peers",
            title: "ZeroMQ publish/subscribe between peers (ZMTP 3.1)",
            features: Features {
                filters_at_clients: true,
                brokerless: true,
                subscribers_listen: true,
                ..Features::NONE
            },
            ..ZeroMq::CAPABILITIES
        }
    }

    /// The sessions below, and a sink that puts their events together.
    fn split<'a, S: Sink>(&'a mut self, sink: &'a mut S) -> (&'a mut StreamClients<ZeroMq>, Mapped<'a, S>) {
        let ZeroMqPeersClients { below, sessions, owners, ended, .. } = self;
        (below, Mapped { sink, sessions, owners, ended })
    }

    fn add_below(&mut self, owner: SessionId, config: SessionConfig) -> SessionId {
        self.owners.push(owner);
        self.below.add_session(config)
    }

    /// A connection to each endpoint.
    fn connect_all(&mut self, session: SessionId, sink: &mut impl Sink) {
        let Session::Publisher(publisher) = &mut self.sessions[session.0 as usize] else { return };
        if publisher.state != State::Closed {
            return;
        }
        publisher.state = State::Connecting;
        for link in publisher.links.clone() {
            let (below, mut mapped) = self.split(sink);
            below.connect(link, &mut mapped);
        }
        self.settle_ends(sink);
    }

    fn listen(&mut self, session: SessionId, sink: &mut impl Sink) {
        let Session::Subscriber(subscriber) = &mut self.sessions[session.0 as usize] else { return };
        if subscriber.listener.is_some() {
            return;
        }
        let address = self.below.config().endpoints[usize::from(subscriber.config.endpoint)].address;
        let listening = TcpListener::bind(address).and_then(|listener| {
            self.below.listen(&listener, session.0)?;
            Ok(listener)
        });
        match listening {
            Ok(listener) => {
                subscriber.listener = Some(listener);
                sink.event(session, Event::Connected(Connected::default()));
                (0..subscriber.config.subscriptions.len())
                    .for_each(|index| sink.event(session, Event::Subscribed { index, granted: Ok(Qos::BestEffort) }));
            }
            Err(error) => {
                sink.event(
                    session,
                    Event::Closed(Cause::Unreachable(format!("failed to listen on {address}: {error}"))),
                );
            }
        }
    }

    /// Accepts all that wait at a subscriber's listener.
    fn accept(&mut self, session: SessionId, sink: &mut impl Sink) {
        loop {
            let Some(Session::Subscriber(subscriber)) = self.sessions.get_mut(session.0 as usize) else { return };
            let Some(listener) = &subscriber.listener else { return };
            let socket = match listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {
                    continue;
                }
                Err(error) => {
                    self.ended.push((session, Cause::Dropped(format!("failed to accept a device: {error}"))));
                    return;
                }
            };
            let link = match subscriber.idle.pop() {
                Some(link) => link,
                None => {
                    let config = subscriber.config.clone();
                    let link = self.add_below(session, config);
                    self.below.dialect(link).accept();
                    link
                }
            };
            if let Session::Subscriber(subscriber) = &mut self.sessions[session.0 as usize] {
                subscriber.open.push(link);
            }
            let (below, mut mapped) = self.split(sink);
            below.adopt(link, socket, &mut mapped);
        }
    }

    /// Ends sessions of which a connection has ended: a device that cannot reach a subscriber is not connected.
    fn settle_ends(&mut self, sink: &mut impl Sink) {
        while let Some((session, cause)) = self.ended.pop() {
            self.end(session, Goodbye::Cut, cause, sink);
        }
    }

    fn end(&mut self, session: SessionId, goodbye: Goodbye, cause: Cause, sink: &mut impl Sink) {
        let links = match &mut self.sessions[session.0 as usize] {
            Session::Publisher(publisher) if publisher.state != State::Closed => {
                publisher.state = State::Closed;
                publisher.links.clone()
            }
            Session::Subscriber(subscriber) if subscriber.listener.is_some() => {
                subscriber.listener = None;
                subscriber.open.clone()
            }
            _ => return,
        };
        for link in links {
            let (below, mut mapped) = self.split(sink);
            below.disconnect(link, goodbye, &mut mapped);
        }
        if let Session::Publisher(publisher) = &mut self.sessions[session.0 as usize] {
            publisher.abandon(session, sink);
        }
        sink.event(session, Event::Closed(cause));
    }
}

impl Clients for ZeroMqPeersClients {
    fn open(config: ShardConfig) -> Result<ZeroMqPeersClients, OpenError> {
        let below = StreamClients::open(config)?;
        Ok(ZeroMqPeersClients { below, sessions: vec![], owners: vec![], ended: vec![], places: vec![] })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        let session = if config.subscriptions.is_empty() {
            let endpoints = self.below.config().endpoints.len() as u16;
            let config = |endpoint| SessionConfig { endpoint, ..config.clone() };
            let links = (0..endpoints).map(|endpoint| self.add_below(id, config(endpoint))).collect();
            Session::Publisher(Box::new(Publisher::new(links)))
        } else {
            Session::Subscriber(Box::new(Subscriber::new(config)))
        };
        self.sessions.push(session);
        id
    }

    fn connect(&mut self, session: SessionId, sink: &mut impl Sink) {
        match &self.sessions[session.0 as usize] {
            Session::Publisher(_) => self.connect_all(session, sink),
            Session::Subscriber(_) => self.listen(session, sink),
        }
    }

    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink) {
        self.end(session, goodbye, Cause::Ours, sink);
    }

    /// Sends to all subscribers of the message, or to none: one that would block blocks the message for all.
    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        let Session::Publisher(publisher) = &mut self.sessions[session.0 as usize] else {
            return SendOutcome::WouldBlock;
        };
        if publisher.state != State::Up {
            publisher.blocked = true;
            return SendOutcome::WouldBlock;
        }
        self.places.clear();
        for (place, link) in publisher.links.iter().enumerate() {
            if self.below.dialect(*link).is_wanted(message.publication) {
                if !self.below.can_accept(*link) {
                    publisher.blocked = true;
                    return SendOutcome::WouldBlock;
                }
                self.places.push(place);
            }
        }
        for place in &self.places {
            match self.below.send(publisher.links[*place], message) {
                SendOutcome::Accepted => {}
                // The first reports it, and each of the others would.
                refused => return refused,
            }
        }
        let token = Token { publication: message.publication, sequence: message.sequence };
        publisher.take(token, &message.timing, &self.places);
        SendOutcome::Accepted
    }

    fn flush(&mut self, session: SessionId, sink: &mut impl Sink) {
        let Session::Publisher(publisher) = &mut self.sessions[session.0 as usize] else { return };
        publisher.settle(session, sink);
        let links = publisher.links.len();
        for place in 0..links {
            let Session::Publisher(publisher) = &self.sessions[session.0 as usize] else { return };
            if publisher.is_busy(place) {
                let link = publisher.links[place];
                let (below, mut mapped) = self.split(sink);
                below.flush(link, &mut mapped);
            }
        }
        self.settle_ends(sink);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<u64> {
        self.below.wait(until_ns)
    }

    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let (below, mut mapped) = self.split(sink);
        below.serve(now_ns, &mut mapped);
        for listener in self.below.take_pending_accepts() {
            self.accept(SessionId(listener), sink);
        }
        self.settle_ends(sink);
    }

    fn has_unread(&self) -> bool {
        self.below.has_unread()
    }

    fn take_free_since_ns(&mut self, _: SessionId) -> Option<u64> {
        Some(self.below.served_until_ns())
    }

    fn waker(&self) -> Waker {
        self.below.waker()
    }

    fn unsent_bytes(&self) -> u64 {
        self.below.unsent_bytes()
    }
}
