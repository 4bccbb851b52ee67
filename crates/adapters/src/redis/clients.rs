//! All sessions of a shard: one connection each, or two where a command that waits would hold up what the session sends.
//!
//! A session of two connections is connected when both are, and ends when either does.

use std::io;
use std::net::SocketAddr;

use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::{
    Break, Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_protocol::traffic::Traffic;

use super::mapped::{Mapped, Next, Pair, Session, State};
use super::session::Redis;
use crate::connection::{Dialect, StreamClients};

/// A dialect with commands that wait at the server: it executes nothing else of their connection meanwhile.
pub trait Waits: Dialect {
    /// Settings of the two connections of a session, the one that sends first; `None` if one is enough. The capabilities say
    /// which sessions have two ([`pubmark_protocol::capabilities::Features::second_connection`]).
    fn two_connections(config: &SessionConfig) -> Option<[SessionConfig; 2]>;

    /// This connection is the one of its session that waits.
    fn waits(&mut self) {}
}

/// Clients for Redis publish/subscribe, with requests and replies over lists.
pub type RedisClients = PairedClients<Redis>;

/// Clients over a dialect of which some sessions have two connections.
pub struct PairedClients<D> {
    connections: StreamClients<D>,
    sessions: Vec<Session>,
    /// By connection: the session that it is part of. Empty as long as each session has one connection, of its own number: such
    /// sessions pay nothing for the others.
    owners: Vec<SessionId>,
    next: Vec<Next>,
}

impl<D: Waits> PairedClients<D> {
    /// What these clients can do.
    pub const fn capabilities() -> Capabilities {
        D::CAPABILITIES
    }

    /// The connections, and a sink that puts their events together.
    fn split<'a, S: Sink>(&'a mut self, sink: &'a mut S) -> (&'a mut StreamClients<D>, Mapped<'a, S>) {
        let PairedClients { connections, sessions, owners, next } = self;
        (connections, Mapped { sink, sessions, owners, next })
    }

    fn add_connection(&mut self, owner: SessionId, config: SessionConfig) -> SessionId {
        let connection = self.connections.add_session(config);
        if !self.owners.is_empty() || connection != owner {
            self.owners.extend((self.owners.len() as u32..connection.0).map(SessionId));
            self.owners.push(owner);
        }
        connection
    }

    /// The connection over which a session sends.
    fn sending(&self, session: SessionId) -> SessionId {
        match &self.sessions[session.0 as usize] {
            Session::One(connection) => *connection,
            Session::Two(pair) => pair.sends,
        }
    }

    /// The connection that a session can send over now. If there is none, [`Event::Writable`] follows when there is.
    fn sends_over(&mut self, session: SessionId) -> Option<SessionId> {
        match &mut self.sessions[session.0 as usize] {
            Session::One(connection) => Some(*connection),
            Session::Two(pair) if pair.state == State::Up => Some(pair.sends),
            Session::Two(pair) => {
                pair.blocked = true;
                None
            }
        }
    }

    /// Handles the last events, and the events that this causes.
    fn settle(&mut self, sink: &mut impl Sink) {
        while let Some(next) = self.next.pop() {
            match next {
                Next::Connect(connection) => {
                    let (connections, mut mapped) = self.split(sink);
                    connections.connect(connection, &mut mapped);
                }
                Next::End(session, cause) => self.end(session, Goodbye::Cut, cause, sink),
            }
        }
    }

    /// Ends both connections of a session.
    fn end(&mut self, session: SessionId, goodbye: Goodbye, cause: Cause, sink: &mut impl Sink) {
        let Session::Two(pair) = &mut self.sessions[session.0 as usize] else { return };
        if std::mem::replace(&mut pair.state, State::Closed) == State::Closed {
            return;
        }
        // One that was about to be made is not: its session is over.
        let links = [pair.sends, pair.waits];
        self.next.retain(|next| !matches!(next, Next::Connect(connection) if links.contains(connection)));
        for connection in links {
            let (connections, mut mapped) = self.split(sink);
            connections.disconnect(connection, goodbye, &mut mapped);
        }
        sink.event(session, Event::Closed(cause));
    }
}

impl<D: Waits> Clients for PairedClients<D> {
    const BREAKS: bool = true;
    const PAUSES: bool = <StreamClients<D> as Clients>::PAUSES;

    fn open(config: ShardConfig) -> Result<PairedClients<D>, OpenError> {
        let connections = StreamClients::open(config)?;
        Ok(PairedClients { connections, sessions: vec![], owners: vec![], next: vec![] })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        let session = match D::two_connections(&config) {
            Some(both) => {
                let [sends, waits] = both.map(|config| self.add_connection(id, config));
                self.connections.dialect(waits).waits();
                Session::Two(Pair { sends, waits, state: State::Closed, blocked: false })
            }
            None => Session::One(self.add_connection(id, config)),
        };
        self.sessions.push(session);
        id
    }

    fn connect(&mut self, session: SessionId, sink: &mut impl Sink) {
        let connection = match &mut self.sessions[session.0 as usize] {
            Session::One(connection) => *connection,
            Session::Two(pair) if pair.state == State::Closed => {
                pair.state = State::Connecting;
                pair.sends
            }
            Session::Two(_) => return,
        };
        let (connections, mut mapped) = self.split(sink);
        connections.connect(connection, &mut mapped);
        self.settle(sink);
    }

    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink) {
        match &self.sessions[session.0 as usize] {
            Session::One(connection) => {
                let connection = *connection;
                let (connections, mut mapped) = self.split(sink);
                connections.disconnect(connection, goodbye, &mut mapped);
            }
            Session::Two(_) => self.end(session, goodbye, Cause::Ours, sink),
        }
    }

    fn break_connection(&mut self, session: SessionId, how: Break, sink: &mut impl Sink) {
        let broken = match &self.sessions[session.0 as usize] {
            Session::One(connection) => vec![*connection],
            Session::Two(pair) => vec![pair.sends, pair.waits],
        };
        for connection in broken {
            let (connections, mut mapped) = self.split(sink);
            connections.break_connection(connection, how, &mut mapped);
        }
        self.settle(sink);
    }

    fn silenced(&self) -> Vec<SocketAddr> {
        self.connections.silenced()
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        match self.sends_over(session) {
            Some(connection) => self.connections.send(connection, message),
            None => SendOutcome::WouldBlock,
        }
    }

    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome {
        match self.sends_over(session) {
            Some(connection) => self.connections.reply(connection, reply),
            None => SendOutcome::WouldBlock,
        }
    }

    fn flush(&mut self, session: SessionId, sink: &mut impl Sink) {
        let connection = self.sending(session);
        let (connections, mut mapped) = self.split(sink);
        connections.flush(connection, &mut mapped);
        self.settle(sink);
    }

    fn resume(&mut self, session: SessionId, due_ns: u64, sink: &mut impl Sink) {
        // One of two connections is never paused: it replies to requests, and the shard itself accounts for its processing time;
        // or its dialect cannot pause.
        let Session::One(connection) = self.sessions[session.0 as usize] else { return };
        let (connections, mut mapped) = self.split(sink);
        connections.resume(connection, due_ns, &mut mapped);
        self.settle(sink);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<u64> {
        self.connections.wait(until_ns)
    }

    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let (connections, mut mapped) = self.split(sink);
        connections.serve(now_ns, &mut mapped);
        self.settle(sink);
    }

    fn has_unread(&self) -> bool {
        self.connections.has_unread()
    }

    fn take_free_since_ns(&mut self, session: SessionId) -> Option<u64> {
        self.connections.take_free_since_ns(self.sending(session))
    }

    fn waker(&self) -> Waker {
        self.connections.waker()
    }

    fn unsent_bytes(&self) -> u64 {
        self.connections.unsent_bytes()
    }

    fn held_bytes(&self) -> u64 {
        self.connections.held_bytes()
    }

    fn traffic(&self, session: SessionId) -> Option<Traffic> {
        match &self.sessions[session.0 as usize] {
            Session::One(connection) => self.connections.traffic(*connection),
            Session::Two(pair) => {
                let mut both = self.connections.traffic(pair.sends)?;
                both.add(&self.connections.traffic(pair.waits)?);
                Some(both)
            }
        }
    }

    fn finish(&mut self, sink: &mut impl Sink) {
        let (connections, mut mapped) = self.split(sink);
        connections.finish(&mut mapped);
    }
}

#[cfg(test)]
mod tests {
    use pubmark_model::fleet::SecondConnection;
    use pubmark_model::payload::HeaderPlace;
    use pubmark_model::qos::Qos;
    use pubmark_protocol::clients::{Publication, SessionOptions, Subscription};

    use super::*;
    use crate::redis_streams::RedisStreams;

    fn session(publishes: bool, subscribes: bool, options: SessionOptions) -> SessionConfig {
        let publication = || Publication {
            publisher: 1,
            topic: "t".into(),
            qos: Qos::BestEffort,
            retain: false,
            body: None,
            header: HeaderPlace::Payload,
            properties: [].into(),
        };
        let subscription = || Subscription { filter: "t".into(), qos: Qos::BestEffort };
        SessionConfig {
            client_id: "c".into(),
            endpoint: 0,
            network: None,
            credentials: None,
            token: None,
            nkey: None,
            certificate: None,
            persistent: false,
            in_flight_window: 1,
            publications: publishes.then(publication).into_iter().collect(),
            subscriptions: subscribes.then(subscription).into_iter().collect(),
            options,
        }
    }

    fn agrees<D: Waits>() {
        let Capabilities { name, features, .. } = D::CAPABILITIES;
        let has_two = |config: SessionConfig| D::two_connections(&config).is_some();
        for (publishes, subscribes) in [(true, false), (false, true), (true, true)] {
            let expected =
                publishes && subscribes && features.second_connection == SecondConnection::PublishesAndSubscribes;
            let found = has_two(session(publishes, subscribes, SessionOptions::default()));
            assert_eq!(found, expected, "{name}: publishes {publishes}, subscribes {subscribes}");
        }
        if features.requests.is_some() {
            let expected = features.second_connection == SecondConnection::RequestsAndReplies;
            let requester = SessionOptions { reply_topic: Some("r".into()), ..SessionOptions::default() };
            assert_eq!(has_two(session(true, true, requester)), expected, "{name}: requester");
            let responder = SessionOptions { replies_at: Some(Qos::BestEffort), ..SessionOptions::default() };
            assert_eq!(has_two(session(false, true, responder)), expected, "{name}: responder");
        }
    }

    #[test]
    fn sessions_have_two_connections_where_the_capabilities_say_so() {
        agrees::<Redis>();
        agrees::<RedisStreams>();
    }
}
