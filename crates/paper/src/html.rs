//! The HTML page of a publication's repetition: its conclusions and whether they hold here, its tables, how they were
//! measured, and which parts are not repeated.

use maud::{Markup, html};
use pubmark_record::record::Status;
use pubmark_report::html::{local, page, with_code};
use pubmark_report::numbers::{MISSING, duration};
use pubmark_report::words::{UNUSABLE, capitalised, sentence};

use crate::missing;
use crate::record::{Outcome, PaperRecord, StatementResult, TableCell, TableResult};
use crate::words::{self, TableLayout};

/// The page as HTML.
pub fn html(record: &PaperRecord) -> String {
    let body = html! {
        header {
            p.kind { "pubmark paper" }
            h1 { (record.title) }
            p { (record.citation) }
            p { (words::length(record)) }
        }
        section #verdict.(status(record)) {
            h2 { (measured(record)) }
            @if record.status == Status::Interrupted { p { "Not all runs were made: what stands here was measured until then." } }
            @if !record.statements.is_empty() {
                ul.reasons { @for one in &record.statements { li { (one.conclusion) ": " (with_code(&words::counts(one))) } } }
            }
        }
        nav.contents aria-label="Contents" { ol {
            @for (number, table) in record.tables.iter().enumerate() { li { a href={ "#table-" (number) } { (table.title) } } }
            @if !record.statements.is_empty() { li { a href="#conclusions" { "Its conclusions" } } }
            li { a href="#measured" { "How it was measured" } }
        } }
        main {
            @for position in 0..record.tables.len() { (table_section(&record.tables, position)) }
        }
        @if !record.statements.is_empty() {
            section #conclusions {
                h2 { "Its conclusions" }
                p.hint { "A conclusion holds in a case where the intervals measured here are apart." }
                @for one in &record.statements { (statement(one)) }
            }
        }
        section #measured { h2 { "How it was measured" } (experiments(record)) }
        @if !record.not_repeated.is_empty() {
            section #omitted {
                h2 { "What is not repeated" }
                dl { @for one in &record.not_repeated { dt { (one.what) } dd { (with_code(&sentence(&one.why))) } } }
            }
        }
        section #reproduce {
            h2 { "Repeat it" }
            pre { code { (words::commands(record).collect::<Vec<_>>().join("\n")) } }
            p { "Files beside this page: " a href="paper.json" { "paper.json" } ", " a href="paper.md" { "paper.md" }
                ", and a folder for each experiment. "
                @if record.earlier_commands.is_empty() { "The same command makes" } @else { "The same commands, one after the other, make" }
                " what is missing. pubmark " (record.pubmark_version) "." }
        }
    };
    page(&record.title, &body)
}

fn status(record: &PaperRecord) -> &'static str {
    match record.status {
        Status::Complete => "g-none",
        Status::Interrupted => "suspect",
    }
}

/// How much of all tables was measured.
fn measured(record: &PaperRecord) -> String {
    let cells = || record.tables.iter().flat_map(|table| &table.cells);
    let here = cells().filter(|cell| cell.measured.is_some()).count();
    format!("{here} of {} values measured here", cells().count())
}

fn table_section(tables: &[TableResult], position: usize) -> Markup {
    let table = &tables[position];
    let layout = TableLayout::of(table);
    html! {
        section id={ "table-" (position) } {
            h2 { (table.title) }
            p { (layout.figure()) ": " (words::found(table)) "." }
            div.scroll { table {
                thead { tr {
                    th { (words::axes(&table.rows)) }
                    @for column in &layout.columns { th.number { (words::head(&table.columns, column)) } }
                } }
                tbody { @for row in &layout.rows { tr {
                    th scope="row" { (row.join(", ")) }
                    @for column in &layout.columns {
                        @match layout.cell(row, column) { Some(cell) => (value(&layout, cell)), None => td {} }
                    }
                } } }
            } }
            (notes(&layout, &missing::reasons(tables, position)))
        }
    }
}

fn value(layout: &TableLayout<'_>, cell: &TableCell) -> Markup {
    let beside = layout.beside(cell);
    match &cell.measured {
        Some(here) => html! { td.number { (layout.here(here)) @if let Some(beside) = beside { small { (beside) } } } },
        None => html! {
            td.number.hint { (cell.reason.as_deref().unwrap_or(MISSING)) @if let Some(beside) = beside { small { (beside) } } }
        },
    }
}

fn notes(layout: &TableLayout<'_>, missing: &[(String, String)]) -> Markup {
    let table = layout.table;
    let has_shown_only = table.cells.iter().filter_map(|cell| cell.measured.as_ref()).any(|here| here.shown_only);
    html! {
        @if has_shown_only { p.aside { (UNUSABLE) ": its runs are invalid for times; the value is shown and not judged." } }
        @for (reason, cells) in missing { p.aside { (cells) ": " (with_code(&sentence(reason))) } }
        @if !table.printed_of.is_empty() { p.aside { "Measured there: " (table.printed_of) "." } }
        @if !table.differs.is_empty() && layout.has_printed() { p { "Why ours differ: " (with_code(&sentence(&table.differs))) } }
    }
}

/// CSS class of a row by the outcome of its case.
fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "held",
        Outcome::DoesNotHold => "missed",
        Outcome::Undecided => "limited",
        Outcome::NotMeasured => "none",
    }
}

fn statement(one: &StatementResult) -> Markup {
    html! {
        h3 { (one.conclusion) }
        p { (capitalised(&one.source)) ": " (with_code(&words::counts(one))) ", by " (one.figure) "." }
        div.scroll { table {
            thead { tr { th { "should be larger" } th { "should be smaller" } th.number { "times" } th { "result" } } }
            tbody { @for case in &one.cases { tr.(class(case.outcome)) {
                th scope="row" { (case.larger) } td { (case.smaller) } td.number { (words::case_times(case)) }
                td.result { (with_code(&words::case_result(case))) }
            } } }
        } }
    }
}

fn experiments(record: &PaperRecord) -> Markup {
    html! {
        @for part in &record.experiments {
            h3 {
                @match &part.folder {
                    Some(folder) => a href=(local(&format!("{folder}/experiment.html"))) { (part.name) },
                    None => (part.name),
                }
            }
            p { (with_code(&sentence(&words::part(part, record)))) }
            @if let Some(made) = &part.runs {
                p.aside { (words::machine(made)) "; took " (duration(made.took_s)) "." }
                @for cells in &made.refused { p.aside { "Could not be run: " (with_code(cells)) "." } }
                @if !made.cautions.is_empty() {
                    ul.cautions { @for caution in &made.cautions { li { (with_code(caution)) } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Case;

    #[test]
    fn names_in_the_reason_of_a_statement_are_code() {
        let one = StatementResult {
            conclusion: "it is slower".to_owned(),
            source: "Section 1".to_owned(),
            figure: "latency p50".to_owned(),
            each: vec![],
            reason: Some("runs of `a` are of several machines".to_owned()),
            cases: vec![Case {
                label: String::new(),
                larger: "b".to_owned(),
                smaller: "a".to_owned(),
                outcome: Outcome::Undecided,
                ratio: None,
                judged_before: None,
            }],
        };
        let page = statement(&one).into_string();
        assert!(page.contains("because runs of <code>a</code> are"), "{page}");
    }
}
