//! One session on its shard: is it up, should it be, when is it tried again.

use std::ops::Range;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionConfig;

use super::publisher::{PendingQueue, Publisher};
use super::responder::Responder;
use super::work::Work;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection, and none wanted now.
    Offline,
    /// An attempt is under way since this time.
    Connecting(u64),
    /// Up.
    Online,
    /// The last attempt failed or the connection was lost; it will be tried again.
    Waiting,
}

/// A filter of a session's subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The system has responded to it on this connection.
    pub settled: bool,
    /// Its newest response granted it.
    pub granted: bool,
    /// The system holds it, whether the session is connected or not.
    pub held: bool,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Where it stands.
    pub state: State,
    /// Should it be up?
    pub wanted: bool,
    /// Lost without our asking, and not up again since.
    pub lost: bool,
    /// It leaves as soon as the exchanges under way are done, and at this time whatever is under way, ns of `CLOCK_MONOTONIC`.
    pub leaving: Option<u64>,
    /// It was up before.
    pub was_up: bool,
    /// Failures since it was last up.
    pub failures: u32,
    /// Its publishers on this shard.
    pub publishers: Range<u32>,
    /// Its subscriber on this shard.
    pub subscriber: Option<u32>,
    /// Level that its subscriptions ask for.
    pub asked: Option<Qos>,
    /// Filters that it subscribes to.
    pub filters: Box<[Filter]>,
    /// It is connected, and the system has responded to all its filters.
    pub subscribed: bool,
    /// Keeps its state on the server.
    pub persistent: bool,
    /// It left a will, which the server publishes if it goes without a goodbye.
    pub has_will: bool,
    /// It can send again, as a reply ended a wait: when the system still kept it from that, ns of `CLOCK_MONOTONIC`.
    pub free_since_ns: Option<u64>,
    /// Handed over and not yet written.
    pub pending: PendingQueue,
    /// When TLS was agreed on, of an attempt that was not accepted yet, ns of `CLOCK_MONOTONIC`.
    pub secured_ns: Option<u64>,
    /// It replies to requests.
    pub responder: Option<Box<Responder>>,
    /// What its subscriber does with each message.
    pub work: Work,
}

impl Session {
    /// A session that was never up.
    pub fn new(publishers: Range<u32>, subscriber: Option<u32>, config: &SessionConfig) -> Session {
        Session {
            state: State::Offline,
            wanted: false,
            lost: false,
            leaving: None,
            was_up: false,
            failures: 0,
            publishers,
            subscriber,
            asked: config.subscriptions.first().map(|first| first.qos),
            filters: vec![Filter::default(); config.subscriptions.len()].into(),
            subscribed: false,
            persistent: config.persistent,
            has_will: config.options.will.is_some(),
            free_since_ns: None,
            pending: PendingQueue::new(),
            secured_ns: None,
            responder: None,
            work: Work::default(),
        }
    }

    /// Its publishers, of those of its shard.
    #[inline]
    pub fn own<'a>(&self, publishers: &'a [Publisher]) -> &'a [Publisher] {
        &publishers[self.publishers.start as usize..self.publishers.end as usize]
    }

    /// The same, to be changed.
    #[inline]
    pub fn own_mut<'a>(&self, publishers: &'a mut [Publisher]) -> &'a mut [Publisher] {
        &mut publishers[self.publishers.start as usize..self.publishers.end as usize]
    }
}
