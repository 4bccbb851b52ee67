//! The progress of a run, readable at any time by any thread, and by any process that received the shared memory.
//! Shards store, others load; nothing blocks.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use pubmark_protocol::run_clock::RunClock;

use crate::live::LiveBounds;
use crate::shared_memory::{Shareable, SharedMemory};

/// Counters of one shard. They count measured messages only, except for the session counts and where a field says
/// otherwise.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ShardProgress {
    /// Established sessions.
    pub online: AtomicU64,
    /// Subscriber sessions with responses to all their subscriptions.
    pub subscribed: AtomicU64,
    /// Sessions whose newest attempt failed.
    pub failing: AtomicU64,
    /// Persistent sessions of subscribers that lost their connection and have none.
    pub not_resumed: AtomicU64,
    /// Sessions that were ever refused because of their credentials.
    pub not_authorized: AtomicU64,
    /// Pairs of a device and an audience that exchanged a [probe](crate::probes).
    pub reached: AtomicU64,
    /// Messages due.
    pub offered: AtomicU64,
    /// Messages written, warm-up included.
    pub sent: AtomicU64,
    /// Deliveries expected of those messages, warm-up included.
    pub expected: AtomicU64,
    /// First copies delivered, warm-up included.
    pub delivered: AtomicU64,
    /// Messages of the measured window written.
    pub measured_sent: AtomicU64,
    /// First copies of these messages delivered.
    pub measured_delivered: AtomicU64,
    /// Deliveries that were overtaken by a later message of their stream: [`pubmark_metrics::gaps::Gaps`].
    pub gaps_opened: AtomicU64,
    /// Of these, those that arrived later.
    pub gaps_filled: AtomicU64,
    /// Deliveries that may be missing without a loss, because their message was refused, not written completely, or not
    /// acknowledged.
    pub excused: AtomicU64,
    /// Deliveries that may arrive although `expected` does not include them, because their message was refused or not
    /// written completely.
    pub unexpected: AtomicU64,
    /// Messages due but not yet passed to the adapter.
    pub backlog: AtomicU64,
    /// Messages passed to the adapter and not yet written or not yet acknowledged.
    pub in_flight: AtomicU64,
    /// Time of the last event of a message, ns of `CLOCK_MONOTONIC`.
    pub last_event_ns: AtomicU64,
    /// The thread obtained SCHED_FIFO.
    pub realtime: AtomicBool,
    /// Number of commands that the shard has executed.
    pub executed: AtomicU64,
    /// How often another machine's counters were copied here. Increased with `Release` after the copies: a thread that loads it
    /// with `Acquire` then reads counters that contain them.
    pub copied: AtomicU64,
    /// Heartbeat of the worker process whose first shard this is: see [`crate::remote::HeartbeatWatch`].
    pub beats: AtomicU64,
    /// Latencies of its deliveries so far that belong to the warm-up, for live displays; empty if another machine
    /// counts.
    pub warm_up: LiveBounds,
    /// The same for the measured window.
    pub window: LiveBounds,
}

/// Number of values in a row of counters that machines exchange.
pub const ROW: usize = 21;

impl ShardProgress {
    fn counters(&self) -> [&AtomicU64; ROW - 1] {
        [
            &self.online,
            &self.subscribed,
            &self.failing,
            &self.not_resumed,
            &self.not_authorized,
            &self.reached,
            &self.offered,
            &self.sent,
            &self.expected,
            &self.delivered,
            &self.measured_sent,
            &self.measured_delivered,
            &self.gaps_opened,
            &self.gaps_filled,
            &self.excused,
            &self.unexpected,
            &self.backlog,
            &self.in_flight,
            &self.last_event_ns,
            &self.executed,
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

    /// Copies the counters of another machine.
    pub fn copy(&self, row: &[u64; ROW]) {
        for (number, counter) in row.iter().zip(self.counters()) {
            counter.store(*number, Relaxed);
        }
        self.realtime.store(row[ROW - 1] > 0, Relaxed);
        self.copied.fetch_add(1, Release);
    }
}

/// Data before the shards' counters.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct SharedHeader {
    epoch: AtomicU32,
    clock: RunClock,
    /// Smallest p50 that a shard measured, ns; 0 if there is none yet.
    typical_ns: AtomicU64,
}

// SAFETY: the structure has only atomics, for which zero is a valid value.
unsafe impl Shareable for SharedHeader {}

/// What all shards of a run share during the run.
#[derive(Debug)]
pub struct Progress {
    memory: SharedMemory<SharedHeader, ShardProgress>,
}

/// Sums over all shards. The counters are not read at one instant: shards continue meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Established sessions.
    pub online: u64,
    /// Subscriber sessions with responses to all their subscriptions.
    pub subscribed: u64,
    /// Sessions whose newest attempt failed.
    pub failing: u64,
    /// Persistent sessions of subscribers that lost their connection and have none.
    pub not_resumed: u64,
    /// Sessions refused because of their credentials.
    pub not_authorized: u64,
    /// Pairs that exchanged a probe.
    pub reached: u64,
    /// Measured messages due.
    pub offered: u64,
    /// Messages written, warm-up included.
    pub sent: u64,
    /// Deliveries expected of these messages.
    pub expected: u64,
    /// First copies delivered, warm-up included.
    pub delivered: u64,
    /// Messages of the measured window written.
    pub measured_sent: u64,
    /// First copies of these messages delivered.
    pub measured_delivered: u64,
    /// Deliveries that were overtaken by a later message of their stream.
    pub gaps_opened: u64,
    /// Of these, those that arrived later.
    pub gaps_filled: u64,
    /// Deliveries that may be missing without a loss.
    pub excused: u64,
    /// Deliveries that may arrive although `expected` does not include them.
    pub unexpected: u64,
    /// Messages due and not passed to the adapter.
    pub backlog: u64,
    /// Messages passed to the adapter and not settled.
    pub in_flight: u64,
    /// Time of the newest event, ns of `CLOCK_MONOTONIC`.
    pub last_event_ns: u64,
}

impl Totals {
    /// Adds the sums of another part of the fleet.
    pub fn add(&mut self, other: &Totals) {
        self.online += other.online;
        self.subscribed += other.subscribed;
        self.failing += other.failing;
        self.not_resumed += other.not_resumed;
        self.not_authorized += other.not_authorized;
        self.reached += other.reached;
        self.offered += other.offered;
        self.sent += other.sent;
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.measured_sent += other.measured_sent;
        self.measured_delivered += other.measured_delivered;
        self.gaps_opened += other.gaps_opened;
        self.gaps_filled += other.gaps_filled;
        self.excused += other.excused;
        self.unexpected += other.unexpected;
        self.backlog += other.backlog;
        self.in_flight += other.in_flight;
        self.last_event_ns = self.last_event_ns.max(other.last_event_ns);
    }
}

impl Progress {
    /// Counters for `shards` shards.
    ///
    /// # Errors
    /// The kernel does not provide the memory.
    pub fn new(shards: usize) -> io::Result<Progress> {
        Ok(Progress { memory: SharedMemory::new(shards)? })
    }

    /// Opens the counters of a run of another process, in the memory that this process received. The size of the memory
    /// determines the number of shards.
    ///
    /// # Errors
    /// The memory does not belong to a run.
    pub fn of_run(memory: OwnedFd) -> io::Result<Progress> {
        Ok(Progress { memory: SharedMemory::open(memory)? })
    }

    /// The memory, to be passed to other processes.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// The counters, one entry per shard.
    pub fn shards(&self) -> &[ShardProgress] {
        self.memory.entries()
    }

    /// Clock of a run on several machines; never set in a run on one machine.
    pub fn run_clock(&self) -> &RunClock {
        &self.memory.front().clock
    }

    /// Stores the p50 that a shard measured in the warm-up, ns, of the lower bounds of latencies. The smallest one is
    /// retained.
    pub fn note_typical(&self, typical_ns: u64) {
        // A p50 of 0 is stored as 1, because 0 means that there is none. It leads to the most exact pacing.
        let noted = |known: u64| if known == 0 { typical_ns.max(1) } else { known.min(typical_ns.max(1)) };
        let _ = self.memory.front().typical_ns.fetch_update(Relaxed, Relaxed, |known| Some(noted(known)));
    }

    /// The smallest p50 of the shards, ns.
    pub fn typical_ns(&self) -> Option<u64> {
        Some(self.memory.front().typical_ns.load(Relaxed)).filter(|typical_ns| *typical_ns > 0)
    }

    /// The epoch of a message that is passed to the adapter now. `since_ns` returns ns since the schedule's start and
    /// is called only if needed. Publishers record the epoch, to determine which of their messages were sent during a
    /// subscriber's absence.
    ///
    /// If all shards share this memory, epochs are counted: each beginning and end of an absence begins one. Separate
    /// machines cannot share a counter. There an epoch is a tick of 10 ms of the run's clock, and an absence extends
    /// from one tick before that in which it began to one tick after that in which it ended, because the clocks of two
    /// machines differ.
    pub fn epoch(&self, since_ns: impl FnOnce() -> u64) -> u32 {
        match self.is_apart() {
            true => tick_of(since_ns()),
            false => self.memory.front().epoch.load(Relaxed),
        }
    }

    /// A subscriber is absent from this time on, ns since the schedule's start: the first epoch of its absence.
    pub fn absence_begins(&self, since_ns: u64) -> u32 {
        match self.is_apart() {
            true => tick_of(since_ns).saturating_sub(CLOCK_TICKS),
            false => self.memory.front().epoch.fetch_add(1, Relaxed) + 1,
        }
    }

    /// A subscriber is present from this time on, ns since the schedule's start: the first epoch after its absence.
    pub fn absence_ends(&self, since_ns: u64) -> u32 {
        match self.is_apart() {
            true => tick_of(since_ns).saturating_add(1 + CLOCK_TICKS),
            false => self.memory.front().epoch.fetch_add(1, Relaxed) + 1,
        }
    }

    fn is_apart(&self) -> bool {
        self.run_clock().mapping().is_some()
    }

    /// The sums over all shards.
    pub fn totals(&self) -> Totals {
        let sum = |field: fn(&ShardProgress) -> &AtomicU64| {
            self.shards().iter().map(|shard| field(shard).load(Relaxed)).sum()
        };
        Totals {
            online: sum(|shard| &shard.online),
            subscribed: sum(|shard| &shard.subscribed),
            failing: sum(|shard| &shard.failing),
            not_resumed: sum(|shard| &shard.not_resumed),
            not_authorized: sum(|shard| &shard.not_authorized),
            reached: sum(|shard| &shard.reached),
            offered: sum(|shard| &shard.offered),
            sent: sum(|shard| &shard.sent),
            expected: sum(|shard| &shard.expected),
            delivered: sum(|shard| &shard.delivered),
            measured_sent: sum(|shard| &shard.measured_sent),
            measured_delivered: sum(|shard| &shard.measured_delivered),
            gaps_opened: sum(|shard| &shard.gaps_opened),
            gaps_filled: sum(|shard| &shard.gaps_filled),
            excused: sum(|shard| &shard.excused),
            unexpected: sum(|shard| &shard.unexpected),
            backlog: sum(|shard| &shard.backlog),
            in_flight: sum(|shard| &shard.in_flight),
            last_event_ns: self.shards().iter().map(|shard| shard.last_event_ns.load(Relaxed)).max().unwrap_or(0),
        }
    }
}

/// Length of an epoch if the shards are on separate machines, ns.
const TICK_NS: u64 = 10_000_000;
/// Ticks by which the clocks of two machines may differ. The measured bound of the difference is far smaller (V22).
const CLOCK_TICKS: u32 = 1;

fn tick_of(since_ns: u64) -> u32 {
    u32::try_from(since_ns / TICK_NS).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pubmark_protocol::run_clock::Mapping;

    #[test]
    fn a_value_that_one_process_stores_is_read_by_another() {
        let ours = Progress::new(3).unwrap();
        let theirs = Progress::of_run(ours.memory().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(theirs.shards().len(), 3);
        assert_eq!(theirs.totals(), Totals::default());
        theirs.shards()[2].offered.store(7, Relaxed);
        theirs.shards()[0].offered.store(1, Relaxed);
        assert_eq!((theirs.absence_begins(5), theirs.absence_ends(6)), (1, 2));
        assert_eq!((ours.totals().offered, ours.epoch(|| 7)), (8, 2));
    }

    #[test]
    fn the_smallest_typical_latency_counts() {
        let progress = Progress::new(1).unwrap();
        assert_eq!(progress.typical_ns(), None);
        progress.note_typical(700);
        progress.note_typical(900);
        assert_eq!(progress.typical_ns(), Some(700));
        progress.note_typical(0);
        assert_eq!(progress.typical_ns(), Some(1));
    }

    #[test]
    fn machines_apart_count_ticks_of_ten_milliseconds() {
        let progress = Progress::new(1).unwrap();
        progress.run_clock().set(Mapping { local_ns: 0, run_ns: 0, rate_ppb: 0 });
        let at_ns = 79_000_000;
        let edges = (progress.absence_begins(at_ns), progress.absence_ends(at_ns));
        assert_eq!(edges, (6, 9), "what is handed over within a tick of an edge may have fallen into the absence");
        assert_eq!((progress.epoch(|| at_ns), progress.absence_begins(0)), (7, 0));
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
