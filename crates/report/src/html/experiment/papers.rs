//! Figures of publications for the same cells: their value, ours, and the ratio.

use maud::{Markup, html};
use pubmark_record::experiment::PaperFigures;

use super::super::with_code;
use crate::experiment::{Beside, View};
use crate::words::UNUSABLE;

/// The section; empty if the experiment names no publication.
pub(super) fn section(view: &View) -> Markup {
    html! {
        @if !view.record.papers.is_empty() {
            section #papers {
                h2 { "Beside the publications" }
                @for paper in &view.record.papers { (table(view, paper)) }
            }
        }
    }
}

fn table(view: &View, paper: &PaperFigures) -> Markup {
    let Beside { unit, rows, versions_here } = Beside::of(view, paper);
    html! {
        h3 { (paper.source) ": " (paper.figure) }
        div.scroll { table {
            thead { tr {
                th { "cell" } th.number { "printed" @if !unit.symbol.is_empty() { ", " (unit.symbol) } }
                th.number { "here" @if !unit.symbol.is_empty() { ", " (unit.symbol) } } th.number { "here / printed" }
            } }
            tbody {
                @for row in &rows {
                    tr {
                        th scope="row" { (row.label) }
                        td.number { (unit.number(row.printed)) }
                        @match row.failed {
                            Some(why) => td.none colspan="2" { (why) },
                            None => {
                                td.number.struck[row.is_unusable] {
                                    (unit.bounds([row.here_lower, row.here])) @if row.is_unusable { " " (UNUSABLE) }
                                    @if let Some((low, high)) = row.interval { small { (unit.number(low)) "–" (unit.number(high)) } }
                                }
                                td.number { (row.times()) }
                            }
                        }
                    }
                }
            }
        } }
        @if !paper.versions.is_empty() { p.aside { "Measured there: " (paper.versions) "." } }
        @if !versions_here.is_empty() { p.aside { "Measured here: " (versions_here) "." } }
        @if !paper.differs.is_empty() { p { "Why ours differ: " (with_code(&paper.differs)) } }
    }
}
