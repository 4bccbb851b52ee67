//! The dialect of Redis: HELLO, SUBSCRIBE and PSUBSCRIBE, PUBLISH.
//!
//! The server responds to commands in their order; to a PUBLISH with the number of subscribers, which is ignored: deliveries
//! are counted where they arrive. An error instead is the refusal of that message. Messages arrive as pushes between the responses
//! (RESP3), so one connection can publish and subscribe. A requester or responder uses lists instead ([`super::lists`]).

use std::collections::VecDeque;

use pubmark_model::fleet::SecondConnection;
use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Goodbye, Outgoing, SessionConfig, Subscription};
use pubmark_protocol::events::{Cause, Connected, Event, Reason, Sink, Token};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::front::Front;
use pubmark_wire::resp::{
    END, Parts, Reply, append_bulk_front, encode_command, encode_command_front, filter_matches, pattern,
};

use super::clients::Waits;
use super::lists::{Lists, uses_lists};
use super::opening::{self, LARGEST_PAYLOAD_BYTES};
use crate::connection::{Dialect, Link, Phase, Refusal, Sending, Shared, Times, up_to_line_end};

/// A session's memory.
pub struct Redis {
    /// Of each publication: the command up to the payload's length.
    fronts: Vec<Box<[u8]>>,
    /// Subscriptions in the order in which they are requested.
    arguments: Vec<SubscribeArgument>,
    /// How many of them were acknowledged.
    answered: usize,
    /// The refusal of a subscription's first command, until its last has a response.
    refused: Option<Reason>,
    /// Messages whose PUBLISH has no response yet.
    published: VecDeque<Token>,
    /// For a requester or responder: it uses nothing of the above.
    lists: Option<Box<Lists>>,
}

/// One word of SUBSCRIBE or PSUBSCRIBE.
struct SubscribeArgument {
    /// Index of the session's subscription.
    subscription: usize,
    /// It is the last command of its subscription.
    is_last: bool,
    kind: Kind,
    word: Box<str>,
}

impl SubscribeArgument {
    /// Does a confirmation of this kind and word answer it?
    fn is(&self, kind: &[u8], word: &[u8]) -> bool {
        self.kind.begins().eq_ignore_ascii_case(kind) && self.word.as_bytes() == word
    }
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Channel,
    Pattern,
}

impl Kind {
    fn begins(self) -> &'static [u8] {
        match self {
            Kind::Channel => b"SUBSCRIBE",
            Kind::Pattern => b"PSUBSCRIBE",
        }
    }
}

impl Dialect for Redis {
    const CAPABILITIES: Capabilities = Capabilities {
        name: "redis",
        title: "Redis publish/subscribe (RESP3)",
        schemes: &["redis", "rediss"],
        tls_schemes: &["rediss"],
        default_port: 6379,
        default_tls_port: 6379,
        levels: &[Level { qos: Qos::BestEffort, means: "PUBLISH to SUBSCRIBE and PSUBSCRIBE" }],
        wildcards: true,
        retain: false,
        persistent_sessions: false,
        ends_sessions: false,
        features: Features {
            log_in: true,
            own_certificates: true,
            requests: Some(
                "lists: RPUSH to the responder's, BLPOP; a line names the list of the reply, another is the correlation",
            ),
            only_responders_receive_requests: true,
            second_connection: SecondConnection::RequestsAndReplies,
            ..Features::NONE
        },
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic: None,
        filter_matches: Some(filter_matches),
    };
    const WELCOME: &'static str = "its answer to HELLO";

    type Packet<'a> = Reply<'a>;

    fn new(config: &SessionConfig) -> Redis {
        if let Some(lists) = Lists::new(config).map(Box::new) {
            return Redis { lists: Some(lists), ..Redis::of(vec![], vec![]) };
        }
        let mut arguments = vec![];
        for (subscription, Subscription { filter, .. }) in config.subscriptions.iter().enumerate() {
            let word = |is_last, kind, word: &str| SubscribeArgument { subscription, is_last, kind, word: word.into() };
            match pattern(filter) {
                None => arguments.push(word(true, Kind::Channel, filter)),
                Some((pattern, parent)) => {
                    // The second command first: the result is reported with the subscription's last one.
                    arguments.extend(parent.map(|parent| word(false, Kind::Channel, &parent)));
                    arguments.push(word(true, Kind::Pattern, &pattern));
                }
            }
        }
        let front = |topic: &str| {
            let mut out = Vec::new();
            encode_command_front(&[b"PUBLISH", topic.as_bytes()], &mut out);
            out.into_boxed_slice()
        };
        let fronts = config.publications.iter().map(|publication| front(&publication.topic)).collect();
        Redis::of(fronts, arguments)
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        (self.answered, self.refused) = (0, None);
        self.published.clear();
        if let Some(lists) = &mut self.lists {
            lists.restart();
        }
        opening::send_hello(link, shared);
        Ok(())
    }

    fn next_packet(bytes: &[u8], most_bytes: usize) -> Result<Front<Reply<'_>>, Cause> {
        opening::next_packet(bytes, most_bytes)
    }

    /// Up to the end of the line: a string whose length is known is waited for as a whole.
    fn partial_bytes(bytes: &[u8]) -> usize {
        up_to_line_end(bytes)
    }

    fn handle(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        reply: &Reply<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if link.phase == Phase::Open
            && let Some(lists) = &mut self.lists
        {
            return lists.on_reply(link, shared, reply, times, sink);
        }
        match (link.phase, reply) {
            (Phase::Open, Reply::Push(parts)) => self.on_push(link, parts, times, sink),
            (Phase::Open, Reply::Error(words)) => self.on_error(link, words, sink),
            (Phase::Open, Reply::Integer(_)) => {
                self.published.pop_front();
                Ok(())
            }
            // The response to PING.
            (Phase::Open, _) => Ok(()),
            // The response to HELLO is a map.
            (_, Reply::Aggregate(_)) => {
                self.on_hello(link, shared, sink);
                Ok(())
            }
            (_, Reply::Error(words)) => Err(opening::refusal(words)),
            (_, other) => Err(Cause::Protocol(format!("{other:?} before {}", Redis::WELCOME))),
        }
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        if let Some(lists) = &mut self.lists {
            return lists.push(link, shared, message);
        }
        let payload_bytes = message.payload_bytes as usize;
        if payload_bytes > LARGEST_PAYLOAD_BYTES as usize {
            return Err(Refusal::TooLarge(LARGEST_PAYLOAD_BYTES));
        }
        let fixed = &self.fronts[usize::from(message.publication)];
        let front = |out: &mut Vec<u8>| {
            out.extend_from_slice(fixed);
            append_bulk_front(payload_bytes, out);
        };
        link.append_message(shared, message, Sending::once(payload_bytes), front, END);
        self.published.push_back(message.token());
        Ok(())
    }

    fn reply(&mut self, link: &mut Link, shared: &mut Shared, reply: &OutgoingReply<'_>) -> Result<(), Refusal> {
        match &mut self.lists {
            Some(lists) => lists.push_answer(link, shared, reply),
            None => Err(Refusal::TooLarge(0)),
        }
    }

    fn ping(out: &mut Vec<u8>) {
        encode_command(&[b"PING"], out);
    }

    fn send_goodbye(&mut self, link: &mut Link, shared: &mut Shared, _: Goodbye) {
        if let Some(lists) = &self.lists {
            lists.leave(link, shared);
        }
    }
}

impl Waits for Redis {
    fn two_connections(config: &SessionConfig) -> Option<[SessionConfig; 2]> {
        uses_lists(config).then(|| [config.clone(), config.clone()])
    }

    fn waits(&mut self) {
        if let Some(lists) = &mut self.lists {
            lists.pops();
        }
    }
}

impl Redis {
    fn of(fronts: Vec<Box<[u8]>>, arguments: Vec<SubscribeArgument>) -> Redis {
        Redis { fronts, arguments, answered: 0, refused: None, published: VecDeque::new(), lists: None }
    }

    fn on_hello(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let keep_alive_s = shared.config.connections.keep_alive_s;
        link.opened(shared, keep_alive_s);
        sink.event(link.id, Event::Connected(Connected::default()));
        if let Some(lists) = &mut self.lists {
            lists.opened(link, shared, sink);
        }
        if !self.arguments.is_empty() {
            link.outbox.append(&mut shared.pool, |out| {
                for argument in &self.arguments {
                    encode_command(&[argument.kind.begins(), argument.word.as_bytes()], out);
                }
            });
        }
    }

    fn on_push(&mut self, link: &Link, parts: &Parts<'_>, times: Times, sink: &mut impl Sink) -> Result<(), Cause> {
        match *parts.as_slice() {
            [b"message", _, payload] | [b"pmessage", _, _, payload] => {
                sink.event(link.id, Event::Delivered(times.delivery(payload, false)));
                Ok(())
            }
            [kind @ (b"subscribe" | b"psubscribe"), word, _] => {
                // A confirmation of something else confirms nothing.
                if self.arguments.get(self.answered).is_some_and(|argument| !argument.is(kind, word)) {
                    let (kind, word) = (String::from_utf8_lossy(kind), String::from_utf8_lossy(word));
                    return Err(Cause::Protocol(format!("a confirmation of `{kind} {word}`, which was not asked for")));
                }
                self.on_subscribed(link, Ok(Qos::BestEffort), sink);
                Ok(())
            }
            [kind @ (b"unsubscribe" | b"punsubscribe"), word, _] => {
                self.on_unsubscribed(link, kind, word, sink);
                Ok(())
            }
            // Pushes of other kinds (client tracking) are not requested.
            _ => Ok(()),
        }
    }

    /// The server ended a subscription, which pubmark never requests. One of two commands needs both; if the second has no
    /// response yet, that reports it.
    fn on_unsubscribed(&mut self, link: &Link, kind: &[u8], word: &[u8], sink: &mut impl Sink) {
        // The words are those of the confirmations, with `un` in them.
        let begins = if kind == b"unsubscribe" { Kind::Channel } else { Kind::Pattern }.begins();
        let Some(place) = self.arguments[..self.answered].iter().position(|argument| argument.is(begins, word)) else {
            return;
        };
        let reason = Reason::words(format!("{} by the server", String::from_utf8_lossy(kind)));
        let argument = &self.arguments[place];
        if argument.is_last || place + 1 < self.answered {
            sink.event(link.id, Event::Subscribed { index: argument.subscription, granted: Err(reason) });
        } else {
            self.refused = Some(reason);
        }
    }

    /// The response to the next command. A subscription of two commands is granted only if both are.
    fn on_subscribed(&mut self, link: &Link, granted: Result<Qos, Reason>, sink: &mut impl Sink) {
        let Some(argument) = self.arguments.get(self.answered) else { return };
        self.answered += 1;
        if argument.is_last {
            sink.event(
                link.id,
                Event::Subscribed { index: argument.subscription, granted: self.refused.take().map_or(granted, Err) },
            );
        } else {
            self.refused = granted.err();
        }
    }

    /// An error while subscriptions are awaited is the response to one: they are requested before anything is published. After
    /// that it refuses the oldest message without a response. Any other ends the connection.
    fn on_error(&mut self, link: &Link, words: &str, sink: &mut impl Sink) -> Result<(), Cause> {
        let reason = Reason::words(words.to_owned());
        if self.answered < self.arguments.len() {
            self.on_subscribed(link, Err(reason), sink);
            return Ok(());
        }
        if !opening::ends_connection(words)
            && let Some(token) = self.published.pop_front()
        {
            sink.event(link.id, Event::Acknowledged { token, outcome: Err(reason) });
            return Ok(());
        }
        Err(Cause::Server { reason, too_large: words.contains("invalid bulk length") })
    }
}
