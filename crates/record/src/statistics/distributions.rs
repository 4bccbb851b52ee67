//! Student's t and the normal distribution, as far as intervals and tests need them.
//!
//! Checked against published tables in the tests below. Implemented here because the functions are short, and libraries
//! that have them depend on linear algebra.

/// Most steps of a bisection: 2^-100 of the bracket is below the spacing of floating-point numbers.
const BISECTIONS: usize = 100;
/// Most terms of the continued fraction. It converges in about √max(a, b) terms.
const TERMS: usize = 10_000;

/// Probability that |T| exceeds |t|, where T has Student's t distribution with `freedom` > 0 degrees of freedom.
///
/// Exact in the tail too, because it is not computed as a difference from 1.
pub fn t_two_sided(t: f64, freedom: f64) -> f64 {
    // Abramowitz and Stegun 1964, 26.7.1 with 26.5.27.
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The value of t that |T| exceeds with probability `beyond` in (0, 1).
pub fn t_critical(beyond: f64, freedom: f64) -> f64 {
    let mut high = 1.0;
    while t_two_sided(high, freedom) > beyond && high < 1e300 {
        high *= 2.0;
    }
    bisect(0.0, high, |t| t_two_sided(t, freedom) > beyond)
}

/// Probability that a standard normal variable is at most `z`.
pub fn normal_at_most(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The value z for which a standard normal variable is at most z with probability `fraction`, within ±40.
pub fn normal_quantile(fraction: f64) -> f64 {
    bisect(-40.0, 40.0, |z| normal_at_most(z) < fraction)
}

/// The point between `low` and `high` at which `is_below` becomes false.
fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        // There is no floating-point number between them, so further steps would not change the result.
        let is_last = middle <= low || middle >= high;
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
        if is_last {
            break;
        }
    }
    0.5 * (low + high)
}

/// Regularised incomplete beta function I_x(a, b), a and b > 0 (Abramowitz and Stegun 1964, 26.5.8).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges fast only on this side; the other follows by symmetry (26.5.2).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let scale = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x);
    libm::exp(scale) * beta_fraction(a, b, x) / a
}

/// The continued fraction of the incomplete beta function by the method of Lentz (1976) as modified by Thompson and
/// Barnett (1986), which keeps both parts of the quotient away from 0.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = lower;
    for term in 1..=TERMS {
        let m = term as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            lower = 1.0 / away_from_zero(1.0 + coefficient * lower);
            upper = away_from_zero(1.0 + coefficient / upper);
            change = lower * upper;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
    }

    #[test]
    fn critical_values_are_those_of_published_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper tail areas 0.025, 0.005, 0.001.
        for (freedom, at_95, at_99, at_998) in [
            (1.0, 12.706, 63.657, 318.309),
            (2.0, 4.303, 9.925, 22.327),
            (4.0, 2.776, 4.604, 7.173),
            (8.0, 2.306, 3.355, 4.501),
            (10.0, 2.228, 3.169, 4.144),
            (30.0, 2.042, 2.750, 3.385),
            (100.0, 1.984, 2.626, 3.174),
        ] {
            near(t_critical(0.05, freedom), at_95, 1e-3);
            near(t_critical(0.01, freedom), at_99, 1e-3);
            near(t_critical(0.002, freedom), at_998, 6e-3);
        }
    }

    #[test]
    fn with_one_and_two_degrees_of_freedom_it_agrees_with_the_closed_forms() {
        for t in [0.0, 0.3, 1.0, 4.5, 60.0, 5_000.0] {
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * libm::atan(t);
            near(t_two_sided(t, 1.0), cauchy, 1e-12);
            near(t_two_sided(t, 2.0), 1.0 - t / libm::sqrt(2.0 + t * t), 1e-12);
        }
        // Far in the tail, where 1 − p would have lost all digits: p → 1 / t² for two degrees of freedom.
        near(t_two_sided(1e6, 2.0) * 1e12, 1.0, 1e-9);
    }

    #[test]
    fn many_degrees_of_freedom_are_normal() {
        near(t_two_sided(1.959_964, 1e7), 0.05, 1e-6);
        near(normal_quantile(0.975), 1.959_963_985, 1e-8);
        near(normal_quantile(0.5), 0.0, 1e-12);
        near(normal_at_most(-3.0), 0.001_349_898, 1e-9);
    }

    #[test]
    fn quantiles_invert_probabilities() {
        for freedom in [2.0, 3.7, 9.0, 58.0] {
            for beyond in [0.5, 0.05, 1e-3, 1e-6] {
                near(t_two_sided(t_critical(beyond, freedom), freedom) / beyond, 1.0, 1e-9);
            }
        }
    }
}
