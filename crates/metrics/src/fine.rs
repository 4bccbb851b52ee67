//! Latency in bins of 100 ms: fine enough to determine when it has returned to an earlier level.

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::sparse_histogram::SparseHistogram;

/// Width of a bin, ns.
pub const FINE_WIDTH_NS: u64 = 100_000_000;
/// Largest number of bins: an hour. Messages that are due later have no bin.
const BIN_LIMIT: usize = 36_000;

/// Latencies by the due time of their messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FineSeries {
    start_ns: i64,
    #[serde(deserialize_with = "bounded::at_most::<{ BIN_LIMIT }, _, _>")]
    bins: Vec<SparseHistogram>,
}

impl FineSeries {
    /// Bins from `start_ns` on, ns relative to the measured window's start.
    pub fn new(start_ns: i64) -> FineSeries {
        FineSeries { start_ns, bins: Vec::new() }
    }

    /// Adds the latency of a message due at `due_ns`; a negative one counts as 0.
    pub fn enter(&mut self, due_ns: i64, latency_ns: i64) {
        let Ok(offset_ns) = u64::try_from(due_ns.saturating_sub(self.start_ns)) else { return };
        let index = (offset_ns / FINE_WIDTH_NS) as usize;
        if index >= BIN_LIMIT {
            return;
        }
        if index >= self.bins.len() {
            self.bins.resize_with(index + 1, SparseHistogram::default);
        }
        self.bins[index].record(u64::try_from(latency_ns).unwrap_or(0));
    }

    /// Adds the series of another shard, which begins at the same time.
    pub fn merge(&mut self, other: &FineSeries) {
        debug_assert_eq!(self.start_ns, other.start_ns);
        if self.bins.len() < other.bins.len() {
            self.bins.resize_with(other.bins.len(), SparseHistogram::default);
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            mine.merge(theirs);
        }
    }

    /// Start of the first bin, ns, relative to the measured window's start.
    pub fn start_ns(&self) -> i64 {
        self.start_ns
    }

    /// Can this time have a bin?
    pub fn reaches(&self, at_ns: i64) -> bool {
        u64::try_from(at_ns.saturating_sub(self.start_ns)).is_ok_and(|ns| ns / FINE_WIDTH_NS < BIN_LIMIT as u64)
    }

    /// The `count` bins from bin `first` on, merged: number of samples, and the value at `fraction` of them, ns; `None`
    /// without samples.
    pub fn joined(&self, first: usize, count: usize, fraction: f64) -> (u64, Option<u64>) {
        let mut sum = SparseHistogram::default();
        self.bins.iter().skip(first).take(count).for_each(|bin| sum.merge(bin));
        (sum.count(), (sum.count() > 0).then(|| sum.quantile_ns(fraction)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_joined_over_bins_and_shards() {
        let mut one = FineSeries::new(-1_000_000_000);
        let mut other = FineSeries::new(-1_000_000_000);
        (0..100).for_each(|sample| one.enter(sample * 1_000_000, 1_000));
        (0..100).for_each(|sample| other.enter(100_000_000 + sample * 1_000_000, 5_000));
        other.enter(-2_000_000_000, 1);
        one.merge(&other);
        assert_eq!(one.joined(10, 1, 0.99), (100, Some(1_000)));
        assert_eq!(one.joined(10, 2, 0.5).0, 200);
        assert_eq!(one.joined(9, 1, 0.5), (0, None));
        let value = one.joined(10, 2, 0.99).1.unwrap_or(0);
        assert!((4_960..=5_000).contains(&value), "{value}");
        assert!(one.reaches(3_598_000_000_000) && !one.reaches(3_599_000_000_000));
    }
}
