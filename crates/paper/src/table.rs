//! One table: every cell of its experiment with the printed and the measured value.

use pubmark_model::experiment::{Experiment, PaperFigures, PlannedCell, cells};
use pubmark_record::experiment::{Cell, CellFigure, system_failures};

use crate::collect::{NOT_RUN, Part};
use crate::definition::Table;
use crate::record::{MeanFigure, TableCell, TableResult};
use pubmark_runner::without_output;

/// Value of an axis that the experiment neither varies nor names.
const NO_VALUE: &str = "";

/// Builds a table.
pub(crate) fn table(table: &Table, part: &Part) -> TableResult {
    let experiment = &part.experiment;
    let printed: Vec<&PaperFigures> = of_figure(experiment, &table.figure).collect();
    let found: Vec<TableCell> = cells(experiment).iter().map(|cell| table_cell(table, part, &printed, cell)).collect();
    let joined = |text: fn(&PaperFigures) -> &str| {
        let mut texts: Vec<&str> = printed.iter().map(|paper| text(paper)).filter(|text| !text.is_empty()).collect();
        texts.dedup();
        texts.join("; ")
    };
    TableResult {
        title: table.title.clone(),
        experiment: table.experiment.clone(),
        figure: table.figure.clone(),
        rows: table.rows.clone(),
        columns: table.columns.clone(),
        printed_of: joined(|paper| &paper.versions),
        differs: joined(|paper| &paper.differs),
        comparable: table.comparable,
        cells: found,
    }
}

fn of_figure<'a>(experiment: &'a Experiment, figure: &'a str) -> impl Iterator<Item = &'a PaperFigures> {
    experiment.papers.iter().filter(move |paper| paper.figure == figure)
}

fn table_cell(table: &Table, part: &Part, printed: &[&PaperFigures], planned: &PlannedCell) -> TableCell {
    let values = |axes: &[String]| -> Vec<String> {
        axes.iter().map(|axis| planned.values.get(axis).map_or(NO_VALUE, String::as_str).to_owned()).collect()
    };
    let cell = part.cell(&planned.id);
    let failed = cell.as_ref().ok().and_then(|cell| failed(cell));
    let system_failed = failed.is_some();
    let (measured, (reason, detail)) = match cell {
        Ok(cell) => match measured(cell, &table.figure) {
            Some(found) => (Some(found), failed.unzip()),
            None => {
                let (reason, detail) = missing(cell);
                (None, (Some(reason), detail))
            }
        },
        Err(reason) => (None, (Some(reason), None)),
    };
    TableCell {
        row: values(&table.rows),
        column: values(&table.columns),
        printed: printed.iter().find_map(|paper| value_at(paper, planned)),
        measured,
        reason,
        system_failed,
        detail,
        started_at: None,
        complete: Some(part.is_cell_complete(&planned.id)),
    }
}

/// The printed value of a cell.
fn value_at(paper: &PaperFigures, cell: &PlannedCell) -> Option<f64> {
    let is_here = |at: &[String]| {
        paper.columns.iter().zip(at).all(|(axis, value)| cell.values.get(axis).is_some_and(|here| here == value))
    };
    paper.rows.iter().find(|row| is_here(&row.at)).map(|row| row.value)
}

/// A figure of a cell, if it was measured in a run.
pub(crate) fn measured(cell: &Cell, figure: &str) -> Option<MeanFigure> {
    let found: &CellFigure = cell.figures.iter().find(|found| found.figure == figure)?;
    Some(MeanFigure {
        mean: found.mean?,
        lower: found.mean_bounds()[0],
        interval: found.whole_interval(),
        runs: found.values.iter().flatten().count() as u32,
        shown_only: found.shown_only,
    })
}

/// In how many repetitions of a cell the system failed, and how it failed first; `None` if it failed in none.
pub(crate) fn failed(cell: &Cell) -> Option<(String, String)> {
    let (words, first) = system_failures(cell.runs.len(), &cell.failures)?;
    Some((words, own_words(&first.text)))
}

/// The reason why a cell lacks a figure: a short one, and a full sentence.
fn missing(cell: &Cell) -> (String, Option<String>) {
    match cell.failures.first() {
        Some(failure) if cell.runs.is_empty() => (failure.kind.words().to_owned(), Some(own_words(&failure.text))),
        _ if cell.runs.is_empty() => (NOT_RUN.to_owned(), None),
        _ => ("not measured".to_owned(), None),
    }
}

/// A reason without the output of another program, because that names hosts and addresses of one machine.
pub(crate) fn own_words(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    without_output(first).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use pubmark_record::sample_experiment;

    use super::*;

    #[test]
    fn a_value_of_some_repetitions_has_the_failures_of_the_system_beside_it() {
        let record = sample_experiment::experiment();
        let starved = record.cells.last().expect("a cell");
        assert!(measured(starved, "latency p50").is_some());
        let (reason, detail) = failed(starved).expect("two failures");
        assert_eq!(reason, "failed in 2 of 5 repetitions (out of memory)");
        assert!(detail.starts_with("OOM-killed after 31 s"), "{detail}");
        assert_eq!(failed(&record.cells[0]), None);
    }

    #[test]
    fn a_reason_excludes_the_output_of_other_programs() {
        let whole = "image `emqx` is not here: `podman pull emqx` fetches it; it printed: lookup failed on 192.0.2.1: no such host";
        assert_eq!(own_words(whole), "image `emqx` is not here: `podman pull emqx` fetches it");
        assert_eq!(own_words("not installed"), "not installed");
    }
}
