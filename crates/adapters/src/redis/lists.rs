//! Requests and answers over lists: a request is pushed to the list of its responder, an answer to that of its requester.
//!
//! A pop that waits for an element holds up its connection, so a session that asks or answers has two: one pushes, the other pops
//! ([`super::clients`] puts them together). Commands are answered in their order; what is awaited is kept in a queue.
//!
//! There are no patterns among lists. A responder pops from one list for each of its filters, named after it, and a requester pushes
//! to the one by which its responder hears it ([`pubmark_protocol::clients::SessionOptions::targets`]).

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing, SessionConfig};
use pubmark_protocol::events::{Cause, Event, Reason, Sink, Token};
use pubmark_protocol::requests::{OutgoingReply, correlated_by_text, correlation_as_text};
use pubmark_wire::resp::{END, Reply, Values, append_bulk_front, encode_command, encode_command_front};

use super::framing::{LINE_END, key, read_answer, read_request};
use super::opening::{LARGEST_PAYLOAD_BYTES, wait_ms};
use crate::connection::{Link, Refusal, Sending, Shared, Times};
use crate::payload;

const RPUSH: &[u8] = b"RPUSH";
/// Pops of a responder that wait at the server at once: with one at a time, a request would wait for the way of the next pop.
const POPS_OF_A_RESPONDER: usize = 100;
/// Those of a requester, of which there are many, each with few requests open.
const POPS_OF_A_REQUESTER: usize = 16;

/// What a connection of such a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Pushes,
    Pops,
}

/// A command whose answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// UNLINK of the session's own lists.
    Emptied,
    /// BLPOP.
    Popped,
    /// RPUSH of a request or an answer.
    Pushed(Token),
}

/// What a connection of a session has besides, if the session asks or answers.
#[derive(Debug)]
pub(super) struct Lists {
    side: Side,
    /// The session's own lists, a subscription each.
    own: Vec<String>,
    /// Of each publication: the push to its list up to the element's length.
    fronts: Vec<Box<[u8]>>,
    /// It asks; otherwise it answers.
    targets: bool,
    awaited: VecDeque<Awaited>,
    /// What an earlier run left in its own lists is gone.
    emptied: bool,
    /// A pop from its own lists.
    pop: Vec<u8>,
    /// Memory for the lines ahead of the payload that is being sent.
    lines: String,
}

impl Lists {
    /// For a session that asks or answers; it pushes.
    pub(super) fn new(config: &SessionConfig) -> Option<Lists> {
        let options = &config.options;
        if options.reply_topic.is_none() && options.replies_at.is_none() {
            return None;
        }
        let fronts = config.publications.iter().enumerate().map(|(index, entry)| {
            let mut front = Vec::new();
            let list = key(options.targets.get(index).map_or(&*entry.topic, |asked| &*asked.filter));
            encode_command_front(&[RPUSH, list.as_bytes()], &mut front);
            front.into_boxed_slice()
        });
        Some(Lists {
            side: Side::Pushes,
            own: config.subscriptions.iter().map(|entry| key(&entry.filter)).collect(),
            fronts: fronts.collect(),
            targets: options.reply_topic.is_some(),
            awaited: VecDeque::new(),
            emptied: false,
            pop: Vec::new(),
            lines: String::new(),
        })
    }

    /// Makes it the connection that pops.
    pub(super) fn pops(&mut self) {
        self.side = Side::Pops;
    }

    /// For a new connection.
    pub(super) fn restart(&mut self) {
        self.awaited.clear();
    }

    /// The server has taken the log-in. Lists outlive connections: what an earlier run left there is nothing to this one, but what was
    /// pushed while the session had lost its connection is.
    pub(super) fn opened(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        if self.side == Side::Pushes {
            return;
        }
        if self.emptied {
            self.listen(link, shared, sink);
            return;
        }
        self.awaited.push_back(Awaited::Emptied);
        self.append_unlink(link, shared);
    }

    /// The session ends: what is in its own lists is to be nobody's.
    pub(super) fn leave(&self, link: &mut Link, shared: &mut Shared) {
        if self.side == Side::Pushes {
            self.append_unlink(link, shared);
        }
    }

    fn append_unlink(&self, link: &mut Link, shared: &mut Shared) {
        let words: Vec<&[u8]> = [&b"UNLINK"[..]].into_iter().chain(self.own.iter().map(|own| own.as_bytes())).collect();
        link.outbox.append(&mut shared.pool, |out| encode_command(&words, out));
    }

    /// Begins to pop.
    fn listen(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) {
        let wait_ms = wait_ms(shared);
        let wait_s = format!("{}.{:03}", wait_ms / 1_000, wait_ms % 1_000);
        let words = [&b"BLPOP"[..]].into_iter().chain(self.own.iter().map(|own| own.as_bytes()));
        let words: Vec<&[u8]> = words.chain([wait_s.as_bytes()]).collect();
        self.pop.clear();
        encode_command(&words, &mut self.pop);
        for _ in 0..if self.targets { POPS_OF_A_REQUESTER } else { POPS_OF_A_RESPONDER } {
            self.append_pop(link, shared);
        }
        (0..self.own.len())
            .for_each(|index| sink.event(link.id, Event::Subscribed { index, granted: Ok(Qos::BestEffort) }));
    }

    fn append_pop(&mut self, link: &mut Link, shared: &mut Shared) {
        link.outbox.append(&mut shared.pool, |out| out.extend_from_slice(&self.pop));
        self.awaited.push_back(Awaited::Popped);
    }

    /// The server answers the oldest command. Pings are not among those awaited; nothing else is answered by a short text.
    pub(super) fn on_reply(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        reply: &Reply<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if matches!(reply, Reply::Simple(_) | Reply::Push(_)) {
            return Ok(());
        }
        match (self.awaited.pop_front(), reply) {
            (Some(Awaited::Pushed(_)), Reply::Integer(_)) => Ok(()),
            // The words behind which the server closes the connection answer no command.
            (Some(Awaited::Pushed(token)), Reply::Error(words)) if !words.starts_with("ERR Protocol error") => {
                sink.event(link.id, Event::Acknowledged { token, outcome: Err(Reason::words((*words).to_owned())) });
                Ok(())
            }
            (Some(Awaited::Emptied), Reply::Integer(_)) => {
                self.emptied = true;
                self.listen(link, shared, sink);
                Ok(())
            }
            (Some(Awaited::Emptied), Reply::Error(words)) => {
                let reason = Reason::words((*words).to_owned());
                (0..self.own.len())
                    .for_each(|index| sink.event(link.id, Event::Subscribed { index, granted: Err(reason.clone()) }));
                Ok(())
            }
            (Some(Awaited::Popped), Reply::Null) => {
                self.append_pop(link, shared);
                Ok(())
            }
            (Some(Awaited::Popped), Reply::Aggregate(values)) => {
                self.append_pop(link, shared);
                self.hand_on(link, values, times, sink)
            }
            (_, Reply::Error(words)) => {
                let too_large = words.contains("invalid bulk length");
                Err(Cause::Server { reason: Reason::words((*words).to_owned()), too_large })
            }
            (awaited, other) => Err(Cause::Protocol(format!("{other:?} in answer to {awaited:?}"))),
        }
    }

    /// Hands an element on as what it is: a request, an answer, or neither.
    fn hand_on(&self, link: &Link, values: &[u8], times: Times, sink: &mut impl Sink) -> Result<(), Cause> {
        let mut values = Values::new(values);
        let is_pair = values.open() == Some(2) && values.text().is_some();
        let Some(element) = values.text().filter(|_| is_pair) else {
            return Err(Cause::Protocol("an answer to BLPOP that is none".to_owned()));
        };
        if self.targets {
            let (correlation, payload) = read_answer(element).unwrap_or(("", element));
            sink.event(
                link.id,
                Event::Replied { request: correlated_by_text(correlation), delivery: times.delivery(payload, false) },
            );
        } else if let Some((reply_to, payload)) = read_request(element) {
            sink.event(link.id, Event::Requested { reply_to, delivery: times.delivery(payload, false) });
        } else {
            sink.event(link.id, Event::Delivered(times.delivery(element, false)));
        }
        Ok(())
    }

    /// Pushes a request.
    pub(super) fn push(&mut self, link: &mut Link, shared: &mut Shared, message: Outgoing) -> Result<(), Refusal> {
        let payload_bytes = message.payload_bytes as usize;
        let token = Token { publication: message.publication, sequence: message.sequence };
        self.lines.clear();
        self.lines.push_str(self.own.first().map_or("", String::as_str));
        self.lines.push(char::from(LINE_END));
        correlation_as_text(token, &mut self.lines);
        self.lines.push(char::from(LINE_END));
        let element_bytes = checked(self.lines.len() + payload_bytes)?;
        let (fixed, lines) = (&self.fronts[usize::from(message.publication)], self.lines.as_bytes());
        let front = |out: &mut Vec<u8>| {
            out.extend_from_slice(fixed);
            append_bulk_front(element_bytes, out);
            out.extend_from_slice(lines);
        };
        link.append_message(shared, message, Sending::once(payload_bytes), front, END);
        self.awaited.push_back(Awaited::Pushed(token));
        Ok(())
    }

    /// Pushes an answer.
    pub(super) fn push_answer(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        answer: &OutgoingReply<'_>,
    ) -> Result<(), Refusal> {
        let element_bytes = checked(answer.to.correlation.len() + 1 + payload::reply_bytes(answer))?;
        let front = |out: &mut Vec<u8>| {
            encode_command_front(&[RPUSH, answer.to.address.as_bytes()], out);
            append_bulk_front(element_bytes, out);
            out.extend_from_slice(answer.to.correlation);
            out.push(LINE_END);
        };
        link.append_reply(shared, answer, 0, front, END);
        self.awaited.push_back(Awaited::Pushed(answer.token()));
        Ok(())
    }
}

/// The size of an element, if it can have so many bytes.
fn checked(element_bytes: usize) -> Result<usize, Refusal> {
    let most = LARGEST_PAYLOAD_BYTES;
    if element_bytes > most as usize { Err(Refusal::TooLarge(most)) } else { Ok(element_bytes) }
}
