//! Latency over time: p50, p99 and max of the messages due in each bin.

use pubmark_record::record::Record;
use pubmark_record::tables::{SeriesQuantiles, SeriesRow};

use super::over_time::{bin_readings, bins, has_values, panel};
use super::{Chart, Picture};
use crate::numbers::interval;
use crate::plot::axis::run_time_label;
use crate::plot::{Axis, Line};
use crate::words::sentence;

const TITLE: &str = "Was latency steady?";
const CSV: &str = "csv/series.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.series;
    let line = |name: &str, style: usize, get: Get| {
        let upper = bins(rows, name, style, |row| get(&row.latency.upper), |_| String::new());
        let reading = |row: &SeriesRow| bounds(row, get)[1].map_or_else(String::new, |_| interval(bounds(row, get)));
        Line { readings: rows.iter().map(reading).collect(), ..upper }
    };
    let band = |line: Line, get: Get| {
        line.with_lower(bins(rows, "", 1, |row| row.latency.lower.as_ref().and_then(get), |_| String::new()).points)
    };
    let mut lines = vec![
        line("max", 2, |it| it.max_us),
        band(line("p99", 1, |it| it.p99_us), |it| it.p99_us),
        band(line("p50", 3, |it| it.p50_us), |it| it.p50_us),
    ];
    lines.retain(has_values);
    // The bands must lie inside, too.
    let points = || lines.iter().flat_map(|line| line.points.iter().chain(&line.lower));
    let values = || points().filter_map(|(_, value)| *value);
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

/// A quantile of a bin.
type Get = fn(&SeriesQuantiles) -> Option<f64>;

/// Both bounds of a quantile, the lower one first.
fn bounds(row: &SeriesRow, get: Get) -> [Option<f64>; 2] {
    [row.latency.lower.as_ref().and_then(get), get(&row.latency.upper)]
}

fn finding(rows: &[SeriesRow]) -> String {
    // The warm-up is shown but not counted.
    let highest = |get: Get| {
        rows.iter()
            .filter(|row| row.t_s >= 0.0)
            .filter_map(|row| bounds(row, get)[1].map(|value| (row, value)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(row, _)| (run_time_label(row.t_s), interval(bounds(row, get))))
    };
    let mut parts = Vec::new();
    if let Some((at, value)) = highest(|it| it.p99_us) {
        parts.push(format!("p99 was highest at {at}, {value}"));
    }
    if let Some((at, value)) = highest(|it| it.max_us) {
        parts.push(format!("the slowest message was due at {at} and took {value}"));
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

#[cfg(test)]
mod tests {
    use pubmark_record::sample;

    use super::*;
    use crate::plot::Scale;

    #[test]
    fn the_lower_bounds_are_on_the_axis_and_in_the_readings() {
        let mut record = sample::record();
        for row in &mut record.tables.series {
            row.latency.upper.p50_us = Some(400.0);
            row.latency.lower = Some(SeriesQuantiles { p50_us: Some(3.0), ..SeriesQuantiles::default() });
        }
        let Picture::Plot(plot) = draw(&record).picture else { panic!("no chart") };
        assert!(matches!(plot.y.scale, Scale::Log { from, .. } if from <= 3.0), "{:?}", plot.y.scale);
        let p50 = plot.lines.iter().find(|line| line.name == "p50").expect("a line");
        assert_eq!(p50.readings[0], "0.003–0.400 ms");
    }
}
