//! Requests by FETCH (RFC 8132 §2): a GET that may have a body, which carries our header. The reply is the response, matched by
//! its token.
//!
//! At least once uses a confirmable message, retransmitted until it is acknowledged, replied to or given up; best effort a
//! non-confirmable one. A request that does not fit a datagram is sent in blocks, confirmable at both levels, and requests
//! handed over after it wait until its last block is written ([`sending`]); a reply in blocks is fetched independently
//! ([`fetching`]). A *Request-Tag* (RFC 9175 §3) distinguishes those blocks.
//!
//! A token names its request, so a reply to a request that was given up is recognised as late.

mod fetching;
mod receiving;
mod sending;

use std::collections::{HashMap, VecDeque};

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing, SendOutcome, SessionConfig};
use pubmark_protocol::events::{Cause, Event, Sink, Token};
use pubmark_wire::coap::{Exchange, LARGEST_BODY_BYTES, Step};

use super::block_wait::BlockWait;
use super::fetch::Fetch;
use super::link::{Blocked, Link, Shared};
use super::recent::RecentIds;

/// Identifiers of ours that are stored after the reply: a copy of such a reply arrives soon after the first.
const REPLIED_IDS: u16 = 64;

/// A confirmable message of a request: the whole of it, or one of its blocks.
#[derive(Clone, Copy, Debug)]
struct Open {
    message: Outgoing,
    message_id: u16,
    exchange: Exchange,
    /// An acknowledgement without the reply arrived.
    accepted: bool,
    /// Of the first block.
    write_start_ns: u64,
    /// When this message was first sent.
    sent_at_ns: u64,
    /// Time at which it is given up, because its reply would be too late.
    until_ns: u64,
    /// Where its block begins, and of what size it is.
    offset: usize,
    exponent: u8,
    /// The socket would block; it is not written yet.
    waits: bool,
    /// Since the first block.
    block_wait: BlockWait,
}

impl Open {
    fn token(&self) -> Token {
        token_of(&self.message)
    }

    fn due_ns(&self) -> u64 {
        self.exchange.due_ns().min(self.until_ns)
    }

    /// The report that it was written completely at this time.
    fn written(&self, written_ns: u64) -> Event<'static> {
        let write_start_ns = self.write_start_ns;
        let own_ns = self.message.timing.since_submitted_ns(write_start_ns).saturating_add(self.block_wait.late_ns());
        Event::Written { token: self.token(), write_start_ns, written_ns, own_ns }
    }
}

fn token_of(message: &Outgoing) -> Token {
    Token { publication: message.publication, sequence: message.sequence }
}

/// A session's requests.
pub(super) struct Requesting {
    /// Each with [`Requesting::late_ns`] when it was handed over.
    queue: VecDeque<(Outgoing, u64)>,
    /// The one that goes in blocks, until its last block is written.
    sending: Option<Box<Open>>,
    /// How long those before it waited for pubmark, at most, ns.
    late_before_ns: u64,
    /// Confirmable ones that are completely written and have no reply.
    open: HashMap<Token, Open>,
    /// Replies in blocks.
    fetches: HashMap<Token, Fetch>,
    /// Identifiers of ours that got a reply.
    answered: RecentIds,
    window: usize,
    /// How long a reply is awaited, ns.
    patience_ns: u64,
}

impl Requesting {
    /// For a session that sends requests.
    pub(super) fn new(config: &SessionConfig) -> Option<Requesting> {
        config.options.reply_topic.as_ref()?;
        let patience = config.options.gives_up_after;
        Some(Requesting {
            queue: VecDeque::new(),
            sending: None,
            late_before_ns: 0,
            open: HashMap::new(),
            fetches: HashMap::new(),
            answered: RecentIds::with_capacity(REPLIED_IDS),
            window: usize::from(config.in_flight_window.max(1)),
            patience_ns: patience.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        })
    }

    /// Reports that replies can arrive: they need no subscription.
    pub(super) fn listen(&self, link: &Link, sink: &mut impl Sink) {
        for (index, subscription) in link.config.subscriptions.iter().enumerate() {
            sink.event(link.id, Event::Subscribed { index, granted: Ok(subscription.qos) });
        }
    }

    /// Accepts a request; the session is open.
    pub(super) fn take(&mut self, message: Outgoing) -> Result<SendOutcome, Blocked> {
        if message.payload_bytes > LARGEST_BODY_BYTES {
            return Ok(SendOutcome::TooLarge(LARGEST_BODY_BYTES));
        }
        if !self.has_room() {
            return Err(Blocked::Window);
        }
        self.queue.push_back((message, self.late_ns()));
        Ok(SendOutcome::Accepted)
    }

    /// Can one more be accepted?
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() + self.open.len() + usize::from(self.sending.is_some()) < self.window
    }

    /// When [`Requesting::repeat`] has something to do.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let messages = self.open.values().chain(self.sending.as_deref()).map(Open::due_ns);
        messages.chain(self.fetches.values().map(|fetch| fetch.exchange.due_ns())).min()
    }

    /// Sends requests without a reply again, and gives up those whose reply would be too late. If all retransmissions had no
    /// response and nothing at all was received in the meantime, the responder is gone.
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

    /// The session is over: unwritten requests are abandoned, delivery of those without a reply is unknown.
    pub(super) fn end(&mut self, link: &Link, sink: &mut impl Sink) {
        if let Some(open) = self.take_sending() {
            sink.event(link.id, Event::Abandoned(open.token()));
        }
        for (message, _) in self.queue.drain(..) {
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
        let queued: u64 = self.queue.iter().map(|(message, _)| u64::from(message.payload_bytes)).sum();
        let rest = |open: &Open| u64::from(open.message.payload_bytes).saturating_sub(open.offset as u64);
        queued + self.sending.as_deref().map_or(0, rest)
    }
}

/// Were all retransmissions sent, and nothing received since the first?
fn is_silence(open: &Open, link: &Link, now_ns: u64) -> bool {
    now_ns < open.until_ns && !open.accepted && link.received_at_ns < open.sent_at_ns
}

/// Does the engine wait for the acknowledgement of a request? Blocks are confirmable at both levels.
fn is_acknowledged(link: &Link, request: Token) -> bool {
    link.config.publications[usize::from(request.publication)].qos != Qos::BestEffort
}

/// There will be no reply any more. An acknowledged request was still delivered to the responder.
fn forget(link: &Link, open: &Open, sink: &mut impl Sink) {
    let request = open.token();
    match (is_acknowledged(link, request), open.accepted) {
        (false, _) => {}
        (true, true) => sink.event(link.id, Event::Acknowledged { token: request, outcome: Ok(()) }),
        (true, false) => sink.event(link.id, Event::Unacknowledged(request)),
    }
}
