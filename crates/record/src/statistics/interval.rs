//! Confidence interval for the mean of a few repetitions.

use pubmark_model::random::Stream;

use super::description::{mean, quantile, variance};
use super::distributions::{normal_at_most, normal_quantile, t_critical};
use super::{FEWEST_REPETITIONS, Scale};
use crate::experiment::Interval;

/// Coverage probability of the intervals.
pub const LEVEL: f64 = 0.95;
/// Fewest repetitions for which the bootstrap replaces Student's t: with fewer, resampling repeats the same few values
/// and its intervals are too short.
pub const FEWEST_FOR_BOOTSTRAP: usize = 10;
/// Resamples of the bootstrap: enough for stable ends at 2.5 % (Efron and Tibshirani 1993, §14.3: 1,000 and more).
const RESAMPLES: usize = 4_000;
/// Number of the random stream that the bootstrap draws from.
const PURPOSE: u64 = 0x6263_615f_626f_6f74;

/// 95 % interval of the mean (geometric on a logarithmic scale) of repetitions of one figure; `None` below
/// [`FEWEST_REPETITIONS`] values.
///
/// Student's t; from [`FEWEST_FOR_BOOTSTRAP`] values on the BCa bootstrap, which suits a skewed figure better. `seed`
/// determines its draws. Equal values give an interval of zero width: no spread was observed at the figure's
/// resolution.
pub fn interval(values: &[f64], scale: Scale, seed: u64) -> Option<Interval> {
    if values.len() < FEWEST_REPETITIONS {
        return None;
    }
    let scale = scale.for_values(values);
    let scaled = scale.onto_all(values);
    let (low, high, method) = if values.len() >= FEWEST_FOR_BOOTSTRAP {
        let (low, high) = bca(&scaled, seed)?;
        (low, high, "BCa bootstrap")
    } else {
        let (low, high) = student(&scaled)?;
        (low, high, if scale == Scale::Logarithm { "t on logarithms" } else { "t" })
    };
    Some(Interval { low: scale.back(low), high: scale.back(high), level: LEVEL, method: method.to_owned() })
}

fn student(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let middle = mean(values)?;
    let half = t_critical(1.0 - LEVEL, count - 1.0) * libm::sqrt(variance(values)? / count);
    Some((middle - half, middle + half))
}

/// Bias-corrected and accelerated bootstrap of the mean (Efron 1987; Efron and Tibshirani 1993, §14.3).
fn bca(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    let middle = mean(values)?;
    if values.iter().all(|value| *value == values[0]) {
        return Some((middle, middle));
    }
    let means = resampled_means(values, seed);
    // Ties count half; otherwise discrete values would look like bias.
    let below: f64 =
        means.iter().map(|other| if *other < middle { 1.0 } else { 0.5 * f64::from(*other == middle) }).sum();
    let share = (below / means.len() as f64).clamp(1.0 / means.len() as f64, 1.0 - 1.0 / means.len() as f64);
    let bias = normal_quantile(share);
    let acceleration = acceleration(values, middle);
    let end = |fraction: f64| {
        let z = bias + normal_quantile(fraction);
        quantile(&means, normal_at_most(bias + z / (1.0 - acceleration * z)))
    };
    Some((end((1.0 - LEVEL) / 2.0)?, end((1.0 + LEVEL) / 2.0)?))
}

fn resampled_means(values: &[f64], seed: u64) -> Vec<f64> {
    let draws = Stream::new(seed, PURPOSE);
    let count = values.len();
    let resample = |number: usize| {
        let sum: f64 =
            (0..count).map(|place| values[(draws.unit((number * count + place) as u64) * count as f64) as usize]).sum();
        sum / count as f64
    };
    (0..RESAMPLES).map(resample).collect()
}

/// Skewness of the mean by the jackknife, which for a mean is that of the values: Σd³ / (6 (Σd²)^1.5).
fn acceleration(values: &[f64], middle: f64) -> f64 {
    let power = |exponent: i32| values.iter().map(|value| (value - middle).powi(exponent)).sum::<f64>();
    let squares = power(2);
    if squares > 0.0 { power(3) / (6.0 * squares.powf(1.5)) } else { 0.0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_three_values_is_students() {
        // mean 2, sd 1, half width 4.303 / √3
        let found = interval(&[1.0, 2.0, 3.0], Scale::Plain, 0).unwrap();
        assert!((found.low + 0.484).abs() < 1e-3 && (found.high - 4.484).abs() < 1e-3, "{found:?}");
        assert_eq!(found.method, "t");
        assert_eq!(interval(&[1.0, 2.0], Scale::Plain, 0), None);
    }

    #[test]
    fn positive_figures_get_an_interval_of_ratios() {
        let found = interval(&[1.0, 2.0, 4.0], Scale::Logarithm, 0).unwrap();
        assert!((found.low * found.high - 4.0).abs() < 1e-9, "symmetric about 2 by ratio: {found:?}");
        assert_eq!(found.method, "t on logarithms");
        assert_eq!(interval(&[0.0, 2.0, 4.0], Scale::Logarithm, 0).unwrap().method, "t", "0 has no logarithm");
    }

    #[test]
    fn equal_values_give_an_interval_of_no_width() {
        for count in [3, 12] {
            let found = interval(&vec![5.0; count], Scale::Plain, 0).unwrap();
            assert_eq!((found.low, found.high), (5.0, 5.0));
        }
    }

    #[test]
    fn the_bootstrap_gives_the_same_interval_for_the_same_seed() {
        let values: Vec<f64> = (0..12).map(|index| Stream::new(7, 1).normal(index)).collect();
        let (one, two) = (interval(&values, Scale::Plain, 3).unwrap(), interval(&values, Scale::Plain, 3).unwrap());
        assert_eq!(one, two);
        assert_eq!(one.method, "BCa bootstrap");
        assert_ne!(one, interval(&values, Scale::Plain, 4).unwrap());
    }

    /// Share of simulated experiments whose interval includes the true mean of the logarithms.
    fn coverage(repetitions: u64, experiments: u64, draw: impl Fn(Stream, u64) -> f64, truth: f64) -> f64 {
        let held = (0..experiments).filter(|experiment| {
            let stream = Stream::new(*experiment, 99);
            let values: Vec<f64> = (0..repetitions).map(|index| libm::exp(draw(stream, index))).collect();
            let found = interval(&values, Scale::Logarithm, *experiment).unwrap();
            (libm::log(found.low)..=libm::log(found.high)).contains(&truth)
        });
        held.count() as f64 / experiments as f64
    }

    #[test]
    fn intervals_of_few_repetitions_cover_as_often_as_they_say() {
        for repetitions in [3, 5, 9] {
            let share = coverage(repetitions, 4_000, |stream, index| 0.1 * stream.normal(index), 0.0);
            assert!((0.935..=0.965).contains(&share), "{repetitions} repetitions: {share}");
        }
    }

    #[test]
    fn bootstrap_intervals_cover_nearly_as_often_as_they_say() {
        // Known property of the method: with 10 values the coverage is about 90 %, and approaches 95 % with more
        // (DiCiccio and Efron 1996).
        let normal = coverage(10, 400, |stream, index| stream.normal(index), 0.0);
        let skewed = coverage(20, 400, |stream, index| stream.exponential(index), 1.0);
        assert!(normal > 0.86 && normal < 0.97, "{normal}");
        assert!(skewed > 0.86 && skewed < 0.97, "{skewed}");
    }
}
