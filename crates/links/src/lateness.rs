//! How late something was: a histogram that one thread fills and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Buckets for each doubling: a bucket is at most 1/32 of its value wide.
const PER_DOUBLING: u64 = 32;
const BITS: u32 = PER_DOUBLING.trailing_zeros();

/// Values from here on, 2^40 ns (18 minutes), fall into the last bucket.
const LARGEST_BITS: u32 = 40;
const BUCKETS: usize = (PER_DOUBLING as usize) * (LARGEST_BITS - BITS + 1) as usize;

fn bucket(value: u64) -> usize {
    let value = value.min((1 << LARGEST_BITS) - 1);
    if value < PER_DOUBLING {
        return value as usize;
    }
    let shift = value.ilog2() - BITS;
    (u64::from(shift) * PER_DOUBLING + (value >> shift)) as usize
}

/// Largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * PER_DOUBLING {
        return bucket;
    }
    let shift = bucket / PER_DOUBLING - 1;
    let front = bucket % PER_DOUBLING + PER_DOUBLING;
    ((front + 1) << shift) - 1
}

/// A histogram being filled, by one thread.
#[derive(Debug)]
pub(crate) struct SharedLateness {
    buckets: Box<[AtomicU64]>,
    largest_ns: AtomicU64,
}

impl SharedLateness {
    /// An empty one.
    pub fn new() -> SharedLateness {
        SharedLateness { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), largest_ns: AtomicU64::new(0) }
    }

    /// Adds a value, ns. Only ever called by one thread.
    #[inline]
    pub fn record(&self, late_ns: u64) {
        let count = &self.buckets[bucket(late_ns)];
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if late_ns > self.largest_ns.load(Ordering::Relaxed) {
            self.largest_ns.store(late_ns, Ordering::Relaxed);
        }
    }

    /// Its values up to now.
    pub fn read(&self) -> Lateness {
        Lateness {
            buckets: self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            largest_ns: self.largest_ns.load(Ordering::Relaxed),
        }
    }
}

/// Times after the due time, in buckets of at most 1/32 of their value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    buckets: Box<[u64]>,
    largest_ns: u64,
}

impl Lateness {
    /// Of nothing.
    pub fn none() -> Lateness {
        SharedLateness::new().read()
    }

    /// Packets counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The largest, ns, exact; 0 without packets.
    pub fn largest_ns(&self) -> u64 {
        self.largest_ns
    }

    /// The time at or below which `fraction` of the packets lie, ns, rounded up to a bucket's end; `None` without
    /// packets.
    pub fn quantile_ns(&self, fraction: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * fraction).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.buckets.iter().position(|bucket| {
            below += bucket;
            below >= rank
        });
        found.filter(|_| count > 0).map(|bucket| upper(bucket).min(self.largest_ns))
    }

    /// What was added since `earlier`, an older state of the same histogram. The largest is the largest of all.
    pub fn since(&self, earlier: &Lateness) -> Lateness {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        Lateness { buckets: pairs.map(|(now, then)| now - then).collect(), largest_ns: self.largest_ns }
    }

    /// Pairs of (largest value of a bucket in ns, packets in it), without empty ones.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| (upper(index), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_in_its_bucket_and_near_its_end() {
        let mut last = 0;
        for value in (0..2_000).chain((11..40).flat_map(|bits| [(1 << bits) - 1, 1 << bits, 3 << (bits - 1)])) {
            let index = bucket(value);
            assert!(index >= last || value < 3_000, "{value}");
            assert!(upper(index) >= value && upper(index) - value <= value / 32, "{value}: {}", upper(index));
            assert!(index == 0 || upper(index - 1) < value);
            last = index;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let shared = SharedLateness::new();
        assert_eq!(shared.read().quantile_ns(0.5), None);
        (1..=100).for_each(|value| shared.record(value * 1_000));
        let early = shared.read();
        for (fraction, exact) in [(0.0, 1_000.0), (0.5, 50_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let found = early.quantile_ns(fraction).unwrap() as f64;
            assert!(found >= exact && found <= exact * 33.0 / 32.0, "{found} for {exact}");
        }
        shared.record(7);
        let since = shared.read().since(&early);
        assert_eq!(since.buckets().collect::<Vec<_>>(), [(7, 1)]);
    }
}
