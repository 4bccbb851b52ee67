//! What one direction of a link did, exactly.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Packets and their IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP packets, headers included.
    pub bytes: u64,
}

impl Tally {
    /// Adds a packet.
    #[inline]
    pub fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    /// Subtracts one that was added.
    #[inline]
    pub(crate) fn remove(&mut self, bytes: u64) {
        self.packets -= 1;
        self.bytes -= bytes;
    }

    /// What was added since `earlier`, an older state of the same tally.
    pub fn since(self, earlier: Tally) -> Tally {
        Tally { packets: self.packets.wrapping_sub(earlier.packets), bytes: self.bytes.wrapping_sub(earlier.bytes) }
    }
}

/// Counters of one direction. At any time
/// `arrived + duplicated = delivered + lost + lost_down + queue_dropped + overflowed + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Came to the link: what was sent, before any loss.
    pub arrived: Tally,
    /// Copies made by duplication.
    pub duplicated: Tally,
    /// Left the link: what was received.
    pub delivered: Tally,
    /// Lost as configured by the conditions.
    pub lost: Tally,
    /// Lost because the link was down.
    pub lost_down: Tally,
    /// Did not fit into the queue of the rate.
    pub queue_dropped: Tally,
    /// Dropped because the emulator's buffer is full: no condition requires it, so a run in which it happens is invalid.
    pub overflowed: Tally,
    /// On the link now: in the queue, in service, or in flight.
    pub waiting: Tally,
    /// Packets sent ahead, without their delay.
    pub sent_ahead: u64,
    /// Packets delivered after one that came later (RFC 4737 §3 counts these). A copy is its original in this, whichever is first.
    pub out_of_order: u64,
    /// Most bytes that waited for the rate at once, since the origin of the steps once that is known.
    pub queue_high_water_bytes: u64,
    /// Since when there has been a packet on the link without a break, ns; 0 if there is none, and where it is not known.
    pub waiting_since_ns: u64,
}

/// Numbers in [`Counters`].
const WORDS: usize = 20;

impl Counters {
    /// What happened since `earlier`, an older state of the same counters. What is a state and no sum (waiting, since when,
    /// high water) stays as it is.
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            arrived: self.arrived.since(earlier.arrived),
            duplicated: self.duplicated.since(earlier.duplicated),
            delivered: self.delivered.since(earlier.delivered),
            lost: self.lost.since(earlier.lost),
            lost_down: self.lost_down.since(earlier.lost_down),
            queue_dropped: self.queue_dropped.since(earlier.queue_dropped),
            overflowed: self.overflowed.since(earlier.overflowed),
            waiting: self.waiting,
            sent_ahead: self.sent_ahead - earlier.sent_ahead,
            out_of_order: self.out_of_order - earlier.out_of_order,
            queue_high_water_bytes: self.queue_high_water_bytes,
            waiting_since_ns: self.waiting_since_ns,
        }
    }

    /// Do the counters add up?
    pub fn closed(&self) -> bool {
        let ends = [self.delivered, self.lost, self.lost_down, self.queue_dropped, self.overflowed, self.waiting];
        let packets: u64 = ends.iter().map(|tally| tally.packets).sum();
        let bytes: u64 = ends.iter().map(|tally| tally.bytes).sum();
        self.arrived.packets + self.duplicated.packets == packets && self.arrived.bytes + self.duplicated.bytes == bytes
    }

    fn words(&self) -> [u64; WORDS] {
        let pairs = self.tallies().map(|tally| [tally.packets, tally.bytes]);
        let mut words = [0; WORDS];
        words[..16].copy_from_slice(pairs.as_flattened());
        let others = [self.sent_ahead, self.out_of_order, self.queue_high_water_bytes, self.waiting_since_ns];
        words[16..].copy_from_slice(&others);
        words
    }

    fn tallies(&self) -> [Tally; 8] {
        [
            self.arrived,
            self.duplicated,
            self.delivered,
            self.lost,
            self.lost_down,
            self.queue_dropped,
            self.overflowed,
            self.waiting,
        ]
    }

    fn from_words(words: [u64; WORDS]) -> Counters {
        let tally = |index: usize| Tally { packets: words[2 * index], bytes: words[2 * index + 1] };
        Counters {
            arrived: tally(0),
            duplicated: tally(1),
            delivered: tally(2),
            lost: tally(3),
            lost_down: tally(4),
            queue_dropped: tally(5),
            overflowed: tally(6),
            waiting: tally(7),
            sent_ahead: words[16],
            out_of_order: words[17],
            queue_high_water_bytes: words[18],
            waiting_since_ns: words[19],
        }
    }
}

/// Counters that one thread writes and any thread reads as they were at one moment, without stopping the writer: a
/// sequence lock. An odd version means that the writer is at it.
#[derive(Debug, Default)]
pub struct SharedCounters {
    version: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl SharedCounters {
    /// Writes. Only ever called by one thread.
    pub fn publish(&self, counters: &Counters) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (shared, word) in self.words.iter().zip(counters.words()) {
            shared.store(word, Ordering::Relaxed);
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Reads. The writer is at it for less than a microsecond at a time, unless it was put aside meanwhile; then this
    /// waits for it.
    pub fn read(&self) -> Counters {
        loop {
            let before = self.version.load(Ordering::Acquire);
            let words = std::array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return Counters::from_words(words);
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn numbered(number: u64) -> Counters {
        Counters::from_words(std::array::from_fn(|index| number * 100 + index as u64))
    }

    #[test]
    fn counters_survive_being_shared() {
        let shared = SharedCounters::default();
        shared.publish(&numbered(3));
        assert_eq!(shared.read(), numbered(3));
    }

    #[test]
    fn a_reader_never_sees_half_of_a_change() {
        let (shared, stop) = (SharedCounters::default(), AtomicBool::new(false));
        shared.publish(&numbered(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    shared.publish(&numbered(number));
                }
            });
            for _ in 0..20_000 {
                let seen = shared.read();
                assert_eq!(seen, numbered(seen.arrived.packets / 100));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
