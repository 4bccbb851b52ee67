//! Runs side by side on a terminal: a row a run, a column a figure.

use pubmark_record::comparison::{ComparedFigure, Comparison, Unit};
use pubmark_record::record::VerdictStatus;

use super::layout::{Page, Tone, cut, printable};
use super::{COLUMNS, TerminalOptions};
use crate::numbers::{MISSING, TimeUnit, short, significant};
use crate::words::verdict_word;

/// Figures that fit into 80 columns, by their name in the comparison, with the head of their column.
const COLUMNS_SHOWN: [(&str, &str); 7] = [
    ("delivered", "deliv."),
    ("latency p50", "p50"),
    ("latency p99", "p99"),
    ("latency max", "max"),
    ("delivered rate", "rate"),
    ("system CPU", "CPU"),
    ("system memory", "memory"),
];
/// Columns of a value, with the mark of the best.
const VALUE: usize = 8;

/// The comparison as text, with a final newline.
pub fn comparison(comparison: &Comparison, options: &TerminalOptions) -> String {
    let mut page = Page::default();
    let columns: Vec<Column> = COLUMNS_SHOWN
        .iter()
        .filter_map(|(name, head)| {
            comparison.figures.iter().find(|row| row.figure.name == *name).map(|row| Column::of(head, row))
        })
        .collect();
    let name_width = COLUMNS - 2 - VALUE * columns.len();
    let row = |name: &str, values: &mut dyn Iterator<Item = String>| {
        let mut line = format!("  {:<name_width$}", cut(&printable(name), name_width - 1));
        values.for_each(|value| line.push_str(&format!("{value:>VALUE$}")));
        line
    };
    // One column of each value is the mark's.
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
    page.text(options.colour)
}

struct Column {
    head: &'static str,
    unit: String,
    values: Vec<String>,
}

impl Column {
    fn of(head: &'static str, row: &ComparedFigure) -> Column {
        let typical = row.values.iter().flatten().copied().fold(0.0, f64::max);
        let (unit, print): (String, Box<dyn Fn(f64) -> String>) = match row.figure.unit {
            Unit::Microseconds => {
                let unit = TimeUnit::for_value(typical);
                (unit.symbol().to_string(), Box::new(move |value| unit.number(Some(value))))
            }
            // A share is whole only when nothing is missing.
            Unit::Share => (
                "%".to_string(),
                Box::new(|value| {
                    if value < 1.0 { format!("{:.2}", (value * 1e4 + 1e-6).floor() / 1e2) } else { "100".to_string() }
                }),
            ),
            Unit::Cores => ("% core".to_string(), Box::new(|value| short(value * 100.0))),
            Unit::Bytes => ("MB".to_string(), Box::new(|value| significant(value / 1e6))),
            Unit::PerSecond => ("/s".to_string(), Box::new(significant)),
            Unit::Count => (String::new(), Box::new(significant)),
            Unit::CpuSecondsPerMillion => ("s/M".to_string(), Box::new(significant)),
        };
        let values = row
            .values
            .iter()
            .enumerate()
            .map(|(position, value)| {
                let mark = if row.best == Some(position) { '*' } else { ' ' };
                format!("{}{mark}", value.map_or_else(|| MISSING.to_string(), &print))
            })
            .collect();
        Column { head, unit, values }
    }
}
