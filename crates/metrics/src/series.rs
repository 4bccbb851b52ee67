//! Time series: counts and latencies in bins of one second. The bins double in width when their number reaches a limit.

use serde::{Deserialize, Serialize};

use crate::bounds::lower_ns;
use crate::carried::{CarriedBuckets, Malformed, demand};

/// Largest number of bins; when one more is needed, neighbours are merged and the width doubles.
pub const BIN_LIMIT: usize = 512;

/// Width of a bin at the start, ns.
pub const FIRST_WIDTH_NS: u64 = 1_000_000_000;

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

/// Reads a width, which must be one that [`Series::widen`] produces.
fn width<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let width_ns = u64::deserialize(deserializer)?;
    let fits = width_ns % FIRST_WIDTH_NS == 0 && (width_ns / FIRST_WIDTH_NS).is_power_of_two();
    fits.then_some(width_ns).ok_or_else(|| serde::de::Error::custom("a bin of another width"))
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
    fn lowered(&self, by_ns: u64) -> SparseHistogram {
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

/// One bin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Messages due in it.
    pub offered: u64,
    /// Messages written in it.
    pub sent: u64,
    /// Messages delivered in it (first copies).
    pub delivered: u64,
    /// Their payload bytes.
    pub delivered_bytes: u64,
    /// Measured latencies of messages due in it: the upper bounds.
    pub latency: SparseHistogram,
    /// Lower bounds of these latencies: without the generator's delays.
    pub lower: SparseHistogram,
    /// Largest scheduler lag of messages due in it, ns; `None` without messages.
    pub max_lag_ns: Option<u64>,
}

impl Bin {
    fn merge(&mut self, other: &Bin) {
        self.offered += other.offered;
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.latency.merge(&other.latency);
        self.lower.merge(&other.lower);
        self.max_lag_ns = self.max_lag_ns.max(other.max_lag_ns);
    }
}

/// A percentile of a bin, or of a wider window if the bin has too few samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Widened {
    /// The measured percentile, ns: the upper bound.
    pub value_ns: u64,
    /// Its lower bound, ns.
    pub lower_ns: u64,
    /// Width of the window, which ends with the bin, ns.
    pub width_ns: u64,
}

/// Bins from a start time on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    start_ns: i64,
    #[serde(deserialize_with = "width")]
    width_ns: u64,
    bins: Vec<Bin>,
    #[serde(skip)]
    /// The bin used last: its start relative to `start_ns`, and its index.
    latest: Option<(u64, usize)>,
    /// Deliveries per second since time 0, never widened: 4 B per second.
    deliveries: Vec<u32>,
}

impl Series {
    /// Bins from `start_ns` on (relative to the measured window's start; negative in the warm-up).
    pub fn new(start_ns: i64) -> Series {
        Series { start_ns, width_ns: FIRST_WIDTH_NS, bins: Vec::new(), latest: None, deliveries: Vec::new() }
    }

    /// The bin of a time; times before the start belong to the first bin.
    pub fn bin(&mut self, at_ns: i64) -> &mut Bin {
        let offset = u64::try_from(at_ns.saturating_sub(self.start_ns)).unwrap_or(0);
        // Most times are in the same bin as the time before; a division costs more than this comparison.
        if let Some((start, index)) = self.latest
            && (start..start + self.width_ns).contains(&offset)
        {
            return &mut self.bins[index];
        }
        while offset / self.width_ns >= BIN_LIMIT as u64 {
            self.widen();
        }
        let index = (offset / self.width_ns) as usize;
        if index >= self.bins.len() {
            self.bins.resize_with(index + 1, Bin::default);
        }
        self.latest = Some((index as u64 * self.width_ns, index));
        &mut self.bins[index]
    }

    /// Adds the delivery of a first copy.
    pub fn record_delivery(&mut self, at_ns: i64, payload_bytes: u64) {
        let bin = self.bin(at_ns);
        bin.delivered += 1;
        bin.delivered_bytes += payload_bytes;
        if let Ok(at_ns) = u64::try_from(at_ns) {
            let second = (at_ns / FIRST_WIDTH_NS) as usize;
            if second >= self.deliveries.len() {
                self.deliveries.resize(second + 1, 0);
            }
            self.deliveries[second] += 1;
        }
    }

    /// Deliveries in each of the first `seconds` seconds.
    pub fn deliveries_per_second(&self, seconds: usize) -> Vec<u32> {
        (0..seconds).map(|second| self.deliveries.get(second).copied().unwrap_or(0)).collect()
    }

    /// Adds a latency of a message due at `due_ns`, of which up to `width_ns` are the generator's delay. A negative one
    /// counts as 0 (its distribution counts it separately).
    pub fn record_latency(&mut self, due_ns: i64, latency_ns: i64, width_ns: u64) {
        let bin = self.bin(due_ns);
        bin.latency.record(u64::try_from(latency_ns).unwrap_or(0));
        bin.lower.record(u64::try_from(lower_ns(latency_ns, width_ns)).unwrap_or(0));
    }

    /// Lowers the lower bounds of all latencies by `by_ns`, down to 0.
    pub fn lower_by(&mut self, by_ns: u64) {
        if by_ns > 0 {
            self.bins.iter_mut().for_each(|bin| bin.lower = bin.lower.lowered(by_ns));
        }
    }

    /// Adds a message that was offered with its due time `due_ns` and this scheduler lag.
    pub fn record_offer(&mut self, due_ns: i64, lag_ns: Option<u64>) {
        let bin = self.bin(due_ns);
        bin.offered += 1;
        bin.max_lag_ns = bin.max_lag_ns.max(lag_ns);
    }

    fn widen(&mut self) {
        let merged = self.bins.chunks(2).map(|pair| {
            let mut bin = pair[0].clone();
            if let Some(second) = pair.get(1) {
                bin.merge(second);
            }
            bin
        });
        self.bins = merged.collect();
        self.width_ns *= 2;
        self.latest = None;
    }

    /// Adds all bins of `other`; both start at the same time.
    pub fn merge(&mut self, mut other: Series) {
        debug_assert_eq!(self.start_ns, other.start_ns);
        while self.width_ns < other.width_ns {
            self.widen();
        }
        while other.width_ns < self.width_ns {
            other.widen();
        }
        if self.bins.len() < other.bins.len() {
            self.bins.resize_with(other.bins.len(), Bin::default);
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            mine.merge(theirs);
        }
        self.deliveries.resize(self.deliveries.len().max(other.deliveries.len()), 0);
        for (mine, theirs) in self.deliveries.iter_mut().zip(&other.deliveries) {
            *mine += theirs;
        }
    }

    /// Width of every bin, ns.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Start of a bin relative to the measured window's start, ns.
    pub fn bin_start_ns(&self, index: usize) -> i64 {
        self.start_ns + (index as u64 * self.width_ns) as i64
    }

    /// The bins, in order of time.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Median of the lower bounds of latencies due before `end_ns`, by whole bins; `None` with fewer samples than
    /// `least`.
    pub fn median_before(&self, end_ns: i64, least: u64) -> Option<u64> {
        let mut all = SparseHistogram::default();
        let is_before = |index: &usize| self.bin_start_ns(index + 1) <= end_ns;
        (0..self.bins.len()).take_while(is_before).for_each(|index| all.merge(&self.bins[index].lower));
        (all.count >= least).then(|| all.quantile_ns(0.5))
    }

    /// A percentile of the latencies due in bin `index`. If the bin has fewer than 10 samples beyond it, earlier bins
    /// are added until there are enough, but none from before `not_before_ns`. `None` if that is not sufficient or the
    /// bin is empty.
    pub fn latency_quantile(&self, index: usize, fraction: f64, not_before_ns: i64) -> Option<Widened> {
        let (mut upper, mut lower) = (self.bins[index].latency.clone(), self.bins[index].lower.clone());
        if upper.count == 0 {
            return None;
        }
        let mut first = index;
        let enough = |window: &SparseHistogram| (window.count as f64 * (1.0 - fraction)).round() >= 10.0;
        while !enough(&upper) {
            first = first.checked_sub(1).filter(|first| self.bin_start_ns(*first) >= not_before_ns)?;
            upper.merge(&self.bins[first].latency);
            lower.merge(&self.bins[first].lower);
        }
        let width_ns = (index - first + 1) as u64 * self.width_ns;
        Some(Widened { value_ns: upper.quantile_ns(fraction), lower_ns: lower.quantile_ns(fraction), width_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn the_median_of_the_warm_up_has_no_later_latency_in_it() {
        let mut series = Series::new(-2 * SECOND);
        (0..20).for_each(|_| series.record_latency(-SECOND, 3_000_000, 1_000_000));
        (0..80).for_each(|_| series.record_latency(SECOND, 9_000_000, 0));
        let median_ns = series.median_before(0, 20).expect("enough samples");
        assert!((1_980_000..2_020_000).contains(&median_ns), "{median_ns} ns: the lower bound");
        assert_eq!(series.median_before(0, 21), None);
    }

    #[test]
    fn lower_bounds_are_lowered_and_the_measured_times_stay() {
        let mut series = Series::new(0);
        (1..=100).for_each(|ms| series.record_latency(0, ms * 1_000_000, 0));
        series.lower_by(10_000_000);
        let bin = &series.bins()[0];
        assert_eq!(
            (bin.lower.count(), bin.lower.max_ns(), bin.latency.max_ns()),
            (100, Some(90_000_000), Some(100_000_000))
        );
        for (fraction, exact) in [(0.05, 0), (0.5, 40_000_000), (0.99, 89_000_000)] {
            let found = bin.lower.quantile_ns(fraction);
            assert!(found <= exact + 1_000_000 && found + 1_500_000 >= exact, "{fraction}: {found} ns for {exact} ns");
        }
        series.lower_by(u64::MAX);
        assert_eq!(series.bins()[0].lower.max_ns(), Some(0));
    }

    #[test]
    fn bins_double_instead_of_growing_in_number() {
        let mut series = Series::new(-2 * SECOND);
        (-2..3_600).for_each(|second| series.record_offer(second * SECOND, Some(second.unsigned_abs())));
        assert!(series.bins().len() <= BIN_LIMIT);
        assert_eq!(series.width_ns(), 8_000_000_000);
        assert_eq!(series.bins().iter().map(|bin| bin.offered).sum::<u64>(), 3_602);
        assert_eq!(series.bins().iter().filter_map(|bin| bin.max_lag_ns).max(), Some(3_599));
    }

    #[test]
    fn a_percentile_takes_earlier_bins_until_ten_samples_lie_beyond() {
        let mut series = Series::new(0);
        for second in 0..20 {
            (0..100).for_each(|sample| series.record_latency(second * SECOND, 1_000 + sample, 0));
        }
        let p50 = series.latency_quantile(5, 0.5, 0).expect("enough samples");
        assert_eq!(p50.width_ns, 1_000_000_000);
        let p99 = series.latency_quantile(15, 0.99, 0).expect("enough samples");
        assert_eq!(p99.width_ns, 10_000_000_000, "10 bins of 100 samples have 10 beyond p99");
        assert!(series.latency_quantile(5, 0.99, 0).is_none(), "six bins are not enough");
    }

    proptest! {
        #[test]
        fn a_bucket_s_value_lies_within_one_percent(value in 0u64..u64::MAX / 4) {
            let shown = value_of(bucket_of(value));
            prop_assert!(shown.abs_diff(value) as f64 <= value as f64 / 128.0 + 1.0, "{} {}", value, shown);
        }

        #[test]
        fn any_split_over_shards_gives_the_same_bins(
            times in proptest::collection::vec((0i64..2_000, 0i64..1_000_000), 1..300), shards in 1usize..4
        ) {
            let mut whole = Series::new(0);
            let mut parts = vec![Series::new(0); shards];
            for (index, (second, latency)) in times.iter().enumerate() {
                whole.record_latency(second * SECOND, *latency, 300);
                parts[index % shards].record_latency(second * SECOND, *latency, 300);
            }
            let mut merged = Series::new(0);
            parts.into_iter().for_each(|part| merged.merge(part));
            prop_assert_eq!(merged.width_ns(), whole.width_ns());
            prop_assert_eq!(merged.bins(), whole.bins());
        }
    }
}
