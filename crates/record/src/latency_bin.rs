//! Distribution of latencies in one bin of time: the data of a heat map.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Buckets per factor of ten: each is a third wider than the one below it, which is the finest resolution that a chart
/// can show.
pub const BUCKETS_PER_DECADE: f64 = 8.0;
/// Number of buckets: from 1 µs to 10,000 s. Shorter and longer latencies are counted in the first and the last bucket.
const BUCKETS: usize = 80;

/// Distribution of the latencies of the messages due in one bin of the series, as measured (upper bounds).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBin {
    /// Start of the bin, seconds since the start of the measured window (negative in the warm-up).
    pub t_s: f64,
    /// Width of the bin, seconds.
    pub width_s: f64,
    /// Number of the first bucket that holds a message. Bucket k goes from 10^(k/8) µs to 10^((k+1)/8) µs.
    pub first: u32,
    /// Messages in that bucket and in each following one, up to the last that holds a message.
    pub counts: Vec<u64>,
}

impl LatencyBin {
    /// Builds a bin from pairs of a value in µs and a number of messages.
    pub fn of(t_s: f64, width_s: f64, values: impl Iterator<Item = (f64, u64)>) -> LatencyBin {
        let mut counts = [0u64; BUCKETS];
        for (value_us, messages) in values {
            counts[bucket_of(value_us)] += messages;
        }
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let end = counts.iter().rposition(|count| *count > 0).map_or(first, |last| last + 1);
        LatencyBin { t_s, width_s, first: first as u32, counts: counts[first..end].to_vec() }
    }

    /// Buckets as pairs of bucket number and messages.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (self.first..).zip(self.counts.iter().copied())
    }
}

fn bucket_of(value_us: f64) -> usize {
    let place = (value_us.max(1.0).log10() * BUCKETS_PER_DECADE).floor();
    (place as usize).min(BUCKETS - 1)
}

/// Lower and upper edge of a bucket, µs.
pub fn bucket_edges_us(bucket: u32) -> (f64, f64) {
    let edge = |bucket: u32| 10f64.powf(f64::from(bucket) / BUCKETS_PER_DECADE);
    (edge(bucket), edge(bucket + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_in_the_bucket_around_its_latency() {
        let values = [(0.2, 1), (150.0, 10), (151.0, 5), (9_000.0, 2), (1e12, 3)];
        let bin = LatencyBin::of(0.0, 1.0, values.into_iter());
        assert_eq!(bin.counts.iter().sum::<u64>(), 21);
        assert_eq!((bin.first, bin.buckets().filter(|(_, count)| *count > 0).count()), (0, 4));
        let (bucket, _) = bin.buckets().find(|(_, count)| *count == 15).expect("both are in one bucket");
        let (from, to) = bucket_edges_us(bucket);
        assert!(from <= 150.0 && 151.0 < to, "{from} {to}");
    }

    #[test]
    fn a_bin_without_messages_has_no_bucket() {
        let bin = LatencyBin::of(3.0, 1.0, std::iter::empty());
        assert!(bin.counts.is_empty() && bin.buckets().next().is_none());
    }
}
