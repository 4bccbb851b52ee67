//! Bounds of times: each sample has a lower and an upper bound, so that bounds also hold for every quantile.

use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, Precision};

/// Two distributions of the same samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// Measured times, including the generator's delays.
    pub upper: Distribution,
    /// The same times without the generator's delays.
    pub lower: Distribution,
}

impl Bounds {
    /// Without samples.
    pub fn new(precision: Precision) -> Bounds {
        Bounds { upper: Distribution::new(precision), lower: Distribution::new(precision) }
    }

    /// Adds a sample with the upper bound `upper_ns`, of which up to `width_ns` are the generator's delay.
    #[inline]
    pub fn record(&mut self, upper_ns: i64, width_ns: u64) {
        self.upper.record(upper_ns);
        self.lower.record(lower_ns(upper_ns, width_ns));
    }

    /// Adds a sample whose upper bound exceeds [`crate::distribution::LARGEST_NS`] and whose lower bound is unknown.
    pub fn record_clipped(&mut self) {
        self.upper.record_clipped();
        self.lower.record(0);
    }

    /// Adds all samples of `other`, which must have the same precision.
    pub fn merge(&mut self, other: &Bounds) {
        self.upper.merge(&other.upper);
        self.lower.merge(&other.lower);
    }

    /// The same samples if the measurement may differ by `error_ns` in either direction, for example because of the
    /// clocks of two machines. If the error is unknown (`None`), the upper bound is the measured time, and the lower
    /// bound is 0.
    pub fn widened(&self, error_ns: Option<u64>) -> Bounds {
        match error_ns {
            Some(0) => self.clone(),
            Some(error_ns) => Bounds {
                upper: self.upper.mapped(|ns| ns.saturating_add(error_ns)),
                lower: self.lower.lowered(error_ns),
            },
            None => Bounds { upper: self.upper.clone(), lower: self.lower.mapped(|_| 0) },
        }
    }

    /// Lowers the lower bounds by `by_ns`, down to 0, because up to this much of each sample was not caused by the
    /// system. `u64::MAX` means that the lower bounds are unknown.
    pub fn lower_by(&mut self, by_ns: u64) {
        if by_ns > 0 {
            self.lower = self.lower.lowered(by_ns);
        }
    }
}

/// The lower bound of a time with the upper bound `upper_ns`, of which up to `width_ns` are the generator's delay; not
/// below 0.
#[inline]
pub fn lower_ns(upper_ns: i64, width_ns: u64) -> i64 {
    upper_ns.max(0).saturating_sub_unsigned(width_ns).max(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sample_wider_than_itself_is_at_least_nothing() {
        let mut bounds = Bounds::new(Precision::Total);
        bounds.record(1_000, 5_000);
        bounds.record(-5, 0);
        bounds.record_clipped();
        assert_eq!((bounds.lower.max_ns(), bounds.lower.negative(), bounds.lower.count()), (0, 0, 3));
        assert_eq!((bounds.upper.negative(), bounds.upper.clipped()), (1, 1));
    }

    #[test]
    fn widening_by_nothing_changes_nothing_and_by_an_error_both_ends() {
        let mut bounds = Bounds::new(Precision::Total);
        (1..=1_000).for_each(|time| bounds.record(1_000_003 * time, 1_000));
        let means = |bounds: &Bounds| [bounds.lower.mean_ns(), bounds.upper.mean_ns()];
        assert_eq!(means(&bounds.widened(Some(0))), means(&bounds), "exact means stay exact");
        let (wide, unknown) = (bounds.widened(Some(50_000)), bounds.widened(None));
        for fraction in [0.1, 0.5, 0.99] {
            let by = |more: &Bounds| {
                let value = |times: &Distribution| times.quantile_unguarded_ns(fraction) as i64;
                [value(&bounds.lower) - value(&more.lower), value(&more.upper) - value(&bounds.upper)]
            };
            // Three significant digits of the largest sample, 1 s.
            assert!(by(&wide).iter().all(|by| by.abs_diff(50_000) <= 1_000_000), "{:?}", by(&wide));
            assert_eq!(unknown.lower.quantile_unguarded_ns(fraction), 0);
            assert_eq!(by(&unknown)[1], 0);
        }
    }

    #[test]
    fn lower_bounds_exclude_the_generators_part() {
        let mut bounds = Bounds::new(Precision::Total);
        (1..=1_000).for_each(|ms| bounds.record(ms * 1_000_000, 0));
        bounds.lower_by(100_000_000);
        let at = |times: &Distribution, fraction| times.quantile_unguarded_ns(fraction);
        assert_eq!(at(&bounds.upper, 0.5), at(&bounds.upper.clone(), 0.5));
        // The histogram is exact to 1 part in 1,000; a lower bound is rounded down.
        let found = at(&bounds.lower, 0.5);
        assert!((398_500_000..=400_300_000).contains(&found), "{found}");
        assert_eq!(at(&bounds.lower, 0.05), 0);
        bounds.lower_by(u64::MAX);
        assert_eq!(at(&bounds.lower, 1.0), 0);
    }

    proptest! {
        /// Tests the proof of docs/explanation/latency-intervals.md: bounds that hold for each sample hold for each
        /// quantile.
        #[test]
        fn bounds_of_samples_are_bounds_of_quantiles(
            samples in proptest::collection::vec((0u64..10_000_000, 0u64..1_000_000, 0u64..1_000_000), 1..300)
        ) {
            let mut bounds = Bounds::new(Precision::Total);
            let mut truth: Vec<u64> = samples.iter().map(|(time, ..)| *time).collect();
            for (time, above, below) in &samples {
                bounds.record((time + above) as i64, above + below);
            }
            truth.sort_unstable();
            for percent in 0..=100 {
                let fraction = f64::from(percent) / 100.0;
                let place = ((truth.len() as f64 * fraction).ceil() as usize).clamp(1, truth.len()) - 1;
                // The histogram has three significant digits.
                let (least, most) = (truth[place] as f64 * 0.999 - 1.0, truth[place] as f64 * 1.001 + 1.0);
                prop_assert!(bounds.lower.quantile_unguarded_ns(fraction) as f64 <= most, "{}", percent);
                prop_assert!(bounds.upper.quantile_unguarded_ns(fraction) as f64 >= least, "{}", percent);
            }
        }
    }
}
