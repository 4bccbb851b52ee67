//! The page of an experiment, in the order of a reader's questions: which system is better and how certain is that, the
//! scorecard, how much do repetitions differ, how does latency grow with the load, how bad is the tail, what is lost,
//! what does it cost, all figures, what do publications report, what exactly was compared, which runs does it consist
//! of, how can it be repeated.

mod duels;
mod papers;
mod runs;
mod scorecard;
mod systems;
mod winners;

use maud::{Markup, html};
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::record::Status;

use super::reproduction::machine;
use super::scorecard::class as scorecard_class;
use super::{contents, figure, page, with_code};
use crate::charts::experiment::EXPERIMENT_CHARTS;
use crate::experiment::{CustomTable, View, headline};
use crate::numbers::{duration, seconds};
use crate::words::{self, UNUSABLE, UNUSABLE_MEANS};

/// Sections of the page.
const CONTENTS: [(&str, &str); 7] = [
    ("scorecard", "Scorecard"),
    ("charts", "Charts"),
    ("systems", "Every figure"),
    ("papers", "Beside the publications"),
    ("duels", "Who was compared with whom"),
    ("runs", "Every run"),
    ("reproduce", "Repeat it"),
];

/// The page of an experiment.
pub fn experiment(record: &ExperimentRecord) -> String {
    let view = View::of(record);
    let body = html! {
        header {
            p.kind { "pubmark experiment" }
            h1 { (record.title) }
            p { (view.what_ran()) }
            p { "started " (record.started_at) ", took " (duration(record.took_s)) }
        }
        (verdict(&view))
        (contents(CONTENTS.into_iter().filter(|(id, _)| *id != "papers" || !record.papers.is_empty())))
        main {
            section #scorecard { h2 { "Scorecard" } (scorecard::section(&view)) }
            section #charts {
                h2 { "Charts" }
                @if view.has_unusable() { p.aside { (UNUSABLE) " is " (UNUSABLE_MEANS) "." } }
                @for row in &EXPERIMENT_CHARTS {
                    @if let Some(chart) = (row.draw)(&view) { (figure::figure(row.id, &chart)) }
                }
            }
        }
        section #systems { h2 { "Every figure" } (winners::section(&view)) (systems::section(&view)) (custom(record)) }
        (papers::section(&view))
        section #duels { h2 { "Who was compared with whom" } (duels::section(&view)) }
        section #runs { h2 { "Every run" } (runs::section(&view)) }
        section #reproduce { h2 { "Repeat it" } (reproduce(record)) }
    };
    page(&format!("{}: {}", record.title, headline(&view)), &body)
}

/// The winners, by which figures, how certain that is, and cautions for quoting.
fn verdict(view: &View) -> Markup {
    let conclusions = view.conclusions();
    let has_winner = conclusions.iter().any(|conclusion| conclusion.has_winner);
    // The colour shows the certainty and not the winner.
    let surest = conclusions.iter().map(|conclusion| conclusion.grade).max();
    let status = match view.record.status {
        Status::Interrupted => "suspect",
        Status::Complete => scorecard_class(surest),
    };
    html! {
        section #verdict.(status) {
            h2 { @if has_winner { "★ " } (headline(view)) }
            @if view.record.status == Status::Interrupted {
                p { "The experiment was interrupted: what stands here was measured until then." }
            }
            @if !conclusions.is_empty() {
                ul.reasons { @for one in &conclusions { li.none[!one.has_winner] { (one.sentence()) } } }
            }
            @if !view.record.cautions.is_empty() {
                h3 { "Before quoting this" }
                ul.cautions { @for caution in &view.record.cautions { li { (with_code(caution)) } } }
            }
            p.aside {
                "Proven: the difference would come by chance in one of a hundred experiments of equal systems, all their figures \
                 together. Likely: its 95 % interval lies on one side of none. Not shown: it may be nothing."
            }
        }
    }
}

/// User-defined metrics.
fn custom(record: &ExperimentRecord) -> Markup {
    let Some(table) = CustomTable::of(record) else { return html! {} };
    html! {
        h3 { "Metrics of your own" }
        div.scroll { table {
            thead { tr { th { "" } @for head in &table.heads { th.number { (head) } } } }
            tbody { @for (label, values) in &table.rows {
                tr { th scope="row" { (label) } @for value in values { td.number { (value) } } }
            } }
        } }
        p.hint { "Means over the repetitions. They are shown and not judged: pubmark does not know which values are better." }
    }
}

fn reproduce(record: &ExperimentRecord) -> Markup {
    let mut rows = vec![
        ("pubmark", record.pubmark_version.clone()),
        ("experiment", format!("{}, started {}", record.name, record.started_at)),
        ("workload", format!("{}, seed {}", record.workload_words(), record.seed)),
        ("order of the runs", format!("random, seed {}", record.order_seed)),
        ("each run", format!("{} warm-up, {} measured", seconds(record.warmup_s), seconds(record.duration_s))),
        ("repetitions planned", record.repetitions.to_string()),
    ];
    rows.extend(machine(&record.environment));
    rows.extend(record.nodes.as_ref().map(|nodes| ("machines that joined", nodes.in_words())));
    html! {
        p { "The exact command:" }
        pre { code { (words::command_line(&record.command)) } }
        @if !record.definition.is_empty() {
            details open {
                summary { "The whole definition: save it as a file for " code { "pubmark experiment FILE" } }
                pre { code { (record.definition) } }
            }
        }
        div.scroll { table.facts { tbody {
            @for (name, value) in &rows { tr { th scope="row" { (name) } td { (value) } } }
        } } }
        p { "Files beside this page: " a href="experiment.json" { "experiment.json" } ", "
            a href="csv/cells.csv" { "csv/cells.csv" } ", " a href="csv/runs.csv" { "csv/runs.csv" } "." }
    }
}
