//! The page of a run: one offline file, complete without JavaScript. The order of its sections is that of a reader's
//! questions: can I believe it, what came out, how bad is the tail, was anything lost, what did it cost, what happened over
//! time, which devices suffer, what else should I know, can I repeat it.

mod capacity;
mod comparison;
mod cost;
mod efficiency;
mod experiment;
mod faults;
mod figure;
mod latency_breakdown;
mod links;
mod nodes;
mod reproduction;
mod requests;
mod tables;
mod verdict;

pub use capacity::capacity;
pub use comparison::comparison;
pub use experiment::experiment;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pubmark_record::record::Record;
use pubmark_record::verdict::usable::{Usable, usable};

use crate::charts::{CHARTS, Picture, Section};
use crate::words;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Nothing may be loaded; the page's own style and script are inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The page of a run.
pub fn run(record: &Record) -> String {
    let usable = usable(record);
    let body = html! {
        header {
            p.kind { "pubmark run" }
            h1 { (record.workload.name) " on " (record.system.name) }
            p { (words::workload(record)) }
            p { (words::system(record)) }
            @for fact in words::system_facts(&record.system) { p { (fact.name) ": " (fact.text) } }
            p { (words::phases(record)) "; started " (record.run.started_at) }
        }
        (verdict::section(record))
        // Figures of an invalid run that are not to be used are greyed; the reason stands above them.
        main.invalid[usable == Usable::Nothing].without-times[usable == Usable::AllButTimes] {
            section #figures { h2 { "Figures" } (tables::headline(record)) (tables::rates_and_cost(record)) }
            section #latency { h2 { "Latency" } (charts(record, Section::Latency)) }
            @if record.latency.breakdown.is_some() {
                section #latency-breakdown {
                    h2 { "Where the time went" } (charts(record, Section::LatencyBreakdown)) (latency_breakdown::section(record))
                }
            }
            section #messages { h2 { "Messages" } (charts(record, Section::Messages)) (tables::books(record)) }
            @if record.requests.is_some() { section #requests { h2 { "Requests" } (requests::section(record)) } }
            @if record.conditions.links.is_some() { section #links { h2 { "Links" } (links::section(record)) } }
            @if record.cost.efficiency.is_some() {
                section #efficiency { h2 { "Protocol efficiency" } (efficiency::section(record)) }
            }
            @if record.conditions.faults.is_some() { section #faults { h2 { "Faults" } (faults::section(record)) } }
            section #cost { h2 { "Cost" } (cost::section(record)) }
            section #over-time { h2 { "Over time" } (charts(record, Section::OverTime)) (tables::series(record)) }
            section #types { h2 { "By device type" } (tables::types(record)) }
            @if !record.tables.nodes.is_empty() { section #nodes { h2 { "Nodes" } (nodes::section(record)) } }
        }
        section #connections { h2 { "Connections" } (tables::connections(record)) }
        section #notes { h2 { "Warnings and deviations" } (verdict::notes(record)) }
        section #reproduce { h2 { "Repeat it" } (reproduction::section(record)) }
    };
    page(
        &format!("{} on {}: {}", record.workload.name, record.system.name, words::verdict_word(record.verdict.status)),
        &body,
    )
}

fn charts(record: &Record, section: Section) -> Markup {
    html! {
        @for row in CHARTS.iter().filter(|row| row.section == section) {
            @let chart = (row.draw)(record);
            @if row.is_expected || !matches!(chart.picture, Picture::Missing(_)) {
                (figure::figure(row.id, &chart, section == Section::OverTime))
            }
        }
    }
}

/// A text with its parts between backticks set as code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (position, part) in text.split('`').enumerate() {
            @if position % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A whole page around its body.
fn page(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) script { (PreEscaped(SCRIPT)) } }
        }
    }
    .into_string()
}
