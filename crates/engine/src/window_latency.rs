//! Latencies since the beginning of the measured window, for scraped metrics. The bins into which shards count
//! ([`crate::live`]) are added up outside the message path and merged into wider buckets.
//!
//! The lower bounds contain the time that a relay of pubmark held bytes, which is known only after the run: those of the
//! record and of the message log are without it ([`crate::outcome::Outcome::lower_by`]).
//!
//! Buckets are a quarter of a power of two wide, so that a quantile that is read from them lies within 25 % of the
//! record's.

use std::sync::Arc;

use crate::live::{BINS, LEAST_BITS, SUB_BITS, Snapshot, least_ns};
use crate::progress::Progress;

/// Number of bins in a bucket.
const BINS_OF_A_BUCKET: usize = 1 << (SUB_BITS - 2);
/// Latencies below 2^this, ns, share the first bucket: 4.1 µs.
const FIRST_BITS: u32 = 12;
/// Latencies from 2^this on, ns, have no separate bucket: 69 s.
const LAST_BITS: u32 = 36;
/// Interval between two reads, ns.
const SAMPLE_INTERVAL_NS: u64 = 1_000_000_000;

/// Bins below the first edge.
const FIRST_BINS: usize = ((FIRST_BITS - LEAST_BITS) << SUB_BITS) as usize;
/// Number of buckets that have an upper edge.
pub const BUCKETS: usize = ((LAST_BITS - FIRST_BITS) << 2) as usize + 1;

/// Upper edge of a bucket, ns. The bucket has the latencies below it and not below the edge of the bucket before.
pub fn edge_ns(bucket: usize) -> u64 {
    least_ns(FIRST_BINS + bucket * BINS_OF_A_BUCKET)
}

/// Histogram of deliveries by one bound of their latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// Deliveries in each bucket; the last element counts those beyond the last edge.
    pub deliveries: [u64; BUCKETS + 1],
    /// Sum of the latencies, seconds. Each latency is counted as the middle of its bin, so the sum is within 1/32 of
    /// the exact one.
    pub sum_s: f64,
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets { deliveries: [0; BUCKETS + 1], sum_s: 0.0 }
    }
}

impl Buckets {
    /// Number of deliveries.
    pub fn count(&self) -> u64 {
        self.deliveries.iter().sum()
    }

    /// Adds the counts of another part of the fleet.
    pub fn add(&mut self, other: &Buckets) {
        self.deliveries.iter_mut().zip(&other.deliveries).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_s += other.sum_s;
    }

    fn of(bins: &[u64]) -> Buckets {
        let mut buckets = Buckets::default();
        let mut sum_ns = 0.0;
        for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            let bucket = if bin < FIRST_BINS { 0 } else { (bin - FIRST_BINS) / BINS_OF_A_BUCKET + 1 };
            buckets.deliveries[bucket.min(BUCKETS)] += count;
            // The last bin has no upper edge.
            let end_ns = if bin + 1 < BINS { least_ns(bin + 1) } else { least_ns(bin) };
            sum_ns += (least_ns(bin) + end_ns) as f64 / 2.0 * *count as f64;
        }
        buckets.sum_s = sum_ns / 1e9;
        buckets
    }
}

/// Latencies of the measured window up to one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowLatency {
    /// Upper bounds: as measured.
    pub upper: Buckets,
    /// Lower bounds: without the possible delay of the generator.
    pub lower: Buckets,
}

/// Adds up the shards' counts.
pub struct WindowWatch {
    /// The counts of each bin at the last read; they wrap.
    before: Snapshot,
    upper: Vec<u64>,
    lower: Vec<u64>,
    sampled_ns: Option<u64>,
}

impl Default for WindowWatch {
    fn default() -> WindowWatch {
        let before = Snapshot { upper: vec![0; BINS], lower: vec![0; BINS] };
        WindowWatch { before, upper: vec![0; BINS], lower: vec![0; BINS], sampled_ns: None }
    }
}

impl WindowWatch {
    /// The latencies so far, if the last read is at least a second old.
    pub fn sample(&mut self, progress: &Progress, now_ns: u64) -> Option<Arc<WindowLatency>> {
        if self.sampled_ns.is_some_and(|sampled_ns| now_ns.saturating_sub(sampled_ns) < SAMPLE_INTERVAL_NS) {
            return None;
        }
        self.sampled_ns = Some(now_ns);
        Some(self.last(progress))
    }

    /// The latencies so far.
    pub fn last(&mut self, progress: &Progress) -> Arc<WindowLatency> {
        let now = Snapshot::at_window(progress);
        for (sums, now, before) in
            [(&mut self.upper, &now.upper, &self.before.upper), (&mut self.lower, &now.lower, &self.before.lower)]
        {
            for ((sum, now), before) in sums.iter_mut().zip(now).zip(before) {
                *sum += u64::from(now.wrapping_sub(*before));
            }
        }
        self.before = now;
        Arc::new(WindowLatency { upper: Buckets::of(&self.upper), lower: Buckets::of(&self.lower) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn only_the_window_is_summed_over_shards_and_samples() {
        let progress = Progress::new(2).unwrap();
        let mut watch = WindowWatch::default();
        progress.shards()[0].warm_up.note(5_000_000, 0);
        progress.shards()[0].window.note(5_000_000, 1_000_000);
        assert_eq!(watch.sample(&progress, S).unwrap().upper.count(), 1);
        assert_eq!(watch.sample(&progress, S + S / 2), None, "a second is not over");
        (0..3).for_each(|_| progress.shards()[1].window.note(80 * S as i64, 0));
        let latency = watch.sample(&progress, 2 * S).unwrap();
        assert_eq!((latency.upper.count(), latency.lower.count()), (4, 4));
        assert_eq!(latency.upper.deliveries[BUCKETS], 3, "beyond the last edge");
        assert!((latency.upper.sum_s / 240.005 - 1.0).abs() < 1.0 / 32.0, "{}", latency.upper.sum_s);
    }

    #[test]
    fn edges_reach_from_microseconds_to_a_minute() {
        assert_eq!((edge_ns(0), edge_ns(1), edge_ns(BUCKETS - 1)), (4_096, 5_120, 1 << LAST_BITS));
    }

    proptest! {
        #[test]
        fn a_latency_is_in_the_bucket_between_its_edges(ns in 0u64..1 << 38) {
            let progress = Progress::new(1).unwrap();
            progress.shards()[0].window.note(ns as i64, 0);
            let latency = WindowWatch::default().last(&progress);
            let bucket = latency.upper.deliveries.iter().position(|count| *count > 0).unwrap();
            prop_assert!(bucket == 0 || edge_ns(bucket - 1) <= ns, "{} in {}", ns, bucket);
            prop_assert!(bucket == BUCKETS || ns < edge_ns(bucket), "{} in {}", ns, bucket);
        }
    }
}
