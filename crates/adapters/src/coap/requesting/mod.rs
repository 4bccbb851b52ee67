//! Asking by FETCH (RFC 8132 §2): a GET that may have a body, which carries our header. The answer is the response, by
//! its token.
//!
//! At least once is a confirmable message, repeated until it is acknowledged, answered or given up; best effort one
//! that is not. A request that does not fit a datagram goes in blocks, confirmable at both levels, and what was handed
//! over behind it waits until its last block is written ([`sending`]); an answer in blocks is fetched whatever else is
//! under way ([`fetching`]). A *Request-Tag* (RFC 9175 §3) tells those blocks apart.
//!
//! A token names its request, so an answer to one that was given up is known for what it is: late.

mod fetching;
mod receiving;
mod sending;

use std::collections::{HashMap, VecDeque};

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing, SendOutcome, SessionConfig};
use pubmark_protocol::events::{Cause, Event, Sink, Token};
use pubmark_wire::coap::{Exchange, LARGEST_BODY_BYTES, Step};

use super::fetch::Fetch;
use super::link::{Blocked, Link, Shared};
use super::recent::Recent;

/// Identifiers of ours that are kept once they are answered: a copy of such an answer comes soon after the first.
const ANSWERED_KEPT: u16 = 64;

/// A confirmable message of a request: the whole of it, or one of its blocks.
#[derive(Clone, Copy, Debug)]
struct Open {
    message: Outgoing,
    message_id: u16,
    exchange: Exchange,
    /// An acknowledgement without the answer came.
    accepted: bool,
    /// Of the first block.
    write_start_ns: u64,
    /// When this message was first sent.
    sent_at_ns: u64,
    /// When it is given up, because nobody waits for its answer any more.
    until_ns: u64,
    /// Where its block begins, and of what size it is.
    offset: usize,
    exponent: u8,
    /// The socket has not taken it yet.
    waits: bool,
}

impl Open {
    fn token(&self) -> Token {
        token_of(&self.message)
    }

    fn due_ns(&self) -> u64 {
        self.exchange.due_ns().min(self.until_ns)
    }
}

fn token_of(message: &Outgoing) -> Token {
    Token { publication: message.publication, sequence: message.sequence }
}

/// A session's requests.
pub(super) struct Requesting {
    queue: VecDeque<Outgoing>,
    /// The one that goes in blocks, until its last block is written.
    sending: Option<Box<Open>>,
    /// Confirmable ones that are written wholly, without answer.
    open: HashMap<Token, Open>,
    /// Answers that come in blocks.
    fetches: HashMap<Token, Fetch>,
    /// Identifiers of ours that were answered.
    answered: Recent,
    window: usize,
    /// How long an answer is waited for, ns.
    patience_ns: u64,
}

impl Requesting {
    /// For a session that asks.
    pub(super) fn new(config: &SessionConfig) -> Option<Requesting> {
        config.options.reply_topic.as_ref()?;
        let patience = config.options.gives_up_after;
        Some(Requesting {
            queue: VecDeque::new(),
            sending: None,
            open: HashMap::new(),
            fetches: HashMap::new(),
            answered: Recent::keeping(ANSWERED_KEPT),
            window: usize::from(config.in_flight_window.max(1)),
            patience_ns: patience.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        })
    }

    /// Says that answers can come: they need no subscription.
    pub(super) fn listen(&self, link: &Link, sink: &mut impl Sink) {
        for (index, subscription) in link.config.subscriptions.iter().enumerate() {
            sink.event(link.id, Event::Subscribed { index, granted: Ok(subscription.qos) });
        }
    }

    /// Takes a request over; the session is open.
    pub(super) fn take(&mut self, message: Outgoing) -> Result<SendOutcome, Blocked> {
        if message.payload_bytes > LARGEST_BODY_BYTES {
            return Ok(SendOutcome::TooLarge(LARGEST_BODY_BYTES));
        }
        if !self.has_room() {
            return Err(Blocked::Window);
        }
        self.queue.push_back(message);
        Ok(SendOutcome::Accepted)
    }

    /// May one more be taken?
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() + self.open.len() + usize::from(self.sending.is_some()) < self.window
    }

    /// When [`Requesting::repeat`] has something to do.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let messages = self.open.values().chain(self.sending.as_deref()).map(Open::due_ns);
        messages.chain(self.fetches.values().map(|fetch| fetch.exchange.due_ns())).min()
    }

    /// Sends again what was not answered, and gives up what nobody waits for any more. Where all repetitions went
    /// unanswered and nothing at all was heard meanwhile, the responder is gone.
    pub(super) fn repeat(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let due: Vec<Token> = self.open.values().filter(|open| open.due_ns() <= now_ns).map(Open::token).collect();
        for request in due {
            let Some(open) = self.open.get_mut(&request) else { continue };
            let step = if now_ns >= open.until_ns { Step::GiveUp } else { open.exchange.step(&shared.times, now_ns) };
            match step {
                Step::Wait => {}
                Step::Repeat => {
                    sending::put(link, shared, open)?;
                }
                Step::GiveUp if is_silence(open, link, now_ns) => return Err(Cause::Silent),
                Step::GiveUp => {
                    if let Some(open) = self.open.remove(&request) {
                        forget(link, &open, sink);
                    }
                }
            }
        }
        self.repeat_block(link, shared, now_ns, sink)?;
        self.repeat_fetches(link, shared, now_ns)
    }

    /// The session is over: what was not written never will be, what was not answered nobody will know.
    pub(super) fn end(&mut self, link: &Link, sink: &mut impl Sink) {
        if let Some(open) = self.sending.take() {
            sink.event(link.id, Event::Abandoned(open.token()));
        }
        for message in self.queue.drain(..) {
            sink.event(link.id, Event::Abandoned(token_of(&message)));
        }
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_by_key(|open| open.write_start_ns);
        open.iter().for_each(|open| forget(link, open, sink));
        self.fetches.clear();
        self.answered.clear();
    }

    /// Bytes of payloads that were not written.
    pub(super) fn unsent_bytes(&self) -> u64 {
        let queued: u64 = self.queue.iter().map(|message| u64::from(message.payload_bytes)).sum();
        let rest = |open: &Open| u64::from(open.message.payload_bytes).saturating_sub(open.offset as u64);
        queued + self.sending.as_deref().map_or(0, rest)
    }
}

/// Were all repetitions sent, and nothing heard since the first?
fn is_silence(open: &Open, link: &Link, now_ns: u64) -> bool {
    now_ns < open.until_ns && !open.accepted && link.heard_at_ns < open.sent_at_ns
}

/// Does the engine wait for the acknowledgement of a request? Blocks are confirmable at both levels.
fn is_acknowledged(link: &Link, request: Token) -> bool {
    link.config.publications[usize::from(request.publication)].qos != Qos::BestEffort
}

/// Nobody will answer any more. What was acknowledged is the responder's all the same.
fn forget(link: &Link, open: &Open, sink: &mut impl Sink) {
    let request = open.token();
    match (is_acknowledged(link, request), open.accepted) {
        (false, _) => {}
        (true, true) => sink.event(link.id, Event::Acknowledged { token: request, outcome: Ok(()) }),
        (true, false) => sink.event(link.id, Event::Unacknowledged(request)),
    }
}
