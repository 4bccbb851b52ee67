//! Losses during a run. The message accounting of a run is completed at its end, when both sides are known. Until then
//! it is only known that a delivery is missing although a later one of its stream arrived.
//!
//! A message may be overtaken and arrive later, so a gap counts only when it has been open for two seconds. It is not
//! recorded which gap a late arrival belongs to, so each is assumed to belong to one of the oldest. The count is
//! therefore a lower bound.

use std::collections::VecDeque;
use std::time::Duration;

use crate::progress::Totals;

/// Time for which a gap is open before it counts.
pub const OPEN_FOR: Duration = Duration::from_secs(2);
/// Shortest time between two counts in [`LossWatch::counts`].
const EVERY: Duration = Duration::from_millis(100);

/// Counts lost deliveries, as far as they are known.
#[derive(Debug, Default)]
pub struct LossWatch {
    /// Time of each count, and how many deliveries were in gaps until then, the oldest first.
    counts: VecDeque<(u64, u64)>,
    /// The newest count that is old enough.
    old: u64,
}

impl LossWatch {
    /// Lower bound of the lost deliveries, warm-up included. `now_ns` is of `CLOCK_MONOTONIC`.
    pub fn sample(&mut self, totals: &Totals, now_ns: u64) -> u64 {
        let passed = |since_ns: u64| Duration::from_nanos(now_ns.saturating_sub(since_ns));
        if self.counts.back().is_none_or(|(at_ns, _)| passed(*at_ns) >= EVERY) {
            self.counts.push_back((now_ns, totals.gaps_opened));
        }
        while let Some((_, opened)) = self.counts.front().copied().filter(|(at_ns, _)| passed(*at_ns) >= OPEN_FOR) {
            self.old = opened;
            self.counts.pop_front();
        }
        at_least(self.old, totals)
    }
}

/// Lower bound of the lost deliveries among those that were in gaps until some moment, according to the present totals.
pub(crate) fn at_least(gaps_opened: u64, totals: &Totals) -> u64 {
    gaps_opened.saturating_sub(totals.gaps_filled.saturating_add(totals.excused))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn totals(gaps_opened: u64, gaps_filled: u64) -> Totals {
        Totals { gaps_opened, gaps_filled, ..Totals::default() }
    }

    /// Samples ten times a second until `until_s` and returns the count at that time.
    fn watched(until_s: u64, counted: impl Fn(u64) -> Totals) -> u64 {
        let mut watch = LossWatch::default();
        let times = (0..=until_s * 10).map(|tenth| tenth * S / 10);
        times.map(|now_ns| watch.sample(&counted(now_ns), now_ns)).last().unwrap_or(0)
    }

    #[test]
    fn a_gap_counts_once_it_has_been_open_for_two_seconds() {
        let gap = |now_ns: u64| totals(if now_ns >= 3 * S { 7 } else { 0 }, 0);
        assert_eq!([4, 5, 60].map(|until_s| watched(until_s, gap)), [0, 7, 7]);
    }

    #[test]
    fn messages_that_come_out_of_order_are_not_lost() {
        // A thousand messages a second are overtaken, and arrive a second later.
        let swapped = |now_ns: u64| totals(now_ns / 1_000_000, now_ns.saturating_sub(S) / 1_000_000);
        assert_eq!(watched(30, swapped), 0);
        // One of a hundred never arrives. It is counted late, and the count is never too high.
        let lossy = |now_ns: u64| totals(now_ns / 1_000_000, now_ns.saturating_sub(S) / 1_010_102);
        let (counted, lost) = (watched(300, lossy), 3_000);
        assert!(counted > lost / 2 && counted <= lost, "{counted}");
    }

    #[test]
    fn a_gap_with_another_possible_cause_is_no_loss() {
        let refused = |_| Totals { excused: 5, ..totals(7, 1) };
        assert_eq!(watched(10, refused), 1);
        assert_eq!(watched(10, |_| Totals { excused: 50, ..totals(7, 1) }), 0);
    }
}
