//! Replying: a session that listens at its endpoint, as a CoAP server of its own.
//!
//! The data of a request that its reply needs, the *mark*, goes to the engine and back ([`reply`]). A reply that is available
//! soon is sent in the acknowledgement of its request (piggybacked); otherwise the acknowledgement is sent first and the reply
//! follows in a message of its own, confirmable as the request was (RFC 7252 §5.2). A repeated request is not reported again
//! ([`cache`]).

mod cache;
mod receiving;
mod reply;
mod replying;
mod uploads;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use pubmark_model::topic::TopicFilter;
use pubmark_protocol::clients::{SendOutcome, SessionConfig};
use pubmark_protocol::events::{Cause, Connected, Event, Sink, Token};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::coap::{Exchange, LARGEST_BODY_BYTES};

use super::link::{Blocked, Link, Shared};
use cache::RequestCache;
use reply::{Reply, ShortBytes};
use uploads::Uploads;

/// Replies waiting for the socket above which no more are accepted.
const MOST_QUEUED: usize = 1_024;
/// Most replies in messages of their own that wait for acknowledgements.
const MOST_SEPARATE: usize = 16_384;
/// Part of the requester's ACK_TIMEOUT within which a reply is sent in the acknowledgement: the rest is for the network.
const PIGGYBACK_SHARE: u64 = 8;

/// A reply in a message of its own, until it is acknowledged.
#[derive(Debug)]
struct SeparateResponse {
    reply: Reply,
    exchange: Exchange,
}

/// A reply in blocks, as long as the blocks may be requested.
#[derive(Debug)]
struct SentReply {
    reply: Reply,
    /// Identifier of the message with its first block, if that is to be acknowledged.
    separate: Option<u16>,
    /// Its last block is in the socket.
    written: bool,
    until_ns: u64,
}

/// A responder.
pub(super) struct Serving {
    filters: Vec<TopicFilter>,
    /// Replies that are not written; the names of those that are not sent.
    queue: VecDeque<Result<Reply, Token>>,
    cache: RequestCache,
    /// When acknowledgements are sent before replies, in order: of which message, with which token.
    acknowledgements: VecDeque<(u64, cache::Key, ShortBytes)>,
    separate: HashMap<cache::Key, SeparateResponse>,
    held: HashMap<(SocketAddr, ShortBytes), SentReply>,
    /// In the order of coming, so that the oldest go when there are too many.
    held_order: VecDeque<(SocketAddr, ShortBytes)>,
    uploads: Uploads,
    /// The last identifier that pubmark chose towards each peer.
    identifiers: HashMap<SocketAddr, u16>,
    topic: String,
    address: String,
}

impl Serving {
    /// For a session that replies.
    pub(super) fn new(config: &SessionConfig) -> Option<Serving> {
        config.options.replies_at?;
        let filters = config.subscriptions.iter().map(|entry| TopicFilter((*entry.filter).to_owned()));
        Some(Serving {
            filters: filters.collect(),
            queue: VecDeque::new(),
            cache: RequestCache::default(),
            acknowledgements: VecDeque::new(),
            separate: HashMap::new(),
            held: HashMap::new(),
            held_order: VecDeque::new(),
            uploads: Uploads::default(),
            identifiers: HashMap::new(),
            topic: String::new(),
            address: String::new(),
        })
    }

    /// Listens; the session is open at once.
    pub(super) fn listen(&self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        link.listen(shared)?;
        sink.event(link.id, Event::Connected(Connected::default()));
        for (index, subscription) in link.config.subscriptions.iter().enumerate() {
            sink.event(link.id, Event::Subscribed { index, granted: Ok(subscription.qos) });
        }
        Ok(())
    }

    /// Accepts a reply; the session is open.
    pub(super) fn take(&mut self, answer: &OutgoingReply<'_>) -> Result<SendOutcome, Blocked> {
        if answer.payload_bytes > LARGEST_BODY_BYTES {
            return Ok(SendOutcome::TooLarge(LARGEST_BODY_BYTES));
        }
        if !self.has_room() {
            return Err(Blocked::Queue);
        }
        self.queue.push_back(Reply::read(answer).ok_or_else(|| answer.token()));
        Ok(SendOutcome::Accepted)
    }

    /// Can one more be accepted?
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < MOST_QUEUED && self.separate.len() + self.queue.len() < MOST_SEPARATE
    }

    /// When [`Serving::repeat`] has something to do.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let separate = self.separate.values().map(|separate| separate.exchange.due_ns()).min();
        let acknowledgement = self.acknowledgements.front().map(|(due_ns, ..)| *due_ns);
        let held = self.held.values().map(|held| held.until_ns).min();
        [separate, acknowledgement, held, self.uploads.due_ns()].into_iter().flatten().min()
    }

    /// The session is over: what was not written never will be.
    pub(super) fn end(&mut self, link: &Link, sink: &mut impl Sink) {
        for queued in self.queue.drain(..) {
            sink.event(link.id, Event::Abandoned(queued.map_or_else(|token| token, |reply| reply.token())));
        }
        let halves = self.held.drain().filter(|(_, held)| !held.written);
        halves.for_each(|(_, held)| sink.event(link.id, Event::Abandoned(held.reply.token())));
        let separate = self.separate.drain().filter(|(_, separate)| !separate.reply.is_in_blocks());
        separate.for_each(|(_, separate)| sink.event(link.id, Event::Unacknowledged(separate.reply.token())));
        self.held_order.clear();
        self.acknowledgements.clear();
        self.cache.clear();
        self.uploads.clear();
        self.identifiers.clear();
    }

    /// Bytes of replies that were not written.
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.queue.iter().flatten().map(|reply| reply.payload_bytes() as u64).sum()
    }
}
