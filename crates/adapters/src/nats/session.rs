//! What NATS adds to a connection: INFO, CONNECT, subscriptions, messages.
//!
//! Nothing that a client says is answered line by line. A PING behind it is: its PONG says that the server has taken
//! everything before, and errors come ahead of it.

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Outgoing, SessionConfig};
use pubmark_protocol::events::{Cause, Said, Sink};
use pubmark_protocol::header::COMPACT;
use pubmark_wire::nats::{END, Operation, PING, PONG, encode_publish, encode_subscribe, subjects};

use super::opening::{self, LARGEST_PAYLOAD_BYTES, Opening};
use crate::connection::{Dialect, Link, Measured, Phase, Refusal, Sending, Shared, Times, up_to_line_end};

/// Which PONG is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// That of the log-in.
    LogIn,
    /// That of the subscriptions.
    Subscriptions,
    /// None, or that of a ping.
    Nothing,
}

/// A session's memory.
pub struct Nats {
    /// Of each publication.
    subjects: Vec<Box<str>>,
    /// Index of the subscription and its subject, by the number that the server knows it by, less one.
    subscriptions: Vec<(usize, Box<str>)>,
    /// Subscriptions that the server refused since the last connect.
    refused: Vec<(usize, Said)>,
    awaited: Awaited,
    opening: Opening,
}

impl Dialect for Nats {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "nats",
        title: "NATS",
        schemes: &["nats", "tls"],
        tls_schemes: &["tls"],
        default_port: 4222,
        default_tls_port: 4222,
        levels: &[Level { qos: Qos::BestEffort, means: "PUB to SUB" }],
        wildcards: true,
        retain: false,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features::NONE,
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic: Some(|topic| subjects(topic).map(|_| ()).map_err(|error| error.to_string())),
        hears: None,
    };
    const TLS_FIRST: bool = false;
    const WELCOME: &'static str = "its welcome";

    type Packet<'a> = Operation<'a>;

    fn new(config: &SessionConfig) -> Nats {
        let mut opening = Opening::default();
        let of_topic = |subjects: Vec<String>| subjects.into_iter().next().unwrap_or_default().into();
        let topics = config.publications.iter().map(|entry| of_topic(opening.subjects(&entry.topic))).collect();
        let mut subscriptions = vec![];
        for (index, subscription) in config.subscriptions.iter().enumerate() {
            let subjects = opening.subjects(&subscription.filter);
            subscriptions.extend(subjects.into_iter().map(|subject| (index, subject.into())));
        }
        Nats { subjects: topics, subscriptions, refused: vec![], awaited: Awaited::Nothing, opening }
    }

    /// The server begins.
    fn begin(&mut self, _: &mut Link, _: &mut Shared) -> Result<(), Cause> {
        self.awaited = Awaited::LogIn;
        self.refused.clear();
        self.opening.begin()
    }

    fn measure(bytes: &[u8], most_bytes: usize) -> Result<Measured<Operation<'_>>, Cause> {
        opening::measure(bytes, most_bytes)
    }

    /// Up to the end of the line.
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
        match *operation {
            Operation::Message(message) if link.phase == Phase::Open => {
                sink.delivered(link.id, times.delivery(message.payload, false));
                Ok(())
            }
            Operation::Ping => {
                link.outbox.append(&mut shared.pool, |out| out.extend_from_slice(PONG));
                Ok(())
            }
            Operation::Pong if self.opening.is_greeted() => {
                self.on_pong(link, shared, sink);
                Ok(())
            }
            Operation::Pong => Err(Cause::Protocol(format!("PONG before {}", Nats::WELCOME))),
            Operation::Info(json) => self.opening.on_info(link, shared, json, times),
            Operation::Error(words) => self.on_error(link, words),
            Operation::Ok => Ok(()),
            Operation::Message(_) => Err(Cause::Protocol("a message before its welcome".to_owned())),
        }
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let payload_bytes = (message.payload_bytes as usize).max(COMPACT);
        self.opening.check_size(payload_bytes)?;
        let subject = &self.subjects[usize::from(message.publication)];
        let front = |out: &mut Vec<u8>| encode_publish(subject, None, payload_bytes, out);
        link.append_message(shared, message, Sending::once(payload_bytes), front, END);
        Ok(())
    }

    fn ping(out: &mut Vec<u8>) {
        out.extend_from_slice(PING);
    }
}

impl Nats {
    fn on_pong(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::LogIn => {
                let keep_alive_s = shared.config.keep_alive_s;
                link.opened(shared, keep_alive_s);
                sink.connected(link.id, self.opening.connected());
                if !self.subscriptions.is_empty() {
                    self.subscribe(link, shared);
                }
            }
            Awaited::Subscriptions => {
                for index in 0..link.config.subscriptions.len() {
                    let refused = self.refused.iter().find(|(refused, _)| *refused == index);
                    let granted = refused.map_or(Ok(Qos::BestEffort), |(_, said)| Err(said.clone()));
                    sink.subscribed(link.id, index, granted);
                }
            }
            Awaited::Nothing => {}
        }
    }

    fn subscribe(&mut self, link: &mut Link, shared: &mut Shared) {
        self.awaited = Awaited::Subscriptions;
        link.outbox.append(&mut shared.pool, |out| {
            for (number, (_, subject)) in (1..).zip(&self.subscriptions) {
                encode_subscribe(subject, number, out);
            }
            out.extend_from_slice(PING);
        });
    }

    /// A subscription that is refused leaves the rest as it is; anything else ends the connection, as a rule by the
    /// server itself.
    fn on_error(&mut self, link: &Link, words: &str) -> Result<(), Cause> {
        let lower = words.to_ascii_lowercase();
        if lower.starts_with("permissions violation for subscription") {
            let named = |(_, subject): &&(usize, Box<str>)| words.contains(&format!("\"{subject}\""));
            if let Some((index, _)) = self.subscriptions.iter().find(named) {
                self.refused.push((*index, Said::words(words.to_owned())));
                return Ok(());
            }
        }
        Err(opening::cause(link.phase, words))
    }
}
