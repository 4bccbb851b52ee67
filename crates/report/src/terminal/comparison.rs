//! A comparison of runs on a terminal: one row per run, one column per figure.

use pubmark_record::comparison::{ComparedFigure, Comparison, Unit};
use pubmark_record::record::VerdictStatus;

use super::layout::{Page, Tone, cut, printable};
use super::{COLUMNS, TerminalOptions};
use crate::columns::ColumnUnit;
use crate::numbers::{MISSING, TimeUnit, known, short, significant};
use crate::words::{UNUSABLE, UNUSABLE_MEANS, verdict_word};

/// Figures that fit into 80 columns: name in the comparison, head of the column.
const COLUMNS_SHOWN: [(&str, &str); 6] = [
    ("delivered", "deliv."),
    ("latency p50", "p50"),
    ("latency p99", "p99"),
    ("delivered rate", "rate"),
    ("system CPU", "CPU"),
    ("system memory", "memory"),
];
/// Width of a value and the mark of the best, columns.
const VALUE: usize = 8;
/// Width of a latency with both bounds and the mark, columns.
const BOUNDS: usize = 13;

/// The comparison as text, with a final newline.
pub fn comparison(comparison: &Comparison, options: &TerminalOptions) -> String {
    let mut page = Page::default();
    let columns: Vec<Column> = COLUMNS_SHOWN
        .iter()
        .filter_map(|(name, head)| {
            comparison.figures.iter().find(|row| row.figure.name == *name).map(|row| Column::of(head, comparison, row))
        })
        .collect();
    let name_width = COLUMNS - 2 - columns.iter().map(|column| column.width).sum::<usize>();
    let row = |name: &str, values: &mut dyn Iterator<Item = String>| {
        let mut line = format!("  {:<name_width$}", cut(&printable(name), name_width - 1));
        for (column, value) in columns.iter().zip(values) {
            line.push_str(&format!("{value:>width$}", width = column.width));
        }
        line
    };
    // One column of each value is reserved for the mark.
    page.line(&row("run", &mut columns.iter().map(|column| format!("{} ", column.head))), Tone::Plain);
    page.line(&row("", &mut columns.iter().map(|column| format!("{} ", column.unit))), Tone::Plain);
    for (position, run) in comparison.runs.iter().enumerate() {
        let tone = match run.record.verdict.status {
            VerdictStatus::Valid => Tone::Plain,
            VerdictStatus::Suspect => Tone::Caution,
            VerdictStatus::Invalid => Tone::Bad,
        };
        page.line(&row(&run.label, &mut columns.iter().map(|column| column.values[position].clone())), tone);
    }
    page.blank();
    for metric in &comparison.custom {
        let ends = metric.values.iter().chain(&metric.lower).flatten();
        let unit = ColumnUnit::of(metric.figure.unit, ends.copied().map(f64::abs).fold(0.0, f64::max));
        let value = |run: usize| {
            let text = unit.bounds_with_symbol(metric.bounds(run));
            if is_excluded(comparison, metric, run) { format!("{text} {UNUSABLE}") } else { text }
        };
        let values: Vec<String> = (0..comparison.runs.len()).map(value).collect();
        page.paragraph("  ", &format!("{}: {}", metric.figure.label(), values.join(" | ")), 2, Tone::Plain);
    }
    for run in &comparison.runs {
        let verdict = verdict_word(run.record.verdict.status);
        let ranked = run.not_ranked.as_ref().map_or_else(String::new, |reason| format!("; not ranked: {reason}"));
        page.paragraph("  ", &format!("{}: {verdict}{ranked} ({})", run.label, run.record.run.name), 2, Tone::Plain);
    }
    for difference in &comparison.differences {
        page.paragraph(
            "  differs: ",
            &format!("{}: {}", difference.name, difference.values.join(" | ")),
            2,
            Tone::Caution,
        );
    }
    page.blank();
    page.paragraph("  * ", comparison.caution(), 2, Tone::Plain);
    let mut rows = comparison.figures.iter().chain(&comparison.custom);
    if rows.any(|row| (0..comparison.runs.len()).any(|run| is_excluded(comparison, row, run))) {
        page.paragraph(&format!("  {UNUSABLE} "), UNUSABLE_MEANS, 1, Tone::Caution);
    }
    page.text(options.colour)
}

struct Column {
    head: &'static str,
    width: usize,
    unit: String,
    values: Vec<String>,
}

impl Column {
    fn of(head: &'static str, comparison: &Comparison, row: &ComparedFigure) -> Column {
        let typical = row.values.iter().flatten().copied().fold(0.0, f64::max);
        let (unit, print): (String, Box<dyn Fn(f64) -> String>) = match row.figure.unit {
            Unit::Microseconds => return Column::of_times(head, comparison, row, TimeUnit::for_value(typical)),
            Unit::Share => ("%".to_string(), Box::new(|value| ColumnUnit::of(Unit::Share, value).number(value))),
            Unit::Cores => ("% core".to_string(), Box::new(|value| short(value * 100.0))),
            Unit::Bytes => ("MB".to_string(), Box::new(|value| significant(value / 1e6))),
            Unit::PerSecond => ("/s".to_string(), Box::new(significant)),
            Unit::Count | Unit::Number => (String::new(), Box::new(significant)),
            Unit::CpuSecondsPerMillion => ("s/M".to_string(), Box::new(significant)),
        };
        let text = |position: usize| known(row.values[position]).map_or_else(|| MISSING.to_string(), &print);
        Column { head, width: VALUE, unit, values: marked(comparison, row, text) }
    }

    /// A column of a latency, with both bounds.
    fn of_times(head: &'static str, comparison: &Comparison, row: &ComparedFigure, unit: TimeUnit) -> Column {
        let values = marked(comparison, row, |position| unit.interval(row.bounds(position)));
        Column { head, width: BOUNDS, unit: unit.symbol().to_string(), values }
    }
}

/// Whether a run has a value that its verdict excludes.
fn is_excluded(comparison: &Comparison, row: &ComparedFigure, run: usize) -> bool {
    row.values[run].is_some() && !row.figure.is_usable(comparison.runs[run].record)
}

/// Text for each run; the best one has a mark, and what must not be used has another.
fn marked(comparison: &Comparison, row: &ComparedFigure, text: impl Fn(usize) -> String) -> Vec<String> {
    let mark = |position| match row.best == Some(position) {
        true => "*",
        false if is_excluded(comparison, row, position) => UNUSABLE,
        false => " ",
    };
    (0..row.values.len()).map(|position| format!("{}{}", text(position), mark(position))).collect()
}
