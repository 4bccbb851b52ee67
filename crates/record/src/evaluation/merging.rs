//! One distribution out of the histograms of several runs.

use pubmark_metrics::distribution::{Distribution, NotAHistogram};

use crate::record::{Curve, Summary};

/// Points of a curve per power of ten of the samples beyond.
const POINTS_PER_NINE: u32 = 24;

/// Latency over several runs: their histograms (HdrHistogram V2, ns) merged. The mean and the counts that a histogram does
/// not keep come from the runs' own summaries. `None` without samples.
pub fn merge(runs: &[(&[u8], &Summary)]) -> Result<Option<(Summary, Curve)>, NotAHistogram> {
    let mut merged: Option<Distribution> = None;
    for (bytes, _) in runs {
        let one = Distribution::from_hdr_v2(bytes)?;
        match &mut merged {
            Some(merged) => merged.merge(&one),
            None => merged = Some(one),
        }
    }
    let Some(merged) = merged.filter(|merged| merged.count() > 0) else { return Ok(None) };
    let total: u64 = runs.iter().map(|(_, summary)| summary.count).sum();
    let weighted: f64 = runs.iter().map(|(_, summary)| summary.mean * summary.count as f64).sum();
    let quantile = |fraction| merged.quantile_ns(fraction).map(micros);
    let summary = Summary {
        count: merged.count(),
        mean: if total > 0 { weighted / total as f64 } else { merged.mean_ns().unwrap_or(0.0) / 1e3 },
        stddev: merged.stddev_ns() / 1e3,
        min: micros(merged.min_ns()),
        p25: quantile(0.25),
        p50: quantile(0.5),
        p75: quantile(0.75),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: micros(merged.max_ns()),
        negative: runs.iter().map(|(_, summary)| summary.negative).sum(),
        clipped: runs.iter().map(|(_, summary)| summary.clipped).sum(),
    };
    Ok(Some((summary, curve(&merged))))
}

/// Points evenly over the powers of ten of the samples beyond, down to the last sample, as in the curve of a run.
fn curve(times: &Distribution) -> Curve {
    let nines = (times.count() as f64).log10();
    let steps = (nines * f64::from(POINTS_PER_NINE)).floor() as u32;
    let mut points: Vec<(f64, f64)> = (0..=steps)
        .map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(POINTS_PER_NINE)))
        .map(|fraction| (fraction, micros(times.quantile_unguarded_ns(fraction))))
        .collect();
    points.push((1.0, micros(times.max_ns())));
    Curve { name: "latency".to_owned(), points, count: times.count() }
}

fn micros(time_ns: u64) -> f64 {
    time_ns as f64 / 1e3
}
