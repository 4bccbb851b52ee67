//! Determines whether a fault disturbed the latency, and when that returned to its level before the first fault.
//!
//! A bin of 100 ms is compared with the bins of the last ten seconds before the first fault, without the last second: by
//! its p99 if bins have enough messages for that, otherwise by its median, of wider bins if necessary. A bin is *as
//! before* if it has at least half as many messages as they have, and its value is at most 10 % above theirs, or no higher
//! than their highest, because a percentile of few messages varies by more than 10 % by itself.
//!
//! One later bin in a hundred is above the highest of a hundred by chance. So a single bin is a disturbance only while the
//! fault lasts, and only if it is far from as before. Otherwise several bins in a row are needed: fewer if they begin while
//! the fault lasts, until its end and the last reconnect of its clients. After the last disturbance three bins as before in
//! a row mean that the latency is *back*.

use pubmark_metrics::fine::{FINE_WIDTH_NS, FineSeries};
use pubmark_record::distribution::micros;
use pubmark_record::faults::FaultLatency;

/// Time before the first fault that is examined, ns.
const BEFORE_NS: i64 = 10_000_000_000;
/// Of it the end is left out, ns: messages that were due then may have been in transit when the fault began.
const IN_TRANSIT_NS: i64 = 1_000_000_000;
/// Smallest number of bins before the first fault.
const MINIMUM_BINS_BEFORE: usize = 5;
/// Number of consecutive bins that are a disturbance if they begin while the fault lasts, or a return if they are as before.
const IN_A_ROW: usize = 3;
/// Number of consecutive bins that are a disturbance if they begin later.
const IN_A_ROW_LATER: usize = 5;
/// Largest ratio of a bin's value to the value before.
const ROOM: f64 = 1.1;
/// A bin is far from as before if its distance from the value before is more than this multiple of the limit's distance.
const FAR: f64 = 3.0;
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
            let end = (first_ns - IN_TRANSIT_NS - fine.start_ns()) / width_ns;
            let joined = (first..end).map(|bin| fine.joined(bin as usize * bins, *bins, *fraction));
            let (mut counts, mut values): (Vec<u64>, Vec<Option<u64>>) = joined.unzip();
            if counts.len() < MINIMUM_BINS_BEFORE {
                return None;
            }
            counts.sort_unstable();
            values.sort_unstable();
            let count = counts[counts.len() / 2];
            let least = count.div_ceil(2);
            // Empty bins count: between the messages of devices that send together, no bin could be as before.
            if count < *needed || counts[0] < least {
                return None;
            }
            let (before_ns, highest_ns) = (values[values.len() / 2]? as f64, values[values.len() - 1]? as f64);
            let limit_ns = (before_ns * ROOM).max(highest_ns);
            Some(Before { quantile, fraction: *fraction, bins: *bins, before_ns, limit_ns, least })
        })
    }

    /// The course of the latency between two times, ns since the start of the measured window. The fault was injected at
    /// `done_ns`, and was over, with its clients reconnected, at `over_ns`. `None` if too few bins begin after it.
    pub fn since(&self, fine: &FineSeries, done_ns: i64, over_ns: i64, until_ns: i64) -> Option<FaultLatency> {
        if !fine.reaches(until_ns) {
            return None;
        }
        let width_ns = FINE_WIDTH_NS as i64 * self.bins as i64;
        let number_at = |at_ns: i64| (at_ns - fine.start_ns()) / width_ns;
        let (first, end) = (number_at(done_ns), number_at(until_ns));
        if end - div_up(done_ns - fine.start_ns(), width_ns) < IN_A_ROW as i64 {
            return None;
        }
        let bins: Vec<Bin> = (first..end)
            .map(|number| {
                let (count, value_ns) = fine.joined(number as usize * self.bins, self.bins, self.fraction);
                Bin { start_ns: fine.start_ns() + number * width_ns, count, value_ns }
            })
            .collect();
        let over = usize::try_from(number_at(over_ns) - first).unwrap_or(0);
        let disturbed = self.last_disturbed(&bins, over);
        let back = disturbed.and_then(|last| self.first_back(&bins, last.max(over)));
        let worst_ns = bins[..back.unwrap_or(bins.len())].iter().filter_map(|bin| bin.value_ns).max();
        Some(FaultLatency {
            quantile: self.quantile.to_owned(),
            bin_s: width_ns as f64 / 1e9,
            before_us: self.before_ns / 1e3,
            limit_us: self.limit_ns / 1e3,
            worst_us: worst_ns.map(micros),
            disturbed: disturbed.is_some(),
            recovered_after_s: match disturbed {
                None => Some(0.0),
                // The fault may end within the bin.
                Some(_) => back.map(|back| (bins[back].start_ns.max(over_ns) - done_ns).max(0) as f64 / 1e9),
            },
        })
    }

    /// The last bin of a disturbance, if there was any; the fault lasted until bin `over`.
    fn last_disturbed(&self, bins: &[Bin], over: usize) -> Option<usize> {
        let mut last = None;
        let mut row = 0;
        for (number, bin) in bins.iter().enumerate() {
            row = if self.is_as_before(bin) { 0 } else { row + 1 };
            let begins_during_the_fault = number + 1 - row <= over;
            let needed = if begins_during_the_fault { IN_A_ROW } else { IN_A_ROW_LATER };
            if row >= needed || (number <= over && self.is_far_from_before(bin)) {
                last = Some(number);
            }
        }
        last
    }

    /// The first of several consecutive bins as before, from bin `from` on.
    fn first_back(&self, bins: &[Bin], from: usize) -> Option<usize> {
        let row = |number: usize| bins.get(number..number + IN_A_ROW);
        (from..bins.len()).find(|number| row(*number).is_some_and(|row| row.iter().all(|bin| self.is_as_before(bin))))
    }

    fn is_as_before(&self, bin: &Bin) -> bool {
        bin.count >= self.least && bin.value_ns.is_some_and(|ns| ns as f64 <= self.limit_ns)
    }

    /// Is a bin so slow, or so empty, that it is a disturbance by itself while a fault lasts?
    fn is_far_from_before(&self, bin: &Bin) -> bool {
        let far_ns = self.before_ns + FAR * (self.limit_ns - self.before_ns);
        bin.count < self.least.div_ceil(2) || bin.value_ns.is_some_and(|ns| ns as f64 > far_ns)
    }
}

/// A bin after a fault.
struct Bin {
    /// Start, ns since the start of the measured window.
    start_ns: i64,
    /// Number of messages.
    count: u64,
    /// The percentile of their latencies; `None` without messages.
    value_ns: Option<u64>,
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
        series_from(-5_000, every_ms, latency_us)
    }

    fn series_from(start_ms: i64, every_ms: i64, latency_us: impl Fn(i64) -> Option<i64>) -> FineSeries {
        let mut fine = FineSeries::new(start_ms * MS);
        for at_ms in (start_ms..60_000).step_by(every_ms as usize) {
            if let Some(latency_us) = latency_us(at_ms) {
                fine.enter(at_ms * MS, latency_us * 1_000);
            }
        }
        fine
    }

    /// After a fault at 30 s that is over at once.
    fn after(fine: &FineSeries) -> FaultLatency {
        after_until(fine, 30_000)
    }

    fn after_until(fine: &FineSeries, over_ms: i64) -> FaultLatency {
        let before = Before::the_first_fault(fine, 30_000 * MS).unwrap();
        before.since(fine, 30_000 * MS, over_ms * MS, 60_000 * MS).unwrap()
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

    #[test]
    fn devices_that_send_together_need_bins_as_wide_as_their_interval() {
        let found = after(&series(1, |at_ms| (at_ms.rem_euclid(1_000) < 100).then_some(1_000)));
        assert_eq!((found.disturbed, found.recovered_after_s, found.bin_s), (false, Some(0.0), 1.0));
        // No width has messages in each bin.
        let rare = series(1, |at_ms| (at_ms.rem_euclid(3_000) < 100).then_some(1_000));
        assert!(Before::the_first_fault(&rare, 30_000 * MS).is_none());
    }

    #[test]
    fn a_single_bin_is_a_disturbance_only_if_it_is_far_from_as_before_while_the_fault_lasts() {
        let bad = |at_ms: i64, length_ms: i64, latency_us: i64| {
            let bad = at_ms..at_ms + length_ms;
            series(1, move |at_ms| Some(if bad.contains(&at_ms) { latency_us } else { 1_000 }))
        };
        let found = |fine: &FineSeries| {
            let found = after_until(fine, 35_000);
            (found.disturbed, found.recovered_after_s)
        };
        let none = (false, Some(0.0));
        assert_eq!(
            [found(&bad(45_000, 100, 1_200)), found(&bad(45_000, 400, 9_000))],
            [none; 2],
            "long after the fault"
        );
        assert_eq!(found(&bad(45_000, 500, 1_200)), (true, Some(15.5)));
        assert_eq!([found(&bad(32_000, 100, 1_200)), found(&bad(32_000, 200, 1_200))], [none; 2], "while it lasts");
        assert_eq!([found(&bad(32_000, 100, 1_500)), found(&bad(32_000, 300, 1_200))], [(true, Some(5.0)); 2]);
        let gap = series(1, |at_ms| (!(32_000..32_080).contains(&at_ms)).then_some(1_000));
        assert_eq!(found(&gap), (true, Some(5.0)), "a fifth of the messages of a bin");
    }

    #[test]
    fn the_latency_is_not_back_before_the_fault_is_over_and_its_last_disturbance_has_ended() {
        let fine = series(1, |at_ms| match at_ms {
            30_000..30_100 => Some(5_000),
            35_200..37_500 => Some(7_000),
            // One bin, long after the return.
            50_000..50_100 => Some(9_000),
            _ => Some(1_000),
        });
        for over_ms in [35_000, 30_000] {
            let found = after_until(&fine, over_ms);
            assert_eq!((found.disturbed, found.recovered_after_s), (true, Some(7.5)), "over at {over_ms} ms");
            // The worst bin is not after the return either.
            assert!((6_900.0..7_100.0).contains(&found.worst_us.unwrap()), "{found:?}");
        }
        let fine = series(1, |at_ms| Some(if (30_000..30_100).contains(&at_ms) { 5_000 } else { 1_000 }));
        assert_eq!(
            [34_000, 34_050].map(|over_ms| after_until(&fine, over_ms).recovered_after_s),
            [Some(4.0), Some(4.05)]
        );
        assert_eq!(after_until(&fine, 60_000).recovered_after_s, None, "it did not end");
    }

    #[test]
    fn messages_in_transit_when_the_fault_began_are_not_of_the_level_before() {
        let late = |at_ms: i64| (29_900..31_000).contains(&at_ms);
        let fine = series(1, |at_ms| Some(if late(at_ms) { (31_000 - at_ms) * 1_000 } else { 1_000 }));
        assert!(after_until(&fine, 31_000).disturbed);
    }

    #[test]
    fn without_three_bins_after_the_fault_there_is_no_result() {
        let fine = series_from(-2_500, 40, |_| Some(1_000));
        let before = Before::the_first_fault(&fine, 30_000 * MS).unwrap();
        assert_eq!(before.bins, 10);
        let since = |done_ms: i64| before.since(&fine, done_ms * MS, done_ms * MS, 60_000 * MS);
        assert_eq!([since(59_600), since(57_000)], [None, None]);
        // Bins begin at 56.5 s, 57.5 s and 58.5 s.
        assert_eq!(since(56_500).and_then(|found| found.recovered_after_s), Some(0.0));
    }
}
