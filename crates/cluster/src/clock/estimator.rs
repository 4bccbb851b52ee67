//! A node's estimate of the run's clock. It is set from readings, never stepped during a run, and judged afterwards.

use std::collections::VecDeque;

use pubmark_protocol::run_clock::Mapping;

use super::estimate::{self, Fit, Reading};

/// Most readings that an estimate is based on.
const WINDOW: usize = 256;
/// Largest age of a reading in an estimate, ns of the node's clock: over a longer time, drift is not a straight line.
const WINDOW_NS: u64 = 128_000_000_000;
/// A mapping reaches the estimate within this many times the interval between the last two settings, so that a late
/// setting does not overshoot.
const SLEW_STEPS: f64 = 4.0;
/// Limits of that time, ns. Until then the mapping is wrong by that time multiplied by the error of the drift. The
/// error is large after few readings: a node that had just joined was wrong by 30 ppm for 2 s, twice what it could
/// estimate.
const SLEW_NS: std::ops::RangeInclusive<f64> = 0.25e9..=2e9;
/// Largest rate, in addition to the drift, at which the run's clock is slewed; adjtime(3) uses the same.
const STEEPEST_SLEW: f64 = 500e-6;
/// Most readings and mappings that are stored for the judgement: two weeks at two per second would be 2.4 million.
const KEPT: usize = 1 << 18;
/// Most instants at which a run's clock is judged.
const JUDGED: usize = 2_048;

/// Estimates the run's clock on a node.
#[derive(Debug, Default)]
pub struct RunClockEstimator {
    window: VecDeque<Reading>,
    mapping: Option<Mapping>,
    readings: Vec<Reading>,
    applied: Vec<Mapping>,
    restarts: u64,
    /// See [`RunClockEstimator::bound_ns`].
    bound_ns: u64,
}

/// How well a node followed the run's clock during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The run's time − the node's time at the start of the run, ns.
    pub offset_ns: i64,
    /// By how much a second of the node's clock is longer than a second of the run's clock, parts per billion.
    pub drift_ppb: f64,
    /// Largest possible error of the applied mapping, ns; infinite if no line fits the readings.
    pub bound_ns: f64,
    /// Shortest round trip, ns.
    pub minimum_round_trip_ns: u64,
    /// Number of readings that these figures are based on.
    pub samples: u64,
    /// How often the estimate was restarted, because no line fitted.
    pub restarts: u64,
}

impl RunClockEstimator {
    /// Adds a reading; one whose times are not in order is ignored.
    pub fn read(&mut self, reading: Reading) {
        if !reading.is_possible() {
            return;
        }
        thin(&mut self.readings);
        self.readings.push(reading);
        self.window.push_back(reading);
        let old = |first: &Reading| reading.destination_ns.saturating_sub(first.origin_ns) > WINDOW_NS;
        while self.window.len() > WINDOW || self.window.front().is_some_and(old) {
            self.window.pop_front();
        }
    }

    /// Returns the mapping that applies from an instant of the node's clock on; `None` before the first reading. If no
    /// run is active, it jumps to the estimate. During a run it is slewed to the estimate, and never goes backwards.
    pub fn meet(&mut self, now_ns: u64, is_running: bool) -> Option<Mapping> {
        let fit = self.fit(now_ns)?;
        let estimated_ns = now_ns.wrapping_add_signed(fit.offset_ns);
        let mapping = match self.mapping {
            Some(before) if is_running => {
                let run_ns = before.run_ns(now_ns);
                let behind_ns = estimated_ns.wrapping_sub(run_ns) as i64 as f64;
                let since_ns = now_ns.saturating_sub(before.local_ns) as f64;
                let slew_ns = (SLEW_STEPS * since_ns).clamp(*SLEW_NS.start(), *SLEW_NS.end());
                let slew = (behind_ns / slew_ns).clamp(-STEEPEST_SLEW, STEEPEST_SLEW);
                Mapping { local_ns: now_ns, run_ns, rate_ppb: ((fit.slope + slew) * 1e9).round() as i64 }
            }
            _ => Mapping { local_ns: now_ns, run_ns: estimated_ns, rate_ppb: (fit.slope * 1e9).round() as i64 },
        };
        let off_ns = estimated_ns.wrapping_sub(mapping.run_ns) as i64;
        self.bound_ns = off_ns.unsigned_abs().saturating_add(fit.half_width_ns.ceil() as u64);
        self.mapping = Some(mapping);
        thin(&mut self.applied);
        self.applied.push(mapping);
        Some(mapping)
    }

    /// Largest possible error of the mapping when it was set last, ns; 0 before.
    pub fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// The newest estimate. If no line fits all readings, the estimate restarts with the newest ones.
    fn fit(&mut self, now_ns: u64) -> Option<Fit> {
        loop {
            let found = estimate::fit(self.window.make_contiguous(), now_ns);
            if found.is_some() || self.window.is_empty() {
                return found;
            }
            self.restarts += 1;
            self.window.drain(..self.window.len().div_ceil(2));
        }
    }

    /// Starts a run: earlier readings and mappings are discarded, except those that the estimate is based on.
    pub fn begin(&mut self) {
        self.readings = self.window.iter().copied().collect();
        self.applied.clear();
        self.applied.extend(self.mapping);
        self.restarts = 0;
    }

    /// Do all readings permit that the run's time is the node's time plus this constant?
    pub fn is_constant(&self, run_less_local_ns: i64) -> bool {
        self.window.iter().all(|reading| {
            let run_ns = |local_ns: u64| local_ns.wrapping_add_signed(run_less_local_ns);
            run_ns(reading.origin_ns) <= reading.receive_ns && reading.transmit_ns <= run_ns(reading.destination_ns)
        })
    }

    /// How accurate the mapping was from the start of the run to an instant of the node's clock; `None` if no mapping
    /// was ever applied.
    pub fn judge(&self, now_ns: u64) -> Option<Figures> {
        let first = self.applied.first()?;
        let edges = self.applied.windows(2).flat_map(|pair| [(pair[0], pair[1].local_ns), (pair[1], pair[1].local_ns)]);
        let last = self.applied.last().map(|last| (*last, now_ns));
        let edges: Vec<(Mapping, u64)> = [(*first, first.local_ns)].into_iter().chain(edges).chain(last).collect();
        let step = edges.len().div_ceil(JUDGED);
        let errors = edges.iter().step_by(step).map(|(mapping, at_ns)| self.largest_error_ns(mapping, *at_ns));
        Some(Figures {
            offset_ns: first.run_ns.wrapping_sub(first.local_ns) as i64,
            drift_ppb: self.fit_around(now_ns).map_or(first.rate_ppb as f64, |fit| fit.slope * 1e9),
            bound_ns: errors.fold(0.0, f64::max),
            minimum_round_trip_ns: self.readings.iter().map(Reading::round_trip_ns).min().unwrap_or(0),
            samples: self.readings.len() as u64,
            restarts: self.restarts,
        })
    }

    fn largest_error_ns(&self, mapping: &Mapping, at_ns: u64) -> f64 {
        let Some(fit) = self.fit_around(at_ns) else { return f64::INFINITY };
        let estimated_ns = at_ns.wrapping_add_signed(fit.offset_ns);
        let off_ns = mapping.run_ns(at_ns).wrapping_sub(estimated_ns) as i64;
        off_ns.unsigned_abs() as f64 + fit.half_width_ns
    }

    /// The estimate at an instant, from the readings before and after it.
    fn fit_around(&self, at_ns: u64) -> Option<Fit> {
        let from =
            self.readings.partition_point(|reading| reading.destination_ns < at_ns.saturating_sub(WINDOW_NS / 2));
        let to = self.readings.partition_point(|reading| reading.origin_ns <= at_ns.saturating_add(WINDOW_NS / 2));
        estimate::fit(&self.readings[from.min(to)..to], at_ns)
    }
}

/// Removes every second element of the older half if there are too many.
fn thin<T>(kept: &mut Vec<T>) {
    if kept.len() < KEPT {
        return;
    }
    let mut number = 0;
    kept.retain(|_| {
        number += 1;
        number > KEPT / 2 || number % 2 == 0
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SplitMix64 (Steele, Lea and Flood, 2014), for delays that are the same in every run of the test.
    struct Draws(u64);

    impl Draws {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = self.0;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// A one-way delay: a minimum, plus a queueing delay that is mostly short and rarely very long (Pareto).
        fn way_ns(&mut self, least_ns: f64) -> f64 {
            least_ns + 10_000.0 * (self.unit().max(1e-9).powf(-0.8) - 1.0).min(1e4)
        }
    }

    /// Two clocks with an offset, a drift and a wander.
    struct Pair {
        offset_ns: f64,
        drift: f64,
        wander_ns: f64,
        period_s: f64,
    }

    impl Pair {
        fn draw(draws: &mut Draws) -> Pair {
            let period_s = 60.0 + 600.0 * draws.unit();
            Pair {
                offset_ns: (draws.unit() - 0.5) * 2.0 * 7_200e9,
                drift: (draws.unit() - 0.5) * 200e-6,
                // The slope of a sine is at most amplitude × 2π / period: 0.03 ppm.
                wander_ns: 30.0 * period_s / std::f64::consts::TAU * draws.unit(),
                period_s,
            }
        }

        fn run_ns(&self, local_ns: u64) -> u64 {
            let since_s = (local_ns - 10_000_000_000_000) as f64 / 1e9;
            let wander_ns = self.wander_ns * (since_s * std::f64::consts::TAU / self.period_s).sin();
            local_ns.wrapping_add_signed((self.offset_ns + self.drift * since_s * 1e9 + wander_ns) as i64)
        }
    }

    /// Simulates one run of 40 s on a node. Returns the largest true error, and the figures of the estimator.
    fn simulate(seed: u64) -> (f64, Figures) {
        let mut draws = Draws(seed);
        let pair = Pair::draw(&mut draws);
        let [there_ns, back_ns] = [(); 2].map(|()| 10_000.0 + draws.unit() * 150_000.0);
        let mut estimator = RunClockEstimator::default();
        let mut now_ns = 10_000_000_000_000 + (draws.unit() * 1e9) as u64;
        let ask = |estimator: &mut RunClockEstimator, draws: &mut Draws, now_ns: u64| {
            let there_ns = draws.way_ns(there_ns) as u64;
            let destination_ns = now_ns + there_ns + draws.way_ns(back_ns) as u64;
            let receive_ns = pair.run_ns(now_ns + there_ns);
            estimator.read(Reading { origin_ns: now_ns, receive_ns, transmit_ns: receive_ns, destination_ns });
        };
        let burst = |estimator: &mut RunClockEstimator, draws: &mut Draws, now_ns: &mut u64| {
            for _ in 0..100 {
                ask(estimator, draws, *now_ns);
                *now_ns += 2_000_000;
            }
        };
        burst(&mut estimator, &mut draws, &mut now_ns);
        // The session starts with a few readings.
        for _ in 0..10 {
            ask(&mut estimator, &mut draws, now_ns);
            now_ns += 100_000_000;
        }
        estimator.meet(now_ns, false).unwrap();
        estimator.begin();
        let mut worst_ns = 0.0f64;
        for _ in 0..80 {
            let mapping = estimator.meet(now_ns, true).unwrap();
            for _ in 0..5 {
                let at_ns = now_ns + (draws.unit() * 5e8) as u64;
                worst_ns = worst_ns.max(mapping.run_ns(at_ns).abs_diff(pair.run_ns(at_ns)) as f64);
            }
            now_ns += 500_000_000;
            ask(&mut estimator, &mut draws, now_ns);
        }
        burst(&mut estimator, &mut draws, &mut now_ns);
        (worst_ns, estimator.judge(now_ns).unwrap())
    }

    #[test]
    fn the_true_error_lies_inside_the_bound_a_thousand_times_of_a_thousand() {
        let runs: Vec<(f64, Figures)> = (0..1_000).map(simulate).collect();
        let outside = runs.iter().filter(|(worst_ns, figures)| *worst_ns > figures.bound_ns).count();
        assert_eq!(outside, 0);
        let mut over_half: Vec<f64> =
            runs.iter().map(|(_, figures)| figures.bound_ns / figures.minimum_round_trip_ns as f64 * 2.0).collect();
        over_half.sort_by(f64::total_cmp);
        println!("bound over half the shortest round trip: p50 {:.2}, p99 {:.2}", over_half[500], over_half[990]);
        assert!(over_half[500] < 1.3, "{}", over_half[500]);
        assert!(runs.iter().all(|(_, figures)| figures.restarts == 0));
    }

    #[test]
    fn a_run_s_time_never_goes_backwards() {
        let mut estimator = RunClockEstimator::default();
        let mut last_ns = 0;
        for number in 0..200u64 {
            let origin_ns = 1_000_000_000 + number * 500_000_000;
            // Halfway the coordinator's clock is set back by 40 ms.
            let receive_ns = origin_ns + 90_000_000_000 - if number > 100 { 40_000_000 } else { 0 };
            estimator.read(Reading {
                origin_ns,
                receive_ns,
                transmit_ns: receive_ns,
                destination_ns: origin_ns + 80_000,
            });
            let mapping = estimator.meet(origin_ns + 80_000, number > 0).unwrap();
            assert!(mapping.run_ns(origin_ns + 80_000) >= last_ns);
            last_ns = mapping.run_ns(origin_ns + 500_000_000);
        }
        let figures = estimator.judge(101_000_000_000).unwrap();
        assert!(figures.restarts > 0 && figures.bound_ns >= 20_000_000.0, "{figures:?}");
    }

    proptest::proptest! {
        #[test]
        fn a_coordinator_that_lies_breaks_nothing(times in proptest::collection::vec(proptest::prelude::any::<[u64; 4]>(), 1..30)) {
            let mut estimator = RunClockEstimator::default();
            for [origin_ns, receive_ns, transmit_ns, destination_ns] in times {
                estimator.read(Reading { origin_ns, receive_ns, transmit_ns, destination_ns });
                estimator.meet(destination_ns, true);
                proptest::prop_assert!(estimator.judge(destination_ns).is_none_or(|figures| figures.bound_ns >= 0.0));
            }
        }
    }

    #[test]
    fn one_clock_is_known_for_it() {
        let mut estimator = RunClockEstimator::default();
        estimator.read(Reading {
            origin_ns: 10_000,
            receive_ns: 90_030_000,
            transmit_ns: 90_031_000,
            destination_ns: 61_000,
        });
        assert!(
            estimator.is_constant(90_000_000)
                && !estimator.is_constant(90_020_001)
                && !estimator.is_constant(89_969_999)
        );
    }
}
