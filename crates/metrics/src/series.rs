//! Time series: counts and latencies in bins of one second. The bins double in width when their number reaches a limit.
//!
//! Bins are counted from the start of the measured window in both directions, and after it from its end. So each bin lies in
//! the warm-up, in the window or in the drain, whatever their lengths are. The first bin of the warm-up and the last one of
//! the window are shorter if the width does not divide their phase. A run that is stopped ends its window, and so that bin,
//! earlier ([`Series::close`]).

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::bounds::lower_ns;
use crate::sparse_histogram::SparseHistogram;

/// Largest number of bins; when one more is needed, neighbours are merged and the width doubles.
pub const BIN_LIMIT: usize = 512;

/// Width of a bin at the start, ns.
pub const FIRST_WIDTH_NS: u64 = 1_000_000_000;

/// Reads a width, which must be one that [`Series::widen`] produces.
fn width<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let width_ns = u64::deserialize(deserializer)?;
    let fits = i64::try_from(width_ns).is_ok()
        && width_ns % FIRST_WIDTH_NS == 0
        && (width_ns / FIRST_WIDTH_NS).is_power_of_two();
    fits.then_some(width_ns).ok_or_else(|| serde::de::Error::custom("a bin of another width"))
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

/// Bins from a start time on. None of them spans the start of the measured window, which is time 0, or its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    start_ns: i64,
    /// Length of the measured window, as planned, ns.
    window_ns: u64,
    /// Length of a window that is closed, ns. Not transmitted: who merges series knows it.
    #[serde(skip)]
    closed_ns: Option<u64>,
    #[serde(deserialize_with = "width")]
    width_ns: u64,
    #[serde(deserialize_with = "bounded::at_most::<{ BIN_LIMIT }, _, _>")]
    bins: Vec<Bin>,
    #[serde(skip)]
    /// The bin used last: its start, its end and its index.
    latest: Option<(i64, i64, usize)>,
    /// Deliveries per second of the window, never widened: 4 B per second.
    deliveries: Vec<u32>,
}

impl Series {
    /// Bins from `start_ns` on (relative to the measured window's start; negative in the warm-up), for a window of
    /// `window_ns`.
    pub fn new(start_ns: i64, window_ns: u64) -> Series {
        Series {
            start_ns,
            window_ns,
            closed_ns: None,
            width_ns: FIRST_WIDTH_NS,
            bins: Vec::new(),
            latest: None,
            deliveries: Vec::new(),
        }
    }

    /// Does the series have this start and this planned window, and no second outside of the window? Only then can it be
    /// merged with another one that has them.
    pub fn matches(&self, start_ns: i64, window_ns: u64) -> bool {
        let seconds = window_ns.div_ceil(FIRST_WIDTH_NS);
        (self.start_ns, self.window_ns) == (start_ns, window_ns) && self.deliveries.len() as u64 <= seconds
    }

    /// Ends the measured window after `length_ns`, if that is before its planned end: what is recorded from then on belongs to
    /// the drain. Bins keep their index. The bin in which the window ends has all that was recorded until this call, which
    /// follows the end by the time that the command to stop takes.
    pub fn close(&mut self, length_ns: u64) {
        self.closed_ns = Some(length_ns.min(self.window_ns));
        self.latest = None;
    }

    /// End of the measured window, ns.
    fn window_end_ns(&self) -> i64 {
        i64::try_from(self.closed_ns.unwrap_or(self.window_ns)).unwrap_or(i64::MAX)
    }

    /// Number of bins in the measured window.
    fn window_bins(&self) -> i64 {
        self.window_end_ns() / self.width() + i64::from(self.window_end_ns() % self.width() > 0)
    }

    fn width(&self) -> i64 {
        self.width_ns as i64
    }

    /// Number of the bin of a time: 0 for the first one of the measured window, negative in the warm-up.
    fn number_of(&self, at_ns: i64) -> i64 {
        if at_ns < self.window_end_ns() {
            at_ns.div_euclid(self.width())
        } else {
            self.window_bins() + (at_ns - self.window_end_ns()) / self.width()
        }
    }

    /// Start of the bin with this number, ns; that of the first bin is the start of the series.
    fn start_of(&self, number: i64) -> i64 {
        let after_window = number - self.window_bins();
        let start_ns = if after_window < 0 {
            number.saturating_mul(self.width())
        } else {
            self.window_end_ns().saturating_add(after_window.saturating_mul(self.width()))
        };
        start_ns.max(self.start_ns)
    }

    /// Index of the bin of a time, which is not before the start.
    fn index_of(&self, at_ns: i64) -> usize {
        (self.number_of(at_ns) - self.number_of(self.start_ns)) as usize
    }

    /// The bin of a time; times before the start belong to the first bin.
    pub fn bin(&mut self, at_ns: i64) -> &mut Bin {
        let at_ns = at_ns.max(self.start_ns);
        // Most times are in the same bin as the time before; a division costs more than this comparison.
        if let Some((start_ns, end_ns, index)) = self.latest
            && (start_ns..end_ns).contains(&at_ns)
        {
            return &mut self.bins[index];
        }
        while self.index_of(at_ns) >= BIN_LIMIT {
            self.widen();
        }
        let index = self.index_of(at_ns);
        if index >= self.bins.len() {
            self.bins.resize_with(index + 1, Bin::default);
        }
        self.latest = Some((self.bin_start_ns(index), self.bin_start_ns(index + 1), index));
        &mut self.bins[index]
    }

    /// Adds the delivery of a first copy.
    pub fn record_delivery(&mut self, at_ns: i64, payload_bytes: u64) {
        let bin = self.bin(at_ns);
        bin.delivered += 1;
        bin.delivered_bytes += payload_bytes;
        if (0..self.window_end_ns()).contains(&at_ns) {
            let second = (at_ns.unsigned_abs() / FIRST_WIDTH_NS) as usize;
            if second >= self.deliveries.len() {
                self.deliveries.resize(second + 1, 0);
            }
            self.deliveries[second] += 1;
        }
    }

    /// Deliveries in each of the first `seconds` seconds of the window.
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
        let starts_ns: Vec<i64> = (0..self.bins.len()).map(|index| self.bin_start_ns(index)).collect();
        let narrow = std::mem::take(&mut self.bins);
        self.width_ns *= 2;
        self.latest = None;
        for (start_ns, bin) in starts_ns.into_iter().zip(narrow) {
            self.bin(start_ns).merge(&bin);
        }
    }

    /// Adds all bins of `other`; both have the same start and the same window, closed at the same time.
    pub fn merge(&mut self, mut other: Series) {
        debug_assert!(other.matches(self.start_ns, self.window_ns), "another window");
        other.closed_ns = self.closed_ns;
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
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Width of the bins, ns; the first one of the warm-up and the last one of the window may be shorter.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Start of a bin relative to the measured window's start, ns.
    pub fn bin_start_ns(&self, index: usize) -> i64 {
        self.start_of(self.number_of(self.start_ns) + index as i64)
    }

    /// Width of a bin, ns.
    pub fn bin_width_ns(&self, index: usize) -> u64 {
        self.bin_start_ns(index + 1).abs_diff(self.bin_start_ns(index))
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
        (all.count() >= least).then(|| all.quantile_ns(0.5))
    }

    /// A percentile of the latencies due in bin `index`. If the bin has fewer than 10 samples beyond it, earlier bins
    /// are added until there are enough, but none from before `not_before_ns`. `None` if that is not sufficient or the
    /// bin is empty.
    pub fn latency_quantile(&self, index: usize, fraction: f64, not_before_ns: i64) -> Option<Widened> {
        let (mut upper, mut lower) = (self.bins[index].latency.clone(), self.bins[index].lower.clone());
        if upper.count() == 0 {
            return None;
        }
        let mut first = index;
        let enough = |window: &SparseHistogram| (window.count() as f64 * (1.0 - fraction)).round() >= 10.0;
        while !enough(&upper) {
            first = first.checked_sub(1).filter(|first| self.bin_start_ns(*first) >= not_before_ns)?;
            upper.merge(&self.bins[first].latency);
            lower.merge(&self.bins[first].lower);
        }
        let width_ns = self.bin_start_ns(index + 1).abs_diff(self.bin_start_ns(first));
        Some(Widened { value_ns: upper.quantile_ns(fraction), lower_ns: lower.quantile_ns(fraction), width_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;
    const HOUR: u64 = 3_600_000_000_000;

    #[test]
    fn the_median_of_the_warm_up_has_no_later_latency_in_it() {
        let mut series = Series::new(-2 * SECOND, HOUR);
        (0..20).for_each(|_| series.record_latency(-SECOND, 3_000_000, 1_000_000));
        (0..80).for_each(|_| series.record_latency(SECOND, 9_000_000, 0));
        let median_ns = series.median_before(0, 20).expect("enough samples");
        assert!((1_980_000..2_020_000).contains(&median_ns), "{median_ns} ns: the lower bound");
        assert_eq!(series.median_before(0, 21), None);
    }

    #[test]
    fn lower_bounds_are_lowered_and_the_measured_times_stay() {
        let mut series = Series::new(0, HOUR);
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
        let mut series = Series::new(-2 * SECOND, HOUR);
        (-2..3_600).for_each(|second| series.record_offer(second * SECOND, Some(second.unsigned_abs())));
        assert!(series.bins().len() <= BIN_LIMIT);
        assert_eq!(series.width_ns(), 8_000_000_000);
        assert_eq!(series.bins().iter().map(|bin| bin.offered).sum::<u64>(), 3_602);
        assert_eq!(series.bins().iter().filter_map(|bin| bin.max_lag_ns).max(), Some(3_599));
    }

    /// 600 s are no whole number of 2 s bins from −5 s on, so bins counted from there would span both edges.
    #[test]
    fn a_window_of_ten_minutes_begins_and_ends_with_a_bin() {
        let mut series = Series::new(-5 * SECOND, 600 * FIRST_WIDTH_NS);
        (-5..602).for_each(|second| series.record_offer(second * SECOND, None));
        assert_eq!(series.width_ns(), 2_000_000_000);
        let bins: Vec<(i64, u64, u64)> = (0..series.bins().len())
            .map(|index| {
                (series.bin_start_ns(index) / SECOND, series.bin_width_ns(index), series.bins()[index].offered)
            })
            .collect();
        assert_eq!(
            bins[..4],
            [
                (-5, FIRST_WIDTH_NS, 1),
                (-4, 2 * FIRST_WIDTH_NS, 2),
                (-2, 2 * FIRST_WIDTH_NS, 2),
                (0, 2 * FIRST_WIDTH_NS, 2)
            ]
        );
        assert_eq!(bins[bins.len() - 2..], [(598, 2 * FIRST_WIDTH_NS, 2), (600, 2 * FIRST_WIDTH_NS, 2)]);
    }

    #[test]
    fn a_series_from_another_process_has_no_more_bins_than_one_from_here() {
        let read = |bins: usize| {
            let series = Series { bins: vec![Bin::default(); bins], ..Series::new(0, HOUR) };
            let bytes = postcard::to_allocvec(&series).expect("it can be encoded");
            postcard::from_bytes::<Series>(&bytes).is_ok_and(|read| read.bins().len() == bins)
        };
        assert!(read(BIN_LIMIT) && !read(BIN_LIMIT + 1));
    }

    #[test]
    fn only_a_series_with_the_same_start_and_window_matches() {
        let series = Series::new(-SECOND, HOUR);
        assert!(series.matches(-SECOND, HOUR));
        assert!(!series.matches(0, HOUR) && !series.matches(-SECOND, HOUR + 1));
    }

    /// A series as it arrives from another process.
    fn transmitted(series: &Series) -> Series {
        postcard::from_bytes(&postcard::to_allocvec(series).expect("it can be encoded")).expect("it can be decoded")
    }

    #[test]
    fn a_window_that_was_stopped_ends_with_a_bin() {
        let closed_ns = 3_400_000_000;
        let mut merged = Series::new(-SECOND, HOUR);
        merged.close(closed_ns);
        for _ in 0..2 {
            let mut part = Series::new(-SECOND, HOUR);
            [-1_000, 0, 3_300].into_iter().for_each(|at_ms| part.record_delivery(at_ms * 1_000_000, 1));
            part.close(closed_ns);
            [3_400, 3_999, 4_000].into_iter().for_each(|at_ms| part.record_delivery(at_ms * 1_000_000, 1));
            merged.merge(transmitted(&part));
        }
        let bin =
            |index: usize| (merged.bin_start_ns(index), merged.bin_width_ns(index), merged.bins()[index].delivered);
        let bins: Vec<(i64, u64, u64)> = (2..merged.bins().len()).map(bin).collect();
        let last = (3 * SECOND, 400_000_000, 2);
        assert_eq!(
            bins,
            [(SECOND, FIRST_WIDTH_NS, 0), (2 * SECOND, FIRST_WIDTH_NS, 0), last, (3_400_000_000, FIRST_WIDTH_NS, 6)]
        );
    }

    #[test]
    fn deliveries_are_counted_in_the_seconds_of_the_window_alone() {
        let window_ns = 2 * FIRST_WIDTH_NS + 1;
        let mut series = Series::new(-SECOND, window_ns);
        [-1, 0, 1, 2, 3, 7_200].into_iter().for_each(|second| series.record_delivery(second * SECOND, 1));
        assert_eq!(series.deliveries, [1, 1, 1]);
        assert!(series.matches(-SECOND, window_ns));
        series.deliveries.push(0);
        assert!(!transmitted(&series).matches(-SECOND, window_ns), "a second outside of the window");
    }

    #[test]
    fn a_percentile_takes_earlier_bins_until_ten_samples_lie_beyond() {
        let mut series = Series::new(0, HOUR);
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
        fn each_bin_lies_in_one_phase_and_the_window_has_its_counts(
            warmup_ns in 0i64..700_000_000_000,
            window_ns in 1u64..3_000_000_000_000,
            times_ns in proptest::collection::vec(-700_000_000_000i64..4_000_000_000_000, 1..200),
        ) {
            let mut series = Series::new(-warmup_ns, window_ns);
            times_ns.iter().for_each(|at_ns| series.record_offer(*at_ns, None));
            let end_ns = window_ns as i64;
            let (mut in_window, mut next_ns) = (0, -warmup_ns);
            prop_assert!(series.bins().len() <= BIN_LIMIT);
            for (index, bin) in series.bins().iter().enumerate() {
                let from_ns = series.bin_start_ns(index);
                let to_ns = from_ns + series.bin_width_ns(index) as i64;
                prop_assert_eq!(from_ns, next_ns, "no gap");
                prop_assert!(to_ns > from_ns && series.bin_width_ns(index) <= series.width_ns());
                for edge_ns in [0, end_ns] {
                    prop_assert!(to_ns <= edge_ns || edge_ns <= from_ns, "[{}, {}) spans {}", from_ns, to_ns, edge_ns);
                }
                // Times before the series are in its first bin.
                let is_in = |at_ns: &&i64| (from_ns..to_ns).contains(&(**at_ns).max(-warmup_ns));
                prop_assert_eq!(bin.offered, times_ns.iter().filter(is_in).count() as u64);
                in_window += if (0..end_ns).contains(&from_ns) { bin.offered } else { 0 };
                next_ns = to_ns;
            }
            let due = times_ns.iter().filter(|at_ns| (0..end_ns).contains(&(**at_ns).max(-warmup_ns)));
            prop_assert_eq!(in_window, due.count() as u64);
        }

        #[test]
        fn any_split_over_shards_gives_the_same_bins(
            warmup_s in 0i64..900, window_s in 1u64..3_000, closed_ns in 0u64..3_000_000_000_000,
            times in proptest::collection::vec((0i64..2_000, 0i64..1_000_000), 1..300), shards in 1usize..4
        ) {
            let new = || Series::new(-warmup_s * SECOND, window_s * FIRST_WIDTH_NS);
            let mut whole = new();
            whole.close(closed_ns);
            let mut parts = vec![whole.clone(); shards];
            for (index, (second, latency)) in times.iter().enumerate() {
                whole.record_latency(second * SECOND, *latency, 300);
                parts[index % shards].record_latency(second * SECOND, *latency, 300);
            }
            let mut merged = new();
            merged.close(closed_ns);
            parts.iter().for_each(|part| merged.merge(transmitted(part)));
            prop_assert_eq!(merged.width_ns(), whole.width_ns());
            prop_assert_eq!(merged.bins(), whole.bins());
        }
    }
}
