//! The clock of a run on several machines: how a machine's own clock maps to the time that all machines of the run share.
//!
//! A node computes the mapping and stores it in shared memory; its workers convert every instant with it
//! ([`crate::clock::follow`]), so that due times, timestamps and headers are the run's time wherever they are made. The
//! machine's own clock is `CLOCK_MONOTONIC_RAW`, whose rate no time service changes during a run.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*, fence};

/// A linear piece of the mapping: at `local_ns` of the machine's `CLOCK_MONOTONIC_RAW` the run's time is `run_ns`, and a second
/// of the machine is 1 s + `rate_ppb` ns of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// An instant of the machine, ns.
    pub local_ns: u64,
    /// The same instant of the run, ns.
    pub run_ns: u64,
    /// By how much a second of the machine is longer in the run, ns.
    pub rate_ppb: i64,
}

impl Mapping {
    /// The run's time at an instant of the machine, ns.
    pub fn run_ns(&self, local_ns: u64) -> u64 {
        let since = local_ns.wrapping_sub(self.local_ns) as i64;
        let stretched = i128::from(since) * i128::from(self.rate_ppb) / 1_000_000_000;
        self.run_ns.wrapping_add_signed(since).wrapping_add_signed(stretched as i64)
    }

    /// Converts a length of the run's time to one of the machine's, ns.
    pub fn local_length_ns(&self, run_length_ns: u64) -> u64 {
        let stretched = i128::from(run_length_ns) * i128::from(self.rate_ppb) / 1_000_000_000;
        run_length_ns.saturating_add_signed(-(stretched as i64))
    }
}

/// A mapping in memory that several processes share: one writes, others read. All zero: none was set yet.
///
/// It has two slots. The writer fills the one that is not in use and then marks it as the newest, so a writer that ends in
/// between leaves the previous mapping, and no reader ever waits for it (the *latch* of Linux's sequence counters).
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct RunClock {
    /// Its lowest bit is the newest mapping's slot; 0 before the first.
    version: AtomicU32,
    slots: [MappingSlot; 2],
    /// Last heartbeat of the process that maintains this clock, ns of `CLOCK_MONOTONIC`; 0 if there is none.
    alive_ns: AtomicU64,
    /// See [`RunClock::apart_ns`].
    apart_ns: AtomicU64,
}

/// Slot of a mapping.
#[derive(Debug, Default)]
struct MappingSlot {
    local_ns: AtomicU64,
    run_ns: AtomicU64,
    rate_ppb: AtomicI64,
}

impl RunClock {
    /// Sets the mapping. One thread at a time may call it.
    pub fn set(&self, mapping: Mapping) {
        let next = self.fill(mapping);
        self.version.store(next, Release);
    }

    /// Writes a mapping to the unused slot; returns the version that it will have.
    fn fill(&self, mapping: Mapping) -> u32 {
        // 0 is for a clock that was never set; 2 uses the same slot.
        let next = match self.version.load(Relaxed).wrapping_add(1) {
            0 => 2,
            next => next,
        };
        // A reader that sees a part of this sees that the version before it is not the newest any more.
        fence(Release);
        let slot = &self.slots[(next % 2) as usize];
        slot.local_ns.store(mapping.local_ns, Relaxed);
        slot.run_ns.store(mapping.run_ns, Relaxed);
        slot.rate_ppb.store(mapping.rate_ppb, Relaxed);
        next
    }

    /// The mapping; `None` before one was set.
    pub fn mapping(&self) -> Option<Mapping> {
        loop {
            let before = self.version.load(Acquire);
            if before == 0 {
                return None;
            }
            let slot = &self.slots[(before % 2) as usize];
            let mapping = Mapping {
                local_ns: slot.local_ns.load(Relaxed),
                run_ns: slot.run_ns.load(Relaxed),
                rate_ppb: slot.rate_ppb.load(Relaxed),
            };
            fence(Acquire);
            // Otherwise a newer one was completed in the meantime, twice a second at most: that one is read.
            if self.version.load(Relaxed) == before {
                return Some(mapping);
            }
        }
    }

    /// Sets [`RunClock::apart_ns`].
    pub fn set_apart_ns(&self, apart_ns: u64) {
        self.apart_ns.store(apart_ns, Relaxed);
    }

    /// By how much this clock and that of another machine of the run may differ, ns, as estimated now; 0 if it was not estimated.
    pub fn apart_ns(&self) -> u64 {
        self.apart_ns.load(Relaxed)
    }

    /// Heartbeat of the process that maintains this clock, at this time of `CLOCK_MONOTONIC`.
    pub fn keep_alive(&self, now_ns: u64) {
        self.alive_ns.store(now_ns, Relaxed);
    }

    /// The last heartbeat, ns of `CLOCK_MONOTONIC`; `None` if no process maintains the clock.
    pub fn alive_ns(&self) -> Option<u64> {
        Some(self.alive_ns.load(Relaxed)).filter(|at_ns| *at_ns > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_machine_is_slowed_down() {
        let mapping = Mapping { local_ns: 5_000_000_000, run_ns: 90_000_000_000, rate_ppb: -100_000 };
        assert_eq!(mapping.run_ns(5_000_000_000), 90_000_000_000);
        assert_eq!(mapping.run_ns(15_000_000_000), 99_999_000_000);
        assert_eq!(mapping.run_ns(4_000_000_000), 89_000_100_000);
        assert_eq!(mapping.local_length_ns(1_000_000_000), 1_000_100_000);
    }

    #[test]
    fn a_writer_that_ends_during_a_write_does_not_block_readers() {
        let clock = RunClock::default();
        let of = |number: u64| Mapping { local_ns: number, run_ns: number * 3, rate_ppb: number as i64 };
        clock.fill(of(1));
        assert_eq!(clock.mapping(), None, "none was ever completed");
        for number in 2..9 {
            clock.set(of(number));
            clock.fill(of(99));
            assert_eq!(clock.mapping(), Some(of(number)));
        }
        // Versions wrap around without the value for a clock that was never set.
        clock.version.store(u32::MAX - 1, Relaxed);
        for number in 1..5 {
            clock.set(of(number));
            assert_eq!(clock.mapping(), Some(of(number)));
        }
    }

    #[test]
    fn a_clock_is_none_until_it_is_set_and_never_half_of_two() {
        let clock = RunClock::default();
        assert_eq!((clock.mapping(), clock.alive_ns()), (None, None));
        let of = |number: u64| Mapping { local_ns: number, run_ns: number * 3, rate_ppb: number as i64 };
        clock.set(of(1));
        std::thread::scope(|scope| {
            scope.spawn(|| (2..200_000).for_each(|number| clock.set(of(number))));
            let mut last = 0;
            while last < 199_999 {
                let Some(seen) = clock.mapping() else { continue };
                assert_eq!(seen, of(seen.local_ns));
                assert!(seen.local_ns >= last);
                last = seen.local_ns;
            }
        });
        clock.keep_alive(7);
        assert_eq!(clock.alive_ns(), Some(7));
    }
}
