//! Percentile curves on a scale of nines, of one run or of several: shows the tail.

use pubmark_record::comparison::Comparison;
use pubmark_record::figures::delivered_share;
use pubmark_record::latency::{both, upper};
use pubmark_record::record::{Curve, Record};
use pubmark_record::verdict::usable::{Usable, usable};

use super::{Chart, Picture};
use crate::numbers::{count, interval};
use crate::plot::axis::nines;
use crate::plot::{Axis, Join, Line, Plot};
use crate::words::{UNUSABLE, UNUSABLE_MEANS, latency_finding, sentence, share_arrived};

const TITLE: &str = "How late do messages arrive?";
const CSV: &str = "csv/curve.csv";
const HEIGHT: f64 = 360.0;
/// Most points at which values can be read.
const READINGS: usize = 200;

/// Curves of a record that are drawn: name in the record, name in the legend.
const SHOWN: [(&str, &str); 3] = [
    ("latency", "latency (due → delivery)"),
    ("service_latency", "service latency (write start → delivery)"),
    ("round_trip", "round trip (request due → reply)"),
];

pub(super) fn draw(record: &Record) -> Chart {
    let shown = SHOWN.iter().filter_map(|(key, name)| find(record, key).map(|curve| (key, name, curve)));
    let curves: Vec<NamedCurve> = shown
        .enumerate()
        .map(|(position, (key, name, curve))| NamedCurve {
            name: (*name).to_string(),
            style: position + 1,
            curve,
            lower: find(record, &format!("{key}_lower")),
        })
        .collect();
    let Some(plot) = overlaid(&curves, READINGS) else { return Chart::missing(TITLE, CSV, "No latency was measured.") };
    let mut notes = vec![format!("n = {}", count(curves[0].curve.count)), "lower is better".to_string()];
    if curves.iter().any(|shown| shown.lower.is_some()) {
        notes.push("band: what may be pubmark's own delay".to_string());
    }
    if record.settings.flood {
        notes.push("a flood: latencies are not judged".to_string());
    }
    Chart {
        title: TITLE,
        finding: latency_finding(upper(&record.latency.total), delivered_share(record)),
        notes,
        csv: CSV,
        picture: Picture::Plot(Box::new(plot)),
    }
}

/// Latency curves of several runs in one plot.
pub fn compared(comparison: &Comparison) -> Chart {
    let shown = comparison.runs.iter().filter_map(|run| find(run.record, "latency").map(|curve| (run, curve)));
    let curves: Vec<NamedCurve> = shown
        .enumerate()
        .map(|(position, (run, curve))| NamedCurve {
            name: run.label.clone(),
            style: position + 1,
            curve,
            lower: find(run.record, "latency_lower"),
        })
        .collect();
    let Some(plot) = overlaid(&curves, READINGS) else {
        return Chart::missing(TITLE, "", "No run measured a latency.");
    };
    let p99s: Vec<String> = comparison
        .runs
        .iter()
        .filter_map(|run| {
            let p99 = both(&run.record.latency.total, |times| times.p99);
            let mark = if usable(run.record) == Usable::Everything { String::new() } else { format!(" {UNUSABLE}") };
            let arrived = share_arrived(delivered_share(run.record));
            p99[1].map(|_| format!("{} {}{mark}{arrived}", run.label, interval(p99)))
        })
        .collect();
    let finding = if p99s.is_empty() {
        "No run has enough samples for a p99.".to_string()
    } else {
        sentence(&format!("99 % of the delivered messages arrived within: {}", p99s.join(", ")))
    };
    let fewest = curves.iter().map(|shown| shown.curve.count).min().unwrap_or(0);
    let mut notes = vec![format!("n ≥ {} a run", count(fewest)), "lower is better".to_string()];
    if comparison.runs.iter().any(|run| usable(run.record) != Usable::Everything) {
        notes.push(format!("{UNUSABLE} {UNUSABLE_MEANS}"));
    }
    Chart { title: TITLE, finding, notes, csv: "", picture: Picture::Plot(Box::new(plot)) }
}

fn find<'a>(record: &'a Record, key: &str) -> Option<&'a Curve> {
    record.tables.curves.iter().find(|curve| curve.name == key && !curve.points.is_empty())
}

/// A curve with its name and colour.
pub(super) struct NamedCurve<'a> {
    pub(super) name: String,
    pub(super) style: usize,
    pub(super) curve: &'a Curve,
    /// The lower bound, if `curve` is the upper one: a band is drawn between them.
    pub(super) lower: Option<&'a Curve>,
}

/// Several curves in one plot, with values that can be read at no more than `most_readings` points.
pub(super) fn overlaid(curves: &[NamedCurve], most_readings: usize) -> Option<Plot> {
    let most = curves.iter().map(|shown| shown.curve.count).max()?;
    let readings = reading_fractions(curves, most_readings);
    let lines = curves.iter().map(|shown| line(shown, &readings)).collect();
    let x = Axis::log_nines(most, "share of delivered messages within (below: samples beyond)");
    let y = time_axis(curves);
    let readings = readings.iter().map(|fraction| (nines(*fraction, most), percent(*fraction))).collect();
    Some(Plot::of_lines(x, y, lines, readings, HEIGHT))
}

/// An axis that includes every value of these curves.
pub(super) fn time_axis(curves: &[NamedCurve]) -> Axis {
    // The bands down to the lower bounds must lie inside, too.
    let drawn = || curves.iter().flat_map(|shown| [Some(shown.curve), shown.lower]).flatten();
    let values = || drawn().flat_map(|curve| curve.points.iter().map(|(_, value)| *value));
    let smallest = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let largest = values().fold(1.0, f64::max);
    Axis::log_time(smallest.min(largest), largest, "time, log scale")
}

fn line(shown: &NamedCurve, readings: &[f64]) -> Line {
    let curve = shown.curve;
    let placed = |curve: &Curve| -> Vec<_> {
        curve.points.iter().map(|(fraction, value)| (nines(*fraction, curve.count), Some(*value))).collect()
    };
    let text = |fraction: &f64| {
        let lower = shown.lower.and_then(|lower| value_at(lower, *fraction));
        value_at(curve, *fraction).map_or_else(String::new, |value| interval([lower, Some(value)]))
    };
    let line =
        Line::plain(&shown.name, shown.style, Join::StepBefore, placed(curve), readings.iter().map(text).collect());
    line.with_lower(shown.lower.map(placed).unwrap_or_default())
}

/// Fractions of the curve with most samples, thinned out.
fn reading_fractions(curves: &[NamedCurve], most: usize) -> Vec<f64> {
    let Some(longest) = curves.iter().map(|shown| shown.curve).max_by_key(|curve| curve.count) else {
        return Vec::new();
    };
    let every = longest.points.len().div_ceil(most).max(1);
    let last = longest.points.len().saturating_sub(1);
    let kept = longest.points.iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    kept.map(|(_, (fraction, _))| *fraction).collect()
}

/// The value that this fraction of the samples does not exceed.
fn value_at(curve: &Curve, fraction: f64) -> Option<f64> {
    curve.points.iter().find(|(at, _)| *at >= fraction - 1e-12).map(|(_, value)| *value)
}

/// A fraction as a percentage with as many decimals as needed to show its nines.
fn percent(fraction: f64) -> String {
    if fraction >= 1.0 {
        return "all".to_string();
    }
    let decimals = (-(1.0 - fraction).log10()).ceil().clamp(1.0, 9.0) as usize;
    format!("{:.*} %", decimals.saturating_sub(1), fraction * 100.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::comparison::compare;
    use pubmark_record::sample;

    use super::*;

    /// The sample, of which 30 % of the messages were lost.
    fn lossy() -> Record {
        let mut record = sample::record();
        let messages = &mut record.delivery.messages;
        (messages.delivered, messages.lost) = (messages.expected * 7 / 10, messages.expected * 3 / 10);
        record
    }

    #[test]
    fn percentiles_are_said_of_the_messages_that_arrived() {
        assert!(draw(&sample::record()).finding.starts_with("Half of the messages arrive within 0.31"));
        let finding = draw(&lossy()).finding;
        assert!(finding.starts_with("70 % of the messages arrived: half of these within 0.31"), "{finding}");
        let records = [sample::record(), lossy()];
        let finding = compared(&compare(&records).unwrap()).finding;
        assert!(finding.starts_with("99 % of the delivered messages arrived within: "), "{finding}");
        assert_eq!(finding.matches("(70 % arrived)").count(), 1, "{finding}");
    }
}
