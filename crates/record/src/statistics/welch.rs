//! Tests whether two systems differ in a figure: Welch's test, with a lower limit for the spread.

use super::description::{mean, variance};
use super::distributions::{t_critical, t_two_sided};
use super::interval::LEVEL;
use super::{FEWEST_REPETITIONS, Scale};

/// Result of a test of two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// Two-sided probability that a difference at least this large occurs by chance.
    pub p: f64,
    scale: Scale,
    difference: f64,
    error: f64,
    freedom: f64,
}

impl Tested {
    /// A copy with another probability.
    pub fn with_p(self, p: f64) -> Tested {
        Tested { p, ..self }
    }

    /// Mean of the second sample over that of the first on a logarithmic scale, otherwise their difference.
    pub fn difference(&self) -> f64 {
        self.scale.back(self.difference)
    }

    /// 95 % interval of the difference.
    pub fn interval(&self) -> (f64, f64) {
        let half = if self.error > 0.0 { t_critical(1.0 - LEVEL, self.freedom) * self.error } else { 0.0 };
        (self.scale.back(self.difference - half), self.scale.back(self.difference + half))
    }
}

/// Tests whether two samples have different means (Welch 1947), on a scale suitable for both; `None` where one has
/// fewer than [`FEWEST_REPETITIONS`] values.
///
/// `floor` is the smallest standard deviation that is assumed: a share of the figure on a logarithmic scale, otherwise
/// in the figure's unit. Without it, three runs that agree by chance, or because the figure has few steps, would make
/// any difference significant.
pub fn test(first: &[f64], second: &[f64], scale: Scale, floor: f64) -> Option<Tested> {
    if first.len().min(second.len()) < FEWEST_REPETITIONS {
        return None;
    }
    let parts = [first, second].map(|values| {
        let scaled = scale.onto_all(values);
        let spread = variance(&scaled)?.max(floor * floor);
        Some((mean(&scaled)?, spread / values.len() as f64, (values.len() - 1) as f64))
    });
    let [(first_mean, first_part, first_freedom), (second_mean, second_part, second_freedom)] = [parts[0]?, parts[1]?];
    let difference = second_mean - first_mean;
    let error = libm::sqrt(first_part + second_part);
    if error == 0.0 {
        // Without a floor and with equal values on each side: either no difference, or a difference without noise.
        let p = if difference == 0.0 { 1.0 } else { 0.0 };
        return Some(Tested { p, scale, difference, error, freedom: 1.0 });
    }
    // Satterthwaite 1946.
    let freedom = (first_part + second_part) * (first_part + second_part)
        / (first_part * first_part / first_freedom + second_part * second_part / second_freedom);
    Some(Tested { p: t_two_sided(difference / error, freedom), scale, difference, error, freedom })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_a_worked_example() {
        // Second example of Wikipedia's table for Welch's t-test: t = −1.57 (n 10 and 20), df 9.90, p 0.149.
        let first = [17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8];
        let second = [
            21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8, 20.7, 21.7, 21.5, 22.5, 23.6, 21.5, 22.5, 23.5,
            21.5, 21.8,
        ];
        let found = test(&first, &second, Scale::Plain, 0.0).unwrap();
        assert!((found.p - 0.149).abs() < 0.002, "{found:?}");
        let swapped = test(&second, &first, Scale::Plain, 0.0).unwrap();
        assert!((found.p - swapped.p).abs() < 1e-12 && (found.difference() + swapped.difference()).abs() < 1e-12);
    }

    #[test]
    fn on_logarithms_the_difference_is_a_ratio() {
        let first = [1.0, 1.1, 0.9];
        let found = test(&first, &first.map(|value| value * 3.0), Scale::Logarithm, 0.0).unwrap();
        assert!((found.difference() - 3.0).abs() < 1e-12);
        let (low, high) = found.interval();
        assert!(1.0 < low && low < 3.0 && 3.0 < high);
        let changed = test(&first.map(|v| v * 7.0), &first.map(|v| v * 21.0), Scale::Logarithm, 0.0).unwrap();
        assert!((changed.p - found.p).abs() < 1e-12, "the unit does not matter");
    }

    #[test]
    fn values_that_agree_by_luck_do_not_make_a_small_difference_sure() {
        let (first, second) = ([100.0, 100.0, 100.0], [101.5, 101.5, 101.5]);
        assert_eq!(test(&first, &second, Scale::Logarithm, 0.0).unwrap().p, 0.0);
        assert!(test(&first, &second, Scale::Logarithm, 0.01).unwrap().p > 0.1);
    }

    #[test]
    fn two_repetitions_say_nothing() {
        assert_eq!(test(&[1.0, 2.0], &[5.0, 6.0, 7.0], Scale::Plain, 0.0), None);
    }
}
