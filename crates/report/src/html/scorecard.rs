//! The scorecard of a comparison: a row a system, a column a figure that decides, a bar for each value. The colour of a bar says
//! how well its distance from the best is known, not who is ahead.

use maud::{Markup, html};
use pubmark_record::experiment::Grade;

use crate::columns::ColumnUnit;
use crate::numbers::MISSING;

/// The figures of a scorecard by their names in the table of figures, with the heads of their columns. Where the first is not
/// judged, a later one that is takes its place.
pub(super) const SCORED: [(&[&str], &str); 5] = [
    (&["delivered"], "delivered"),
    (&["latency p50"], "p50"),
    (&["latency p99"], "p99"),
    (&["system CPU a million", "system CPU"], "CPU"),
    (&["system memory"], "memory"),
];

/// A column.
pub(super) struct ScoreColumn {
    /// What it shows.
    pub(super) head: &'static str,
    /// Its unit, with what a value refers to.
    pub(super) unit: String,
    /// How sure it is that the best is better than every other; `None` where nothing judges that.
    pub(super) grade: Option<Grade>,
}

impl ScoreColumn {
    /// The unit of a figure, as a column's head names it.
    pub(super) fn unit_of(figure: &str, unit: ColumnUnit) -> String {
        if figure == "system CPU a million" { format!("{} a million", unit.symbol) } else { unit.symbol.to_string() }
    }
}

/// A value of a system.
#[derive(Default)]
pub(super) struct Score {
    /// As it is printed, without its unit; empty where it was not measured.
    pub(super) text: String,
    /// Both bounds as shares of the longest bar of the column.
    pub(super) bar: Option<(f64, f64)>,
    /// How far it is from the best.
    pub(super) note: String,
    /// How sure that distance is; `None` where nothing judges it.
    pub(super) grade: Option<Grade>,
    /// It must not be used.
    pub(super) is_struck: bool,
}

/// A system.
pub(super) struct ScoreRow {
    /// Its name.
    pub(super) name: Markup,
    /// What else to know of it, for instance that it is not ranked.
    pub(super) remark: Option<String>,
    /// A value a column, or why there is none at all.
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
            div.figure.struck[score.is_struck] { @if score.text.is_empty() { (MISSING) } @else { (score.text) } }
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
