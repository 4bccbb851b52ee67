//! Latencies of the last seconds, during the run. Each shard counts them in bins in the memory of [`Progress`].
//!
//! The record has the exact figures; these are for live displays. Bins are a sixteenth of a power of two wide, and an
//! interval that is read from them includes the whole width of its bins. It therefore contains the interval that the
//! record would have for the same messages.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use pubmark_metrics::bounds::lower_ns;

use crate::progress::Progress;

/// Each power of two has 2^this bins.
pub(crate) const SUB_BITS: u32 = 4;
/// Latencies below 2^this, ns, share the first bin.
pub(crate) const LEAST_BITS: u32 = 10;
/// Number of powers of two above: up to 2^42 ns, 73 minutes. The last bin also has all longer latencies.
const OCTAVES: u32 = 32;
pub(crate) const BINS: usize = (OCTAVES << SUB_BITS) as usize;

/// Interval between two reads, ns.
const SAMPLE_INTERVAL_NS: u64 = 1_000_000_000;
/// Largest number of reads back from which a percentile may use samples.
const SNAPSHOT_LIMIT: usize = 10;
/// Number of samples that must lie beyond a percentile.
const BEYOND: u64 = 10;

/// How often each latency occurred since the run began. One shard adds, any thread or process reads; counts wrap.
#[derive(Debug)]
#[repr(C)]
pub struct LiveBounds {
    upper: [AtomicU32; BINS],
    lower: [AtomicU32; BINS],
}

impl Default for LiveBounds {
    fn default() -> LiveBounds {
        LiveBounds { upper: [const { AtomicU32::new(0) }; BINS], lower: [const { AtomicU32::new(0) }; BINS] }
    }
}

impl LiveBounds {
    /// Counts a latency whose upper bound is `upper_ns` and whose interval is `width_ns` wide because of delays of the
    /// generator. Only the shard that owns these counts may call this.
    #[inline]
    pub fn note(&self, upper_ns: i64, width_ns: u64) {
        let add = |bins: &[AtomicU32; BINS], ns: i64| {
            let bin = &bins[bin_of(u64::try_from(ns).unwrap_or(0))];
            // There is only one writer, so an atomic addition is not needed; it costs several times as much.
            bin.store(bin.load(Relaxed).wrapping_add(1), Relaxed);
        };
        add(&self.upper, upper_ns);
        add(&self.lower, lower_ns(upper_ns, width_ns));
    }
}

#[inline]
fn bin_of(ns: u64) -> usize {
    let bits = (u64::BITS - 1).saturating_sub(ns.leading_zeros());
    if bits < LEAST_BITS {
        return 0;
    }
    let sub = (ns >> (bits - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    // The first bin also includes the smallest bin of the first power of two.
    ((((bits - LEAST_BITS) as usize) << SUB_BITS) + sub).min(BINS - 1)
}

/// Least latency of a bin, ns.
pub(crate) fn least_ns(bin: usize) -> u64 {
    if bin == 0 {
        return 0;
    }
    let (octave, sub) = ((bin >> SUB_BITS) as u32, (bin & ((1 << SUB_BITS) - 1)) as u64);
    ((1 << SUB_BITS) + sub) << (LEAST_BITS + octave - SUB_BITS)
}

/// A percentile of the last seconds, as an interval, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveInterval {
    /// Lower bound.
    pub lower_ns: u64,
    /// Upper bound.
    pub upper_ns: u64,
    /// Seconds that the samples are from: more than one if the last second has fewer than ten samples beyond the
    /// percentile.
    pub over_s: u32,
}

/// Latencies of the messages that were delivered in the last second or seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveLatency {
    /// Messages delivered in the last second.
    pub samples: u64,
    /// Median; `None` without enough samples in the last ten seconds.
    pub p50: Option<LiveInterval>,
    /// The 99th percentile, likewise.
    pub p99: Option<LiveInterval>,
}

/// The counts of all shards at one moment.
pub(crate) struct Snapshot {
    pub(crate) upper: Vec<u32>,
    pub(crate) lower: Vec<u32>,
}

impl Snapshot {
    /// Counts of the measured window and of the warm-up.
    fn at_all(progress: &Progress) -> Snapshot {
        Snapshot::sum(progress.shards().iter().flat_map(|shard| [&shard.warm_up, &shard.window]))
    }

    /// Counts of the measured window only.
    pub(crate) fn at_window(progress: &Progress) -> Snapshot {
        Snapshot::sum(progress.shards().iter().map(|shard| &shard.window))
    }

    fn sum<'a>(counted: impl Iterator<Item = &'a LiveBounds>) -> Snapshot {
        let mut snapshot = Snapshot { upper: vec![0; BINS], lower: vec![0; BINS] };
        for bounds in counted {
            let sides = [(&mut snapshot.upper, &bounds.upper), (&mut snapshot.lower, &bounds.lower)];
            for (sums, bins) in sides {
                for (sum, bin) in sums.iter_mut().zip(bins) {
                    *sum = sum.wrapping_add(bin.load(Relaxed));
                }
            }
        }
        snapshot
    }
}

/// Reads the shards' counts once a second.
pub struct LiveWatch {
    snapshots: VecDeque<Snapshot>,
    sampled_ns: u64,
    latest: LiveLatency,
}

impl LiveWatch {
    /// Starts now: percentiles include no earlier sample.
    pub fn start(progress: &Progress, now_ns: u64) -> LiveWatch {
        LiveWatch {
            snapshots: VecDeque::from([Snapshot::at_all(progress)]),
            sampled_ns: now_ns,
            latest: LiveLatency::default(),
        }
    }

    /// The present latencies; they change once a second.
    pub fn sample(&mut self, progress: &Progress, now_ns: u64) -> LiveLatency {
        if now_ns.saturating_sub(self.sampled_ns) >= SAMPLE_INTERVAL_NS {
            self.sampled_ns = now_ns;
            self.snapshots.push_front(Snapshot::at_all(progress));
            self.snapshots.truncate(SNAPSHOT_LIMIT + 1);
            self.latest = LiveLatency {
                samples: self.samples(1).map_or(0, |counts| counts.iter().map(|count| u64::from(*count)).sum()),
                p50: self.quantile(50),
                p99: self.quantile(99),
            };
        }
        self.latest
    }

    /// Counts of upper bounds over the last N reads.
    fn samples(&self, snapshots: usize) -> Option<Vec<u32>> {
        let (now, then) = (self.snapshots.front()?, self.snapshots.get(snapshots)?);
        Some(between(&now.upper, &then.upper))
    }

    fn quantile(&self, percent: u64) -> Option<LiveInterval> {
        let now = self.snapshots.front()?;
        (1..self.snapshots.len()).find_map(|snapshots| {
            let then = &self.snapshots[snapshots];
            let bin = |now: &[u32], then: &[u32]| quantile_bin(&between(now, then), percent);
            // Both arrays count the same messages; a message that is being counted at this moment may be in only one of
            // them.
            let (lower, upper) = (bin(&now.lower, &then.lower)?, bin(&now.upper, &then.upper)?);
            Some(LiveInterval { lower_ns: least_ns(lower), upper_ns: least_ns(upper + 1), over_s: snapshots as u32 })
        })
    }
}

fn between(now: &[u32], then: &[u32]) -> Vec<u32> {
    now.iter().zip(then).map(|(now, then)| now.wrapping_sub(*then)).collect()
}

/// The bin of a percentile; `None` if too few samples lie beyond it.
fn quantile_bin(counts: &[u32], percent: u64) -> Option<usize> {
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let wanted = (all * percent).div_ceil(100);
    if all - wanted < BEYOND {
        return None;
    }
    let mut passed = 0;
    counts.iter().position(|count| {
        passed += u64::from(*count);
        passed >= wanted
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn noted(progress: &Progress, shard: usize, count: usize, upper_ns: i64, width_ns: u64) {
        (0..count).for_each(|_| progress.shards()[shard].window.note(upper_ns, width_ns));
    }

    #[test]
    fn a_percentile_is_of_the_last_second_over_all_shards() {
        let progress = Progress::new(2).unwrap();
        noted(&progress, 0, 5_000, 900_000_000, 0);
        let mut watch = LiveWatch::start(&progress, 10 * S);
        assert_eq!(watch.sample(&progress, 10 * S + S / 2), LiveLatency::default(), "a second is not over");
        noted(&progress, 0, 900, 1_000_000, 300_000);
        noted(&progress, 1, 1_100, 1_000_000, 300_000);
        noted(&progress, 1, 30, 50_000_000, 0);
        let latency = watch.sample(&progress, 11 * S);
        assert_eq!(latency.samples, 2_030);
        let (p50, p99) = (latency.p50.unwrap(), latency.p99.unwrap());
        assert!(p50.lower_ns <= 700_000 && p50.lower_ns > 640_000, "{p50:?}");
        assert!(p50.upper_ns >= 1_000_000 && p50.upper_ns < 1_070_000, "{p50:?}");
        assert!(p99.lower_ns <= 50_000_000 && p99.upper_ns >= 50_000_000 && p99.over_s == 1, "{p99:?}");
    }

    #[test]
    fn few_samples_take_earlier_seconds_and_too_few_give_nothing() {
        let progress = Progress::new(1).unwrap();
        let mut watch = LiveWatch::start(&progress, 0);
        let mut latest = LiveLatency::default();
        for second in 1..=3 {
            noted(&progress, 0, 8, 2_000_000, 0);
            latest = watch.sample(&progress, second * S);
        }
        assert_eq!((latest.samples, latest.p99), (8, None));
        assert_eq!(latest.p50.map(|p50| p50.over_s), Some(3), "24 samples have 12 beyond the median");
        assert_eq!(watch.sample(&progress, 20 * S).samples, 0);
    }

    #[test]
    fn counts_may_wrap() {
        let progress = Progress::new(1).unwrap();
        progress.shards()[0].window.upper[bin_of(5_000)].store(u32::MAX - 3, Relaxed);
        progress.shards()[0].window.lower[bin_of(5_000)].store(u32::MAX - 3, Relaxed);
        let mut watch = LiveWatch::start(&progress, 0);
        noted(&progress, 0, 40, 5_000, 0);
        assert_eq!(watch.sample(&progress, S).samples, 40);
    }

    proptest! {
        #[test]
        fn a_bin_contains_its_latencies(ns in 0u64..1 << 41) {
            let bin = bin_of(ns);
            prop_assert!((least_ns(bin)..least_ns(bin + 1)).contains(&ns), "{} in {}", ns, bin);
            prop_assert!(ns < 1 << LEAST_BITS || least_ns(bin + 1) - least_ns(bin) <= (ns >> SUB_BITS).max(1));
        }
    }

    #[test]
    fn a_value_beyond_the_bins_is_in_the_last_one() {
        assert_eq!((bin_of(u64::MAX), bin_of(0)), (BINS - 1, 0));
    }
}
