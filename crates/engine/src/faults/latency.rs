//! Determines when the latency has returned to its level before the first fault.
//!
//! A bin of 100 ms is compared with the bins of the last ten seconds before the first fault: by its p99 if bins have
//! enough messages for that, otherwise by its median, of wider bins if necessary. A bin is as before if it has at least
//! half as many messages as they have, and its value is at most 10 % above theirs, or no higher than their highest,
//! because a percentile of few messages varies by more than 10 % by itself. Three such bins in a row mean that the
//! latency is *back*.

use pubmark_metrics::fine::{FINE_WIDTH_NS, FineSeries};
use pubmark_record::distribution::micros;
use pubmark_record::faults::FaultLatency;

/// Time before the first fault that is examined, ns.
const BEFORE_NS: i64 = 10_000_000_000;
/// Smallest number of bins before the first fault.
const MINIMUM_BINS_BEFORE: usize = 5;
/// Number of consecutive bins that must be as before.
const IN_A_ROW: usize = 3;
/// Largest ratio of a bin's value to the value before.
const ROOM: f64 = 1.1;
/// Percentiles and widths that are tried, in this order: name, fraction, messages needed (ten beyond the percentile),
/// number of bins of 100 ms.
const TRIED: [(&str, f64, u64, usize); 5] =
    [("p99", 0.99, 1_000, 1), ("p50", 0.5, 20, 1), ("p50", 0.5, 20, 2), ("p50", 0.5, 20, 5), ("p50", 0.5, 20, 10)];

/// The latency before the first fault.
#[derive(Clone, Debug)]
pub struct Before {
    quantile: &'static str,
    fraction: f64,
    bins: usize,
    before_ns: f64,
    limit_ns: f64,
    /// Number of messages that a bin must have.
    least: u64,
}

impl Before {
    /// Examines the latency before `first_ns`; `None` if there were too few messages.
    pub fn the_first_fault(fine: &FineSeries, first_ns: i64) -> Option<Before> {
        TRIED.iter().find_map(|(quantile, fraction, needed, bins)| {
            let width_ns = FINE_WIDTH_NS as i64 * *bins as i64;
            let from_ns = (first_ns - BEFORE_NS).max(fine.start_ns());
            let first = div_up(from_ns - fine.start_ns(), width_ns);
            let end = (first_ns - fine.start_ns()) / width_ns;
            let joined = (first..end).map(|bin| fine.joined(bin as usize * bins, *bins, *fraction));
            let (mut counts, mut values): (Vec<u64>, Vec<u64>) =
                joined.filter_map(|(count, value)| Some((count, value?))).unzip();
            if values.len() < MINIMUM_BINS_BEFORE {
                return None;
            }
            counts.sort_unstable();
            values.sort_unstable();
            let count = counts[counts.len() / 2];
            let (before_ns, highest_ns) = (values[values.len() / 2] as f64, values[values.len() - 1] as f64);
            (count >= *needed).then(|| Before {
                quantile,
                fraction: *fraction,
                bins: *bins,
                before_ns,
                limit_ns: (before_ns * ROOM).max(highest_ns),
                least: count.div_ceil(2),
            })
        })
    }

    /// The course of the latency between two times, ns since the start of the measured window. The fault was injected
    /// at `done_ns`.
    pub fn since(&self, fine: &FineSeries, done_ns: i64, until_ns: i64) -> Option<FaultLatency> {
        if !fine.reaches(until_ns) {
            return None;
        }
        let width_ns = FINE_WIDTH_NS as i64 * self.bins as i64;
        let first = (done_ns - fine.start_ns()) / width_ns;
        let end = (until_ns - fine.start_ns()) / width_ns;
        let bins: Vec<(i64, u64, Option<u64>)> = (first..end)
            .map(|bin| {
                let (count, value) = fine.joined(bin as usize * self.bins, self.bins, self.fraction);
                (fine.start_ns() + bin * width_ns, count, value)
            })
            .collect();
        let is_as_before = |(_, count, value): &(i64, u64, Option<u64>)| {
            *count >= self.least && value.is_some_and(|ns| ns as f64 <= self.limit_ns)
        };
        let disturbed_from = bins.iter().position(|bin| !is_as_before(bin));
        let back = match disturbed_from {
            None => Some(0.0),
            Some(from) => {
                let row = bins[from..].windows(IN_A_ROW).find(|row| row.iter().all(is_as_before));
                row.map(|row| (row[0].0 - done_ns).max(0) as f64 / 1e9)
            }
        };
        Some(FaultLatency {
            quantile: self.quantile.to_owned(),
            bin_s: width_ns as f64 / 1e9,
            before_us: self.before_ns / 1e3,
            limit_us: self.limit_ns / 1e3,
            worst_us: bins.iter().filter_map(|(_, _, value)| *value).max().map(micros),
            disturbed: disturbed_from.is_some(),
            recovered_after_s: back.filter(|_| !bins.is_empty()),
        })
    }
}

fn div_up(value: i64, by: i64) -> i64 {
    (value + by - 1) / by
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// One message every `every_ms` for a minute from −5 s on, with its latency in µs; `None` for no message.
    fn series(every_ms: i64, latency_us: impl Fn(i64) -> Option<i64>) -> FineSeries {
        let mut fine = FineSeries::new(-5_000 * MS);
        for at_ms in (-5_000..60_000).step_by(every_ms as usize) {
            if let Some(latency_us) = latency_us(at_ms) {
                fine.enter(at_ms * MS, latency_us * 1_000);
            }
        }
        fine
    }

    fn after(fine: &FineSeries) -> FaultLatency {
        let before = Before::the_first_fault(fine, 30_000 * MS).unwrap();
        before.since(fine, 30_000 * MS, 60_000 * MS).unwrap()
    }

    #[test]
    fn a_gap_and_a_slow_recovery_are_measured_to_their_ends() {
        let fine = series(1, |at_ms| match at_ms {
            30_000..35_000 => None,
            35_000..37_000 => Some(1_000 + (37_000 - at_ms) * 10),
            _ => Some(1_000 + at_ms.rem_euclid(7)),
        });
        let found = after(&fine);
        assert_eq!((found.quantile.as_str(), found.bin_s, found.disturbed), ("p50", 0.1, true));
        // A latency of 10 % above 1,003 µs is reached 10 ms before the end of the slow return; the median of that bin
        // is above.
        assert_eq!(found.recovered_after_s, Some(7.0));
        assert!(found.worst_us.unwrap() > 19_000.0 && (1_000.0..1_010.0).contains(&found.before_us), "{found:?}");
    }

    #[test]
    fn an_undisturbed_latency_and_one_that_never_recovers_are_reported() {
        let found = after(&series(1, |_| Some(1_000)));
        assert_eq!((found.disturbed, found.recovered_after_s), (false, Some(0.0)));
        let found = after(&series(1, |at_ms| Some(if at_ms < 30_000 { 1_000 } else { 1_200 })));
        assert_eq!((found.disturbed, found.recovered_after_s), (true, None));
        // If half of the messages are missing, the latency is not as before.
        let found = after(&series(1, |at_ms| (at_ms < 30_000 || at_ms % 3 == 0).then_some(1_000)));
        assert_eq!((found.disturbed, found.recovered_after_s), (true, None));
    }

    #[test]
    fn few_messages_widen_the_bins_and_too_few_give_no_result() {
        let found = after(&series(20, |_| Some(1_000)));
        assert_eq!((found.quantile.as_str(), found.bin_s), ("p50", 0.5));
        assert!(Before::the_first_fault(&series(200, |_| Some(1_000)), 30_000 * MS).is_none());
        assert!(Before::the_first_fault(&series(1, |_| Some(1_000)), -4_800 * MS).is_none());
    }
}
