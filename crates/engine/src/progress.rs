//! How a run is doing, readable from any thread while it goes on, and from any process that was handed the memory it lies in.
//! Shards store, others load; nothing waits.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::shared_memory::{Shareable, SharedMemory};

/// Counters of one shard. Measured messages only, but for the session counts.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ShardProgress {
    /// Sessions that are up.
    pub online: AtomicU64,
    /// Subscriber sessions with all answers to their subscriptions.
    pub subscribed: AtomicU64,
    /// Sessions whose newest attempt failed.
    pub failing: AtomicU64,
    /// Sessions refused for their log-in, ever.
    pub not_authorized: AtomicU64,
    /// Messages due.
    pub offered: AtomicU64,
    /// Messages written, warm-up included.
    pub sent: AtomicU64,
    /// Deliveries that those messages should bring, warm-up included.
    pub expected: AtomicU64,
    /// First copies delivered, warm-up included.
    pub delivered: AtomicU64,
    /// Messages due but not yet handed over.
    pub backlog: AtomicU64,
    /// Messages handed over and not yet written or not yet acknowledged.
    pub in_flight: AtomicU64,
    /// Time of the last event that moves a message, ns of `CLOCK_MONOTONIC`.
    pub last_event_ns: AtomicU64,
    /// The thread obtained SCHED_FIFO.
    pub realtime: AtomicBool,
}

/// What lies before the shards' counters.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Front {
    epoch: AtomicU32,
}

// SAFETY: an atomic alone, of which zero is a value.
unsafe impl Shareable for Front {}

/// What all shards of a run share while it goes on.
#[derive(Debug)]
pub struct Progress {
    memory: SharedMemory<Front, ShardProgress>,
}

/// Sums over all shards at one moment (not one instant: shards go on while it is made).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sessions up.
    pub online: u64,
    /// Subscriber sessions subscribed.
    pub subscribed: u64,
    /// Sessions whose newest attempt failed.
    pub failing: u64,
    /// Sessions refused for their log-in.
    pub not_authorized: u64,
    /// Measured messages due.
    pub offered: u64,
    /// Messages written, warm-up included.
    pub sent: u64,
    /// Deliveries to come of them.
    pub expected: u64,
    /// Deliveries that came.
    pub delivered: u64,
    /// Messages due and not handed over.
    pub backlog: u64,
    /// Messages handed over and not settled.
    pub in_flight: u64,
    /// Newest event, ns of `CLOCK_MONOTONIC`.
    pub last_event_ns: u64,
}

impl Progress {
    /// Counters for so many shards.
    ///
    /// # Errors
    /// The kernel gives no memory.
    pub fn new(shards: usize) -> io::Result<Progress> {
        Ok(Progress { memory: SharedMemory::new(shards)? })
    }

    /// Those of a run that another process leads, in the memory that it handed over.
    ///
    /// # Errors
    /// The memory is not that of so many shards.
    pub fn of_run(memory: OwnedFd, shards: usize) -> io::Result<Progress> {
        Ok(Progress { memory: SharedMemory::open(memory, shards)? })
    }

    /// The memory, for other processes.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// One entry a shard.
    pub fn shards(&self) -> &[ShardProgress] {
        self.memory.entries()
    }

    /// Counts each beginning and end of a subscriber's absence, so that publishers can note which of their messages fell into
    /// it.
    pub fn epoch(&self) -> &AtomicU32 {
        &self.memory.front().epoch
    }

    /// The sums.
    pub fn totals(&self) -> Totals {
        let sum = |field: fn(&ShardProgress) -> &AtomicU64| {
            self.shards().iter().map(|shard| field(shard).load(Relaxed)).sum()
        };
        Totals {
            online: sum(|shard| &shard.online),
            subscribed: sum(|shard| &shard.subscribed),
            failing: sum(|shard| &shard.failing),
            not_authorized: sum(|shard| &shard.not_authorized),
            offered: sum(|shard| &shard.offered),
            sent: sum(|shard| &shard.sent),
            expected: sum(|shard| &shard.expected),
            delivered: sum(|shard| &shard.delivered),
            backlog: sum(|shard| &shard.backlog),
            in_flight: sum(|shard| &shard.in_flight),
            last_event_ns: self.shards().iter().map(|shard| shard.last_event_ns.load(Relaxed)).max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_one_process_stores_another_reads() {
        let ours = Progress::new(3).unwrap();
        let theirs = Progress::of_run(ours.memory().try_clone_to_owned().unwrap(), 3).unwrap();
        assert_eq!(theirs.totals(), Totals::default());
        theirs.shards()[2].offered.store(7, Relaxed);
        theirs.shards()[0].offered.store(1, Relaxed);
        theirs.epoch().fetch_add(2, Relaxed);
        assert_eq!((ours.totals().offered, ours.epoch().load(Relaxed)), (8, 2));
        assert!(Progress::of_run(ours.memory().try_clone_to_owned().unwrap(), 4).is_err());
    }
}
