//! A distribution of times: an HDR histogram, with separate counts of the samples that it cannot represent.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Largest time in a histogram, ns: one hour. Longer times are counted as clipped and recorded as this.
pub const LARGEST_NS: u64 = 3_600_000_000_000;

/// Number of samples that must lie beyond a percentile for it to be reported (DESIGN: at least 10).
pub const SAMPLES_BEYOND: u64 = 10;

/// The reason why bytes are not a distribution of pubmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAHistogram {
    /// The bytes are not in HdrHistogram's V2 format.
    Unreadable {
        /// Error of the reader.
        found: String,
    },
    /// The histogram has another range or precision.
    OtherBounds,
}

impl std::fmt::Display for NotAHistogram {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotAHistogram::Unreadable { found } => {
                write!(formatter, "not a histogram in HdrHistogram's V2 format: {found}")
            }
            NotAHistogram::OtherBounds => write!(formatter, "a histogram of another range or precision"),
        }
    }
}

impl std::error::Error for NotAHistogram {}

/// Precision of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Three significant digits: totals.
    Total,
    /// Two significant digits: breakdowns.
    Breakdown,
}

/// A distribution of times in nanoseconds. Its serialised form for other processes includes the values that HDR's
/// format omits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Carried", into = "Carried")]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum_ns: u128,
    negative: u64,
    clipped: u64,
}

/// Serialised form of a distribution.
#[derive(Serialize, Deserialize)]
struct Carried {
    /// The histogram in HDR's V2 format.
    histogram: Vec<u8>,
    sum_ns: u128,
    negative: u64,
    clipped: u64,
}

impl From<Distribution> for Carried {
    fn from(times: Distribution) -> Carried {
        let histogram = times.to_hdr_v2();
        Carried { histogram, sum_ns: times.sum_ns, negative: times.negative, clipped: times.clipped }
    }
}

impl TryFrom<Carried> for Distribution {
    type Error = NotAHistogram;

    fn try_from(carried: Carried) -> Result<Distribution, NotAHistogram> {
        let histogram = read(&carried.histogram, &[Precision::Total, Precision::Breakdown])?;
        let Carried { sum_ns, negative, clipped, .. } = carried;
        let is_possible =
            sum_ns <= u128::from(histogram.len()) * u128::from(LARGEST_NS) && negative.max(clipped) <= histogram.len();
        match is_possible {
            true => Ok(Distribution { histogram, sum_ns, negative, clipped }),
            false => {
                Err(NotAHistogram::Unreadable { found: "a sum or counts that its samples cannot have".to_owned() })
            }
        }
    }
}

/// First bytes of HdrHistogram's V2 format without compression.
const V2_COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// Length of that format's header, bytes: cookie, length of the counts, offset, digits (4 B each), lowest and highest time,
/// ratio (8 B each).
const V2_HEADER_BYTES: usize = 40;

/// Reads a histogram of one of these precisions. The header is validated first, because HdrHistogram allocates what the
/// header says: up to 4 GB.
fn read(mut bytes: &[u8], precisions: &[Precision]) -> Result<Histogram<u64>, NotAHistogram> {
    let unreadable = |found: &str| NotAHistogram::Unreadable { found: found.to_owned() };
    let counts = bytes.len().checked_sub(V2_HEADER_BYTES).ok_or_else(|| unreadable("shorter than its header"))?;
    if bytes[..4] != V2_COOKIE {
        return Err(unreadable("other first bytes, or compressed"));
    }
    let number = |from: usize, length: usize| {
        bytes[from..from + length].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    if number(4, 4) > counts as u64 {
        return Err(unreadable("shorter than its header says"));
    }
    let bounds = (number(16, 8), number(24, 8));
    if bounds != (1, LARGEST_NS) || !precisions.iter().any(|precision| u64::from(precision.digits()) == number(12, 4)) {
        return Err(NotAHistogram::OtherBounds);
    }
    Deserializer::new().deserialize(&mut bytes).map_err(|error| unreadable(&error.to_string()))
}

impl Precision {
    /// Number of significant digits.
    fn digits(self) -> u8 {
        match self {
            Precision::Total => 3,
            Precision::Breakdown => 2,
        }
    }
}

impl Distribution {
    /// An empty distribution.
    pub fn new(precision: Precision) -> Distribution {
        let histogram = Histogram::new_with_bounds(1, LARGEST_NS, precision.digits())
            .expect("the bounds are constants that HDR accepts");
        Distribution { histogram, sum_ns: 0, negative: 0, clipped: 0 }
    }

    /// Adds a time. A negative one is recorded as 0, one above [`LARGEST_NS`] as [`LARGEST_NS`]; both are also counted
    /// separately.
    #[inline]
    pub fn record(&mut self, time_ns: i64) {
        let value = match u64::try_from(time_ns) {
            Ok(value) if value <= LARGEST_NS => value,
            Ok(_) => {
                self.clipped += 1;
                LARGEST_NS
            }
            Err(_) => {
                self.negative += 1;
                0
            }
        };
        self.sum_ns += u128::from(value);
        self.histogram.saturating_record(value);
    }

    /// Adds a time `count` times; otherwise like [`Distribution::record`].
    pub fn record_many(&mut self, time_ns: u64, count: u64) {
        let value = time_ns.min(LARGEST_NS);
        self.clipped += if time_ns > LARGEST_NS { count } else { 0 };
        self.sum_ns += u128::from(value) * u128::from(count);
        self.histogram.saturating_record_n(value, count);
    }

    /// Adds a time that is only known to be at least `LARGEST_NS`.
    pub fn record_clipped(&mut self) {
        self.record(i64::MAX);
    }

    /// Adds all samples of `other`.
    ///
    /// Both must have the same precision: merging a finer one into a coarser one would round silently.
    pub fn merge(&mut self, other: &Distribution) {
        debug_assert_eq!(self.histogram.sigfig(), other.histogram.sigfig());
        self.histogram.add(&other.histogram).expect("both have the same bounds");
        self.sum_ns += other.sum_ns;
        self.negative += other.negative;
        self.clipped += other.clipped;
    }

    /// The same samples, each changed by `change`. The times and their mean are exact only to the histogram's
    /// precision; samples that are negative or clipped stay counted as such.
    pub(crate) fn mapped(&self, change: impl Fn(u64) -> u64) -> Distribution {
        let histogram = Histogram::new_from(&self.histogram);
        let mut mapped = Distribution { histogram, sum_ns: 0, negative: self.negative, clipped: 0 };
        for value in self.histogram.iter_recorded() {
            mapped.record_many(change(value.value_iterated_to()), value.count_at_value());
        }
        mapped.clipped = mapped.clipped.max(self.clipped);
        mapped
    }

    /// The same samples, each reduced by `by_ns`, down to 0. A sample counts as the shortest time of its bucket, so
    /// that a lower bound stays one.
    pub(crate) fn lowered(&self, by_ns: u64) -> Distribution {
        self.mapped(|ns| self.histogram.lowest_equivalent(ns).saturating_sub(by_ns))
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Number of samples below zero, recorded as 0.
    pub fn negative(&self) -> u64 {
        self.negative
    }

    /// Number of samples above [`LARGEST_NS`], recorded as that.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Mean in ns, exact (not computed from buckets); `None` without samples.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Standard deviation in ns, computed from the middles of buckets.
    pub fn stddev_ns(&self) -> f64 {
        self.histogram.stdev()
    }

    /// Smallest sample in ns, to the histogram's precision.
    pub fn min_ns(&self) -> u64 {
        self.histogram.min()
    }

    /// Largest sample in ns, to the histogram's precision.
    pub fn max_ns(&self) -> u64 {
        self.histogram.max()
    }

    /// The time at or below which `fraction` of the samples lie; `None` with fewer than [`SAMPLES_BEYOND`] samples beyond it
    /// (on the nearer side: for a fraction below one half, those below it).
    pub fn quantile_ns(&self, fraction: f64) -> Option<u64> {
        let beyond = (self.count() as f64 * (1.0 - fraction).min(fraction)).round() as u64;
        (beyond >= SAMPLES_BEYOND).then(|| self.quantile_unguarded_ns(fraction))
    }

    /// The same without the limit on samples, for curves that show the number of samples behind each point.
    pub fn quantile_unguarded_ns(&self, fraction: f64) -> u64 {
        self.histogram.value_at_quantile(fraction).min(self.histogram.max())
    }

    /// The shortest time in the same bucket as `time_ns`. A quantile is a lower bound only if it is rounded down in
    /// this way.
    pub fn lowest_equivalent_ns(&self, time_ns: u64) -> u64 {
        self.histogram.lowest_equivalent(time_ns)
    }

    /// Number of samples above `time_ns`, to the histogram's precision.
    pub fn count_above(&self, time_ns: u64) -> u64 {
        let at_most = self.histogram.count_between(0, time_ns.min(LARGEST_NS));
        self.count() - at_most
    }

    /// The histogram in HdrHistogram's V2 format, which other tools can read; the unit is ns.
    pub fn to_hdr_v2(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.histogram, &mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    /// Reads what [`to_hdr_v2`](Self::to_hdr_v2) wrote, of precision [`Precision::Total`]. The format has neither the
    /// exact sum nor the counts of negative and clipped samples: the mean is then computed from the middles of buckets,
    /// and the counts are 0.
    pub fn from_hdr_v2(bytes: &[u8]) -> Result<Distribution, NotAHistogram> {
        let histogram = read(bytes, &[Precision::Total])?;
        let sum_ns = (histogram.mean() * histogram.len() as f64) as u128;
        Ok(Distribution { histogram, sum_ns, negative: 0, clipped: 0 })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_outside_the_range_are_held_at_its_ends_and_counted() {
        let mut times = Distribution::new(Precision::Total);
        times.record(-5);
        times.record(i64::MAX);
        times.record(7);
        assert_eq!((times.count(), times.negative(), times.clipped()), (3, 1, 1));
        assert_eq!(times.min_ns(), 0);
        assert!(times.max_ns() >= LARGEST_NS);
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let mut times = Distribution::new(Precision::Total);
        (0..999).for_each(|time| times.record(time));
        assert!(times.quantile_ns(0.99).is_some(), "9.99 samples round to 10");
        assert!(times.quantile_ns(0.999).is_none());
        let mut few = Distribution::new(Precision::Total);
        (0..19).for_each(|time| few.record(time));
        assert!(few.quantile_ns(0.5).is_some(), "9.5 rounds to 10");
        assert!(few.quantile_ns(0.25).is_none(), "5 samples below");
    }

    #[test]
    fn a_distribution_comes_back_with_its_percentiles() {
        let mut times = Distribution::new(Precision::Total);
        (0..5_000).for_each(|time| times.record(time * time));
        let mut back = Distribution::from_hdr_v2(&times.to_hdr_v2()).unwrap();
        for fraction in [0.0, 0.5, 0.99, 1.0] {
            assert_eq!(back.quantile_unguarded_ns(fraction), times.quantile_unguarded_ns(fraction));
        }
        assert!((back.mean_ns().unwrap() / times.mean_ns().unwrap() - 1.0).abs() < 1e-3);
        back.merge(&times);
        assert_eq!(back.count(), 10_000);
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let coarse = Distribution::new(Precision::Breakdown).to_hdr_v2();
        assert_eq!(Distribution::from_hdr_v2(&coarse).err(), Some(NotAHistogram::OtherBounds));
        for bytes in [&b""[..], b"not a histogram", &coarse[..20]] {
            assert!(matches!(Distribution::from_hdr_v2(bytes), Err(NotAHistogram::Unreadable { .. })));
        }
    }

    /// The histogram allocates the length of its counts and its range before it reads them.
    #[test]
    fn a_header_that_promises_more_than_follows_is_refused_before_memory_is_allocated() {
        let mut times = Distribution::new(Precision::Total);
        (0..100).for_each(|time| times.record(time));
        let honest = times.to_hdr_v2();
        assert!(Distribution::from_hdr_v2(&honest).is_ok());
        let changed = |from: usize, bytes: &[u8]| {
            let mut changed = honest.clone();
            changed[from..from + bytes.len()].copy_from_slice(bytes);
            Distribution::from_hdr_v2(&changed).err().unwrap()
        };
        let shorter = NotAHistogram::Unreadable { found: "shorter than its header says".to_owned() };
        assert_eq!(changed(4, &u32::MAX.to_be_bytes()), shorter);
        assert_eq!(changed(12, &5u32.to_be_bytes()), NotAHistogram::OtherBounds);
        assert_eq!(changed(24, &u64::MAX.to_be_bytes()), NotAHistogram::OtherBounds);
        // The compressed format hides both numbers.
        assert!(matches!(changed(0, &0x1c84_9314_u32.to_be_bytes()), NotAHistogram::Unreadable { .. }));
    }

    #[test]
    fn figures_that_no_samples_have_are_refused() {
        let mut times = Distribution::new(Precision::Breakdown);
        [-5, 7, i64::MAX].into_iter().for_each(|time| times.record(time));
        let read = |change: fn(&mut Carried)| {
            let mut carried = Carried::from(times.clone());
            change(&mut carried);
            Distribution::try_from(carried).is_ok()
        };
        assert!(read(|_| ()));
        assert!(!read(|carried| carried.sum_ns = u128::MAX));
        assert!(!read(|carried| carried.negative = 4));
        assert!(!read(|carried| carried.clipped = u64::MAX));
    }

    #[test]
    fn a_serialised_histogram_comes_back() {
        let mut times = Distribution::new(Precision::Breakdown);
        (1..1000).for_each(|time| times.record(time * 1000));
        let bytes = times.to_hdr_v2();
        let back: Histogram<u64> =
            hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(back.len(), 999);
    }

    proptest! {
        #[test]
        fn any_split_over_shards_gives_the_same_quantiles(
            times in proptest::collection::vec(-10i64..4_000_000_000_000, 1..400), shards in 1usize..6
        ) {
            let mut whole = Distribution::new(Precision::Total);
            let mut parts = vec![Distribution::new(Precision::Total); shards];
            for (index, time) in times.iter().enumerate() {
                whole.record(*time);
                parts[index % shards].record(*time);
            }
            let mut merged = Distribution::new(Precision::Total);
            parts.iter().for_each(|part| merged.merge(part));
            for fraction in [0.0, 0.25, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(merged.quantile_unguarded_ns(fraction), whole.quantile_unguarded_ns(fraction));
            }
            prop_assert_eq!(merged.mean_ns(), whole.mean_ns());
            prop_assert_eq!((merged.negative(), merged.clipped()), (whole.negative(), whole.clipped()));
        }
    }
}
