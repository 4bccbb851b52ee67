//! The trait: all client sessions of one shard over one protocol.

use std::net::IpAddr;
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

/// How all connections of a run are made and kept; what a run is given of it goes to its worker processes as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionSettings {
    /// Largest packet a peer may send us, in bytes; a larger one ends its connection.
    pub maximum_packet_bytes: usize,
    /// Take the kernel's receive stamps.
    pub receive_stamps: bool,
    /// Seconds of silence after which the client pings; 0 for never.
    pub keep_alive_s: u16,
    /// Each client takes up its own last TLS session when it connects again, as far as the server lets it.
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

/// What holds for all sessions of a shard.
#[derive(Clone, Debug, Default)]
pub struct ShardConfig {
    /// Where sessions connect; [`SessionConfig::endpoint`] counts in this list.
    pub endpoints: Arc<[Endpoint]>,
    /// Addresses that sessions connect from, in turn; the kernel's choice if empty.
    pub sources: Arc<[IpAddr]>,
    /// Networks that sessions connect from, besides that of the shard's thread; [`SessionConfig::network`] counts in this list.
    pub networks: Arc<[Arc<dyn Network>]>,
    /// Number of this run; goes into every header.
    pub run: u32,
    /// Wall clock − `CLOCK_MONOTONIC`, ns, read once for the run: by it due times become those of `{{timestamp}}`.
    pub wall_ahead_ns: i64,
    /// Bytes that fill the payloads of publications without a body of their own, as a [`Body::Pool`].
    pub body_pool: Arc<[u8]>,
    /// How its connections are made and kept.
    pub connections: ConnectionSettings,
}

/// One thing that a session publishes: a topic with its level, made known once so that a send costs no look-up.
#[derive(Clone, Debug)]
pub struct Publication {
    /// The publisher's number in the fleet; goes into every header.
    pub publisher: u32,
    /// Where to.
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
    /// Properties of its messages, keys and values; none where its protocol has none.
    pub properties: Arc<[(String, String)]>,
}

/// One filter of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Filter in MQTT's syntax.
    pub filter: Box<str>,
    /// Delivery level asked for.
    pub qos: Qos,
}

/// A message that the server publishes when a session's connection ends without a goodbye.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// Number of the publisher in whose name; goes into its header.
    pub publisher: u32,
    /// Where to.
    pub topic: Box<str>,
    /// Delivery level.
    pub qos: Qos,
    /// Retain flag.
    pub retain: bool,
    /// Whole payload, bytes; at least [`crate::header::WILL`].
    pub payload_bytes: u16,
    /// Seconds that the server waits, in case the session is taken up again.
    pub delay_s: u32,
}

/// What a session may ask for besides, where its protocol has it ([`crate::capabilities::Features`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// Name of a shared group, to which all its subscriptions belong: each message goes to one of the group's sessions.
    pub shared: Option<Box<str>>,
    /// Its will.
    pub will: Option<Box<Will>>,
    /// Seconds after which the server drops a message of the session's that it could not deliver.
    pub message_expiry_s: Option<u32>,
    /// Let a number stand for a topic from its second message on a connection on, as far as the server allows.
    pub topic_alias: bool,
    /// Type of the device that publishes, for protocols in which a topic has one.
    pub device_type: Option<Arc<str>>,
    /// Its messages are requests, whose replies come to this topic. It is the filter of the session's only subscription, and
    /// nothing is sent before that is granted.
    pub reply_topic: Option<Box<str>>,
    /// Its requests are given up after this time, for adapters that keep something for as long as a reply is awaited.
    pub gives_up_after: Option<Duration>,
    /// It replies to requests, at this level; what that takes is made ready when it connects.
    pub replies_at: Option<Qos>,
    /// Its subscriptions are of messages for which this selector of JMS holds
    /// ([`pubmark_model::predicate::Predicate::selector`]). A system that does not accept it refuses the subscription.
    pub selector: Option<Arc<str>>,
    /// Fields of its JSON payloads that its messages carry beside them, for selectors.
    pub selector_fields: Option<Arc<SelectorFields>>,
    /// Of each of its publications that are requests: its responder, for protocols in which a request goes to an address
    /// of its own. The topics themselves, at the session's own endpoint, where there are none.
    pub targets: Vec<RequestTarget>,
}

/// The responder of a publication's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTarget {
    /// The filter by which it receives them.
    pub filter: Arc<str>,
    /// Where it is, as an index into its own shard's [`ShardConfig::endpoints`]; where subscribers accept connections, it is there
    /// alone.
    pub endpoint: u16,
}

/// A session to be made.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Unique over all clients of the run.
    pub client_id: Box<str>,
    /// Where it connects, as an index into [`ShardConfig::endpoints`].
    pub endpoint: u16,
    /// From which of [`ShardConfig::networks`]; that of the shard's thread if `None`.
    pub network: Option<u16>,
    /// Log-in with a password; the endpoint's if `None`.
    pub credentials: Option<Credentials>,
    /// Log-in with tokens, in place of every password.
    pub token: Option<SessionToken>,
    /// Seed of an NKey that signs its log-ins. Only for adapters with [`crate::capabilities::Features::nkeys`].
    pub nkey: Option<Secret>,
    /// Certificate that it shows in TLS; the endpoint's if `None`. Only for adapters with
    /// [`crate::capabilities::Features::own_certificates`].
    pub certificate: Option<Arc<ClientPem>>,
    /// Keep the session when the connection ends.
    pub persistent: bool,
    /// Messages sent and not yet acknowledged at most; the server may allow less.
    pub in_flight_window: u16,
    /// What it publishes; [`Outgoing::publication`] counts in this list.
    pub publications: Vec<Publication>,
    /// What it subscribes to after each connect that finds no session.
    pub subscriptions: Vec<Subscription>,
    /// What it asks for besides.
    pub options: SessionOptions,
}

impl SessionConfig {
    /// Log-in at its endpoint for one connection: its own, with a token that is signed now if it has such, or the endpoint's.
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
    /// When it was due and handed over.
    pub timing: Timing,
    /// Of a reaction, whose payload has [`crate::header::REACTION`] bytes at least: the message at the beginning of its chain.
    pub root: Option<Root>,
    /// What the fields of its body depend on.
    pub draw: BodyDraw,
    /// Bytes of its body before the steps of `transform`, without the header; 0 if there are none.
    pub plain_body_bytes: u32,
    /// Whole payload, with the header if that is in it. Then below [`crate::header::COMPACT`] there is room for none: it is all zeros, and nobody
    /// can tell whose it is.
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

/// What became of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The adapter has the message; [`crate::events::Event::Written`] or [`crate::events::Event::Abandoned`] will follow.
    Accepted,
    /// Not now: window or socket full, or not connected. [`crate::events::Event::Writable`] follows when it can be tried again.
    WouldBlock,
    /// Never: larger than the system allows, which is this many bytes.
    TooLarge(u32),
}

/// How a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goodbye {
    /// With the protocol's words; a session that is kept stays.
    Graceful,
    /// With the protocol's words, for good: the server is told to keep nothing, where the protocol has words for that.
    Final,
    /// Closed without a word.
    Cut,
}

/// How a fault of a run breaks a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Both ends: with a reset (RST), which the server sees; [`crate::events::Event::Closed`] follows at once.
    Reset,
    /// Neither end is told: from now on nothing is sent or received on it, and what we write is taken as a socket takes it,
    /// until a buffer is full. The session stays as it is until it notices, or until [`Break::GiveUp`].
    Silence,
    /// A silenced connection is left as it lies, without a word; [`crate::events::Event::Closed`] follows at once. No effect on one that was not
    /// silenced, or that the session has left already.
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
    /// A library that an adapter needs is not there, or not the right one.
    #[error("{0}")]
    Library(String),
    /// A client program that cannot be used.
    #[error("failed to start the client program `{program}`: {reason}")]
    Program {
        /// Its command.
        program: String,
        /// Why not.
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
    /// A key and a certificate that do not go together.
    #[error("failed to use `{key}` as the key of `{certificate}`: {reason}")]
    Identity {
        /// File of the certificate.
        certificate: String,
        /// File of the key.
        key: String,
        /// Why not.
        reason: String,
    },
}

/// All client sessions of one shard over one protocol. One thread; nothing here blocks but [`Clients::wait`].
///
/// Every event goes to the sink of the call in which it is noticed. A session that ended is connected again only by [`Clients::connect`].
pub trait Clients: Sized {
    /// Can its connections be broken by faults ([`Clients::break_connection`])?
    const BREAKS: bool = false;

    /// Do its sessions wait while their subscribers are at work ([`Sink::is_at_work`])?
    const PAUSES: bool = false;

    /// Starts with no sessions.
    fn open(config: ShardConfig) -> Result<Self, OpenError>;

    /// Adds a session, not yet connected.
    fn add_session(&mut self, config: SessionConfig) -> SessionId;

    /// Starts connecting; [`crate::events::Event::Connected`] or [`crate::events::Event::Closed`] follows. Subscriptions are made before `connected` is
    /// followed by [`crate::events::Event::Subscribed`] for each. No effect on a session that is connecting or connected.
    fn connect(&mut self, session: SessionId, sink: &mut impl Sink);

    /// Ends a connection; everything not written is reported by [`crate::events::Event::Abandoned`], then [`crate::events::Event::Closed`] with
    /// [`crate::events::Cause::Ours`] follows at once. No effect on a session that has no connection.
    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink);

    /// Breaks a connection. No effect on a session that has none, and in an adapter that cannot ([`Clients::BREAKS`]).
    fn break_connection(&mut self, session: SessionId, how: Break, sink: &mut impl Sink) {
        let _ = (session, how, sink);
    }

    /// Hands over a message; nothing reaches the socket before [`Clients::flush`].
    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome;

    /// Hands over a reply to a request that came to this session ([`crate::events::Event::Requested`]); events name it by [`OutgoingReply::token`].
    /// Never asked of an adapter without [`crate::capabilities::Features::requests`].
    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome {
        let _ = (session, reply);
        SendOutcome::TooLarge(0)
    }

    /// Writes what was handed over, in as few system calls as it takes.
    fn flush(&mut self, session: SessionId, sink: &mut impl Sink);

    /// A subscriber was done with its message at `due_ns`: hands it the next one, if there is one. What arrived before that time
    /// is not late by our doing. No effect in an adapter that does not wait ([`Clients::PAUSES`]).
    fn resume(&mut self, session: SessionId, due_ns: u64, sink: &mut impl Sink) {
        let _ = (session, due_ns, sink);
    }

    /// Waits until something happened, `until_ns` (`CLOCK_MONOTONIC`) has passed, or the waker was used; `None` waits without end, a
    /// time in the past only looks. It may also end early with nothing to report. When it ended, same clock.
    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64>;

    /// The latest [`Clients::serve`] left something unread: the next wait must be soon.
    fn has_unread(&self) -> bool;

    /// Reports all that happened up to the last [`Clients::wait`], which ended at `now_ns`.
    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink);

    /// One after the other.
    fn poll(&mut self, until_ns: Option<u64>, sink: &mut impl Sink) -> std::io::Result<()> {
        let now_ns = self.wait(until_ns)?;
        self.serve(now_ns, sink);
        Ok(())
    }

    /// Of a session that waited and can send now: a time up to which the system surely kept it from sending, ns of
    /// `CLOCK_MONOTONIC`; what it waited after that may be the generator's. It is of the wait that has just ended, and read once. `None`
    /// where that is not known: a library speaks with the system.
    fn take_free_since_ns(&mut self, session: SessionId) -> Option<u64> {
        let _ = session;
        None
    }

    /// Ends a [`Clients::wait`] from another thread.
    fn waker(&self) -> Waker;

    /// Bytes that the kernel still holds unsent for all sessions (SIOCOUTQ), and those that we hold.
    fn unsent_bytes(&self) -> u64;

    /// Bytes that were read for subscribers at work and not handled yet.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// What a session's connections, past and present, have carried since the shard was opened; `None` of a library that
    /// opens its own sockets, or a kernel that doesn't count.
    fn traffic(&self, session: SessionId) -> Option<Traffic> {
        let _ = session;
        None
    }

    /// At the end of a run, behind the last [`Clients::disconnect`]: reports [`crate::events::Event::Unacknowledged`] for every message written and
    /// not acknowledged in a session that was kept. An adapter that keeps no such messages has nothing to report.
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
