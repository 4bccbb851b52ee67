//! All runs in the order of execution, with links to their reports.

use maud::{Markup, html};
use pubmark_record::experiment::{Cell, CellFailure, CellRun};
use pubmark_record::record::VerdictStatus;

use crate::columns::{ColumnUnit, figure};
use crate::experiment::View;
use crate::html::{local, with_code};
use crate::numbers::MISSING;
use crate::words::{UNUSABLE, UNUSABLE_MEANS, verdict_word};

/// Most rows that are shown unfolded.
const UNFOLDED: usize = 30;
/// Figures of a run that are shown.
const SHOWN: [(&str, &str); 3] =
    [("latency p50", "p50"), ("latency p99", "p99"), ("system CPU a million", "CPU a million")];

pub(super) fn section(view: &View) -> Markup {
    let mut runs: Vec<(&Cell, usize, &CellRun)> = view
        .record
        .cells
        .iter()
        .flat_map(|cell| cell.runs.iter().enumerate().map(move |(position, run)| (cell, position, run)))
        .collect();
    runs.sort_by_key(|(_, _, run)| run.order);
    let failures: Vec<(&Cell, &CellFailure)> =
        view.record.cells.iter().flat_map(|cell| cell.failures.iter().map(move |failure| (cell, failure))).collect();
    let shown: Vec<(&str, &str, ColumnUnit)> =
        SHOWN.iter().filter_map(|(name, head)| Some((*name, *head, view.unit(name)?))).collect();
    html! {
        @if !failures.is_empty() { h3 { "Without figures" } (failed(&failures)) }
        @if runs.iter().any(|(_, _, run)| run.verdict == VerdictStatus::Invalid) {
            p.aside { "Struck through and " (UNUSABLE) ": " (UNUSABLE_MEANS) "." }
        }
        details open[runs.len() <= UNFOLDED] {
            summary { (runs.len()) " runs with figures, in the order in which they were made" }
            div.scroll { table.sortable {
                thead { tr {
                    th.number { "order" } th { "cell" } th.number { "repetition" } th { "verdict" }
                    @for (_, head, unit) in &shown { th.number { (head) ", " (unit.symbol) } }
                    th.number { "waited, s" } th { "report" }
                } }
                tbody {
                    @for (cell, position, run) in &runs {
                        tr.(verdict_word(run.verdict)) {
                            td.number data-sort=(run.order) { (run.order) }
                            th scope="row" { (cell.label) }
                            td.number data-sort=(run.repetition) { (run.repetition) }
                            td.result { @if run.verdict != VerdictStatus::Valid { "! " } (verdict_word(run.verdict)) }
                            @for (name, _, unit) in &shown { (value(cell, *position, name, *unit)) }
                            td.number data-sort=(run.waited_ms) {
                                (format!("{:.1}", run.waited_ms as f64 / 1e3)) @if run.busy { small.caution { "! busy" } }
                            }
                            td { a href=(local(&format!("{}/report.html", run.folder))) { (leaf(&run.folder)) } }
                        }
                    }
                }
            } }
        }
    }
}

/// Both bounds of a figure in a run, struck through if the verdict of the run excludes it.
fn value(cell: &Cell, position: usize, name: &str, unit: ColumnUnit) -> Markup {
    let found = cell.figures.iter().find(|figure| figure.figure == name);
    let value = found.and_then(|figure| figure.values.get(position).copied().flatten());
    let lower = found.and_then(|figure| figure.lower.as_ref()?.values.get(position).copied().flatten());
    let is_struck =
        found.zip(figure(name)).is_some_and(|(found, figure)| found.is_excluded(figure, &cell.runs, position));
    html! {
        td.number.struck[is_struck] data-sort=(value.unwrap_or(-1.0)) {
            (unit.bounds([lower, value])) @if is_struck { " " (UNUSABLE) }
        }
    }
}

fn failed(failures: &[(&Cell, &CellFailure)]) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "cell" } th.number { "repetition" } th { "what" } th { "why" } th { "folder" } } }
            tbody {
                @for (cell, failure) in failures {
                    tr {
                        th scope="row" { (cell.label) }
                        td.number { @if failure.repetition == 0 { "all" } @else { (failure.repetition) } }
                        td.nowrap { (failure.kind.words()) }
                        td { (with_code(&failure.text)) }
                        td { @match &failure.folder { Some(folder) => a href=(local(&format!("{folder}/"))) { (leaf(folder)) }, None => (MISSING) } }
                    }
                }
            }
        } }
    }
}

/// Last component of a folder's path.
fn leaf(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}
