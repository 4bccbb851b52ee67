//! Distributions in the form of records: a summary and a percentile curve.

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Distribution;

use crate::latency::{LatencyBounds, Summary};
use crate::tables::Curve;

/// Points of a curve for each factor of ten in the number of samples above.
const POINTS_PER_NINE: u32 = 24;

/// Microseconds of a time in nanoseconds.
pub fn micros(time_ns: u64) -> f64 {
    time_ns as f64 / 1e3
}

/// A distribution of times in nanoseconds, in µs; `None` without samples.
pub fn summary(times: &Distribution) -> Option<Summary> {
    summary_by(times, |time_ns| time_ns)
}

/// The same, with each value of the histogram converted by `edge`.
fn summary_by(times: &Distribution, edge: impl Fn(u64) -> u64) -> Option<Summary> {
    let quantile = |fraction| times.quantile_ns(fraction).map(|time_ns| micros(edge(time_ns)));
    Some(Summary {
        mean: times.mean_ns()? / 1e3,
        count: times.count(),
        stddev: times.stddev_ns() / 1e3,
        min: micros(edge(times.min_ns())),
        p25: quantile(0.25),
        p50: quantile(0.5),
        p75: quantile(0.75),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: micros(edge(times.max_ns())),
        negative: times.negative(),
        clipped: times.clipped(),
    })
}

/// Bounds of a latency in nanoseconds; `None` without samples.
pub fn bounds(times: &Bounds) -> Option<LatencyBounds> {
    // A quantile of the histogram is the upper edge of its bucket; a lower bound needs the lower edge.
    let lower = summary_by(&times.lower, |time_ns| times.lower.lowest_equivalent_ns(time_ns));
    Some(LatencyBounds { upper: summary(&times.upper)?, lower })
}

/// Points of a percentile curve, evenly spaced over the powers of ten of the number of samples above, down to one
/// sample; `None` without samples.
pub fn curve(name: &str, times: &Distribution) -> Option<Curve> {
    let count = times.count();
    if count == 0 {
        return None;
    }
    let nines = (count as f64).log10();
    let steps = (nines * f64::from(POINTS_PER_NINE)).floor() as u32;
    let mut points: Vec<(f64, f64)> = (0..=steps)
        .map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(POINTS_PER_NINE)))
        .map(|fraction| (fraction, micros(times.quantile_unguarded_ns(fraction))))
        .collect();
    points.push((1.0, micros(times.max_ns())));
    Some(Curve { name: name.to_owned(), points, count })
}
