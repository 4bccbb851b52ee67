//! An adapter under test with the recorder of its events.

use std::net::IpAddr;

use pubmark_model::payload::HeaderPlace;
use pubmark_model::qos::Qos;
use pubmark_model::template::BodyDraw;
use pubmark_model::workload::Credentials;
use pubmark_protocol::any::{AnyClients, Open};
use pubmark_protocol::clients::{
    Clients, ConnectionSettings, Goodbye, Outgoing, Publication, SendOutcome, SessionConfig, SessionId, SessionOptions,
    ShardConfig, Subscription,
};
use pubmark_protocol::clock;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_protocol::timing::Timing;
use pubmark_testing::{assert_count, assert_count_eq};

use crate::deadline::step;
use crate::recorder::{Event, POOL_BYTES, Recorder};

/// Timeout of an expectation, ns.
const PATIENCE_NS: u64 = 20_000_000_000;
const STEP_NS: u64 = 50_000_000;
/// Number of the suite's runs.
pub const RUN: u32 = 0x00c0_ffee;

/// Clients of an adapter, and the events that they reported. The type of the adapter is known only where a test uses a function of that
/// adapter.
pub struct Peer<C: ?Sized = dyn AnyClients> {
    /// Dropped before the adapter.
    _ending: Ending,
    /// The adapter.
    pub clients: Box<C>,
    /// Its events.
    pub record: Recorder,
    sequences: u32,
}

/// Notes that the adapter is dropped next: a library may not return from that.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        step("end the clients");
    }
}

/// Index of the endpoint of sessions that subscribe; those that publish have 0.
const SUBSCRIBERS: u16 = 1;

/// A session that publishes to one topic.
pub fn publisher(client_id: &str, topic: &str, qos: Qos) -> SessionConfig {
    let publication = Publication {
        publisher: 7,
        topic: topic.into(),
        qos,
        retain: false,
        body: None,
        header: HeaderPlace::Payload,
        properties: [].into(),
    };
    SessionConfig { publications: vec![publication], ..session(client_id) }
}

/// A session that subscribes to one filter.
pub fn subscriber(client_id: &str, filter: &str, qos: Qos) -> SessionConfig {
    let subscriptions = vec![Subscription { filter: filter.into(), qos }];
    SessionConfig { endpoint: SUBSCRIBERS, subscriptions, ..session(client_id) }
}

/// A session that does nothing.
pub fn session(client_id: &str) -> SessionConfig {
    SessionConfig {
        endpoint: 0,
        network: None,
        client_id: client_id.into(),
        credentials: None,
        token: None,
        nkey: None,
        certificate: None,
        persistent: false,
        in_flight_window: 20,
        publications: Vec::new(),
        subscriptions: Vec::new(),
        options: SessionOptions::default(),
    }
}

/// A log-in.
pub fn credentials(user: &str, password: &str) -> Option<Credentials> {
    Some(Credentials { user: user.to_owned(), password: password.into() })
}

impl<C: Clients> Peer<C> {
    /// Clients that a test has opened.
    pub fn of_clients(clients: C) -> Peer<C> {
        Peer::new(Box::new(clients))
    }

    /// Clients for an endpoint, pinging after 60 s of silence.
    pub fn open(endpoint: Endpoint) -> Peer<C> {
        Peer::with_keep_alive(endpoint, 60)
    }

    /// Clients for an endpoint that connect from these addresses in turn.
    pub fn from_sources(endpoint: Endpoint, sources: &[IpAddr]) -> Peer<C> {
        let config = ShardConfig { sources: sources.into(), ..config(endpoint, 60) };
        Peer::new(Box::new(C::open(config).unwrap()))
    }

    /// Clients for an endpoint.
    pub fn with_keep_alive(endpoint: Endpoint, keep_alive_s: u16) -> Peer<C> {
        Peer::new(Box::new(C::open(config(endpoint, keep_alive_s)).unwrap()))
    }
}

impl Peer {
    /// Clients for an endpoint, pinging after 60 s of silence.
    pub fn of(open: Open, endpoint: Endpoint) -> Peer {
        Peer::of_with_keep_alive(open, endpoint, 60)
    }

    /// Clients for an endpoint.
    pub fn of_with_keep_alive(open: Open, endpoint: Endpoint, keep_alive_s: u16) -> Peer {
        Peer::new(open(config(endpoint, keep_alive_s)).unwrap())
    }

    /// Clients for two endpoints: publishers' and subscribers'.
    pub fn of_two(open: Open, endpoints: [Endpoint; 2], keep_alive_s: u16) -> Peer {
        Peer::new(open(config_of_two(endpoints, keep_alive_s)).unwrap())
    }
}

fn config(endpoint: Endpoint, keep_alive_s: u16) -> ShardConfig {
    config_of_two([endpoint.clone(), endpoint], keep_alive_s)
}

fn config_of_two(endpoints: [Endpoint; 2], keep_alive_s: u16) -> ShardConfig {
    ShardConfig {
        endpoints: endpoints.into(),
        sources: [].into(),
        networks: [].into(),
        run: RUN,
        wall_ahead_ns: 0,
        body_pool: (0..POOL_BYTES).map(|byte| byte as u8).collect(),
        connections: ConnectionSettings {
            maximum_packet_bytes: 8 << 20,
            keep_alive_s,
            ..ConnectionSettings::default()
        },
    }
}

impl<C: AnyClients + ?Sized> Peer<C> {
    fn new(clients: Box<C>) -> Peer<C> {
        Peer { _ending: Ending, clients, record: Recorder::default(), sequences: 0 }
    }

    /// Adds a session and connects it; waits until it is connected and every subscription is acknowledged.
    pub fn join(&mut self, config: SessionConfig) -> SessionId {
        let filters = config.subscriptions.len();
        let session = self.clients.add_session(config);
        self.connect(session);
        self.wait("all subscriptions answered", |record| {
            record.count(|event| matches!(event, Event::Subscribed(id, ..) if *id == session)) == filters
        });
        session
    }

    /// Connects as [`Peer::join`] does; the server may refuse the session before, with `attempts` attempts at most.
    pub fn join_within(&mut self, attempts: usize, config: SessionConfig) -> SessionId {
        let filters = config.subscriptions.len();
        let session = self.clients.add_session(config);
        while self.record.connects(session).is_empty() {
            let failed = self.record.causes(session).len();
            assert!(failed < attempts, "{:?}", self.record.causes(session));
            self.begin_connect(session);
            self.wait("accepted or not", |record| {
                !record.connects(session).is_empty() || record.causes(session).len() > failed
            });
        }
        self.wait("all subscriptions answered", |record| {
            record.count(|event| matches!(event, Event::Subscribed(id, ..) if *id == session)) == filters
        });
        session
    }

    /// Sends until something arrives, then forgets what was sent and received: from then on, publisher and subscriber know each other.
    pub fn discover(&mut self, session: SessionId) {
        let deadline = clock::monotonic_ns() + PATIENCE_NS;
        while self.record.arrived.is_empty() {
            assert!(clock::monotonic_ns() < deadline, "nothing arrived of {} messages", self.sequences);
            self.send(session, 16);
            self.linger(20);
        }
        self.linger(50);
        self.record.arrived.clear();
        self.record.events.retain(|event| matches!(event, Event::Connected(..) | Event::Subscribed(..)));
        self.sequences = 0;
    }

    /// Starts to connect.
    pub fn begin_connect(&mut self, session: SessionId) {
        step("connect");
        self.clients.connect(session, &mut self.record);
    }

    /// Starts to connect and waits until the session is connected once more.
    pub fn connect(&mut self, session: SessionId) {
        let before = self.record.connects(session).len();
        self.begin_connect(session);
        self.wait("connected", |record| record.connects(session).len() > before);
    }

    /// Starts to connect and waits until the attempt fails.
    pub fn fail_to_connect(&mut self, config: SessionConfig) -> pubmark_protocol::events::Cause {
        let session = self.clients.add_session(config);
        self.begin_connect(session);
        self.wait("closed", |record| !record.causes(session).is_empty());
        assert_eq!(self.record.connects(session), []);
        self.record.causes(session).remove(0)
    }

    /// Ends a connection.
    pub fn leave(&mut self, session: SessionId, goodbye: Goodbye) {
        step("disconnect");
        self.clients.disconnect(session, goodbye, &mut self.record);
    }

    /// Offers a message of the session's first publication with the next sequence number.
    pub fn offer(&mut self, session: SessionId, payload_bytes: u32) -> SendOutcome {
        self.offer_to(session, 0, payload_bytes)
    }

    /// Offers a message of one of the session's publications.
    pub fn offer_to(&mut self, session: SessionId, publication: u16, payload_bytes: u32) -> SendOutcome {
        step("send");
        let sequence = self.sequences + 1;
        let due_ns = clock::monotonic_ns();
        let taken = self.clients.send(
            session,
            Outgoing {
                publication,
                sequence,
                timing: Timing::on_time(due_ns),
                root: None,
                draw: BodyDraw::default(),
                plain_body_bytes: 0,
                payload_bytes,
            },
        );
        if taken == SendOutcome::Accepted {
            self.sequences = sequence;
        }
        taken
    }

    /// Writes what was offered.
    pub fn flush(&mut self, session: SessionId) {
        step("flush");
        self.clients.flush(session, &mut self.record);
    }

    /// Sends a message; waits while sending would block.
    pub fn send(&mut self, session: SessionId, payload_bytes: u32) {
        self.send_to(session, 0, payload_bytes);
    }

    /// Sends a message of one of the session's publications; waits while sending would block, and until there is a subscriber:
    /// publishers that withhold messages without a subscriber learn of a subscription some time after it was made.
    pub fn send_to(&mut self, session: SessionId, publication: u16, payload_bytes: u32) {
        let deadline = clock::monotonic_ns() + PATIENCE_NS;
        loop {
            let before = self.record.withheld;
            self.hand_over(session, publication, payload_bytes);
            if self.record.withheld == before {
                return;
            }
            assert!(clock::monotonic_ns() < deadline, "nobody asked for message {}", self.sequences);
            // The message was withheld: the next attempt sends the same one.
            self.record.forget_written(session, self.sequences);
            self.sequences -= 1;
            self.linger(10);
        }
    }

    fn hand_over(&mut self, session: SessionId, publication: u16, payload_bytes: u32) {
        loop {
            let before = self.record.count(|event| *event == Event::Writable(session));
            match self.offer_to(session, publication, payload_bytes) {
                SendOutcome::Accepted => break,
                SendOutcome::WouldBlock => {
                    self.flush(session);
                    self.wait("writable", |record| record.count(|event| *event == Event::Writable(session)) > before);
                }
                SendOutcome::TooLarge(limit) => panic!("{payload_bytes} B are too large: {limit}"),
            }
        }
        self.flush(session);
    }

    /// Polls until `met`, or panics with `what` when nothing has arrived for the whole timeout. The timeout is long because the
    /// machine may be busy.
    pub fn wait(&mut self, what: &str, met: impl Fn(&Recorder) -> bool) {
        step(&format!("wait for: {what}"));
        let (mut arrived, mut deadline) = (0, 0);
        while !met(&self.record) {
            let now = clock::monotonic_ns();
            if deadline == 0 || self.record.arrived.len() > arrived {
                arrived = self.record.arrived.len();
                deadline = now + PATIENCE_NS;
            }
            // A slow machine does not explain so long a time without a message: it is lost.
            let last = &self.record.events[self.record.events.len().saturating_sub(20)..];
            let refused = self.record.refused();
            assert_count!(
                now < deadline,
                "gave up waiting for: {what}; {arrived} arrived; refused: {refused:?}; last events: {last:#?}"
            );
            self.clients.poll(Some(now + STEP_NS), &mut self.record).unwrap();
        }
    }

    /// Polls until the kernel has no unsent data: the peer's acknowledgements take a moment.
    pub fn wait_sent(&mut self) {
        step("wait until everything is sent");
        let deadline = clock::monotonic_ns() + PATIENCE_NS;
        while self.clients.unsent_bytes() > 0 {
            let now = clock::monotonic_ns();
            assert!(now < deadline, "{} bytes are still unsent", self.clients.unsent_bytes());
            self.clients.poll(Some(now + STEP_NS), &mut self.record).unwrap();
        }
    }

    /// A busy subscriber processes so many messages, the first of them since the peer was opened: each one arrives after the one
    /// before it was processed, and none earlier.
    pub fn process_each(&mut self, session: SessionId, count: usize) {
        for done in 1..=count {
            self.wait("the next message", |record| record.arrived.len() >= done || !record.causes(session).is_empty());
            self.linger(1);
            assert_count_eq!(self.record.arrived.len(), done, "{:?}", self.record.causes(session));
            self.record.at_work = false;
            self.clients.resume(session, clock::monotonic_ns(), &mut self.record);
        }
    }

    /// Polls for a time, so that an event that must not happen can show up.
    pub fn linger(&mut self, time_ms: u64) {
        step("poll");
        let until = clock::monotonic_ns() + time_ms * 1_000_000;
        while clock::monotonic_ns() < until {
            self.clients.poll(Some(until), &mut self.record).unwrap();
        }
    }
}
