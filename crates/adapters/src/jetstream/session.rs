//! The dialect of JetStream on top of NATS: streams, publishing with acknowledgements, consumers.
//!
//! A publisher requests an acknowledgement of each message, which arrives at its inbox. A subscriber is a push consumer that
//! acknowledges every message. Every client that connects creates the streams if they do not exist: one for each first level of
//! topics, with interest retention, which is publish/subscribe with acknowledgements and nothing more.
//!
//! Exactly once: publishers give each message an id, by which the server detects duplicates; subscribers have their
//! acknowledgements confirmed, and until then recognise a redelivered message.

use pubmark_wire::front::Front;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Goodbye, Outgoing, Publication, SessionConfig, SessionId, Subscription};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_protocol::header::LONGEST_TEXT;
use pubmark_wire::nats::jetstream::{ID_BYTES, MESSAGE_ID, delete_consumer_subject};
use pubmark_wire::nats::{
    END, HEADER_BYTES, HEADERS_BYTES, Operation, PING, PONG, encode_publish, encode_publish_with_headers,
};

use super::errors::RefusedMessages;
use super::names;
use super::opening::{ACK_WAIT, MAX_ACK_PENDING};
use super::settings::{SETTINGS, Storage};
use crate::connection::{
    Blocked, Dialect, InFlight, Link, Phase, Progress, Refusal, Sending, Shared, Times, up_to_line_end,
};
use crate::nats::headers::{header_before, headers_bytes};
use crate::nats::opening::{self, LARGEST_PAYLOAD_BYTES, Opening};
use crate::payload;

/// Number of the subscription to our inbox; those of consumers follow, then those to the reports that they were deleted.
pub(super) const INBOX: u64 = 1;

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The PONG of the log-in.
    LogIn,
    /// Responses about N streams.
    Streams(usize),
    /// Responses about N consumers that should exist.
    Consumers(usize),
    /// Responses about the deletion of N consumers.
    Deletions(usize),
    /// Nothing: the session is open.
    Ready,
}

/// A stream.
pub(super) struct StreamState {
    /// The subjects that it stores.
    pub(super) subjects: Vec<String>,
    /// Its creation time, from the server: another time is another stream, which has lost our stored messages.
    pub(super) created: Option<String>,
}

/// A subscription as the server knows it.
pub(super) struct Listener {
    pub(super) stream: String,
    pub(super) subjects: Vec<String>,
    pub(super) qos: Qos,
    /// Its consumer was requested on this connection, and there is no response yet.
    pub(super) is_requested: bool,
    /// Its consumer was made, and not deleted since.
    pub(super) is_made: bool,
}

/// A session's memory.
pub struct JetStream {
    pub(super) opening: Opening,
    pub(super) step: Step,
    /// Name of this client in inboxes and durable names.
    pub(super) name: String,
    /// Distinguishes the session from earlier ones of that name.
    mark: u64,
    /// Counts connections: each has an inbox of its own.
    connection: u32,
    /// Prefix of the subjects that belong to the present connection; made once, as every message and every acknowledgement needs it.
    pub(super) own: String,
    /// Of each publication.
    pub(super) subjects: Vec<Box<str>>,
    /// Streams that have to be there, by name.
    pub(super) streams: BTreeMap<String, StreamState>,
    /// Where the server is to keep their messages.
    pub(super) storage: Storage,
    pub(super) listeners: Vec<Listener>,
    pub(super) in_flight: InFlight,
    /// Highest tag that a message in flight has had.
    pub(super) highest_tag: u16,
    /// Errors of this connection about messages, by their subject.
    pub(super) refused: BTreeMap<Box<str>, RefusedMessages>,
    /// The session was open before, in this run.
    pub(super) was_open: bool,
    /// The server has all state of the session from its last connection, according to its responses.
    pub(super) is_retained: bool,
    /// Exactly once: messages delivered whose acknowledgement was not confirmed, by listener and number in the stream.
    pub(super) unconfirmed: BTreeSet<(usize, u64)>,
    /// Bytes of acknowledgements that wait for the socket, at most.
    pub(super) waiting_ack_bytes: usize,
    /// The server does not permit reports of deleted consumers, and that was reported.
    pub(super) lacks_reports: bool,
}

impl Dialect for JetStream {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "jetstream",
        title: "NATS JetStream",
        schemes: &["nats", "tls"],
        tls_schemes: &["tls"],
        default_port: 4222,
        default_tls_port: 4222,
        levels: &[
            Level { qos: Qos::BestEffort, means: "message without acknowledgement; consumer with AckPolicy none" },
            Level {
                qos: Qos::AtLeastOnce,
                means: "acknowledged by the stream, which is in a file, or in memory if asked for; consumer acknowledges each",
            },
            Level {
                qos: Qos::ExactlyOnce,
                means: "Nats-Msg-Id and acknowledged; consumer has its acknowledgement confirmed",
            },
        ],
        wildcards: true,
        retain: false,
        persistent_sessions: true,
        ends_sessions: true,
        features: Features {
            redelivers_after: Some(ACK_WAIT),
            delivery_window: Some(MAX_ACK_PENDING),
            delivery_window_from: Qos::AtLeastOnce,
            properties: Some("headers"),
            log_in: true,
            nkeys: true,
            own_certificates: true,
            settings: Some(SETTINGS),
            ..Features::NONE
        },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic: Some(names::check_topic),
        filter_matches: None,
    };
    const TLS_FIRST: bool = false;
    const WELCOME: &'static str = "its welcome";

    type Packet<'a> = Operation<'a>;

    fn new(config: &SessionConfig) -> JetStream {
        let mut opening = Opening::default();
        let of_topic = |subjects: Vec<String>| subjects.into_iter().next().unwrap_or_default().into();
        let subjects = config.publications.iter().map(|entry| of_topic(opening.subjects(&entry.topic))).collect();
        let listener = |entry: &Subscription| Listener {
            stream: names::stream(&entry.filter),
            subjects: opening.subjects(&entry.filter),
            qos: entry.qos,
            is_requested: false,
            is_made: false,
        };
        let listeners = config.subscriptions.iter().map(listener).collect();
        let topics = config.publications.iter().map(|publication| &*publication.topic);
        let filters = config.subscriptions.iter().map(|subscription| &*subscription.filter);
        let of_stream = |topic: &str| {
            (names::stream(topic), StreamState { subjects: names::stream_subjects(topic), created: None })
        };
        JetStream {
            opening,
            step: Step::LogIn,
            name: names::escaped(&config.client_id),
            mark: clock::monotonic_ns(),
            connection: 0,
            own: String::new(),
            subjects,
            streams: topics.chain(filters).map(of_stream).collect(),
            storage: Storage::default(),
            listeners,
            in_flight: InFlight::new(config.in_flight_window.max(1)),
            highest_tag: 0,
            refused: BTreeMap::new(),
            was_open: false,
            is_retained: false,
            unconfirmed: BTreeSet::new(),
            waiting_ack_bytes: 0,
            lacks_reports: false,
        }
    }

    /// The server begins.
    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        let settings = shared.config.endpoints[usize::from(link.config.endpoint)].settings.as_deref();
        self.storage = Storage::named_in(settings).map_err(|error| Cause::Dropped(format!("ended by us: {error}")))?;
        self.step = Step::LogIn;
        self.refused.clear();
        self.waiting_ack_bytes = 0;
        self.connection = self.connection.wrapping_add(1);
        self.own = format!("_INBOX.{}.{:x}-{}", self.name, self.mark, self.connection);
        self.opening.begin()
    }

    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Operation<'_>>, Cause> {
        opening::next_packet(bytes, most_bytes)
    }

    /// Up to the end of the line.
    fn partial_bytes(bytes: &[u8]) -> usize {
        up_to_line_end(bytes)
    }

    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        operation: &Operation<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match operation {
            Operation::Message(message) if message.subscription == INBOX => {
                self.on_response(link, shared, message, sink)
            }
            Operation::Message(message) if link.phase == Phase::Open => {
                self.on_delivery(link, shared, message, times, sink)
            }
            Operation::Message(_) => Err(Cause::Protocol("a message before its welcome".to_owned())),
            Operation::Ping => {
                link.respond(shared, |out| out.extend_from_slice(PONG));
                Ok(())
            }
            Operation::Pong if self.opening.is_greeted() => {
                self.on_pong(link, shared, sink);
                Ok(())
            }
            Operation::Pong => Err(Cause::Protocol(format!("PONG before {}", JetStream::WELCOME))),
            Operation::Info(json) => self.opening.on_info(link, shared, json, times),
            Operation::Error(words) => self.on_error(link, shared, words, sink),
            Operation::Ok => Ok(()),
        }
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let qos = link.config.publications[usize::from(message.publication)].qos;
        let payload_bytes = message.payload_bytes as usize;
        let publication = &link.config.publications[usize::from(message.publication)];
        // The limit of the server's is for headers and payload together.
        self.opening.check_size(payload_bytes + all_headers_bytes(publication, &message))?;
        let mut tag = 0;
        if qos != Qos::BestEffort {
            if !self.in_flight.has_room() {
                return Err(Refusal::Blocked(Blocked::Window));
            }
            tag = self.in_flight.add(message, qos);
            self.highest_tag = self.highest_tag.max(tag);
        }
        self.append(link, shared, message, tag, false);
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.in_flight.has_room()
    }

    fn written(&mut self, tag: u16) {
        self.note_written(tag);
    }

    fn abandoned(&mut self, tag: u16) {
        self.remove(tag);
    }

    fn ping(out: &mut Vec<u8>) {
        out.extend_from_slice(PING);
    }

    /// NATS has no packet for the end of a connection; durable consumers are deleted by a request.
    fn send_goodbye(&mut self, link: &mut Link, shared: &mut Shared, goodbye: Goodbye) {
        if goodbye != Goodbye::Final || !link.config.persistent {
            return;
        }
        link.outbox.append(&mut shared.pool, |out| {
            for (index, listener) in self.listeners.iter().enumerate() {
                let subject = delete_consumer_subject(&listener.stream, &self.durable(index));
                encode_publish(&subject, None, 0, out);
                out.extend_from_slice(END);
            }
        });
        self.is_retained = false;
    }

    fn forget(&mut self, session: SessionId, sink: &mut impl Sink) {
        for entry in self.in_flight.drain() {
            if entry.progress == Progress::Written {
                sink.event(session, Event::Unacknowledged(entry.token()));
            }
        }
        self.refused.clear();
        self.unconfirmed.clear();
        self.is_retained = false;
        self.listeners.iter_mut().for_each(|listener| listener.is_made = false);
    }
}

impl JetStream {
    /// Is every consumer made that there should be?
    pub(super) fn all_made(&self) -> bool {
        self.listeners.iter().all(|listener| listener.is_made)
    }

    /// Name of a subscription's consumer, if it is durable.
    pub(super) fn durable(&self, listener: usize) -> String {
        format!("{}-{listener}", self.name)
    }

    /// Subject for responses on this connection: `kind` and `number` name the request.
    pub(super) fn inbox(&self, kind: &str, number: u64) -> String {
        format!("{}.a.{kind}.{number}", self.own)
    }

    /// Delivery subject of a subscription's consumer. That of a durable consumer never changes; another one may outlive its
    /// connection for some seconds, and must not send to the next.
    pub(super) fn delivery(&self, listener: usize, persistent: bool) -> String {
        match persistent {
            true => format!("_INBOX.{}.d.{listener}", self.name),
            false => format!("{}.d.{listener}", self.own),
        }
    }

    /// Appends a message, as `message.publication` and its level require.
    pub(super) fn append(&self, link: &mut Link, shared: &mut Shared, message: Outgoing, tag: u16, repeated: bool) {
        let publication = &link.config.publications[usize::from(message.publication)];
        let (qos, publisher) = (publication.qos, publication.publisher);
        let payload_bytes = message.payload_bytes as usize;
        let subject = &self.subjects[usize::from(message.publication)];
        let run = shared.config.run;
        let reply = (qos != Qos::BestEffort).then(|| self.inbox("p", tag.into()));
        let id = (qos == Qos::ExactlyOnce).then(|| format!("{run:08x}-{publisher:08x}-{:08x}", message.sequence));
        let mut space = [0; LONGEST_TEXT];
        let header = payload::header_text(&shared.config, publication, &message, &mut space);
        let own = Arc::clone(&publication.properties);
        let has_headers = id.is_some() || payload::has_properties(publication);
        let front = |out: &mut Vec<u8>| {
            let headers = id.iter().map(|id| (MESSAGE_ID, id.as_str())).chain(payload::properties(&own, header));
            match has_headers {
                true => encode_publish_with_headers(subject, reply.as_deref(), headers, payload_bytes, out),
                false => encode_publish(subject, reply.as_deref(), payload_bytes, out),
            }
        };
        let sending = Sending { tag, payload_bytes, repeated, header_before: header_before(header) };
        link.append_message(shared, message, sending, front, END);
    }
}

/// Bytes of all headers of a message: its id, and what goes beside its payload.
pub(super) fn all_headers_bytes(publication: &Publication, message: &Outgoing) -> usize {
    let id = if publication.qos == Qos::ExactlyOnce { MESSAGE_ID.len() + ID_BYTES + HEADER_BYTES } else { 0 };
    match payload::has_properties(publication) {
        true => headers_bytes(publication, message) + id,
        false if id > 0 => HEADERS_BYTES + id,
        false => 0,
    }
}
