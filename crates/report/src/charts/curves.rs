//! How bad is the tail: percentile curves on a scale of nines, of one run or of several.

use pubmark_record::comparison::Comparison;
use pubmark_record::record::{Curve, Record};

use super::{Chart, Picture};
use crate::numbers::{count, time};
use crate::plot::axis::nines;
use crate::plot::{Axis, Join, Line, Plot};
use crate::words::{latency_finding, sentence};

const TITLE: &str = "How late do messages arrive?";
const CSV: &str = "csv/curve.csv";
const HEIGHT: f64 = 360.0;
/// Places at which values can be read off, at most.
const READINGS: usize = 200;

/// Curves of a record that are drawn: name in the record, name in the legend.
const SHOWN: [(&str, &str); 2] =
    [("latency", "latency (due → delivery)"), ("service_latency", "service latency (write start → delivery)")];

pub(super) fn draw(record: &Record) -> Chart {
    let curves: Vec<(String, &Curve)> =
        SHOWN.iter().filter_map(|(key, name)| find(record, key).map(|curve| ((*name).to_string(), curve))).collect();
    let Some(plot) = plot(&curves) else { return Chart::missing(TITLE, CSV, "No latency was measured.") };
    let mut notes = vec![format!("n = {}", count(curves[0].1.count)), "lower is better".to_string()];
    if record.settings.flood {
        notes.push("a flood: latencies are not judged".to_string());
    }
    Chart {
        title: TITLE,
        finding: latency_finding(record.latency_us.as_ref()),
        notes,
        csv: CSV,
        picture: Picture::Plot(Box::new(plot)),
    }
}

/// The latencies of several runs over each other.
pub fn compared(comparison: &Comparison) -> Chart {
    let curves: Vec<(String, &Curve)> = comparison
        .runs
        .iter()
        .filter_map(|run| find(run.record, "latency").map(|curve| (run.label.clone(), curve)))
        .collect();
    let Some(plot) = plot(&curves) else { return Chart::missing(TITLE, "", "No run measured a latency.") };
    let p99s: Vec<String> = comparison
        .runs
        .iter()
        .filter_map(|run| {
            let p99 = run.record.latency_us.as_ref()?.p99?;
            Some(format!("{} {}", run.label, time(Some(p99))))
        })
        .collect();
    let finding = if p99s.is_empty() {
        "No run has enough samples for a p99.".to_string()
    } else {
        sentence(&format!("99 % of the messages arrived within: {}", p99s.join(", ")))
    };
    let fewest = curves.iter().map(|(_, curve)| curve.count).min().unwrap_or(0);
    let notes = vec![format!("n ≥ {} a run", count(fewest)), "lower is better".to_string()];
    Chart { title: TITLE, finding, notes, csv: "", picture: Picture::Plot(Box::new(plot)) }
}

fn find<'a>(record: &'a Record, key: &str) -> Option<&'a Curve> {
    record.curves.iter().find(|curve| curve.name == key && !curve.points.is_empty())
}

fn plot(curves: &[(String, &Curve)]) -> Option<Plot> {
    let most = curves.iter().map(|(_, curve)| curve.count).max()?;
    let values = || curves.iter().flat_map(|(_, curve)| curve.points.iter().map(|(_, value)| *value));
    let smallest = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let largest = values().fold(1.0, f64::max);
    let readings = reading_fractions(curves);
    let lines = curves
        .iter()
        .enumerate()
        .map(|(position, (name, curve))| Line {
            name: name.clone(),
            style: position + 1,
            join: Join::StepBefore,
            points: curve
                .points
                .iter()
                .map(|(fraction, value)| (nines(*fraction, curve.count), Some(*value)))
                .collect(),
            readings: readings
                .iter()
                .map(|fraction| value_at(curve, *fraction).map_or_else(String::new, |v| time(Some(v))))
                .collect(),
        })
        .collect();
    Some(Plot {
        x: Axis::log_nines(most, "share of messages within (below: samples beyond)"),
        y: Axis::log_time(smallest.min(largest), largest, "time, log scale"),
        lines,
        bands: Vec::new(),
        readings: readings.iter().map(|fraction| (nines(*fraction, most), percent(*fraction))).collect(),
        height: HEIGHT,
    })
}

/// Fractions of the curve with most samples, thinned.
fn reading_fractions(curves: &[(String, &Curve)]) -> Vec<f64> {
    let Some((_, longest)) = curves.iter().max_by_key(|(_, curve)| curve.count) else { return Vec::new() };
    let every = longest.points.len().div_ceil(READINGS).max(1);
    let last = longest.points.len() - 1;
    let kept = longest.points.iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    kept.map(|(_, (fraction, _))| *fraction).collect()
}

/// The value within which that share of the samples lies.
fn value_at(curve: &Curve, fraction: f64) -> Option<f64> {
    curve.points.iter().find(|(at, _)| *at >= fraction - 1e-12).map(|(_, value)| *value)
}

/// A share with as many decimals as it has nines.
fn percent(fraction: f64) -> String {
    if fraction >= 1.0 {
        return "all".to_string();
    }
    let decimals = (-(1.0 - fraction).log10()).ceil().clamp(1.0, 9.0) as usize;
    format!("{:.*} %", decimals.saturating_sub(1), fraction * 100.0)
}
