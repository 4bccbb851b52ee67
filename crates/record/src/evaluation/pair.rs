//! Compares two samples of one figure: their difference, its certainty, and how much of it the measurement alone could
//! have caused.
//!
//! Each value of a latency, or of the share delivered, is known as two bounds, of which one was measured ([`Better::measured`]). The
//! difference is therefore judged at its minimum: the lower bounds of the sample that looks larger against the upper bounds of the
//! other. Its interval extends from the lower limit of that difference to the upper limit of the opposite one, so that it covers the
//! difference wherever the values lie between their bounds (Horowitz and Manski 2000; Imbens and Manski 2004).
//!
//! [`Better::measured`]: crate::figures::Better::measured

use crate::experiment::Grade;
use crate::figures::Figure;
use crate::statistics::description::mean_on;
use crate::statistics::welch::{self, Tested};
use crate::statistics::{Scale, rank};

/// Probability of naming a winner where there is none, over all duels of an experiment.
pub const CHANCE_OF_ERROR: f64 = 0.01;
/// Smallest difference for which a winner is named, as a share: less than the effect of different ports, addresses and
/// memory layouts of two processes, and less than matters for a decision.
pub const SMALLEST_EFFECT: f64 = 0.01;
/// Fewest repetitions for which the assumed spread may be as small as [`SMALLEST_EFFECT`]; with fewer, it is at least
/// twice that.
const ENOUGH_FOR_SPREAD: usize = 5;

/// Values of one figure, one per run, each with bounds.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Lower bounds.
    pub lower: &'a [f64],
    /// Upper bounds, in the same order.
    pub upper: &'a [f64],
}

impl<'a> Sample<'a> {
    /// Values without bounds.
    pub fn exact(values: &'a [f64]) -> Sample<'a> {
        Sample { lower: values, upper: values }
    }

    /// The values that were measured.
    pub(super) fn measured(&self, figure: &Figure) -> &'a [f64] {
        figure.better.measured([self.lower, self.upper])
    }
}

/// Result of comparing two samples of one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Scale on which they were compared.
    pub scale: Scale,
    /// Welch's test for the smallest difference; `None` with too few repetitions. Its p is 1 if the bounds permit no
    /// difference.
    pub tested: Option<Tested>,
    /// Mean of the second sample over that of the first for ratios, otherwise their difference; of the values that were measured.
    pub difference: f64,
    /// Smallest and largest difference that the bounds permit.
    pub measured: (f64, f64),
    /// 95 % interval of the difference, bounds and noise together; `None` with too few repetitions.
    pub interval: Option<(f64, f64)>,
    /// The difference is large enough to matter, wherever the values lie between their bounds.
    is_large: bool,
    /// The difference is large enough, the rank test agrees, and Welch's test alone is significant: only the p value
    /// after correction remains to be checked.
    is_candidate: bool,
}

impl Pair {
    /// Compares two samples without bounds; neither may be empty.
    pub fn of(figure: &Figure, first: &[f64], second: &[f64]) -> Pair {
        Pair::between(figure, Sample::exact(first), Sample::exact(second))
    }

    /// Compares two samples; neither may be empty.
    pub fn between(figure: &Figure, first: Sample, second: Sample) -> Pair {
        let all = [first.lower, first.upper, second.lower, second.upper];
        let scale = figure.scale.for_values(all.into_iter().flatten());
        let gap = |from, to| Gap::new(figure, scale, from, to);
        let (least, most) = (gap(first.upper, second.lower), gap(first.lower, second.upper));
        let seen = gap(first.measured(figure), second.measured(figure)).difference;
        let nearest = if seen < 0.0 { most } else { least };
        // If the smallest difference has the opposite sign, the bounds overlap.
        let is_apart = nearest.difference * seen > 0.0;
        let tested = nearest.tested.map(|found| if is_apart { found } else { found.with_p(1.0) });
        let is_large = is_apart && nearest.difference.abs() > smallest_difference(figure, scale, nearest);
        let is_seen = tested.is_some_and(|found| found.p < CHANCE_OF_ERROR);
        Pair {
            scale,
            tested,
            difference: scale.back(seen),
            measured: (scale.back(least.difference), scale.back(most.difference)),
            interval: least.tested.zip(most.tested).map(|(least, most)| (least.interval().0, most.interval().1)),
            is_large,
            is_candidate: is_large && is_seen && ranks_agree(nearest.from, nearest.to),
        }
    }

    /// Whether the difference exceeds the noise, given its p value after correction.
    pub fn is_significant(&self, p_adjusted: Option<f64>) -> bool {
        self.is_candidate && p_adjusted.is_some_and(|p| p < CHANCE_OF_ERROR)
    }

    /// Why the difference is not significant, given its p value after correction; `None` if it is, and without a test.
    pub fn doubt(&self, p_adjusted: Option<f64>) -> Option<String> {
        let p = p_adjusted.filter(|_| !self.is_significant(p_adjusted))?;
        Some(if p >= CHANCE_OF_ERROR {
            format!("a difference as large would occur with probability {p:.2} if both were the same")
        } else if !self.is_large {
            "the difference is too small to matter".to_owned()
        } else {
            "the rank test does not confirm the difference".to_owned()
        })
    }

    /// Certainty of the difference, given its p value after correction.
    pub fn grade(&self, p_adjusted: Option<f64>) -> Grade {
        let nothing = if self.scale == Scale::Logarithm { 1.0 } else { 0.0 };
        let is_beside = |(low, high): (f64, f64)| low > nothing || high < nothing;
        if self.is_significant(p_adjusted) {
            Grade::Proven
        } else if self.is_large && self.interval.is_some_and(is_beside) {
            Grade::Likely
        } else {
            Grade::NotShown
        }
    }
}

/// Values of one side and of the other, on a scale.
#[derive(Clone, Copy)]
struct Gap<'a> {
    from: &'a [f64],
    to: &'a [f64],
    /// Mean of the second minus mean of the first.
    difference: f64,
    tested: Option<Tested>,
}

impl<'a> Gap<'a> {
    fn new(figure: &Figure, scale: Scale, from: &'a [f64], to: &'a [f64]) -> Gap<'a> {
        let mean = |values| scale.onto(mean_on(scale, values).unwrap_or(f64::NAN));
        let floor = smallest_spread(figure, scale, from, to);
        Gap { from, to, difference: mean(to) - mean(from), tested: welch::test(from, to, scale, floor) }
    }
}

/// The smallest standard deviation that is assumed: the figure's resolution, or 1 % of the figure, 2 % below five
/// repetitions. A few values that agree by chance do not predict the next ones.
fn smallest_spread(figure: &Figure, scale: Scale, first: &[f64], second: &[f64]) -> f64 {
    let times = if first.len().min(second.len()) < ENOUGH_FOR_SPREAD { 2.0 } else { 1.0 };
    match (scale, figure.scale) {
        (Scale::Logarithm, _) => figure.resolution.max(times * SMALLEST_EFFECT),
        (Scale::Plain, Scale::Plain) => times * figure.resolution,
        // A figure that should be positive was 0 in some run: use shares of the larger mean instead.
        (Scale::Plain, Scale::Logarithm) => figure.resolution.max(times * SMALLEST_EFFECT) * larger_mean(first, second),
    }
}

/// The smallest difference that matters, on the scale.
fn smallest_difference(figure: &Figure, scale: Scale, gap: Gap) -> f64 {
    let share = figure.resolution.max(SMALLEST_EFFECT);
    match (scale, figure.scale) {
        (Scale::Logarithm, _) => libm::log1p(share),
        (Scale::Plain, Scale::Plain) => figure.resolution,
        (Scale::Plain, Scale::Logarithm) => share * larger_mean(gap.from, gap.to),
    }
}

fn larger_mean(first: &[f64], second: &[f64]) -> f64 {
    let mean = |values| mean_on(Scale::Plain, values).unwrap_or(0.0).abs();
    mean(first).max(mean(second))
}

/// Whether the order of the values would be this clear in at most 1 % of all assignments of the values to the samples.
/// With fewer than five repetitions that is not possible; then each value of one side must be beyond each value of the
/// other.
pub(super) fn ranks_agree(first: &[f64], second: &[f64]) -> bool {
    rank::are_apart(first, second) || rank::exact_p(first, second) <= CHANCE_OF_ERROR
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use pubmark_model::random::Stream;

    use super::*;
    use crate::figures::figure;

    /// Values around a median with a spread, and the share of each value that pubmark may have caused.
    fn sample(draws: Stream, median: f64, spread: f64, ours: f64, repetitions: u64) -> (Vec<f64>, Vec<f64>) {
        let upper = |run| median * libm::exp(spread * draws.normal(run));
        let uppers: Vec<f64> = (0..repetitions).map(upper).collect();
        let lower = |(run, value): (u64, &f64)| value * (1.0 - ours * draws.unit(1_000 + run));
        (uppers.iter().enumerate().map(|(run, value)| lower((run as u64, value))).collect(), uppers)
    }

    fn bounded((lower, upper): &(Vec<f64>, Vec<f64>)) -> Sample<'_> {
        Sample { lower, upper }
    }

    #[test]
    fn a_difference_that_the_bounds_may_have_made_is_not_shown() {
        let p99 = figure("latency p99").unwrap();
        let (fast, slow) = ([100.0, 101.0, 99.0, 100.5, 99.5], [200.0, 202.0, 198.0, 201.0, 199.0]);
        let grade = |lower: &[f64]| {
            let pair = Pair::between(p99, Sample::exact(&fast), Sample { lower, upper: &slow });
            (pair.grade(pair.tested.map(|found| found.p)), pair.interval.unwrap())
        };
        assert_eq!(grade(&slow).0, Grade::Proven);
        let (half, (low, high)) = grade(&slow.map(|value| value * 0.75));
        assert!(half == Grade::Proven && low > 1.4 && low < 1.5 && high > 2.0, "{low} {high}");
        let (none, (low, high)) = grade(&slow.map(|value| value * 0.4));
        assert!(none == Grade::NotShown && low < 1.0 && high > 2.0, "{low} {high}");
    }

    #[test]
    fn a_difference_below_the_level_of_many_comparisons_is_likely() {
        let cpu = figure("system CPU a million").unwrap();
        let pair = Pair::of(cpu, &[10.0, 10.5, 9.5], &[13.0, 13.9, 12.4]);
        let p = pair.tested.unwrap().p;
        assert!(p < CHANCE_OF_ERROR && pair.grade(Some(p)) == Grade::Proven, "{p}");
        assert_eq!(pair.grade(Some(p * 20.0)), Grade::Likely);
        assert!(pair.interval.unwrap().0 > 1.0);
        let few = Pair::of(cpu, &[10.0, 10.1], &[20.0, 20.1]);
        assert_eq!((few.grade(None), few.interval), (Grade::NotShown, None), "two repetitions have no interval");
    }

    #[test]
    fn a_doubt_says_what_a_p_value_means_and_what_else_is_missing() {
        let p99 = figure("latency p99").unwrap();
        let before = [100.0, 101.0, 99.0, 100.5, 99.5];
        let doubt = |after: &[f64], p| Pair::of(p99, &before, after).doubt(p);
        let (far, near) = (before.map(|value| value * 2.0), before.map(|value| value * 1.005));
        assert_eq!(doubt(&far, Some(0.001)), None);
        assert_eq!(doubt(&far, None), None, "there was no test");
        let by_chance = doubt(&far, Some(0.034)).unwrap();
        assert_eq!(by_chance, "a difference as large would occur with probability 0.03 if both were the same");
        assert!(doubt(&near, Some(0.001)).unwrap().contains("too small"), "below one per cent");
    }

    #[test]
    fn the_difference_is_that_of_the_measured_values_whichever_bounds_they_are() {
        let difference = |name: &str, lower: f64, upper: f64| {
            let (lower, upper) = ([lower; 5], [upper; 5]);
            let sample = Sample { lower: &lower, upper: &upper };
            let pair = Pair::between(figure(name).unwrap(), Sample::exact(&[1.0; 5]), sample);
            let grade = pair.grade(pair.tested.map(|found| found.p));
            ((pair.difference * 1e6).round() / 1e6, grade)
        };
        // All that is missing of the second may have been dropped on arrival.
        assert_eq!(difference("delivered", 0.9, 1.0), (-0.1, Grade::NotShown));
        assert_eq!(difference("delivered", 0.8, 0.85), (-0.2, Grade::Proven));
        assert_eq!(difference("latency p99", 0.5, 1.0), (1.0, Grade::NotShown));
        assert_eq!(difference("latency p99", 2.0, 3.0), (3.0, Grade::Proven));
    }

    #[test]
    fn a_lower_bound_of_nothing_is_compared_by_difference() {
        let p99 = figure("latency p99").unwrap();
        let zero = [0.0; 5];
        let pair = Pair::between(p99, Sample { lower: &zero, upper: &[100.0; 5] }, Sample::exact(&[500.0; 5]));
        let (low, high) = pair.interval.unwrap();
        assert!(pair.scale == Scale::Plain && low > 350.0 && high < 550.0, "{low} {high}");
        assert_eq!(pair.grade(pair.tested.map(|found| found.p)), Grade::Proven);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// No grade contradicts the measurement: if a difference is proven or likely, both intervals, that of the
        /// bounds alone and that with the noise, are on its side; if it is not shown, the interval includes "none", or
        /// the difference may be too small to matter.
        #[test]
        fn no_grade_contradicts_an_interval(
            seed in any::<u64>(), ratio in 0.2f64..5.0, spread in 0.001f64..0.5, ours in 0.0f64..1.0,
            repetitions in 2u64..9, comparisons in 1.0f64..200.0,
        ) {
            let p99 = figure("latency p99").unwrap();
            let first = sample(Stream::new(seed, 1), 100.0, spread, ours, repetitions);
            let second = sample(Stream::new(seed, 2), 100.0 * ratio, spread, ours, repetitions);
            let pair = Pair::between(p99, bounded(&first), bounded(&second));
            let p = pair.tested.map(|found| (found.p * comparisons).min(1.0));
            let (least, most) = pair.measured;
            prop_assert!(least <= pair.difference && pair.difference <= most, "{pair:?}");
            if let Some((low, high)) = pair.interval {
                prop_assert!(low <= least && most <= high, "{pair:?}");
            }
            let side = |(low, high): (f64, f64)| low > 1.0 || high < 1.0;
            match pair.grade(p) {
                Grade::Proven | Grade::Likely => {
                    prop_assert!(side(pair.measured) && side(pair.interval.unwrap()), "{pair:?}");
                    prop_assert_eq!(pair.interval.unwrap().0 > 1.0, pair.difference > 1.0);
                }
                Grade::NotShown => prop_assert!(pair.interval.is_none_or(|ends| !side(ends)) || !pair.is_large, "{pair:?}"),
            }
            if pair.is_significant(p) {
                prop_assert_eq!(pair.grade(p), Grade::Proven);
            }
            // Wherever the values lie between their bounds, the result for exact values does not contradict.
            let inside = |(lower, upper): &(Vec<f64>, Vec<f64>), share: f64| -> Vec<f64> {
                lower.iter().zip(upper).map(|(low, high)| low + share * (high - low)).collect()
            };
            for (one, other) in [(0.0, 1.0), (1.0, 0.0), (0.5, 0.5), (0.0, 0.0), (1.0, 1.0)] {
                let exact = Pair::of(p99, &inside(&first, one), &inside(&second, other));
                if pair.grade(p) == Grade::Proven {
                    prop_assert!((exact.difference > 1.0) == (pair.difference > 1.0), "{exact:?} {pair:?}");
                }
                prop_assert!(least * (1.0 - 1e-9) <= exact.difference && exact.difference <= most * (1.0 + 1e-9));
            }
        }
    }

    /// A/A test with bounds: a system is compared with itself, and pubmark may have caused a share of each latency.
    #[test]
    fn a_system_is_seldom_proven_to_differ_from_itself() {
        let p99 = figure("latency p99").unwrap();
        let comparisons = 2_000;
        for (repetitions, spread, ours) in [(3, 0.05, 0.0), (5, 0.2, 0.0), (5, 0.2, 0.3), (8, 0.5, 0.1)] {
            let (mut proven, mut held) = (0, 0);
            for seed in 0..comparisons {
                let first = sample(Stream::new(seed, 3), 100.0, spread, ours, repetitions);
                let second = sample(Stream::new(seed, 4), 100.0, spread, ours, repetitions);
                let pair = Pair::between(p99, bounded(&first), bounded(&second));
                proven += u64::from(pair.grade(pair.tested.map(|found| found.p)) == Grade::Proven);
                held += u64::from(pair.interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high));
            }
            // One comparison without correction: 1 %, plus three standard deviations of such a count. The target is
            // 5 %.
            assert!(proven <= 33, "{repetitions} repetitions, {spread}, {ours}: {proven} of {comparisons} proven");
            // 95 %, minus three standard deviations.
            assert!(held >= 1_870, "{repetitions} repetitions, {spread}, {ours}: {held} of {comparisons} hold");
        }
    }
}
