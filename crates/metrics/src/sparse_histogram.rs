//! Times of one bin of a time series: a histogram that has only its used buckets.

use serde::{Deserialize, Serialize};

use crate::carried::{CarriedBuckets, Malformed, demand};

/// Times of one bin: the used buckets of an HDR histogram with two significant digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CarriedBuckets", into = "CarriedBuckets")]
pub struct SparseHistogram {
    /// (Bucket, number of samples), ascending by bucket.
    buckets: Vec<(u16, u32)>,
    count: u64,
    max_ns: u64,
}

impl From<SparseHistogram> for CarriedBuckets {
    fn from(times: SparseHistogram) -> CarriedBuckets {
        CarriedBuckets { buckets: times.buckets, max_ns: times.max_ns }
    }
}

impl TryFrom<CarriedBuckets> for SparseHistogram {
    type Error = Malformed;

    fn try_from(carried: CarriedBuckets) -> Result<SparseHistogram, Malformed> {
        let CarriedBuckets { buckets, max_ns } = carried;
        demand(buckets.is_sorted_by(|one, next| one.0 < next.0), "buckets out of order")?;
        demand(buckets.last().is_none_or(|last| last.0 <= bucket_of(max_ns)), "a bucket above the maximum")?;
        let count = buckets.iter().map(|(_, samples)| u64::from(*samples)).sum();
        Ok(SparseHistogram { buckets, count, max_ns })
    }
}

/// A power of two has half of 2^this sub-buckets: values are exact to 1 part in 128.
const SUB_BUCKET_BITS: u32 = 8;

fn bucket_of(value_ns: u64) -> u16 {
    let shift = (64 - value_ns.leading_zeros()).saturating_sub(SUB_BUCKET_BITS);
    ((shift << (SUB_BUCKET_BITS - 1)) as u64 + (value_ns >> shift)) as u16
}

/// Number of sub-buckets of a power of two, from the second on.
const HALF: u64 = 1 << (SUB_BUCKET_BITS - 1);

/// Number of low bits of a time that its bucket does not represent.
fn shift_of(bucket: u16) -> u64 {
    (u64::from(bucket) / HALF).saturating_sub(1)
}

/// Start of a bucket, ns.
fn start_of(bucket: u16) -> u64 {
    let shift = shift_of(bucket);
    (u64::from(bucket) - shift * HALF) << shift
}

/// Middle of a bucket, ns.
fn value_of(bucket: u16) -> u64 {
    start_of(bucket) + (1 << shift_of(bucket)) / 2
}

impl SparseHistogram {
    pub(crate) fn record(&mut self, time_ns: u64) {
        let bucket = bucket_of(time_ns);
        match self.buckets.binary_search_by_key(&bucket, |(index, _)| *index) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(1),
            Err(at) => self.buckets.insert(at, (bucket, 1)),
        }
        self.count += 1;
        self.max_ns = self.max_ns.max(time_ns);
    }

    pub(crate) fn merge(&mut self, other: &SparseHistogram) {
        for (bucket, samples) in &other.buckets {
            match self.buckets.binary_search_by_key(bucket, |(index, _)| *index) {
                Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(*samples),
                Err(at) => self.buckets.insert(at, (*bucket, *samples)),
            }
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Values with their numbers of samples, ascending, exact to 1 part in 128, ns.
    pub fn values(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.buckets.iter().map(|(bucket, samples)| (value_of(*bucket).min(self.max_ns), *samples))
    }

    /// Largest sample, ns; `None` without samples.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The same samples, each reduced by `by_ns`, down to 0. A sample counts as the start of its bucket.
    pub(crate) fn lowered(&self, by_ns: u64) -> SparseHistogram {
        let mut lowered = SparseHistogram::default();
        for (bucket, samples) in &self.buckets {
            let bucket = bucket_of(start_of(*bucket).saturating_sub(by_ns));
            match lowered.buckets.last_mut() {
                Some((last, count)) if *last == bucket => *count = count.saturating_add(*samples),
                _ => lowered.buckets.push((bucket, *samples)),
            }
        }
        SparseHistogram { count: self.count, max_ns: self.max_ns.saturating_sub(by_ns), ..lowered }
    }

    pub(crate) fn quantile_ns(&self, fraction: f64) -> u64 {
        let wanted = ((self.count as f64 * fraction).ceil() as u64).clamp(1, self.count.max(1));
        let mut passed = 0;
        for (bucket, samples) in &self.buckets {
            passed += u64::from(*samples);
            if passed >= wanted {
                return value_of(*bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_s_value_lies_within_one_percent(value in 0u64..u64::MAX / 4) {
            let shown = value_of(bucket_of(value));
            prop_assert!(shown.abs_diff(value) as f64 <= value as f64 / 128.0 + 1.0, "{} {}", value, shown);
        }
    }
}
