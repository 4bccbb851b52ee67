//! How a run is doing, readable from any thread while it goes on. Shards store, others load; nothing waits.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Counters of one shard. Measured messages only, but for the session counts.
#[derive(Debug, Default)]
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

/// What all shards of a run share while it goes on.
#[derive(Debug, Default)]
pub struct Progress {
    /// One entry a shard.
    pub shards: Vec<ShardProgress>,
    /// Counts each beginning and end of a subscriber's absence, so that publishers can note which of their messages
    /// fell into it.
    pub epoch: AtomicU32,
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
    pub fn new(shards: usize) -> Progress {
        Progress { shards: (0..shards).map(|_| ShardProgress::default()).collect(), epoch: AtomicU32::new(0) }
    }

    /// The sums.
    pub fn totals(&self) -> Totals {
        let sum =
            |field: fn(&ShardProgress) -> &AtomicU64| self.shards.iter().map(|shard| field(shard).load(Relaxed)).sum();
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
            last_event_ns: self.shards.iter().map(|shard| shard.last_event_ns.load(Relaxed)).max().unwrap_or(0),
        }
    }
}
