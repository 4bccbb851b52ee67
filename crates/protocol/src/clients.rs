//! The trait: all client sessions of one shard over one protocol.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pubmark_model::identity::ClientPem;
use pubmark_model::payload::HeaderPlace;
use pubmark_model::predicate::SelectorFields;
use pubmark_model::qos::Qos;
use pubmark_model::secret::Secret;
use pubmark_model::template::BodyDraw;
use pubmark_model::workload::Credentials;
use serde::{Deserialize, Serialize};

use crate::body::{Body, Filled};
use crate::client_program::ClientProgram;
use crate::endpoint::Endpoint;
use crate::events::{Sink, Token};
use crate::header::Root;
use crate::log_in::{LogIn, SessionToken};
use crate::network::Network;
use crate::requests::OutgoingReply;
use crate::timing::Timing;
use crate::traffic::Traffic;

/// A session of this shard; counted from 0 in the order of [`Clients::add_session`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// How all connections of a run are made and maintained; a run's worker processes get it unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSettings {
    /// Largest packet accepted from a peer, in bytes; a larger one ends its connection.
    pub maximum_packet_bytes: usize,
    /// Use the kernel's receive timestamps.
    pub receive_stamps: bool,
    /// Seconds without a packet after which the client pings; 0 for never.
    pub keep_alive_s: u16,
    /// Each client resumes its own last TLS session when it reconnects, if the server accepts that.
    pub resumes_tls: bool,
    /// The kernel's congestion control for our ends of TCP connections, by its name; the machine's own if `None`.
    pub congestion_control: Option<Arc<str>>,
    /// The program that is the client; pubmark's own if `None`.
    pub program: Option<Arc<ClientProgram>>,
}

impl Default for ConnectionSettings {
    fn default() -> ConnectionSettings {
        ConnectionSettings {
            maximum_packet_bytes: 1 << 20,
            receive_stamps: true,
            keep_alive_s: 60,
            resumes_tls: true,
            congestion_control: None,
            program: None,
        }
    }
}

/// Settings of all sessions of a shard.
#[derive(Clone, Debug, Default)]
pub struct ShardConfig {
    /// Endpoints of sessions; [`SessionConfig::endpoint`] is an index into this list.
    pub endpoints: Arc<[Endpoint]>,
    /// Addresses that sessions connect from, in turn; the kernel's choice if empty.
    pub sources: Arc<[IpAddr]>,
    /// Networks that sessions connect from, besides that of the shard's thread; [`SessionConfig::network`] is an index into this list.
    pub networks: Arc<[Arc<dyn Network>]>,
    /// Number of this run; goes into every header.
    pub run: u32,
    /// Wall clock − `CLOCK_MONOTONIC`, ns, read once for the run: converts due times for `{{timestamp}}`.
    pub wall_ahead_ns: i64,
    /// Bytes that fill the payloads of publications without a body of their own, as a [`Body::Pool`].
    pub body_pool: Arc<[u8]>,
    /// How its connections are made and maintained.
    pub connections: ConnectionSettings,
}

/// A topic that a session publishes to, with its level; registered once so that a send needs no look-up.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The publisher's number in the fleet; goes into every header.
    pub publisher: u32,
    /// Its topic.
    pub topic: Box<str>,
    /// Delivery level.
    pub qos: Qos,
    /// Retain flag.
    pub retain: bool,
    /// What fills its payloads; the shard's pool if `None`.
    pub body: Option<Body>,
    /// Where the headers of its messages are; in properties only if its protocol has them
    /// ([`crate::capabilities::Features::properties`]).
    pub header: HeaderPlace,
    /// Properties of its messages, keys and values; empty if its protocol has none.
    pub properties: Arc<[(String, String)]>,
}

/// One filter of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Filter in MQTT's syntax.
    pub filter: Box<str>,
    /// Requested delivery level.
    pub qos: Qos,
}

/// A message that the server publishes when a session's connection ends without a goodbye.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// Number of the publisher of the will; goes into its header.
    pub publisher: u32,
    /// Its topic.
    pub topic: Box<str>,
    /// Delivery level.
    pub qos: Qos,
    /// Retain flag.
    pub retain: bool,
    /// Whole payload, bytes; at least [`crate::header::WILL`].
    pub payload_bytes: u16,
    /// Seconds that the server waits before it publishes, in case the session is resumed.
    pub delay_s: u32,
}

/// Optional features that a session requests, if its protocol has them ([`crate::capabilities::Features`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// Name of a shared group, to which all its subscriptions belong: each message goes to one of the group's sessions.
    pub shared: Option<Box<str>>,
    /// Its will.
    pub will: Option<Box<Will>>,
    /// Seconds after which the server drops a message of the session's that it could not deliver.
    pub message_expiry_s: Option<u32>,
    /// Use a topic alias from a topic's second message on a connection on, as far as the server allows.
    pub topic_alias: bool,
    /// Type of the device that publishes, for protocols in which a topic has one.
    pub device_type: Option<Arc<str>>,
    /// Its messages are requests, whose replies are sent to this topic. It is the filter of the session's only subscription,
    /// and nothing is sent before that is granted.
    pub reply_topic: Option<Box<str>>,
    /// Time after which its requests are given up, for adapters with state for each awaited reply.
    pub gives_up_after: Option<Duration>,
    /// It replies to requests, at this level; the adapter prepares for that when it connects.
    pub replies_at: Option<Qos>,
    /// Its subscriptions are of messages for which this selector of JMS holds
    /// ([`pubmark_model::predicate::Predicate::selector`]). A system that does not accept it refuses the subscription.
    pub selector: Option<Arc<str>>,
    /// Fields of its JSON payloads that its messages carry beside them, for selectors.
    pub selector_fields: Option<Arc<SelectorFields>>,
    /// Time that its subscriber takes for each message; zero for none.
    pub processing: Duration,
    /// For each of its publications that are requests: its responder, for protocols in which a request goes to an address of
    /// its own. Otherwise empty: requests go to their topics at the session's own endpoint.
    pub targets: Vec<RequestTarget>,
}

/// The responder of a publication's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// The filter by which it receives them.
    pub filter: Arc<str>,
    /// Its endpoint, as an index into its own shard's [`ShardConfig::endpoints`]; where subscribers accept connections, only it
    /// is at that endpoint.
    pub endpoint: u16,
}

/// How far a system may send ahead of a subscriber's acknowledgements, where it sends again what was not acknowledged in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryWindow {
    /// Most messages of a subscription that wait for their acknowledgement; 1 at least.
    pub messages: u32,
    /// Time after which one of them is sent again.
    pub redelivers_after: Duration,
}

impl DeliveryWindow {
    /// The window of a session with this number of subscriptions, whose subscriber takes `processing` for each message and acknowledges
    /// it when it begins: it begins everything that may be sent ahead within half of the time. Otherwise messages that only wait
    /// for their subscriber would be sent again, and the copies would count as the system's.
    pub fn of_slow_subscriber(self, processing: Duration, subscriptions: usize) -> DeliveryWindow {
        // One message of each subscription, one after the other.
        let round = processing.saturating_mul(u32::try_from(subscriptions.max(1)).unwrap_or(u32::MAX));
        if round.is_zero() {
            return self;
        }
        let messages = self.redelivers_after.as_nanos() / 2 / round.as_nanos();
        DeliveryWindow {
            messages: u32::try_from(messages).unwrap_or(u32::MAX).clamp(1, self.messages.max(1)),
            redelivers_after: self.redelivers_after.max(round.saturating_mul(2)),
        }
    }
}

/// A session to be made.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Unique over all clients of the run.
    pub client_id: Box<str>,
    /// Its endpoint, as an index into [`ShardConfig::endpoints`].
    pub endpoint: u16,
    /// Its network, as an index into [`ShardConfig::networks`]; that of the shard's thread if `None`.
    pub network: Option<u16>,
    /// Log-in with a password; the endpoint's if `None`.
    pub credentials: Option<Credentials>,
    /// Log-in with tokens, instead of every password.
    pub token: Option<SessionToken>,
    /// Seed of an NKey that signs its log-ins. Only for adapters with [`crate::capabilities::Features::nkeys`].
    pub nkey: Option<Secret>,
    /// Certificate that it presents in TLS; the endpoint's if `None`. Only for adapters with
    /// [`crate::capabilities::Features::own_certificates`].
    pub certificate: Option<Arc<ClientPem>>,
    /// Request a persistent session.
    pub persistent: bool,
    /// In-flight window: most messages sent and not yet acknowledged; the server may allow fewer.
    pub in_flight_window: u16,
    /// Its publications; [`Outgoing::publication`] is an index into this list.
    pub publications: Vec<Publication>,
    /// Its subscriptions, made after each connect that finds no session.
    pub subscriptions: Vec<Subscription>,
    /// Optional features that it requests.
    pub options: SessionOptions,
}

impl SessionConfig {
    /// Log-in at its endpoint for one connection: its own, with a token signed now if it has one, or the endpoint's.
    pub fn log_in<'a>(&'a self, shard: &'a ShardConfig) -> Option<LogIn<'a>> {
        if let Some(token) = &self.token {
            return Some(token.log_in());
        }
        let given = self.credentials.as_ref().or(shard.endpoints[usize::from(self.endpoint)].credentials.as_ref());
        given.map(LogIn::from)
    }
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Index in the session's publications.
    pub publication: u16,
    /// The publisher's sequence number.
    pub sequence: u32,
    /// Its due time and the time when it was submitted.
    pub timing: Timing,
    /// Of a reaction, whose payload has [`crate::header::REACTION`] bytes at least: the message at the beginning of its chain.
    pub root: Option<Root>,
    /// What the fields of its body depend on.
    pub draw: BodyDraw,
    /// Bytes of its body before the steps of `transform`, without the header; 0 if there are none.
    pub plain_body_bytes: u32,
    /// Whole payload, with the header if that is in it. A payload below [`crate::header::COMPACT`] is too small for a header:
    /// it is all zeros, and its publisher cannot be identified.
    pub payload_bytes: u32,
}

impl Outgoing {
    /// Its name in events.
    pub fn token(&self) -> Token {
        Token { publication: self.publication, sequence: self.sequence }
    }

    /// What its body is made from. `wall_ahead_ns` is that of the shard ([`ShardConfig::wall_ahead_ns`]).
    pub fn filled(&self, publisher: u32, wall_ahead_ns: i64) -> Filled {
        Filled {
            publisher,
            sequence: self.sequence,
            due_ns: self.timing.due_ns,
            draw: self.draw,
            wall_ahead_ns,
            plain_bytes: self.plain_body_bytes,
        }
    }
}

/// Result of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The adapter has the message; [`crate::events::Event::Written`] or [`crate::events::Event::Abandoned`] will follow.
    Accepted,
    /// Back-pressure: window or socket buffer full, or not connected. [`crate::events::Event::Writable`] follows when a retry is
    /// possible.
    WouldBlock,
    /// Refused for ever: larger than the system's limit, in bytes.
    TooLarge(u32),
}

/// How a client ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goodbye {
    /// With the protocol's goodbye; a persistent session remains.
    Graceful,
    /// With the protocol's goodbye, for good: the server is requested to discard the session, if the protocol supports that.
    Final,
    /// Closed without a goodbye.
    Cut,
}

/// How a fault of a run breaks a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Both ends: with a reset (RST), which the server sees; [`crate::events::Event::Closed`] follows at once.
    Reset,
    /// Neither end is notified: from now on nothing is sent or received on it, and writes are accepted like those of a socket,
    /// until a buffer is full. The session stays as it is until it notices, or until [`Break::GiveUp`].
    Silence,
    /// A silenced connection is abandoned without a packet; [`crate::events::Event::Closed`] follows at once. No effect on one
    /// that was not silenced, or that the session has left already.
    GiveUp,
}

/// Why an adapter could not be started.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A system call failed.
    #[error("failed to {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A library that an adapter needs is missing or has the wrong version.
    #[error("{0}")]
    Library(String),
    /// A client program that cannot be used.
    #[error("failed to start the client program `{program}`: {reason}")]
    Program {
        /// Its command.
        program: String,
        /// The reason.
        reason: String,
    },
    /// TLS material that cannot be used.
    #[error("failed to read certificates from `{path}`: {reason}")]
    Certificates {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A key that cannot be used.
    #[error("failed to read a private key from `{path}`: {reason}")]
    Key {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A key and a certificate that do not match.
    #[error("failed to use `{key}` as the key of `{certificate}`: {reason}")]
    Identity {
        /// File of the certificate.
        certificate: String,
        /// File of the key.
        key: String,
        /// The reason.
        reason: String,
    },
}

/// All client sessions of one shard over one protocol. One thread; only [`Clients::wait`] blocks.
///
/// Every event goes to the sink of the call in which it is noticed. A session that ended is reconnected only by
/// [`Clients::connect`].
pub trait Clients: Sized {
    /// Can its connections be broken by faults ([`Clients::break_connection`])?
    const BREAKS: bool = false;

    /// Do its sessions pause while their subscribers process a message ([`Sink::is_at_work`])?
    const PAUSES: bool = false;

    /// Does what arrives wait in a queue of pubmark's, with the time of its arrival, until [`Clients::serve`] is called? What was in it
    /// at the end of the drain has arrived, and is served then without a further [`Clients::wait`].
    const QUEUES_ARRIVALS: bool = false;

    /// Starts with no sessions.
    fn open(config: ShardConfig) -> Result<Self, OpenError>;

    /// Adds a session, not yet connected.
    fn add_session(&mut self, config: SessionConfig) -> SessionId;

    /// Can one more session start to connect? One that cannot waits without an attempt, so that no time of an attempt passes in a
    /// queue of the adapter's. When it changes, [`Clients::wait`] returns.
    fn can_connect(&self) -> bool {
        true
    }

    /// Starts to connect; [`crate::events::Event::Connected`] or [`crate::events::Event::Closed`] follows. Then
    /// [`crate::events::Event::Subscribed`] follows for each subscription. No effect on a session that is connecting or connected.
    fn connect(&mut self, session: SessionId, sink: &mut impl Sink);

    /// Ends a connection; everything not written is reported by [`crate::events::Event::Abandoned`], then
    /// [`crate::events::Event::Closed`] with [`crate::events::Cause::Ours`] follows at once. No effect on a session that has no connection.
    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink);

    /// Breaks a connection. No effect on a session that has none, and in an adapter that cannot ([`Clients::BREAKS`]).
    fn break_connection(&mut self, session: SessionId, how: Break, sink: &mut impl Sink) {
        let _ = (session, how, sink);
    }

    /// Local addresses of all TCP connections that [`Break::Silence`] silenced so far, also of abandoned ones: what the server
    /// still sends to them never arrives. Their sockets stay open, so no other connection gets one of these addresses.
    fn silenced(&self) -> Vec<SocketAddr> {
        Vec::new()
    }

    /// Hands over a message; nothing is written to the socket before [`Clients::flush`].
    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome;

    /// Hands over a reply to a request that arrived at this session ([`crate::events::Event::Requested`]); events name it by
    /// [`OutgoingReply::token`]. Never called on an adapter without [`crate::capabilities::Features::requests`].
    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome {
        let _ = (session, reply);
        SendOutcome::TooLarge(0)
    }

    /// Writes what was handed over, in as few system calls as possible.
    fn flush(&mut self, session: SessionId, sink: &mut impl Sink);

    /// A subscriber finished its message at `due_ns`: delivers the next one, if there is one. The wait before that time is the
    /// subscriber's, not receive lateness. A message that had surely arrived by then is marked
    /// ([`crate::events::Delivery::has_waited`]). No effect in an adapter that does not pause ([`Clients::PAUSES`]).
    fn resume(&mut self, session: SessionId, due_ns: u64, sink: &mut impl Sink) {
        let _ = (session, due_ns, sink);
    }

    /// Waits until something happened, `until_ns` (`CLOCK_MONOTONIC`) has passed, or the waker was used; `None` waits without
    /// limit, a time in the past only polls. It may also return early with nothing to report. Returns the time when it ended,
    /// same clock.
    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64>;

    /// The last [`Clients::serve`] left unread data: the next wait must be soon.
    fn has_unread(&self) -> bool;

    /// Reports all that happened up to the last [`Clients::wait`], which ended at `now_ns`.
    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink);

    /// [`Clients::wait`], then [`Clients::serve`].
    fn poll(&mut self, until_ns: Option<u64>, sink: &mut impl Sink) -> std::io::Result<()> {
        let now_ns = self.wait(until_ns)?;
        self.serve(now_ns, sink);
        Ok(())
    }

    /// For a session that was blocked and can send now: a time until which the system surely prevented it from sending, ns of
    /// `CLOCK_MONOTONIC`; waiting after that may be the generator's. It is about the wait that has just ended, and can be read
    /// once. `None` if that is unknown, because a library exchanges packets with the system.
    fn take_free_since_ns(&mut self, session: SessionId) -> Option<u64> {
        let _ = session;
        None
    }

    /// Ends a [`Clients::wait`] from another thread.
    fn waker(&self) -> Waker;

    /// Bytes that the kernel still has to send for all sessions (SIOCOUTQ), and those in our own buffers.
    fn unsent_bytes(&self) -> u64;

    /// Bytes that were read for paused subscribers and not handled yet.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// The traffic of a session's connections, past and present, since the shard was opened; `None` for a library that opens
    /// its own sockets, or a kernel that does not count.
    fn traffic(&self, session: SessionId) -> Option<Traffic> {
        let _ = session;
        None
    }

    /// At the end of a run, after the last [`Clients::disconnect`]: reports [`crate::events::Event::Unacknowledged`] for every
    /// message written and not acknowledged in a persistent session. An adapter that stores no such messages has nothing to
    /// report.
    fn finish(&mut self, sink: &mut impl Sink) {
        let _ = sink;
    }
}

/// Wakes a shard that waits in [`Clients::wait`].
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// A waker that calls `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Waker {
        Waker(Arc::new(wake))
    }

    /// Wakes the shard, now or as soon as it waits.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Waker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Waker")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: DeliveryWindow = DeliveryWindow { messages: 65_536, redelivers_after: Duration::from_secs(5) };

    /// Messages of a subscription, and the time until they are sent again, ms.
    fn of_slow(processing: Duration, subscriptions: usize) -> (u32, u128) {
        let window = WINDOW.of_slow_subscriber(processing, subscriptions);
        (window.messages, window.redelivers_after.as_millis())
    }

    #[test]
    fn a_slow_subscriber_begins_all_that_is_sent_ahead_within_half_of_the_time() {
        assert_eq!(WINDOW.of_slow_subscriber(Duration::ZERO, 3), WINDOW);
        assert_eq!(of_slow(Duration::from_micros(1), 1), (65_536, 5_000), "never more than a fast one");
        assert_eq!(of_slow(Duration::from_millis(5), 1), (500, 5_000));
        assert_eq!(of_slow(Duration::from_millis(5), 2), (250, 5_000), "they share the subscriber");
        assert_eq!(of_slow(Duration::from_millis(5), 0), (500, 5_000));
        assert_eq!(of_slow(Duration::from_millis(2_500), 1), (1, 5_000));
    }

    #[test]
    fn a_subscriber_slower_than_that_gets_more_time_for_one_message() {
        assert_eq!(of_slow(Duration::from_secs(3), 1), (1, 6_000));
        assert_eq!(of_slow(Duration::from_secs(1), 4), (1, 8_000));
        let endless = WINDOW.of_slow_subscriber(Duration::MAX, usize::MAX);
        assert_eq!(endless, DeliveryWindow { messages: 1, redelivers_after: Duration::MAX });
    }
}
