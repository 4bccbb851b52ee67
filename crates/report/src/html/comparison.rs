//! The page of a comparison of single runs: scorecard, latency curves, all figures, verdicts.

mod scorecard;

use maud::{Markup, html};
use pubmark_record::comparison::{Comparison, Figure};
use pubmark_record::record::VerdictStatus;

use super::{contents, figure, page};
use crate::charts::curves;
use crate::numbers::bounded_figure;
use crate::words::{self, UNUSABLE, UNUSABLE_MEANS, verdict_word};

/// Sections of the page.
const CONTENTS: [(&str, &str); 5] = [
    ("scorecard", "Scorecard"),
    ("latency", "Latency"),
    ("figures", "Every figure"),
    ("runs", "Are the runs valid?"),
    ("reproduce", "Repeat it"),
];

/// The page of a comparison.
pub fn comparison(comparison: &Comparison) -> String {
    let Some(first) = comparison.runs.first() else { return page("comparison", &html! { p { "No runs." } }) };
    let invalid = comparison.runs.iter().any(|run| run.record.verdict.status == VerdictStatus::Invalid);
    let body = html! {
        header {
            p.kind { "pubmark comparison" }
            h1 { (first.record.workload.name) " on " (comparison.runs.len()) " runs" }
            p { (words::workload(first.record)) "; schedule " (first.record.workload.schedule_hash) }
        }
        section #scorecard {
            h2 { "Scorecard" }
            p { (words::sentence(comparison.caution())) }
            @if invalid { p.hint { "Struck through and " (UNUSABLE) ": " (UNUSABLE_MEANS) "." } }
            (scorecard::section(comparison))
        }
        (contents(CONTENTS.into_iter()))
        main {
            section #latency { h2 { "Latency" } (figure::figure("percentiles", &curves::compared(comparison))) }
            section #figures { h2 { "Every figure" } (figures(comparison)) }
        }
        section #runs { h2 { "Are the runs valid?" } (runs(comparison)) (differences(comparison)) }
        section #reproduce { h2 { "Repeat it" } (commands(comparison)) }
    };
    page(&format!("{}: comparison", first.record.workload.name), &body)
}

fn runs(comparison: &Comparison) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "run" } th { "verdict" } th { "why" } th { "ranked" } th { "record" } } }
            tbody {
                @for run in &comparison.runs {
                    @let verdict = &run.record.verdict;
                    tr.(verdict_word(verdict.status)) {
                        th scope="row" { (run.label) }
                        td.result { (verdict_word(verdict.status)) }
                        td {
                            @if verdict.reasons.is_empty() { "all " (verdict.checks.len()) " checks passed" }
                            @for reason in &verdict.reasons { div { (reason.code) ": " (reason.text) } }
                        }
                        td { @match &run.not_ranked { Some(why) => { "no: " (why) } None => "yes" } }
                        td { (run.record.run.name) }
                    }
                }
            }
        } }
    }
}

fn differences(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.differences.is_empty() {
            h3 { "In what they differ besides the system" }
            div.scroll { table {
                thead { tr { th { "" } @for run in &comparison.runs { th { (run.label) } } } }
                tbody {
                    @for difference in &comparison.differences {
                        tr { th scope="row" { (difference.name) } @for value in &difference.values { td { (value) } } }
                    }
                }
            } }
        }
    }
}

fn figures(comparison: &Comparison) -> Markup {
    let is_struck = |figure: &Figure, position: usize| !figure.is_usable(comparison.runs[position].record);
    html! {
        div.scroll { table.compared {
            thead { tr { th { "" } @for run in &comparison.runs { th.number { (run.label) } } } }
            tbody {
                @for row in comparison.figures.iter().chain(&comparison.custom) {
                    tr {
                        th scope="row" { (row.figure.label()) }
                        @for (position, value) in row.values.iter().enumerate() {
                            @let is_struck = value.is_some() && is_struck(&row.figure, position);
                            td.number.best[row.best == Some(position)].struck[is_struck] {
                                (bounded_figure(row.figure.unit, row.bounds(position)))
                                @if row.best == Some(position) { " ★" }
                                @if is_struck { " " (UNUSABLE) }
                            }
                        }
                    }
                }
            }
        } }
    }
}

fn commands(comparison: &Comparison) -> Markup {
    html! {
        @for run in &comparison.runs {
            p { (run.label) ", seed " (run.record.workload.seed) ":" }
            pre { code { (words::command_line(&run.record.run.command)) } }
        }
    }
}
