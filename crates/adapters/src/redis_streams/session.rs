//! The dialect of Redis Streams: XADD, consumer groups, XREADGROUP, XACK.
//!
//! A stream has a key, and no filters for its entries. So there is one for each first level of topics, every entry has its
//! topic, and a subscriber reads all of a stream and skips entries that its filters do not match. Each subscribing session is a
//! consumer group of its own: that is publish/subscribe. The server responds to commands in their order; those without a
//! response are in a queue. A read that waits for entries blocks its connection, so a session that publishes and subscribes has
//! two ([`crate::redis::PairedClients`]).

use pubmark_wire::front::Front;
use std::collections::{BTreeSet, VecDeque};

use pubmark_model::fleet::SecondConnection;
use pubmark_model::qos::Qos;
use pubmark_model::topic::TopicFilter;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Outgoing, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Event, Reason, Sink, Token};
use pubmark_wire::resp::{END, Reply, append_bulk_front, encode_command, encode_command_front};

use super::reading::MOST_ENTRIES;
use crate::connection::{Blocked, Dialect, InFlight, Link, Progress, Refusal, Sending, Shared, Times};
use crate::redis::Waits;
use crate::redis::opening::{self, LARGEST_PAYLOAD_BYTES};

/// Start of the keys of streams.
const KEY_PREFIX: &str = "pubmark:";
/// Approximate number of entries that a stream stores: without a limit the server's memory would grow during the run. A reader
/// that falls further behind loses messages, which the message accounting shows.
const STREAM_ENTRIES: &str = "100000";
/// Largest response to a read, bytes, unless one message may be larger: all entries of a response, as large as a run accepts them if
/// its own messages do not need more (1 MiB).
pub(super) const READ_BYTES: usize = MOST_ENTRIES << 20;
/// What the group of a session that only publishes has behind its name: the other connection of a session that also subscribes has
/// a group of the session's name, and each finds its own.
const GROUP_OF_PUBLISHER: &str = ":sends";
/// The field of an entry that holds its topic.
pub(super) const TOPIC: &[u8] = b"t";
/// The field that holds its payload.
pub(super) const PAYLOAD: &[u8] = b"p";

/// A command whose response is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// HELLO.
    Hello,
    /// The end of a group that an earlier session left.
    Destroyed,
    /// A group on the stream with this index.
    Group(usize),
    /// XADD of a message; its tag is 0 at QoS 0.
    Added { tag: u16, token: Token },
    /// XREADGROUP, of what was read before and not acknowledged, or of what is new; the most entries of each stream (`COUNT`).
    Read { again: bool, most: usize },
    /// XACK.
    Acknowledged,
}

/// A subscription.
pub(super) struct Listener {
    pub(super) filter: TopicFilter,
    pub(super) qos: Qos,
    /// Index of its stream.
    pub(super) stream: usize,
}

/// A session's memory.
pub struct RedisStreams {
    /// Of each publication: the command up to the payload's length.
    fronts: Vec<Box<[u8]>>,
    /// Keys of all streams that the session reads or writes, those that it reads first.
    pub(super) streams: Vec<String>,
    /// How many of them it reads.
    pub(super) read: usize,
    pub(super) listeners: Vec<Listener>,
    /// Name of the session's group.
    pub(super) group: String,
    pub(super) awaited: VecDeque<Awaited>,
    pub(super) in_flight: InFlight,
    /// The session was open before, in this run.
    pub(super) was_open: bool,
    /// Groups requested, those with a response, and those of them that existed already.
    pub(super) asked: usize,
    pub(super) answered: usize,
    pub(super) found: usize,
    /// Streams on which no group was granted when the server last responded.
    pub(super) refused: Vec<(usize, Reason)>,
}

impl Dialect for RedisStreams {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "redis-streams",
        title: "Redis Streams (RESP3)",
        schemes: &["redis", "rediss"],
        tls_schemes: &["rediss"],
        default_port: 6379,
        default_tls_port: 6379,
        levels: &[
            Level { qos: Qos::BestEffort, means: "XADD; XREADGROUP NOACK" },
            Level { qos: Qos::AtLeastOnce, means: "XADD answered with an id; XREADGROUP, XACK" },
        ],
        wildcards: true,
        retain: false,
        persistent_sessions: true,
        ends_sessions: false,
        features: Features {
            log_in: true,
            second_connection: SecondConnection::PublishesAndSubscribes,
            delivery_window: Some(MOST_ENTRIES as u32),
            ..Features::NONE
        },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic: Some(check_topic),
        filter_matches: None,
    };
    // What a consumer reads comes as a list.
    const ONE_MESSAGE_A_PACKET: bool = false;
    const WELCOME: &'static str = "its answer to HELLO";

    type Packet<'a> = Reply<'a>;

    fn new(config: &SessionConfig) -> RedisStreams {
        let read: BTreeSet<String> = config.subscriptions.iter().map(|entry| key(&entry.filter)).collect();
        let written: BTreeSet<String> = config.publications.iter().map(|entry| key(&entry.topic)).collect();
        let mut streams: Vec<String> = read.iter().cloned().collect();
        streams.extend(written.difference(&read).cloned());
        let stream_of = |filter: &str| {
            let key = key(filter);
            streams.iter().position(|stream| *stream == key).unwrap_or_default()
        };
        let listener = |entry: &pubmark_protocol::clients::Subscription| Listener {
            filter: TopicFilter(entry.filter.to_string()),
            qos: entry.qos,
            stream: stream_of(&entry.filter),
        };
        RedisStreams {
            fronts: config.publications.iter().map(|entry| front(&entry.topic)).collect(),
            listeners: config.subscriptions.iter().map(listener).collect(),
            read: read.len(),
            streams,
            group: match config.subscriptions.is_empty() {
                true => format!("{}{GROUP_OF_PUBLISHER}", config.client_id),
                false => config.client_id.to_string(),
            },
            awaited: VecDeque::new(),
            in_flight: InFlight::new(config.in_flight_window.max(1)),
            was_open: false,
            asked: 0,
            answered: 0,
            found: 0,
            refused: vec![],
        }
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        self.awaited.clear();
        opening::send_hello(link, shared);
        self.awaited.push_back(Awaited::Hello);
        Ok(())
    }

    /// Several entries arrive in one response.
    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Reply<'_>>, Cause> {
        opening::next_packet(bytes, most_bytes.max(READ_BYTES))
    }

    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        reply: &Reply<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        self.on_reply(link, shared, reply, times, sink)
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let payload_bytes = message.payload_bytes as usize;
        if payload_bytes > LARGEST_PAYLOAD_BYTES as usize {
            return Err(Refusal::TooLarge(LARGEST_PAYLOAD_BYTES));
        }
        let qos = link.config.publications[usize::from(message.publication)].qos;
        let mut tag = 0;
        if qos != Qos::BestEffort {
            if !self.in_flight.has_room() {
                return Err(Refusal::Blocked(Blocked::Window));
            }
            tag = self.in_flight.add(message, qos);
        }
        self.append(link, shared, message, Sending { tag, payload_bytes, repeated: false, header_before: 0 });
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.in_flight.has_room()
    }

    fn written(&mut self, tag: u16) {
        self.in_flight.written(tag);
    }

    fn abandoned(&mut self, tag: u16) {
        self.in_flight.remove(tag);
    }

    /// Its response is a text that no other command has.
    fn ping(out: &mut Vec<u8>) {
        encode_command(&[b"PING"], out);
    }

    fn forget(&mut self, session: SessionId, sink: &mut impl Sink) {
        for entry in self.in_flight.drain() {
            if entry.progress == Progress::Written {
                sink.event(session, Event::Unacknowledged(entry.token()));
            }
        }
    }
}

impl Waits for RedisStreams {
    fn two_connections(config: &SessionConfig) -> Option<[SessionConfig; 2]> {
        let publishes_and_subscribes = !config.publications.is_empty() && !config.subscriptions.is_empty();
        publishes_and_subscribes.then(|| {
            let sends = SessionConfig { subscriptions: vec![], ..config.clone() };
            [sends, SessionConfig { publications: vec![], ..config.clone() }]
        })
    }
}

impl RedisStreams {
    /// Appends an XADD.
    pub(super) fn append(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing, sending: Sending) {
        let fixed = &self.fronts[usize::from(message.publication)];
        let front = |out: &mut Vec<u8>| {
            out.extend_from_slice(fixed);
            append_bulk_front(sending.payload_bytes, out);
        };
        link.append_message(shared, message, sending, front, END);
        self.awaited.push_back(Awaited::Added { tag: sending.tag, token: message.token() });
    }
}

fn first_level(topic: &str) -> &str {
    topic.split_once('/').map_or(topic, |(level, _)| level)
}

/// The key of the stream that has a topic's messages, or those that a filter chooses.
fn key(topic: &str) -> String {
    format!("{KEY_PREFIX}{}", first_level(topic))
}

/// Has a topic or filter a stream?
fn check_topic(topic: &str) -> Result<(), String> {
    match first_level(topic) {
        "+" | "#" => Err(format!("`{topic}` has a wildcard in its first level, by which streams are made")),
        _ => Ok(()),
    }
}

/// XADD up to the payload's length.
fn front(topic: &str) -> Box<[u8]> {
    let mut out = Vec::new();
    let key = key(topic);
    let words: [&[u8]; 9] =
        [b"XADD", key.as_bytes(), b"MAXLEN", b"~", STREAM_ENTRIES.as_bytes(), b"*", TOPIC, topic.as_bytes(), PAYLOAD];
    encode_command_front(&words, &mut out);
    out.into_boxed_slice()
}
