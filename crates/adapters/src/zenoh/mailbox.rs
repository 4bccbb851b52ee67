//! What the threads of the library, the helpers and the sender have for a shard.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::zenoh::bytes::ZBytes;
use ::zenoh::query::Query;
use pubmark_protocol::clients::Waker;
use pubmark_protocol::events::{Cause, Reason, Token};

use super::connection::Connection;

/// Payload bytes that wait for a shard at most; what arrives beyond is dropped and counted.
const MOST_BYTES: usize = 64 << 20;
/// Messages that wait for a shard at most.
const MOST_ARRIVALS: usize = 1 << 20;
/// Most memory of payloads that is reused for the next ones.
const KEPT_BYTES: usize = 4 << 20;

/// A connection of a session: connections are counted, so that events of an earlier one are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The session.
    pub session: u32,
    /// Which of its connections.
    pub generation: u32,
}

/// Something that happened to a connection.
pub enum Notice {
    /// It is open; each subscription was made or not. Or it is not open.
    Opened(Key, Result<Opened, Cause>),
    /// The other side is gone.
    Lost(Key),
}

/// An open connection, with the results of its subscriptions.
pub struct Opened {
    /// The connection.
    pub connection: Arc<Connection>,
    /// In the order of the session's list.
    pub subscriptions: Vec<Result<(), Reason>>,
}

/// Result of a message for the library.
pub struct Done {
    /// Where it was to go.
    pub key: Key,
    /// Bytes of its payload.
    pub payload_bytes: usize,
    /// The outcome.
    pub outcome: Outcome,
}

/// What can become of one.
pub enum Outcome {
    /// The library has it: when that began, when it was over, and what of the time from its submission is pubmark's.
    Handed { write_start_ns: u64, written_ns: u64, own_ns: u64 },
    /// The library did not accept it.
    Failed(String),
    /// It was not begun, as its connection had been closed.
    Skipped,
}

/// What a message is that arrived.
pub enum Kind {
    /// Nothing but a message.
    Plain,
    /// A request, which can be replied to until this is dropped. Its payload has been removed. Boxed, as otherwise plain
    /// messages, of which there are many more, would have two hundred bytes more.
    Request(Box<Query>),
    /// The reply to this request.
    Reply(Token),
}

/// A message that arrived. Its payload ends at `end` in [`Post::payloads`] and begins where the one before ended.
struct Arrival {
    key: Key,
    at_ns: u64,
    kind: Kind,
    end: usize,
}

/// A message that arrived, with its payload.
pub struct Arrived<'a> {
    /// Where.
    pub key: Key,
    /// When the library called, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// What it is.
    pub kind: Kind,
    /// Its payload.
    pub payload: &'a [u8],
}

/// All that waits.
#[derive(Default)]
pub struct Post {
    /// What happened to connections.
    pub notices: Vec<Notice>,
    /// Results of messages for the library.
    pub done: Vec<Done>,
    arrivals: VecDeque<Arrival>,
    /// Payloads, one behind another.
    payloads: Vec<u8>,
    /// Where the payload of the next arrival begins.
    begin: usize,
    /// Messages that arrived and were dropped for lack of space, by session.
    pub missed: BTreeMap<u32, u64>,
}

impl Post {
    /// Are there messages that arrived?
    pub fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// Takes the message that arrived first.
    pub fn next_arrival(&mut self) -> Option<Arrived<'_>> {
        let Arrival { key, at_ns, kind, end } = self.arrivals.pop_front()?;
        let begin = std::mem::replace(&mut self.begin, end);
        Some(Arrived { key, at_ns, kind, payload: &self.payloads[begin..end] })
    }

    /// Empties it, keeping some of its memory.
    pub fn clear(&mut self) {
        self.arrivals.clear();
        self.payloads.clear();
        self.payloads.shrink_to(KEPT_BYTES);
        self.begin = 0;
    }
}

/// Where all threads put what they have for the shard.
pub struct Mailbox {
    post: Mutex<Post>,
    waker: Waker,
    /// The shard waits for arrivals.
    waits: AtomicBool,
}

impl Mailbox {
    /// An empty one of the shard that `waker` wakes.
    pub fn new(waker: Waker) -> Mailbox {
        Mailbox { post: Mutex::default(), waker, waits: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, Post> {
        // Nothing in here can be left half done by a panic elsewhere.
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports an event of a connection.
    pub fn tell(&self, notice: Notice) {
        self.lock().notices.push(notice);
        self.waker.wake();
    }

    /// Reports results of messages for the library, and wakes the shard if `wakes`.
    pub fn settle(&self, done: &mut Vec<Done>, wakes: bool) {
        self.lock().done.append(done);
        if wakes {
            self.waker.wake();
        }
    }

    /// Stores a message that arrived at `at_ns`, or counts it if there is no space.
    pub fn deliver(&self, key: Key, at_ns: u64, payload: &ZBytes, kind: Kind) {
        let mut post = self.lock();
        let full =
            post.payloads.len().saturating_add(payload.len()) > MOST_BYTES || post.arrivals.len() >= MOST_ARRIVALS;
        // One is always accepted, however large it is: the library has it in memory anyway.
        if full && !post.arrivals.is_empty() {
            *post.missed.entry(key.session).or_default() += 1;
            // Dropping a request makes the library notify its sender, for which other threads must not wait.
            drop(post);
            return;
        }
        for slice in payload.slices() {
            post.payloads.extend_from_slice(slice);
        }
        let end = post.payloads.len();
        // The responder must not receive it with a delay.
        let is_request = matches!(kind, Kind::Request(_));
        post.arrivals.push_back(Arrival { key, at_ns, kind, end });
        drop(post);
        let waited = self.waits.load(Ordering::Relaxed) && self.waits.swap(false, Ordering::AcqRel);
        if waited || is_request {
            self.waker.wake();
        }
    }

    /// Takes all that waits, and leaves `empty`.
    pub fn take(&self, empty: &mut Post) {
        let mut post = self.lock();
        // Arrivals need not wake a shard that is looking.
        self.waits.store(false, Ordering::Release);
        std::mem::swap(&mut *post, empty);
    }

    /// Takes the results of messages for the library.
    pub fn take_done(&self) -> Vec<Done> {
        std::mem::take(&mut self.lock().done)
    }

    /// The shard is about to wait, and arrivals are to end that. False if something is there already.
    pub fn wait_for_arrivals(&self) -> bool {
        let post = self.lock();
        let empty =
            post.arrivals.is_empty() && post.done.is_empty() && post.notices.is_empty() && post.missed.is_empty();
        self.waits.store(empty, Ordering::Release);
        empty
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    const KEY: Key = Key { session: 3, generation: 1 };

    fn mailbox() -> (Mailbox, Arc<AtomicU32>) {
        let woken = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&woken);
        let waker = Waker::new(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        (Mailbox::new(waker), woken)
    }

    #[test]
    fn arrivals_wake_a_waiting_shard_once() {
        let (mailbox, woken) = mailbox();
        mailbox.deliver(KEY, 1, &ZBytes::from(vec![1, 2]), Kind::Plain);
        assert_eq!(woken.load(Ordering::Relaxed), 0, "nobody waits");
        assert!(!mailbox.wait_for_arrivals(), "something is there");
        mailbox.take(&mut Post::default());
        assert!(mailbox.wait_for_arrivals());
        mailbox.deliver(KEY, 2, &ZBytes::from(vec![3]), Kind::Plain);
        mailbox.deliver(KEY, 3, &ZBytes::from(vec![4, 5]), Kind::Plain);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        let mut post = Post::default();
        mailbox.take(&mut post);
        assert_eq!(post.next_arrival().map(|arrived| (arrived.at_ns, arrived.payload)), Some((2, &[3][..])));
        assert_eq!(post.next_arrival().map(|arrived| (arrived.at_ns, arrived.payload)), Some((3, &[4, 5][..])));
        assert!(!post.has_arrivals() && post.next_arrival().is_none());
    }

    #[test]
    fn arrivals_beyond_the_buffer_are_counted() {
        let (mailbox, _) = mailbox();
        let large = ZBytes::from(vec![0; MOST_BYTES + 1]);
        mailbox.deliver(KEY, 1, &large, Kind::Plain);
        mailbox.deliver(KEY, 2, &ZBytes::from(vec![1]), Kind::Plain);
        mailbox.deliver(KEY, 3, &ZBytes::from(vec![1]), Kind::Plain);
        let mut post = Post::default();
        mailbox.take(&mut post);
        assert_eq!((post.arrivals.len(), &post.missed), (1, &BTreeMap::from([(KEY.session, 2)])));
        post.missed.clear();
        post.clear();
        mailbox.take(&mut post);
        mailbox.deliver(KEY, 4, &ZBytes::from(vec![1]), Kind::Plain);
        mailbox.take(&mut post);
        assert_eq!((post.arrivals.len(), post.missed.len()), (1, 0));
    }
}
