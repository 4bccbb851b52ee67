//! How a run is doing, readable from any thread while it goes on, and from any process that was handed the memory it lies in.
//! Shards store, others load; nothing waits.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use pubmark_protocol::clock;
use pubmark_protocol::run_clock::RunClock;

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
    /// How often another machine's counters were copied here.
    pub copied: AtomicU64,
}

/// Numbers of a row of counters as it goes between machines.
pub const ROW: usize = 12;

impl ShardProgress {
    fn counters(&self) -> [&AtomicU64; ROW - 1] {
        [
            &self.online,
            &self.subscribed,
            &self.failing,
            &self.not_authorized,
            &self.offered,
            &self.sent,
            &self.expected,
            &self.delivered,
            &self.backlog,
            &self.in_flight,
            &self.last_event_ns,
        ]
    }

    /// The counters, for another machine.
    pub fn row(&self) -> [u64; ROW] {
        let mut row = [0; ROW];
        for (number, counter) in row.iter_mut().zip(self.counters()) {
            *number = counter.load(Relaxed);
        }
        row[ROW - 1] = u64::from(self.realtime.load(Relaxed));
        row
    }

    /// Copies what another machine counted.
    pub fn copy(&self, row: &[u64; ROW]) {
        for (number, counter) in row.iter().zip(self.counters()) {
            counter.store(*number, Relaxed);
        }
        self.realtime.store(row[ROW - 1] > 0, Relaxed);
        self.copied.fetch_add(1, Relaxed);
    }
}

/// What lies before the shards' counters.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Front {
    epoch: AtomicU32,
    clock: RunClock,
}

// SAFETY: atomics alone, of which zero is a value.
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

    /// Clock of a run on several machines; it was never set in a run on one.
    pub fn run_clock(&self) -> &RunClock {
        &self.memory.front().clock
    }

    /// The epoch in which a message is handed over now. Publishers note it, so that it is known which of their
    /// messages fell into a subscriber's absence. Where all shards share this memory, epochs are counted: each beginning and end of
    /// an absence begins one. Machines apart cannot share a counter: there an epoch is a second of the run's clock, and an absence
    /// is taken to last from the begin of its first second to the end of its last.
    pub fn epoch(&self) -> u32 {
        match self.is_apart() {
            true => second_of(clock::monotonic_ns()),
            false => self.memory.front().epoch.load(Relaxed),
        }
    }

    /// A subscriber is absent from this time on, ns: the first epoch of it.
    pub fn absence_begins(&self, now_ns: u64) -> u32 {
        match self.is_apart() {
            true => second_of(now_ns),
            false => self.memory.front().epoch.fetch_add(1, Relaxed) + 1,
        }
    }

    /// A subscriber is there from this time on, ns: the first epoch after its absence.
    pub fn absence_ends(&self, now_ns: u64) -> u32 {
        match self.is_apart() {
            true => second_of(now_ns).saturating_add(1),
            false => self.memory.front().epoch.fetch_add(1, Relaxed) + 1,
        }
    }

    fn is_apart(&self) -> bool {
        self.run_clock().mapping().is_some()
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

fn second_of(now_ns: u64) -> u32 {
    u32::try_from(now_ns / 1_000_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pubmark_protocol::run_clock::Mapping;

    #[test]
    fn what_one_process_stores_another_reads() {
        let ours = Progress::new(3).unwrap();
        let theirs = Progress::of_run(ours.memory().try_clone_to_owned().unwrap(), 3).unwrap();
        assert_eq!(theirs.totals(), Totals::default());
        theirs.shards()[2].offered.store(7, Relaxed);
        theirs.shards()[0].offered.store(1, Relaxed);
        assert_eq!((theirs.absence_begins(5), theirs.absence_ends(6)), (1, 2));
        assert_eq!((ours.totals().offered, ours.epoch()), (8, 2));
        assert!(Progress::of_run(ours.memory().try_clone_to_owned().unwrap(), 4).is_err());
    }

    #[test]
    fn machines_apart_count_seconds() {
        let progress = Progress::new(1).unwrap();
        progress.run_clock().set(Mapping { local_ns: 0, run_ns: 0, rate_ppb: 0 });
        let at_ns = 7_900_000_000;
        let edges = (progress.absence_begins(at_ns), progress.absence_ends(at_ns));
        assert_eq!(edges, (7, 8), "what is handed over in the second of an edge fell into the absence");
        let before = second_of(clock::monotonic_ns());
        assert!((before..=second_of(clock::monotonic_ns())).contains(&progress.epoch()));
    }

    #[test]
    fn a_row_of_another_machine_is_the_shards_own() {
        let (ours, theirs) = (Progress::new(1).unwrap(), Progress::new(1).unwrap());
        theirs.shards()[0].delivered.store(9, Relaxed);
        theirs.shards()[0].last_event_ns.store(11, Relaxed);
        theirs.shards()[0].realtime.store(true, Relaxed);
        ours.shards()[0].copy(&theirs.shards()[0].row());
        assert_eq!(ours.totals(), theirs.totals());
        assert_eq!((ours.totals().delivered, ours.totals().last_event_ns), (9, 11));
        assert!(ours.shards()[0].realtime.load(Relaxed));
        assert_eq!(ours.shards()[0].copied.load(Relaxed), 1);
    }
}
