//! What Redis adds to a connection: HELLO, SUBSCRIBE and PSUBSCRIBE, PUBLISH.
//!
//! Commands are answered in their order; a PUBLISH by the number of subscribers that got it, which is not looked at: what
//! arrived is counted where it arrives. Messages come as pushes between the answers (RESP3), so one connection can
//! publish and subscribe.

use pubmark_model::qos::Qos;
use pubmark_protocol::capabilities::{Capabilities, Features, Level, SentMeans};
use pubmark_protocol::clients::{Outgoing, SessionConfig};
use pubmark_protocol::events::{Cause, Connected, Said, Sink};
use pubmark_protocol::header::COMPACT;
use pubmark_wire::resp::{END, Parts, Reply, append_bulk_front, encode_command, hears, pattern};

use super::opening::{self, LARGEST_PAYLOAD_BYTES};
use crate::connection::{Dialect, Link, Measured, Phase, Refusal, Sending, Shared, Times, up_to_line_end};

/// A session's memory.
pub struct Redis {
    /// Of each publication: the command up to the payload's length.
    fronts: Vec<Box<[u8]>>,
    /// Subscriptions in the order in which they are asked for.
    asked: Vec<Asked>,
    /// How many of them were answered.
    answered: usize,
    /// The refusal of a subscription's first word, until its last is answered.
    refused: Option<Said>,
}

/// One word of SUBSCRIBE or PSUBSCRIBE.
struct Asked {
    /// Index of the session's subscription; `None` for the second word of one.
    subscription: Option<usize>,
    command: &'static str,
    word: Box<str>,
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
        features: Features::NONE,
        sent_means: SentMeans::Wire,
        maximum_payload_bytes: LARGEST_PAYLOAD_BYTES,
        check_topic: None,
        hears: Some(hears),
    };
    const WELCOME: &'static str = "its answer to HELLO";

    type Packet<'a> = Reply<'a>;

    fn new(config: &SessionConfig) -> Redis {
        let mut asked = vec![];
        for (index, subscription) in config.subscriptions.iter().enumerate() {
            let subscription_of = Some(index);
            match pattern(&subscription.filter) {
                None => asked.push(Asked {
                    subscription: subscription_of,
                    command: "SUBSCRIBE",
                    word: subscription.filter.clone(),
                }),
                Some((pattern, parent)) => {
                    // The second word first: the subscription is answered with its last.
                    asked.extend(parent.map(|parent| Asked {
                        subscription: None,
                        command: "SUBSCRIBE",
                        word: parent.into(),
                    }));
                    let word = pattern.into();
                    asked.push(Asked { subscription: subscription_of, command: "PSUBSCRIBE", word });
                }
            }
        }
        let front = |topic: &str| {
            let mut out = Vec::new();
            // The command with a payload of no bytes, less the payload.
            encode_command(&[b"PUBLISH", topic.as_bytes(), b""], &mut out);
            out.truncate(out.len() - b"$0\r\n\r\n".len());
            out.into_boxed_slice()
        };
        let fronts = config.publications.iter().map(|publication| front(&publication.topic)).collect();
        Redis { fronts, asked, answered: 0, refused: None }
    }

    fn begin(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        (self.answered, self.refused) = (0, None);
        opening::say_hello(link, shared);
        Ok(())
    }

    fn measure(bytes: &[u8], most_bytes: usize) -> Result<Measured<Reply<'_>>, Cause> {
        opening::measure(bytes, most_bytes)
    }

    /// Up to the end of the line: a string whose length is known is waited for as a whole.
    fn belonging(bytes: &[u8]) -> usize {
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
        match (link.phase, reply) {
            (Phase::Open, Reply::Push(parts)) => self.on_push(link, parts, times, sink),
            (Phase::Open, Reply::Error(words)) => self.on_error(link, words, sink),
            // Answers to PUBLISH and PING.
            (Phase::Open, _) => Ok(()),
            // HELLO is answered by a map.
            (_, Reply::Aggregate(_)) => {
                self.on_hello(link, shared, sink);
                Ok(())
            }
            (_, Reply::Error(words)) => Err(opening::refusal(words)),
            (_, other) => Err(Cause::Protocol(format!("{other:?} before {}", Redis::WELCOME))),
        }
    }

    fn send(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let payload_bytes = (message.payload_bytes as usize).max(COMPACT);
        if payload_bytes > LARGEST_PAYLOAD_BYTES as usize {
            return Err(Refusal::TooLarge(LARGEST_PAYLOAD_BYTES));
        }
        let fixed = &self.fronts[usize::from(message.publication)];
        let front = |out: &mut Vec<u8>| {
            out.extend_from_slice(fixed);
            append_bulk_front(payload_bytes, out);
        };
        link.append_message(shared, message, Sending::once(payload_bytes), front, END);
        Ok(())
    }

    fn ping(out: &mut Vec<u8>) {
        encode_command(&[b"PING"], out);
    }
}

impl Redis {
    fn on_hello(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let keep_alive_s = shared.config.keep_alive_s;
        link.opened(shared, keep_alive_s);
        sink.connected(link.id, Connected::default());
        if !self.asked.is_empty() {
            link.outbox.append(&mut shared.pool, |out| {
                for asked in &self.asked {
                    encode_command(&[asked.command.as_bytes(), asked.word.as_bytes()], out);
                }
            });
        }
    }

    fn on_push(&mut self, link: &Link, parts: &Parts<'_>, times: Times, sink: &mut impl Sink) -> Result<(), Cause> {
        match *parts.as_slice() {
            [b"message", _, payload] | [b"pmessage", _, _, payload] => {
                sink.delivered(link.id, times.delivery(payload, false));
                Ok(())
            }
            [b"subscribe" | b"psubscribe", _, _] => {
                self.on_subscribed(link, Ok(Qos::BestEffort), sink);
                Ok(())
            }
            // News of other kinds (client tracking) are not asked for.
            _ => Ok(()),
        }
    }

    /// The answer to the next word asked for. A subscription of two words is granted only if both are.
    fn on_subscribed(&mut self, link: &Link, granted: Result<Qos, Said>, sink: &mut impl Sink) {
        let Some(asked) = self.asked.get(self.answered) else { return };
        self.answered += 1;
        match asked.subscription {
            None => self.refused = granted.err(),
            Some(index) => sink.subscribed(link.id, index, self.refused.take().map_or(granted, Err)),
        }
    }

    /// An error while subscriptions are awaited is the answer to one; any other ends the connection, for what it answers
    /// is a message that nobody got.
    fn on_error(&mut self, link: &Link, words: &str, sink: &mut impl Sink) -> Result<(), Cause> {
        let said = Said::words(words.to_owned());
        if self.answered < self.asked.len() {
            self.on_subscribed(link, Err(said), sink);
            return Ok(());
        }
        Err(Cause::Server { said, too_large: words.contains("invalid bulk length") })
    }
}
