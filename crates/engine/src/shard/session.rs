//! One session on its shard: whether it is connected, whether it should be, and when it reconnects.

use std::ops::Range;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionConfig;

use super::publisher::{PendingQueue, Publisher};
use super::responder::Responder;
use super::work::Work;

/// Connection state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not connected, and not planned to be connected now.
    Offline,
    /// An attempt has been in progress since this time.
    Connecting(u64),
    /// Connected.
    Online,
    /// The last attempt failed or the connection was lost; a reconnect is scheduled.
    Waiting,
}

/// How the system came not to hold a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// It was not granted on its connection.
    Refused,
    /// It was granted, and ended while the connection lasted.
    Revoked,
}

/// A filter of a session's subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The system has responded to it on this connection.
    pub settled: bool,
    /// The system's newest response granted it.
    pub granted: bool,
    /// The system holds it, whether the session is connected or not.
    pub held: bool,
    /// A refusal or revocation of it is counted, and as which: a further one, such as the response after a reconnect, is the same.
    pub counted_not_held: Option<NotHeld>,
    /// A grant of it at a lower QoS than requested is counted.
    pub counted_lower: bool,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Its connection state.
    pub state: State,
    /// Should it be connected?
    pub wanted: bool,
    /// The connection was lost without a request by pubmark, and not re-established since.
    pub lost: bool,
    /// It disconnects as soon as its pending exchanges are complete, and at this time in any case, ns of
    /// `CLOCK_MONOTONIC`.
    pub leaving: Option<u64>,
    /// It was connected before.
    pub was_up: bool,
    /// Failed attempts since it was last connected.
    pub failures: u32,
    /// Its publishers on this shard.
    pub publishers: Range<u32>,
    /// Its subscriber on this shard.
    pub subscriber: Option<u32>,
    /// QoS that its subscriptions request.
    pub requested_qos: Option<Qos>,
    /// Filters that it subscribes to.
    pub filters: Box<[Filter]>,
    /// It is connected, and the system has responded to all its filters.
    pub subscribed: bool,
    /// The server stores its state.
    pub persistent: bool,
    /// It can send again, because a reply ended a wait. The time up to which the system still kept it from sending, ns
    /// of `CLOCK_MONOTONIC`; `None` while nothing has waited.
    pub free_since_ns: Option<u64>,
    /// Messages passed to the adapter and not yet written.
    pub pending: PendingQueue,
    /// End of the TLS handshake of an attempt that was not accepted yet, ns of `CLOCK_MONOTONIC`.
    pub secured_ns: Option<u64>,
    /// Its state as a responder, if it replies to requests.
    pub responder: Option<Box<Responder>>,
    /// The work of its subscriber on each message.
    pub work: Work,
}

impl Session {
    /// A session that was never connected.
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
            requested_qos: config.subscriptions.first().map(|first| first.qos),
            filters: vec![Filter::default(); config.subscriptions.len()].into(),
            subscribed: false,
            persistent: config.persistent,
            free_since_ns: None,
            pending: PendingQueue::new(),
            secured_ns: None,
            responder: None,
            work: Work::default(),
        }
    }

    /// Does the server store messages for it while it has no connection, which it lost?
    pub fn is_away(&self) -> bool {
        self.persistent && self.lost && self.subscriber.is_some()
    }

    /// Its publishers, out of those of its shard.
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
