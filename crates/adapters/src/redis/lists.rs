//! Requests and replies over lists: a request is pushed to the list of its responder, a reply to that of its requester.
//!
//! A pop that waits for an element blocks its connection, so a requester or responder has two: one pushes, the other pops
//! ([`super::clients`] combines them). The server responds to commands in their order; those without a response are in a queue.
//!
//! Lists have no patterns. A responder pops from one list for each of its filters, named after it, and a requester pushes to
//! the one that its responder pops from ([`pubmark_protocol::clients::SessionOptions::targets`]).

use std::collections::VecDeque;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing, SessionConfig};
use pubmark_protocol::events::{Cause, Event, Reason, Sink, Token};
use pubmark_protocol::requests::{OutgoingReply, correlated_by_text, correlation_as_text};
use pubmark_wire::resp::{END, Reply, Values, append_bulk_front, encode_command, encode_command_front};

use super::framing::{LINE_END, key, read_answer, read_request};
use super::opening::{LARGEST_PAYLOAD_BYTES, ends_connection, wait_ms};
use crate::connection::{Link, Refusal, Sending, Shared, Times};
use crate::payload;

const RPUSH: &[u8] = b"RPUSH";
/// Pops of a responder that wait at the server at once: with only one, a request would wait for the next pop to arrive.
const POPS_OF_A_RESPONDER: usize = 100;
/// Those of a requester, of which there are many, each with few requests open.
const POPS_OF_A_REQUESTER: usize = 16;

/// Is it a session of a requester or a responder?
pub(super) fn uses_lists(config: &SessionConfig) -> bool {
    config.options.reply_topic.is_some() || config.options.replies_at.is_some()
}

/// What a connection of such a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Pushes,
    Pops,
}

/// A command whose response is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// UNLINK of the session's own lists.
    Emptied,
    /// BLPOP.
    Popped,
    /// RPUSH of a request or a reply.
    Pushed(Token),
}

/// Further state of a requester's or responder's connection.
#[derive(Debug)]
pub(super) struct Lists {
    side: Side,
    /// The session's own lists, a subscription each.
    own: Vec<String>,
    /// Of each publication: the push to its list up to the element's length.
    fronts: Vec<Box<[u8]>>,
    /// It sends requests; otherwise it replies.
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
    /// For a requester or responder; this connection pushes.
    pub(super) fn new(config: &SessionConfig) -> Option<Lists> {
        let options = &config.options;
        if !uses_lists(config) {
            return None;
        }
        let fronts = config.publications.iter().enumerate().map(|(index, entry)| {
            let mut front = Vec::new();
            let list = key(options.targets.get(index).map_or(&*entry.topic, |target| &*target.filter));
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

    /// The server has accepted the log-in. Lists outlive connections: elements of an earlier run are discarded, but not those
    /// that were pushed while the session had lost its connection.
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

    /// The session ends: its own lists are deleted.
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

    /// A pop in the place of one that has a response. No more can wait for the socket than have none; otherwise a server that sends
    /// responses and reads nothing would fill the memory.
    fn pop_again(&mut self, link: &mut Link, shared: &mut Shared) -> Result<(), Cause> {
        if link.outbox.pending_bytes() / self.pop.len().max(1) > self.awaited.len() {
            return Err(Cause::Protocol("an answer to BLPOP before all of it was written".to_owned()));
        }
        self.append_pop(link, shared);
        Ok(())
    }

    /// The server's response to the oldest command. Pings are not in the queue; only they get a short text.
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
            (Some(Awaited::Pushed(token)), Reply::Error(words)) if !ends_connection(words) => {
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
            (Some(Awaited::Popped), Reply::Null) => self.pop_again(link, shared),
            (Some(Awaited::Popped), Reply::Aggregate(values)) => {
                self.pop_again(link, shared)?;
                self.hand_on(link, values, times, sink)
            }
            (_, Reply::Error(words)) => {
                let too_large = words.contains("invalid bulk length");
                Err(Cause::Server { reason: Reason::words((*words).to_owned()), too_large })
            }
            (awaited, other) => Err(Cause::Protocol(format!("{other:?} in answer to {awaited:?}"))),
        }
    }

    /// Reports an element by its kind: a request, a reply, or neither.
    fn hand_on(&self, link: &Link, values: &[u8], times: Times, sink: &mut impl Sink) -> Result<(), Cause> {
        let mut values = Values::new(values);
        let is_pair = values.open() == Some(2) && values.text().is_some();
        let Some(element) = values.text().filter(|_| is_pair) else {
            return Err(Cause::Protocol("an invalid response to BLPOP".to_owned()));
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

    /// Pushes a reply.
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

/// The size of an element, if it can have N bytes.
fn checked(element_bytes: usize) -> Result<usize, Refusal> {
    let most = LARGEST_PAYLOAD_BYTES;
    if element_bytes > most as usize { Err(Refusal::TooLarge(most)) } else { Ok(element_bytes) }
}
