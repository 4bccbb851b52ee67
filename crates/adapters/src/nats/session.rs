//! The dialect of NATS: INFO, CONNECT, subscriptions, messages.
//!
//! The server does not acknowledge a client's lines. It responds to a PING after them: the PONG shows that the server has
//! processed everything before, and errors come before it.

use pubmark_wire::front::Front;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Outgoing, SessionConfig};
use pubmark_protocol::events::{Cause, Event, Reason, Sink, Token};
use pubmark_protocol::header::LONGEST_TEXT;
use pubmark_protocol::requests::{OutgoingReply, ReplyTo};
use pubmark_wire::nats::{
    END, Message, Operation, PING, PONG, encode_publish, encode_publish_with_headers, encode_subscribe, subjects,
};

use super::headers::{delivery, header_before, headers_bytes};
use super::inbox::{Inbox, is_unserved};
use super::opening::{self, LARGEST_PAYLOAD_BYTES, Opening};
use crate::connection::{Dialect, Link, Phase, Refusal, Sending, Shared, Times, up_to_line_end};
use crate::payload;

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
    /// Subscriptions that the server refused or revoked since the last connect, with its first words about each.
    refused: BTreeMap<usize, Reason>,
    /// Subjects that the server did not subscribe us to, since that would have been too many.
    beyond_limit: usize,
    awaited: Awaited,
    /// PONGs of this connection so far.
    pongs: u32,
    opening: Opening,
    /// Subjects for replies to its messages, if they are requests.
    inbox: Option<Inbox>,
    /// Memory for the reply subject of the message that is being sent.
    reply_subject: String,
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
        features: Features {
            log_in: true,
            nkeys: true,
            own_certificates: true,
            shared_subscriptions: true,
            properties: Some("headers"),
            requests: Some("reply subject: an inbox, its last token the request"),
            ..Features::NONE
        },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic: Some(|topic| subjects(topic).map(|_| ()).map_err(|error| error.to_string())),
        filter_matches: None,
    };
    const TLS_FIRST: bool = false;
    const WELCOME: &'static str = "its welcome";

    type Packet<'a> = Operation<'a>;

    fn new(config: &SessionConfig) -> Nats {
        let mut opening = Opening::default();
        let of_topic = |subjects: Vec<String>| Box::<str>::from(subjects.into_iter().next().unwrap_or_default());
        let topics = config.publications.iter().map(|entry| of_topic(opening.subjects(&entry.topic))).collect();
        let inbox = config.options.reply_topic.as_deref().map(|topic| Inbox::new(&of_topic(opening.subjects(topic))));
        let mut subscriptions = vec![];
        for (index, subscription) in config.subscriptions.iter().enumerate() {
            let subjects = opening.subjects(&subscription.filter);
            let subject = |subject: String| match &inbox {
                Some(inbox) => (index, inbox.filter().into()),
                None => (index, subject.into()),
            };
            subscriptions.extend(subjects.into_iter().map(subject));
        }
        Nats {
            subjects: topics,
            subscriptions,
            refused: BTreeMap::new(),
            beyond_limit: 0,
            awaited: Awaited::Nothing,
            pongs: 0,
            opening,
            inbox,
            reply_subject: String::new(),
        }
    }

    /// The server begins.
    fn begin(&mut self, _: &mut Link, _: &mut Shared) -> Result<(), Cause> {
        self.awaited = Awaited::LogIn;
        self.refused.clear();
        (self.beyond_limit, self.pongs) = (0, 0);
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
        match *operation {
            // Numbers of subscriptions begin at 1, and none is ever given back.
            Operation::Message(message) if !(1..=self.subscriptions.len() as u64).contains(&message.subscription) => {
                let number = message.subscription;
                Err(Cause::Protocol(format!("a message of subscription {number}, which does not exist")))
            }
            Operation::Message(message) if link.phase == Phase::Open => {
                self.hand_on(link, &message, times, sink);
                Ok(())
            }
            Operation::Ping => {
                link.respond(shared, |out| out.extend_from_slice(PONG));
                Ok(())
            }
            Operation::Pong if self.opening.is_greeted() => {
                self.on_pong(link, shared, sink);
                Ok(())
            }
            Operation::Pong => Err(Cause::Protocol(format!("PONG before {}", Nats::WELCOME))),
            Operation::Info(json) => self.opening.on_info(link, shared, json, times),
            Operation::Error(words) => self.on_error(link, words, sink),
            Operation::Ok => Ok(()),
            Operation::Message(_) => Err(Cause::Protocol("a message before its welcome".to_owned())),
        }
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let payload_bytes = message.payload_bytes as usize;
        let publication = &link.config.publications[usize::from(message.publication)];
        let has_headers = payload::has_properties(publication);
        let beside = if has_headers { headers_bytes(publication, &message) } else { 0 };
        // The limit of the server's is for headers and payload together.
        self.opening.check_size(payload_bytes + beside)?;
        let subject = &self.subjects[usize::from(message.publication)];
        if let Some(inbox) = &self.inbox {
            let request = Token { publication: message.publication, sequence: message.sequence };
            inbox.of(request, &mut self.reply_subject);
        }
        let reply = self.inbox.as_ref().map(|_| self.reply_subject.as_str());
        if has_headers {
            let mut space = [0; LONGEST_TEXT];
            let header = payload::header_text(&shared.config, publication, &message, &mut space);
            let headers_of = Arc::clone(&publication.properties);
            let headers = payload::properties(&headers_of, header);
            let front = |out: &mut Vec<u8>| encode_publish_with_headers(subject, reply, headers, payload_bytes, out);
            let sending = Sending { header_before: header_before(header), ..Sending::once(payload_bytes) };
            link.append_message(shared, message, sending, front, END);
        } else {
            let front = |out: &mut Vec<u8>| encode_publish(subject, reply, payload_bytes, out);
            link.append_message(shared, message, Sending::once(payload_bytes), front, END);
        }
        Ok(())
    }

    fn reply(&mut self, link: &mut Link, shared: &mut Shared, reply: &OutgoingReply<'_>) -> Result<(), Refusal> {
        let payload_bytes = payload::reply_bytes(reply);
        self.opening.check_size(payload_bytes)?;
        let front = |out: &mut Vec<u8>| encode_publish(reply.to.address, None, payload_bytes, out);
        link.append_reply(shared, reply, 0, front, END);
        Ok(())
    }

    fn ping(out: &mut Vec<u8>) {
        out.extend_from_slice(PING);
    }
}

impl Nats {
    /// Reports a message by its kind: a request, a reply, the server's status that there is no responder, or neither.
    fn hand_on(&self, link: &Link, message: &Message<'_>, times: Times, sink: &mut impl Sink) {
        let delivery = delivery(message, times);
        let Some(inbox) = &self.inbox else {
            return match message.reply {
                Some(address) => {
                    sink.event(link.id, Event::Requested { reply_to: ReplyTo { address, correlation: &[] }, delivery })
                }
                None => sink.event(link.id, Event::Delivered(delivery)),
            };
        };
        match inbox.request(message.subject) {
            Some(request) if is_unserved(message) => {
                sink.event(
                    link.id,
                    Event::Acknowledged {
                        token: request,
                        outcome: Err(Reason::words("no responder for this subject (503)")),
                    },
                );
            }
            request => sink.event(link.id, Event::Replied { request, delivery }),
        }
    }

    fn on_pong(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        self.pongs = self.pongs.wrapping_add(1);
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::LogIn => {
                let keep_alive_s = shared.config.connections.keep_alive_s;
                link.opened(shared, keep_alive_s);
                sink.event(link.id, Event::Connected(self.opening.connected()));
                if !self.subscriptions.is_empty() {
                    self.subscribe(link, shared);
                }
            }
            Awaited::Subscriptions => {
                self.refuse_beyond_limit();
                for index in 0..link.config.subscriptions.len() {
                    let granted = self.refused.get(&index).map_or(Ok(Qos::BestEffort), |reason| Err(reason.clone()));
                    sink.event(link.id, Event::Subscribed { index, granted });
                }
            }
            Awaited::Nothing => {}
        }
    }

    /// Members of a shared group are a queue group: the server chooses one of them for each message.
    fn subscribe(&mut self, link: &mut Link, shared: &mut Shared) {
        self.awaited = Awaited::Subscriptions;
        link.pings = link.pings.wrapping_add(1);
        let Link { outbox, config, .. } = link;
        let queue_group = config.options.shared.as_deref();
        outbox.append(&mut shared.pool, |out| {
            for (number, (_, subject)) in (1..).zip(&self.subscriptions) {
                encode_subscribe(subject, queue_group, number, out);
            }
            out.extend_from_slice(PING);
        });
    }

    /// The server does not say which subscriptions were too many. It takes them in their order, so they are the last ones.
    fn refuse_beyond_limit(&mut self) {
        let indices = self.subscriptions.iter().rev().map(|(index, _)| *index);
        let granted = indices.filter(|index| !self.refused.contains_key(index));
        let beyond: Vec<usize> = granted.take(self.beyond_limit).collect();
        for index in beyond {
            self.refused.insert(index, Reason::words(opening::TOO_MANY_SUBSCRIPTIONS));
        }
    }

    /// A subscription that is refused, or revoked because the server's permissions have changed, leaves the rest as it is, and so
    /// does a message that the server does not pass on: it does not say which one of its subject, so only their number is reported.
    /// Anything else ends the connection, as a rule by the server itself. A subscription of two subjects (`a` and `a.>`) needs
    /// both.
    fn on_error(&mut self, link: &Link, words: &str, sink: &mut impl Sink) -> Result<(), Cause> {
        let subject = opening::forbidden_subject(words);
        // The server's permissions are for a subject: they concern each subscription that has it.
        let named = self.subscriptions.iter().filter(|(_, own)| Some(&**own) == subject);
        let named: Vec<usize> = named.map(|(index, _)| *index).collect();
        for index in &named {
            let Entry::Vacant(refused) = self.refused.entry(*index) else { continue };
            let reason = refused.insert(Reason::words(words.to_owned())).clone();
            // Until the PONG behind the subscriptions it is a response to one of them, which `on_pong` reports.
            if self.awaited == Awaited::Nothing {
                sink.event(link.id, Event::Subscribed { index: *index, granted: Err(reason) });
            }
        }
        if !named.is_empty() {
            return Ok(());
        }
        if self.awaited == Awaited::Subscriptions && words.eq_ignore_ascii_case(opening::TOO_MANY_SUBSCRIPTIONS) {
            self.beyond_limit += 1;
            return Ok(());
        }
        if link.phase == Phase::Open && opening::refuses_message(words) {
            sink.event(link.id, Event::NotPermitted("publishing to a subject"));
            return Ok(());
        }
        Err(opening::cause(link.phase, words))
    }
}
