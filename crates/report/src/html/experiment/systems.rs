//! The main table: one row per cell, grouped by common settings.

use maud::{Markup, html};
use pubmark_record::experiment::CellFigure;
use pubmark_record::record::SystemInfo;

use crate::columns::ColumnUnit;
use crate::experiment::{Member, View, is_unusable};
use crate::html::with_code;
use crate::numbers::{MISSING, count};
use crate::words::{UNUSABLE, UNUSABLE_MEANS};

/// Number of cells above which a row is one line, without intervals.
const DENSE: usize = 16;

pub(super) fn section(view: &View) -> Markup {
    let columns = view.columns.len();
    let is_dense = view.record.cells.len() > DENSE;
    let with_papers = view.members().any(|member| papers(member).is_some());
    html! {
        p.aside {
            "Mean over the repetitions (geometric for times and costs where all are positive)"
            @if is_dense { "; intervals are in " code { "csv/cells.csv" } ". " } @else { ", below it the 95 % interval. " }
            "★ is better than every other beyond the noise."
            @if view.has_unusable() { " " (UNUSABLE) " is " (UNUSABLE_MEANS) "." }
        }
        div.scroll { table.cells.dense[is_dense] {
            thead { tr {
                th { (view.compared) }
                @for (column, unit) in &view.columns {
                    th.number { (column.head) @if !unit.symbol.is_empty() { small { (unit.symbol) } } }
                    @if column.figure == "delivered" { th.number { "lost" small { "all runs" } } }
                }
                th.number { "runs" small { "counted" } }
            } }
            @for group in &view.groups {
                tbody {
                    @if !group.label.is_empty() { tr.whole { th colspan=(columns + 3) scope="rowgroup" { (group.label) } } }
                    @for member in &group.members { (row(view, member)) }
                }
            }
        } }
        @if with_papers { (versions(view)) }
    }
}

fn row(view: &View, member: &Member) -> Markup {
    let is_dense = view.record.cells.len() > DENSE;
    let lost_follows = view.columns.iter().any(|(column, _)| column.figure == "delivered");
    let span = view.columns.len() + usize::from(lost_follows);
    html! {
        tr.failed[member.failed().is_some()] {
            th scope="row" {
                span.key { (key(member.style)) } (member.name_with_version())
                @if !member.is_ranked() { small { "not ranked" } }
            }
            @if let Some(why) = member.failed() {
                td.why colspan=(span) { div { strong { (why) } (reason(member)) } }
            } @else {
                @for (column, unit) in &view.columns {
                    (value(member.figure(column.figure), *unit, view.wins(member.cell, column.figure), is_dense))
                    @if column.figure == "delivered" { td.number { (lost(member)) } }
                }
            }
            td.number { (counted_runs(view, member)) }
        }
    }
}

/// Line sample of the system in the charts.
pub(super) fn key(style: usize) -> Markup {
    html! { svg viewBox="0 0 20 10" aria-hidden="true" { path class={ "line c" (style) } d="M1 5H19" {} } }
}

fn reason(member: &Member) -> Markup {
    html! { @if let Some(failure) = member.cell.failures.first() { ": " (with_code(&failure.text)) } }
}

fn value(figure: Option<&CellFigure>, unit: ColumnUnit, is_best: bool, is_dense: bool) -> Markup {
    let mean = figure.map_or([None, None], CellFigure::mean_bounds);
    let interval = figure.and_then(CellFigure::whole_interval);
    let is_struck = figure.is_some_and(is_unusable);
    html! {
        td.number.best[is_best].struck[is_struck] {
            @if is_best { "★ " } (unit.bounds(mean)) @if is_struck { " " (UNUSABLE) }
            @if let Some((low, high)) = interval.filter(|(low, high)| !is_dense && low < high) {
                small { (unit.number(low)) "–" (unit.number(high)) }
            }
        }
    }
}

/// Messages lost and unknown over all runs of a cell; `—` if one run did not count them.
fn lost(member: &Member) -> Markup {
    let total = |name: &str| -> Option<f64> { member.figure(name)?.values.iter().copied().sum() };
    html! {
        (total("lost").map_or_else(|| MISSING.to_string(), |lost| count(lost as u64)))
        @if let Some(unknown) = total("unknown").filter(|unknown| *unknown > 0.0) { small { (count(unknown as u64)) " unknown" } }
    }
}

/// Number of usable and suspect runs, and why others failed.
fn counted_runs(view: &View, member: &Member) -> Markup {
    let cell = member.cell;
    let (suspect, late) = (member.suspect_runs(), member.runs_without_times());
    let mut kinds: Vec<&str> = cell.failures.iter().map(|failure| failure.kind.words()).collect();
    kinds.dedup();
    html! {
        (member.whole_runs()) " of " (view.record.repetitions)
        @if suspect > 0 { small.caution { "! " (suspect) " suspect" } }
        @if late > 0 { small.caution { "✗ " (late) " without times" } }
        @if !cell.runs.is_empty() { @for kind in &kinds { small.caution { "✗ " (kind) } } }
    }
}

/// Versions that were run, and versions that publications measured.
fn versions(view: &View) -> Markup {
    let mut seen: Vec<(&SystemInfo, String)> = Vec::new();
    for system in view.members().filter_map(|member| member.cell.system.as_ref()) {
        if seen.iter().all(|(other, _)| other.name != system.name || other.version != system.version) {
            seen.push((system, measured(system)));
        }
    }
    html! {
        details {
            summary { "Versions run here beside those of publications" }
            div.scroll { table {
                thead { tr { th { "system" } th { "run here" } th { "in publications" } th { "back end" } } }
                tbody {
                    @for (system, papers) in &seen {
                        tr {
                            th scope="row" { (system.name) }
                            td { (system.version.as_deref().unwrap_or(MISSING)) }
                            td { (papers) }
                            td { (system.back_end) @if let Some(image) = &system.image { ", " (image) } }
                        }
                    }
                }
            } }
        }
    }
}

fn papers<'a>(member: &'a Member) -> Option<&'a SystemInfo> {
    member.cell.system.as_ref().filter(|system| !system.papers.is_empty())
}

fn measured(system: &SystemInfo) -> String {
    if system.papers.is_empty() {
        return MISSING.to_string();
    }
    let versions = system.papers.iter().map(|paper| format!("{} ({})", paper.version, paper.paper));
    versions.collect::<Vec<String>>().join(", ")
}
