//! Latency over time: p50, p99 and max of the messages due in each bin.

use pubmark_record::record::Record;
use pubmark_record::tables::{SeriesQuantiles, SeriesRow};

use super::over_time::{bin_readings, bins, has_values, panel};
use super::{Chart, Picture};
use crate::numbers::time;
use crate::plot::axis::run_time_label;
use crate::plot::{Axis, Line};
use crate::words::sentence;

const TITLE: &str = "Was latency steady?";
const CSV: &str = "csv/series.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.series;
    let print = |value: f64| time(Some(value));
    let band = |line: Line, value: fn(&SeriesQuantiles) -> Option<f64>| {
        line.with_lower(bins(rows, "", 1, |row| row.latency.lower.as_ref().and_then(value), print).points)
    };
    let mut lines = vec![
        bins(rows, "max", 2, |row| row.latency.upper.max_us, print),
        band(bins(rows, "p99", 1, |row| row.latency.upper.p99_us, print), |lower| lower.p99_us),
        band(bins(rows, "p50", 3, |row| row.latency.upper.p50_us, print), |lower| lower.p50_us),
    ];
    lines.retain(has_values);
    let values = || lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, value)| *value));
    let smallest = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let largest = values().fold(1.0, f64::max);
    let y = Axis::log_time(smallest.min(largest), largest, "latency of delivered messages due then, log scale");
    let is_empty = lines.is_empty();
    match panel(record, y, lines, bin_readings(rows)) {
        Some(plot) if !is_empty => Chart {
            title: TITLE,
            finding: finding(rows),
            notes: notes(rows),
            csv: CSV,
            picture: Picture::Plot(Box::new(plot)),
        },
        _ => Chart::missing(TITLE, CSV, "No latency was recorded over time."),
    }
}

fn finding(rows: &[SeriesRow]) -> String {
    // The warm-up is shown but not counted.
    let highest = |get: fn(&SeriesRow) -> Option<f64>| {
        rows.iter()
            .filter(|row| row.t_s >= 0.0)
            .filter_map(|row| get(row).map(|value| (row.t_s, value)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let mut parts = Vec::new();
    if let Some((at, value)) = highest(|row| row.latency.upper.p99_us) {
        parts.push(format!("p99 was highest at {}, {}", run_time_label(at), time(Some(value))));
    }
    if let Some((at, value)) = highest(|row| row.latency.upper.max_us) {
        parts.push(format!("the slowest message was due at {} and took {}", run_time_label(at), time(Some(value))));
    }
    if parts.is_empty() { "Nothing was measured after the warm-up.".to_string() } else { sentence(&parts.join("; ")) }
}

fn notes(rows: &[SeriesRow]) -> Vec<String> {
    let mut notes = vec!["lower is better".to_string()];
    if rows.iter().any(|row| row.latency.upper.p99_width_s.is_some_and(|width| width > row.width_s * 1.001)) {
        notes.push("p99 of a wider window where a bin holds too few samples".to_string());
    }
    notes
}
