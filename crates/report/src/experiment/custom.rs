//! User-defined metrics in an experiment: one row per cell, one column per metric.

use pubmark_record::comparison::Unit;
use pubmark_record::custom::PREFIX;
use pubmark_record::experiment::{CellMetric, ExperimentRecord};
use pubmark_record::unit;

use crate::columns::ColumnUnit;
use crate::numbers::MISSING;

/// A table in every report of an experiment.
pub struct CustomTable {
    /// Heads of the columns: the metrics with their units.
    pub heads: Vec<String>,
    /// Label of a cell and its values: means over the repetitions, both bounds.
    pub rows: Vec<(String, Vec<String>)>,
}

/// A column.
struct Column<'a> {
    name: &'a str,
    head: String,
    unit: ColumnUnit,
}

impl CustomTable {
    /// The table of an experiment; `None` if no cell has a user-defined metric.
    pub fn of(record: &ExperimentRecord) -> Option<CustomTable> {
        let all = || record.cells.iter().flat_map(|cell| &cell.custom);
        let mut columns: Vec<Column> = vec![];
        for metric in all() {
            let name = metric.figure.figure.as_str();
            if columns.iter().all(|known| known.name != name) {
                let same = all().filter(|other| other.figure.figure == name);
                let largest = same.filter_map(|other| other.figure.mean).map(f64::abs).fold(0.0, f64::max);
                columns.push(column(metric, largest));
            }
        }
        if columns.is_empty() {
            return None;
        }
        let rows = record.cells.iter().map(|cell| {
            let value = |column: &Column| {
                let found = cell.custom.iter().find(|metric| metric.figure.figure == column.name);
                found.map_or_else(|| MISSING.to_owned(), |metric| column.unit.bounds(metric.figure.mean_bounds()))
            };
            (cell.label.clone(), columns.iter().map(value).collect())
        });
        let rows = rows.collect();
        Some(CustomTable { heads: columns.into_iter().map(|column| column.head).collect(), rows })
    }
}

fn column(metric: &CellMetric, largest: f64) -> Column<'_> {
    let (of_figure, _) = unit::of_symbol(&metric.unit);
    let shown = ColumnUnit::of(of_figure, largest);
    let symbol = if of_figure == Unit::Number { &*metric.unit } else { shown.symbol };
    let name = metric.figure.figure.as_str();
    let head = if symbol.is_empty() { format!("{PREFIX}{name}") } else { format!("{PREFIX}{name}, {symbol}") };
    Column { name, head, unit: shown }
}
