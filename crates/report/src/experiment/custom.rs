//! User-defined metrics in an experiment: one row per cell, one column per metric.

use pubmark_record::comparison::Unit;
use pubmark_record::custom::PREFIX;
use pubmark_record::experiment::{CellFigure, CellMetric, ExperimentRecord};
use pubmark_record::unit;

use super::is_unusable;
use crate::columns::ColumnUnit;
use crate::numbers::MISSING;
use crate::words::UNUSABLE;

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
                let ends = same.flat_map(|other| other.figure.mean_bounds()).flatten();
                let largest = ends.map(f64::abs).fold(0.0, f64::max);
                columns.push(column(metric, largest));
            }
        }
        if columns.is_empty() {
            return None;
        }
        let rows = record.cells.iter().map(|cell| {
            let value = |column: &Column| {
                let found = cell.custom.iter().find(|metric| metric.figure.figure == column.name);
                found.map_or_else(|| MISSING.to_owned(), |metric| value_of(&metric.figure, column.unit))
            };
            (cell.label.clone(), columns.iter().map(value).collect())
        });
        let rows = rows.collect();
        Some(CustomTable { heads: columns.into_iter().map(|column| column.head).collect(), rows })
    }
}

/// Both bounds of a mean, with a sign if the verdicts of all runs exclude it.
fn value_of(figure: &CellFigure, unit: ColumnUnit) -> String {
    let text = unit.bounds(figure.mean_bounds());
    if is_unusable(figure) { format!("{text} {UNUSABLE}") } else { text }
}

fn column(metric: &CellMetric, largest: f64) -> Column<'_> {
    let (of_figure, _) = unit::of_symbol(&metric.unit);
    let shown = ColumnUnit::of(of_figure, largest);
    let symbol = if of_figure == Unit::Number { &*metric.unit } else { shown.symbol };
    let name = metric.figure.figure.as_str();
    let head = if symbol.is_empty() { format!("{PREFIX}{name}") } else { format!("{PREFIX}{name}, {symbol}") };
    Column { name, head, unit: shown }
}

#[cfg(test)]
mod tests {
    use pubmark_record::sample_experiment;

    use super::*;

    #[test]
    fn a_mean_below_zero_keeps_its_sign_and_one_of_invalid_runs_has_a_mark() {
        let mut record = sample_experiment::experiment();
        let mut figure = record.cells[0].figures.iter().find(|it| it.lower.is_some()).cloned().expect("a latency");
        "cooling".clone_into(&mut figure.figure);
        figure.mean = Some(3.0);
        figure.lower.as_mut().expect("bounds").mean = Some(-2.0);
        record.cells[0].custom = vec![CellMetric { unit: "K".to_owned(), figure: figure.clone() }];
        let value = |record: &ExperimentRecord| CustomTable::of(record).expect("a table").rows[0].1[0].clone();
        assert_eq!(value(&record), "−2.00 to 3.00");
        figure.shown_only = true;
        record.cells[0].custom = vec![CellMetric { unit: "K".to_owned(), figure }];
        assert_eq!(value(&record), "−2.00 to 3.00 ✗");
        let unmeasured = &mut record.cells[0].custom[0].figure;
        (unmeasured.mean, unmeasured.lower) = (None, None);
        assert_eq!(value(&record), MISSING, "nothing is marked that was not measured");
    }
}
