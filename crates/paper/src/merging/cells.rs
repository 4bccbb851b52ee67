//! Cells of an earlier table beside those of a later one.

use pubmark_experiment::experiment::definition;
use pubmark_model::experiment::{PlannedCell, cells};
use pubmark_record::experiment::FailureKind;

use crate::collect::{LEFT_OUT, NOT_RUN, SYSTEM};
use crate::record::{TableCell, TableResult};

/// Failures of cells in which nothing was run, or not to its end. A value of an earlier record says more.
pub(super) const NOTHING_MADE: [FailureKind; 4] =
    [FailureKind::NotInstalled, FailureKind::Unsupported, FailureKind::NoRoom, FailureKind::Interrupted];

/// Whether nothing was run in a cell, or not to its end.
pub(super) fn is_without_runs(cell: &TableCell) -> bool {
    let is_reason =
        |why: &str| [NOT_RUN, LEFT_OUT].contains(&why) || NOTHING_MADE.iter().any(|kind| kind.words() == why);
    cell.measured.is_none() && cell.reason.as_deref().is_some_and(is_reason)
}

/// Value of the axis of systems in a cell.
pub(super) fn system_of<'a>(table: &TableResult, cell: &'a TableCell) -> Option<&'a str> {
    let mut at = table.rows.iter().zip(&cell.row).chain(table.columns.iter().zip(&cell.column));
    at.find(|(axis, _)| *axis == SYSTEM).map(|(_, value)| value.as_str())
}

/// Adds cells of an earlier table that this one does not have, or has without runs. Those with runs name the start of these.
pub(super) fn add_cells(table: &mut TableResult, earlier: &TableResult, start: impl Fn(&TableCell) -> Option<String>) {
    let measured: Vec<String> = table
        .cells
        .iter()
        .filter(|cell| cell.measured.is_some())
        .filter_map(|cell| system_of(table, cell).map(str::to_owned))
        .collect();
    // A system that was run now is installed by now.
    let is_outdated = |cell: &TableCell| {
        let is_of_run = |system: &str| measured.iter().any(|own| own == system);
        is_without_runs(cell) && system_of(earlier, cell).is_some_and(is_of_run)
    };
    for cell in &earlier.cells {
        let started_at = if is_without_runs(cell) { None } else { start(cell) };
        let added = TableCell { started_at, ..cell.clone() };
        match table.cells.iter().position(|own| own.row == cell.row && own.column == cell.column) {
            Some(own) if is_without_runs(&table.cells[own]) && !is_without_runs(cell) => {
                table.cells[own] = added;
            }
            Some(_) => {}
            None if is_outdated(cell) => {
                // That it could not be run was all that it lacked.
                let complete = added.complete.map(|_| false);
                table.cells.push(TableCell { reason: Some(NOT_RUN.to_owned()), detail: None, complete, ..added });
            }
            None => table.cells.push(added),
        }
    }
    for (text, before) in [(&mut table.printed_of, &earlier.printed_of), (&mut table.differs, &earlier.differs)] {
        if text.is_empty() {
            text.clone_from(before);
        }
    }
    sort_cells(table);
}

/// Sorts cells in the order of the experiment with all its values.
fn sort_cells(table: &mut TableResult) {
    let Ok(whole) = definition::load(&table.experiment) else { return };
    let planned = cells(&whole.experiment);
    let (rows, columns) = (&table.rows, &table.columns);
    let place = |cell: &TableCell| {
        let is_there = |one: &PlannedCell| {
            // The rows of a figure over time are no axis.
            let mut at = rows.iter().zip(&cell.row).chain(columns.iter().zip(&cell.column));
            at.all(|(axis, value)| one.values.get(axis).is_none_or(|own| own == value))
        };
        planned.iter().position(is_there)
    };
    table.cells.sort_by_cached_key(place);
}
