//! JetStream: at least once, and exactly once by message ids, over the subjects of NATS.
//!
//! A message goes to its subject as in NATS; a stream keeps it and says so to the publisher's inbox. A subscriber is a
//! consumer that the server pushes to and that acknowledges every message. Streams are made by whoever connects: one for
//! each first level of topics, keeping messages as long as a consumer wants them, which is publish/subscribe with
//! acknowledgements and nothing more.
//!
//! Exactly once: publishers give each message an id, by which the server knows repetitions, and send again what was not
//! acknowledged; subscribers have their acknowledgements confirmed, and until then know the message if it comes again.

use std::collections::{BTreeMap, BTreeSet};

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, SentMeans, heard_as_mqtt_says};
use pubmark_protocol::clients::{Outgoing, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Said, Sink, Token};
use pubmark_protocol::header::COMPACT;
use pubmark_protocol::outbox;
use pubmark_wire::nats::jetstream::{
    Answer, Consumer, CreateConsumer, Stream, encode_ack, encode_publish_with_id, encode_request, stream_sequence,
};
use pubmark_wire::nats::{END, Message, Operation, PING, PONG, encode_publish, encode_subscribe, subjects};

use super::opening::{self, LARGEST_PAYLOAD_BYTES, Opening};
use crate::connection::{
    Blocked, Dialect, InFlight, Link, Measured, Progress, Refusal, Shared, Times, up_to_line_end,
};
use crate::payload;

/// Number of the subscription to our inbox; those of consumers follow.
const INBOX: u64 = 1;
/// Messages on their way to a consumer at most, unless acknowledged.
const MAX_ACK_PENDING: u32 = 65_536;
/// Start of the streams' names.
const STREAM_PREFIX: &str = "PUBMARK_";

/// What is awaited before a session is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The PONG of the log-in.
    LogIn,
    /// Answers of so many streams.
    Streams(usize),
    /// Nothing.
    Ready,
}

/// A subscription as the server knows it.
struct Listener {
    /// Its stream.
    stream: String,
    subjects: Vec<String>,
    qos: Qos,
}

/// A session's memory.
pub struct JetStream {
    opening: Opening,
    step: Step,
    /// Answers come to subjects that begin so.
    inbox: String,
    /// Of each publication.
    subjects: Vec<Box<str>>,
    /// Streams that have to be there: name, subjects.
    streams: BTreeMap<String, Vec<String>>,
    listeners: Vec<Listener>,
    in_flight: InFlight,
    /// Exactly once: messages delivered whose acknowledgement was not confirmed, by listener and number in the stream.
    unconfirmed: BTreeSet<(usize, u64)>,
}

impl Dialect for JetStream {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "jetstream",
        title: "NATS JetStream",
        schemes: &["nats", "tls"],
        tls_schemes: &["tls"],
        default_port: 4222,
        default_tls_port: 4222,
        qos: &[Qos::AtLeastOnce, Qos::ExactlyOnce],
        wildcards: true,
        retain: false,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features::NONE,
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic,
        hears: heard_as_mqtt_says,
    };
    const TLS_FIRST: bool = false;
    const WELCOME: &'static str = "its welcome";

    type Packet<'a> = Operation<'a>;

    fn new(config: &SessionConfig) -> JetStream {
        let mut opening = Opening::default();
        let topics = config.publications.iter().map(|publication| &publication.topic);
        let filters = config.subscriptions.iter().map(|subscription| &subscription.filter);
        let streams = topics.chain(filters).map(|topic| stream_of(topic)).collect();
        let of_topic = |subjects: Vec<String>| subjects.into_iter().next().unwrap_or_default().into();
        let subjects = config.publications.iter().map(|entry| of_topic(opening.subjects(&entry.topic))).collect();
        let listener = |filter: &str, qos, opening: &mut Opening| Listener {
            stream: stream_of(filter).0,
            subjects: opening.subjects(filter),
            qos,
        };
        let listeners =
            config.subscriptions.iter().map(|entry| listener(&entry.filter, entry.qos, &mut opening)).collect();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        JetStream {
            opening,
            step: Step::LogIn,
            inbox: format!("_INBOX.{}", config.client_id.chars().map(plain).collect::<String>()),
            subjects,
            streams,
            listeners,
            in_flight: InFlight::new(config.in_flight_window.max(1)),
            unconfirmed: BTreeSet::new(),
        }
    }

    /// The server begins.
    fn begin(&mut self, _: &mut Link, _: &mut Shared) -> Result<(), Cause> {
        self.step = Step::LogIn;
        self.opening.begin()
    }

    fn measure(bytes: &[u8], most_bytes: usize) -> Result<Measured<Operation<'_>>, Cause> {
        opening::measure(bytes, most_bytes)
    }

    fn belonging(bytes: &[u8]) -> usize {
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
            Operation::Message(message) if message.subscription == INBOX => self.on_answer(link, shared, message, sink),
            Operation::Message(message) => self.on_delivery(link, shared, message, times, sink),
            Operation::Ping => {
                link.outbox.append(&mut shared.pool, |out| out.extend_from_slice(PONG));
                Ok(())
            }
            Operation::Pong => {
                self.on_pong(link, shared, sink);
                Ok(())
            }
            Operation::Info(json) => self.opening.on_info(link, shared, json, times),
            Operation::Error(words) => Err(opening::cause(link.phase, words)),
            Operation::Ok => Ok(()),
        }
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let payload_bytes = (message.payload_bytes as usize).max(COMPACT);
        self.opening.check_size(payload_bytes)?;
        if !self.in_flight.has_room() {
            return Err(Refusal::Blocked(Blocked::Window));
        }
        let place = usize::from(message.publication);
        let (subject, publication) = (&self.subjects[place], &link.config.publications[place]);
        let token = Token { publication: message.publication, sequence: message.sequence };
        let tag = self.in_flight.add(token, message.due_ns, payload_bytes as u32, publication.qos);
        let reply = format!("{}.p.{tag}", self.inbox);
        let entry = outbox::Message { token, due_ns: message.due_ns, tag, repeated: false };
        let config = &shared.config;
        link.outbox.append_message(&mut shared.pool, entry, |out| {
            if publication.qos == Qos::ExactlyOnce {
                let id = format!("{}-{}-{}", config.run, publication.publisher, message.sequence);
                encode_publish_with_id(subject, &reply, &id, payload_bytes, out);
            } else {
                encode_publish(subject, Some(&reply), payload_bytes, out);
            }
            let at = out.len();
            payload::append(config, publication, message.sequence, message.due_ns, payload_bytes, out);
            out.extend_from_slice(END);
            at
        });
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

    fn ping(out: &mut Vec<u8>) {
        out.extend_from_slice(PING);
    }

    fn forget(&mut self, session: SessionId, sink: &mut impl Sink) {
        for entry in self.in_flight.drain() {
            if entry.progress == Progress::Written {
                sink.unanswered(session, entry.token);
            }
        }
        self.unconfirmed.clear();
    }
}

/// A topic needs a first level of its own: streams are made by it.
fn check_topic(topic: &str) -> Result<(), String> {
    subjects(topic).map_err(|error| error.to_string())?;
    match topic.split('/').next() {
        Some("+" | "#") => Err(format!("`{topic}` has a wildcard in its first level, by which streams are made")),
        _ => Ok(()),
    }
}

/// The stream of a topic, and what it keeps.
fn stream_of(topic: &str) -> (String, Vec<String>) {
    let level = topic.split('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name = format!("{STREAM_PREFIX}{}", level.chars().map(plain).collect::<String>());
    (name, vec![level.to_owned(), format!("{level}.>")])
}

impl JetStream {
    fn on_pong(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        if self.step != Step::LogIn {
            return;
        }
        self.step = Step::Streams(self.streams.len());
        if self.streams.is_empty() {
            self.on_streams(link, shared, sink);
            return;
        }
        link.outbox.append(&mut shared.pool, |out| {
            encode_subscribe(&format!("{}.>", self.inbox), INBOX, out);
            for (name, subjects) in &self.streams {
                let stream = Stream { name, subjects, retention: "interest", storage: "file" };
                encode_request(&stream.create_subject(), &format!("{}.s", self.inbox), &stream, out);
            }
        });
    }

    /// All streams are there: the session is open, and its consumers are asked for.
    fn on_streams(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        self.step = Step::Ready;
        let keep_alive_s = shared.config.keep_alive_s;
        link.opened(shared, keep_alive_s);
        sink.connected(link.id, self.opening.connected());
        link.outbox.append(&mut shared.pool, |out| {
            for (index, listener) in self.listeners.iter().enumerate() {
                let deliver_subject = format!("{}.d.{index}", self.inbox);
                encode_subscribe(&deliver_subject, INBOX + 1 + index as u64, out);
                let several = listener.subjects.len() > 1;
                let create = CreateConsumer {
                    stream_name: &listener.stream,
                    config: Consumer {
                        durable_name: None,
                        deliver_subject: &deliver_subject,
                        filter_subject: listener.subjects.first().map(String::as_str).filter(|_| !several),
                        filter_subjects: several.then_some(&listener.subjects),
                        deliver_policy: "new",
                        ack_policy: "explicit",
                        max_ack_pending: MAX_ACK_PENDING,
                    },
                };
                encode_request(&create.create_subject(), &format!("{}.c.{index}", self.inbox), &create, out);
            }
        });
    }

    /// Something came to our inbox.
    fn on_answer(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let ours = message.subject.strip_prefix(self.inbox.as_str()).unwrap_or_default();
        let mut words = ours.split('.').skip(1);
        let (kind, number) = (words.next().unwrap_or_default(), words.next());
        let number = number.and_then(|number| number.parse::<u64>().ok());
        if kind == "k" {
            let listener = words.next().and_then(|number| number.parse().ok());
            self.unconfirmed.remove(&(listener.unwrap_or(usize::MAX), number.unwrap_or(u64::MAX)));
            return Ok(());
        }
        let outcome = read_answer(message).map_err(Cause::Protocol)?;
        match (kind, number, self.step) {
            ("s", _, Step::Streams(left)) => {
                outcome.map_err(Cause::Refused)?;
                self.step = Step::Streams(left - 1);
                if left == 1 {
                    self.on_streams(link, shared, sink);
                }
            }
            ("c", Some(index), Step::Ready) => {
                let index = index as usize;
                let Some(listener) = self.listeners.get(index) else { return Ok(()) };
                sink.subscribed(link.id, index, outcome.map(|()| listener.qos));
            }
            ("p", Some(tag), Step::Ready) => {
                let taken = u16::try_from(tag).ok().and_then(|tag| self.in_flight.remove(tag));
                let Some(entry) = taken else {
                    return Err(Cause::Protocol(format!("an acknowledgement of message {tag}, which awaits none")));
                };
                sink.acknowledged(link.id, entry.token, outcome);
            }
            _ => return Err(Cause::Protocol(format!("an answer to `{}`, which awaits none", message.subject))),
        }
        Ok(())
    }

    /// A message for a consumer of ours.
    fn on_delivery(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let index = (message.subscription - INBOX - 1) as usize;
        let (Some(listener), Some(to)) = (self.listeners.get(index), message.reply) else {
            // Heartbeats and flow control, which nobody asked for.
            return Ok(());
        };
        let mut confirmed_to = None;
        let mut is_new = true;
        if listener.qos == Qos::ExactlyOnce {
            let Some(sequence) = stream_sequence(to) else {
                return Err(Cause::Protocol(format!("a message to be acknowledged to `{to}`")));
            };
            is_new = self.unconfirmed.insert((index, sequence));
            confirmed_to = Some(format!("{}.k.{sequence}.{index}", self.inbox));
        }
        link.outbox.append(&mut shared.pool, |out| encode_ack(to, confirmed_to.as_deref(), out));
        if is_new {
            sink.delivered(link.id, times.delivery(message.payload, false));
        }
        Ok(())
    }
}

/// What an answer says: agreed, or refused with words. A status without a body is a refusal: nobody answers here.
fn read_answer(message: &Message<'_>) -> Result<Result<(), Said>, String> {
    if message.payload.is_empty() {
        let status = message.headers.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let words = String::from_utf8_lossy(status).replacen("NATS/1.0", "", 1);
        let words = words.trim();
        let words = if words == "503" { "nobody answers: JetStream is off" } else { words };
        return Ok(Err(Said::words(words.to_owned())));
    }
    let answer = Answer::read(message.payload)?;
    Ok(match answer.error {
        None => Ok(()),
        Some(error) => Err(Said::words(format!("{} ({})", error.description, error.err_code))),
    })
}
