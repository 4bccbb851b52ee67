//! The scorecard of a comparison: one row per system, one column per figure, a bar for each value. The colour of a bar
//! shows how certain the difference from the best is, and not which system is better.

use maud::{Markup, html};
use pubmark_record::experiment::Grade;

use crate::columns::ColumnUnit;
use crate::numbers::MISSING;
use crate::words::UNUSABLE;

/// Figures of a scorecard by their names in the table of figures, with the heads of their columns. If the first name is
/// not judged, the next one that is judged replaces it.
pub(super) const SCORED: [(&[&str], &str); 5] = [
    (&["delivered"], "delivered"),
    (&["latency p50"], "p50"),
    (&["latency p99"], "p99"),
    (&["system CPU a million", "system CPU"], "CPU"),
    (&["system memory"], "memory"),
];

/// A column.
pub(super) struct ScoreColumn {
    /// Head of the column.
    pub(super) head: &'static str,
    /// Unit, and what a value refers to.
    pub(super) unit: String,
    /// Certainty that the best is better than every other; `None` if it is not judged.
    pub(super) grade: Option<Grade>,
}

impl ScoreColumn {
    /// Unit of a figure for the head of a column.
    pub(super) fn unit_of(figure: &str, unit: ColumnUnit) -> String {
        if figure == "system CPU a million" { format!("{} a million", unit.symbol) } else { unit.symbol.to_string() }
    }
}

/// A value of a system.
#[derive(Default)]
pub(super) struct Score {
    /// Value as printed, without its unit; empty if it was not measured.
    pub(super) text: String,
    /// Both bounds as shares of the longest bar of the column.
    pub(super) bar: Option<(f64, f64)>,
    /// Difference from the best.
    pub(super) note: String,
    /// Certainty of that difference; `None` if it is not judged.
    pub(super) grade: Option<Grade>,
    /// The value must not be used and is struck through.
    pub(super) is_struck: bool,
}

/// A system.
pub(super) struct ScoreRow {
    /// Name of the system.
    pub(super) name: Markup,
    /// Further remark, for instance that the system is not ranked.
    pub(super) remark: Option<String>,
    /// One value per column, or why there are none.
    pub(super) scores: Result<Vec<Score>, String>,
}

/// The scorecard.
pub(super) fn scorecard(columns: &[ScoreColumn], rows: &[ScoreRow]) -> Markup {
    html! {
        div.scroll { table.scorecard {
            thead { tr {
                th { "" }
                @for column in columns {
                    th {
                        (column.head) @if !column.unit.is_empty() { ", " (column.unit) }
                        @if let Some(grade) = column.grade { " " (badge(grade)) }
                    }
                }
            } }
            tbody { @for one in rows { (row(columns, one)) } }
        } }
    }
}

/// A grade as a badge.
pub(super) fn badge(grade: Grade) -> Markup {
    html! { span class={ "badge " (class(Some(grade))) } { (grade.words()) } }
}

/// The class of a grade's colour.
pub(super) fn class(grade: Option<Grade>) -> &'static str {
    match grade {
        Some(Grade::Proven) => "g-proven",
        Some(Grade::Likely) => "g-likely",
        Some(Grade::NotShown) => "g-not-shown",
        None => "g-none",
    }
}

fn row(columns: &[ScoreColumn], row: &ScoreRow) -> Markup {
    html! {
        tr {
            th scope="row" { (row.name) @if let Some(remark) = &row.remark { small { (remark) } } }
            @match &row.scores {
                Ok(scores) => { @for (column, one) in columns.iter().zip(scores) { (score(column, one)) } }
                Err(why) => td.none colspan=(columns.len()) { (why) },
            }
        }
    }
}

fn score(column: &ScoreColumn, score: &Score) -> Markup {
    let width = |share: f64| format!("{:.2}", (share * 100.0).clamp(0.0, 100.0));
    html! {
        td {
            span.of { (column.head) @if !column.unit.is_empty() { ", " (column.unit) } }
            div.figure.struck[score.is_struck] {
                @if score.text.is_empty() { (MISSING) } @else { (score.text) @if score.is_struck { " " (UNUSABLE) } }
            }
            @if let Some((lower, upper)) = score.bar {
                svg class={ "bar " (class(score.grade)) } viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                    rect.upper width=(width(upper.max(0.005))) height="8" {}
                    rect.lower width=(width(lower)) height="8" {}
                }
            }
            div.note { (score.note) }
        }
    }
}
