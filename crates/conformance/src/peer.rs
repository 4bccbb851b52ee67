//! An adapter under test with the recorder of its events.

use std::net::IpAddr;

use pubmark_model::qos::Qos;
use pubmark_model::workload::Credentials;
use pubmark_protocol::clients::{
    Clients, Goodbye, Outgoing, Publication, SessionConfig, SessionId, SessionOptions, ShardConfig, Subscription, Taken,
};
use pubmark_protocol::clock;
use pubmark_protocol::endpoint::Endpoint;

use crate::recorder::{Event, POOL_BYTES, Recorder};

/// How long an expectation may take.
const PATIENCE_NS: u64 = 20_000_000_000;
const STEP_NS: u64 = 50_000_000;
/// Number of the suite's runs.
pub const RUN: u32 = 0x00c0_ffee;

/// Clients of an adapter, and what they said.
pub struct Peer<C> {
    /// The adapter.
    pub clients: C,
    /// Its events.
    pub record: Recorder,
    sequences: u32,
}

/// A session that publishes to one topic.
pub fn publisher(client_id: &str, topic: &str, qos: Qos) -> SessionConfig {
    let publication = Publication { publisher: 7, topic: topic.into(), qos, retain: false, body: None };
    SessionConfig { publications: vec![publication], ..session(client_id) }
}

/// A session that subscribes to one filter.
pub fn subscriber(client_id: &str, filter: &str, qos: Qos) -> SessionConfig {
    SessionConfig { subscriptions: vec![Subscription { filter: filter.into(), qos }], ..session(client_id) }
}

/// A session that does nothing.
pub fn session(client_id: &str) -> SessionConfig {
    SessionConfig {
        endpoint: 0,
        client_id: client_id.into(),
        credentials: None,
        persistent: false,
        in_flight_window: 20,
        publications: Vec::new(),
        subscriptions: Vec::new(),
        options: SessionOptions::default(),
    }
}

/// A log-in.
pub fn credentials(user: &str, password: &str) -> Option<Credentials> {
    Some(Credentials { user: user.to_owned(), password: password.to_owned() })
}

impl<C: Clients> Peer<C> {
    /// Clients for an endpoint, pinging after 60 s of silence.
    pub fn open(endpoint: Endpoint) -> Peer<C> {
        Peer::with_keep_alive(endpoint, 60)
    }

    /// Clients for an endpoint that connect from these addresses in turn.
    pub fn from_sources(endpoint: Endpoint, sources: &[IpAddr]) -> Peer<C> {
        Peer::with(ShardConfig { sources: sources.into(), ..Peer::<C>::config(endpoint, 60) })
    }

    /// Clients for an endpoint.
    pub fn with_keep_alive(endpoint: Endpoint, keep_alive_s: u16) -> Peer<C> {
        Peer::with(Peer::<C>::config(endpoint, keep_alive_s))
    }

    fn config(endpoint: Endpoint, keep_alive_s: u16) -> ShardConfig {
        ShardConfig {
            endpoints: [endpoint].into(),
            sources: [].into(),
            run: RUN,
            body_pool: (0..POOL_BYTES).map(|byte| byte as u8).collect(),
            maximum_packet_bytes: 8 << 20,
            receive_stamps: true,
            keep_alive_s,
        }
    }

    fn with(config: ShardConfig) -> Peer<C> {
        Peer { clients: C::open(config).unwrap(), record: Recorder::default(), sequences: 0 }
    }

    /// Adds a session and connects it; waits until it is connected and every subscription is answered.
    pub fn join(&mut self, config: SessionConfig) -> SessionId {
        let filters = config.subscriptions.len();
        let session = self.clients.add_session(config);
        self.connect(session);
        self.wait("all subscriptions answered", |record| {
            record.count(|event| matches!(event, Event::Subscribed(id, ..) if *id == session)) == filters
        });
        session
    }

    /// Starts connecting and waits until the session is connected once more.
    pub fn connect(&mut self, session: SessionId) {
        let before = self.record.connects(session).len();
        self.clients.connect(session, &mut self.record);
        self.wait("connected", |record| record.connects(session).len() > before);
    }

    /// Starts connecting and waits for the end of the attempt.
    pub fn fail_to_connect(&mut self, config: SessionConfig) -> pubmark_protocol::events::Cause {
        let session = self.clients.add_session(config);
        self.clients.connect(session, &mut self.record);
        self.wait("closed", |record| !record.causes(session).is_empty());
        assert_eq!(self.record.connects(session), []);
        self.record.causes(session).remove(0)
    }

    /// Ends a connection.
    pub fn leave(&mut self, session: SessionId, goodbye: Goodbye) {
        self.clients.disconnect(session, goodbye, &mut self.record);
    }

    /// Hands over a message of the session's first publication with the next sequence number.
    pub fn offer(&mut self, session: SessionId, payload_bytes: u32) -> Taken {
        self.offer_to(session, 0, payload_bytes)
    }

    /// Hands over a message of one of the session's publications.
    pub fn offer_to(&mut self, session: SessionId, publication: u16, payload_bytes: u32) -> Taken {
        let sequence = self.sequences + 1;
        let due_ns = clock::monotonic_ns();
        let taken = self.clients.send(session, Outgoing { publication, sequence, due_ns, payload_bytes });
        if taken == Taken::Yes {
            self.sequences = sequence;
        }
        taken
    }

    /// Writes what was handed over.
    pub fn flush(&mut self, session: SessionId) {
        self.clients.flush(session, &mut self.record);
    }

    /// Sends a message, waiting for room as long as it takes.
    pub fn send(&mut self, session: SessionId, payload_bytes: u32) {
        loop {
            let before = self.record.count(|event| *event == Event::Writable(session));
            match self.offer(session, payload_bytes) {
                Taken::Yes => break,
                Taken::NotReady => {
                    self.flush(session);
                    self.wait("writable", |record| record.count(|event| *event == Event::Writable(session)) > before);
                }
                Taken::TooLarge(limit) => panic!("{payload_bytes} B are too large: {limit}"),
            }
        }
        self.flush(session);
    }

    /// Polls until `met`, or panics with `what` when patience ends.
    pub fn wait(&mut self, what: &str, met: impl Fn(&Recorder) -> bool) {
        let deadline = clock::monotonic_ns() + PATIENCE_NS;
        while !met(&self.record) {
            let now = clock::monotonic_ns();
            if now >= deadline {
                let last = &self.record.events[self.record.events.len().saturating_sub(20)..];
                let arrived = self.record.arrived.len();
                panic!("gave up waiting for: {what}; {arrived} arrived; last events: {last:#?}");
            }
            self.clients.poll(Some(now + STEP_NS), &mut self.record).unwrap();
        }
    }

    /// Polls for a time, so that what should not happen has a chance to.
    pub fn linger(&mut self, time_ms: u64) {
        let until = clock::monotonic_ns() + time_ms * 1_000_000;
        while clock::monotonic_ns() < until {
            self.clients.poll(Some(until), &mut self.record).unwrap();
        }
    }
}
