//! Additional state of a session that replies to requests.

use std::collections::{BTreeSet, VecDeque};

use pubmark_model::qos::Qos;
use pubmark_model::requests::Responds;

use super::dropped::{Dropped, MOST_DROPPED};

/// A responder.
#[derive(Debug)]
pub struct Responder {
    pub(super) rules: Responds,
    pub(super) qos: Qos,
    /// Requests that it works on, by the earliest time at which the work may have ended, ns.
    pub(super) working: BTreeSet<(u64, u32)>,
    /// Requests that wait for a free position, in the order of their arrival.
    pub(super) waiting: VecDeque<u32>,
    /// Requests that were worked on, but whose replies the system does not accept yet.
    pub(super) ready: VecDeque<u32>,
    /// Requests that it dropped since the system accepts no replies: the latest.
    pub(super) dropped: VecDeque<Dropped>,
}

impl Responder {
    /// A responder without requests. Its replies are sent at the QoS of its subscriptions.
    pub fn new(rules: Responds, qos: Qos) -> Responder {
        Responder {
            rules,
            qos,
            working: BTreeSet::new(),
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            dropped: VecDeque::new(),
        }
    }

    /// It dropped a request while the system accepts no replies: whether that is pubmark's is known when this has ended.
    pub(super) fn note_dropped(&mut self, dropped: Dropped) {
        if self.dropped.len() == MOST_DROPPED {
            self.dropped.pop_front();
        }
        self.dropped.push_back(dropped);
    }

    /// Is it working on fewer requests than it may? One whose reply the system does not accept yet counts as worked on.
    pub(super) fn is_free(&self) -> bool {
        self.working.len() + self.ready.len() < usize::from(self.rules.concurrency)
    }

    /// A request found no room when it was read at this time: may it have found some on a thread that is never late? It
    /// may if the work on another one may have ended before, unless the system accepts no replies.
    pub(super) fn may_have_had_room(&self, read_ns: u64) -> bool {
        self.ready.is_empty() && self.working.first().is_some_and(|(may_end_ns, _)| *may_end_ns < read_ns)
    }

    /// Payload size of its replies, bytes.
    pub fn reply_bytes(&self) -> u32 {
        self.rules.reply_bytes
    }
}
