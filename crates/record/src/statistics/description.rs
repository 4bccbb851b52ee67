//! Mean, median, quartiles, variance.

use super::Scale;

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Mean on a scale: geometric on a logarithmic scale, otherwise arithmetic; `None` without values.
pub fn mean_on(scale: Scale, values: &[f64]) -> Option<f64> {
    mean(&scale.onto_all(values)).map(|mean| scale.back(mean))
}

/// Variance with n − 1 in the denominator; `None` below two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() >= 2).then(|| squares / (values.len() - 1) as f64)
}

/// Median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Fewest values for which quartiles are reported.
const FEWEST_FOR_QUARTILES: usize = 4;

/// First and third quartile; `None` below four values.
pub fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < FEWEST_FOR_QUARTILES {
        return None;
    }
    Some((quantile(values, 0.25)?, quantile(values, 0.75)?))
}

/// Quantile by linear interpolation between order statistics: type 7 of Hyndman and Fan 1996, the default of R, NumPy and
/// spreadsheets. `fraction` in [0, 1]; `None` without values.
pub fn quantile(values: &[f64], fraction: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = fraction.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (place - below as f64) * (sorted[above] - sorted[below]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_type_7() {
        // R: quantile(c(1, 2, 4, 8, 16)), quantile(c(3, 1, 2, 10))
        assert_eq!(quartiles(&[16.0, 1.0, 4.0, 2.0, 8.0]), Some((2.0, 8.0)));
        assert_eq!(quartiles(&[3.0, 1.0, 2.0, 10.0]), Some((1.75, 4.75)));
        assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
        assert_eq!(quartiles(&[1.0, 2.0, 3.0]), None);
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_mean_on_logarithms_is_geometric() {
        assert!((mean_on(Scale::Logarithm, &[1.0, 100.0]).unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(mean_on(Scale::Plain, &[1.0, 100.0]), Some(50.5));
        assert_eq!(mean_on(Scale::Plain, &[]), None);
    }

    #[test]
    fn variance_is_that_of_a_sample() {
        assert_eq!(variance(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Some(32.0 / 7.0));
        assert_eq!(variance(&[1.0]), None);
    }
}
