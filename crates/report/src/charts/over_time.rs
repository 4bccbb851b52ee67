//! Common parts of the charts over time: one x axis for all, bins as lines, the shaded warm-up and drain.

use pubmark_record::cost::ResourceRow;
use pubmark_record::faults::FaultRow;
use pubmark_record::record::Record;
use pubmark_record::tables::SeriesRow;

use crate::plot::axis::run_time_label;
use crate::plot::{Axis, Band, Join, Line, Plot};

/// Width of a fault without duration, as a share of the axis.
const NARROWEST: f64 = 0.004;
/// Height of a panel, pixels.
const HEIGHT: f64 = 200.0;

/// First and last time that any of these charts shows; `None` without data over time.
pub(super) fn extent(record: &Record) -> Option<(f64, f64)> {
    let starts =
        record.tables.series.iter().map(|row| row.t_s).chain(record.tables.resource_series.iter().map(|row| row.t_s));
    let ends = record
        .tables
        .series
        .iter()
        .map(|row| row.t_s + row.width_s)
        .chain(record.tables.resource_series.iter().map(|row| row.t_s));
    let from = starts.fold(f64::INFINITY, f64::min);
    let to = ends.fold(f64::NEG_INFINITY, f64::max);
    (from.is_finite() && to > from).then_some((from, to))
}

/// Faults, from the time they were done until they ended; a fault without duration gets the smallest visible width.
fn faults(record: &Record, narrowest_s: f64) -> Vec<Band> {
    let Some(figures) = &record.conditions.faults else { return Vec::new() };
    let band = |fault: &FaultRow| {
        let from = fault.done_at_s?;
        let to = fault.ended_at_s.unwrap_or(from).max(from + narrowest_s);
        Some(Band { from, to, label: fault.kind.to_string(), is_fault: true })
    };
    figures.faults.iter().filter_map(band).collect()
}

/// A panel over time.
pub(super) fn panel(record: &Record, y: Axis, lines: Vec<Line>, readings: Vec<(f64, String)>) -> Option<Plot> {
    let (from, to) = extent(record)?;
    let mut bands = Vec::new();
    if from < 0.0 {
        bands.push(Band { from, to: 0.0, label: "warm-up".to_string(), is_fault: false });
    }
    let window_s = record.window_s();
    if to > window_s {
        bands.push(Band { from: window_s, to, label: "drain".to_string(), is_fault: false });
    }
    bands.extend(faults(record, (to - from) * NARROWEST));
    Some(Plot { bands, ..Plot::of_lines(Axis::run_time(from, to), y, lines, readings, HEIGHT) })
}

/// Times at which bins can be read: their middles.
pub(super) fn bin_readings(rows: &[SeriesRow]) -> Vec<(f64, String)> {
    let label = |row: &SeriesRow| format!("{} + {}", run_time_label(row.t_s), run_time_label(row.width_s));
    rows.iter().map(|row| (row.t_s + row.width_s / 2.0, label(row))).collect()
}

/// A line over bins. A bin without a value is a gap, and so is a period without bins.
pub(super) fn bins(
    rows: &[SeriesRow],
    name: &str,
    style: usize,
    value: impl Fn(&SeriesRow) -> Option<f64>,
    print: impl Fn(f64) -> String,
) -> Line {
    let mut points: Vec<(f64, Option<f64>)> = Vec::with_capacity(rows.len() + 1);
    let mut end: Option<f64> = None;
    for row in rows {
        if let Some(end) = end.filter(|end| row.t_s - *end > 1e-6) {
            points.push((end, None));
        }
        points.push((row.t_s, value(row)));
        end = Some(row.t_s + row.width_s);
    }
    if let (Some(end), Some(last)) = (end, rows.last()) {
        points.push((end, value(last)));
    }
    let readings = rows.iter().map(|row| value(row).map_or_else(String::new, &print)).collect();
    Line::plain(name, style, Join::StepAfter, points, readings)
}

/// Times at which resources can be read.
pub(super) fn resource_readings(rows: &[ResourceRow]) -> Vec<(f64, String)> {
    rows.iter().map(|row| (row.t_s, run_time_label(row.t_s))).collect()
}

/// A line over samples of resources.
pub(super) fn resources(
    rows: &[ResourceRow],
    name: &str,
    style: usize,
    join: Join,
    value: impl Fn(&ResourceRow) -> Option<f64>,
    print: impl Fn(f64) -> String,
) -> Line {
    let points = rows.iter().map(|row| (row.t_s, value(row))).collect();
    let readings = rows.iter().map(|row| value(row).map_or_else(String::new, &print)).collect();
    Line::plain(name, style, join, points, readings)
}

/// Whether the line has a value. A line without values is not drawn and not in the legend.
pub(super) fn has_values(line: &Line) -> bool {
    line.points.iter().any(|(_, value)| value.is_some())
}

/// Largest value of the lines.
pub(super) fn largest(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, value)| *value)).fold(0.0, f64::max)
}
