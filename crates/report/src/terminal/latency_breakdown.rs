//! The latency breakdown as a table.

use pubmark_record::latency::both;
use pubmark_record::latency_breakdown::BreakdownRow;
use pubmark_record::record::{Record, Summary};

use super::COLUMNS;
use super::layout::{Page, Tone, cut};
use crate::numbers::{TimeUnit, count};
use crate::words;

/// Widths of a name and of a value, columns.
const NAME: usize = 15;
const VALUE: usize = 10;
/// Width of the whole with both bounds, columns.
const WHOLE: usize = 12;
/// Heads of the columns of the parts, in order.
const HEADS: [&str; 6] = ["device", "up", "system", "down", "subscriber", "undivided"];

/// The breakdown for the `most` classes that have most messages.
pub(super) fn latency_breakdown(page: &mut Page, record: &Record, most: usize) {
    let Some(figures) = &record.latency.breakdown else { return };
    let unit = words::breakdown_unit(figures);
    let columns: Vec<usize> = words::breakdown_columns(figures).into_iter().map(|(place, _)| place).collect();
    let mut rows: Vec<&BreakdownRow> = figures.rows.iter().filter(|row| row.complete > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.complete));
    page.field("where", &words::latency_breakdown(figures), 2);
    if rows.is_empty() || most == 0 {
        return;
    }
    let heads = columns.iter().map(|place| HEADS[*place].to_owned()).chain(["whole".to_owned()]).collect::<Vec<_>>();
    page.line(&line(&format!("in {}", unit.symbol()), &heads), Tone::Plain);
    for row in rows.iter().take(most) {
        page.line(&line(&row.class, &values(row, &columns, unit, |summary| summary.p50)), Tone::Plain);
        page.line(&line("        p99", &values(row, &columns, unit, |summary| summary.p99)), Tone::Plain);
    }
    if rows.len() > most {
        page.field("", &format!("and {} more classes in the report", count((rows.len() - most) as u64)), 1);
    }
}

fn values(row: &BreakdownRow, columns: &[usize], unit: TimeUnit, get: fn(&Summary) -> Option<f64>) -> Vec<String> {
    let parts = row.parts.in_order();
    let shown = columns.iter().map(|place| unit.number(parts[*place].and_then(get)));
    shown.chain([unit.interval(both(&row.parts.whole, get))]).collect()
}

fn line(name: &str, values: &[String]) -> String {
    let mut line = format!("    {:<NAME$}", cut(name, NAME));
    let Some((whole, parts)) = values.split_last() else { return line };
    let width = VALUE.min((COLUMNS - 4 - NAME - WHOLE) / parts.len().max(1));
    parts.iter().for_each(|value| line.push_str(&format!("{:>width$}", cut(value, width - 1))));
    line.push_str(&format!("{:>WHOLE$}", cut(whole, WHOLE - 1)));
    line
}
