//! The page of a run, arranged for a decision: the results, how well they are known, then the evidence. [`SECTIONS`]
//! has the order.

use maud::{Markup, html};
use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::verdict::usable::{Usable, usable};

use super::{
    content, contents, cost, custom, efficiency, faults, figure, generator, latency_breakdown, links, nodes,
    objectives, page, reproduction, requests, tables, tiles, transform, verdict,
};
use crate::charts::{CHARTS, Picture, Section};
use crate::words;

/// A section of the page.
struct PageSection {
    /// Anchor in the page.
    id: &'static str,
    /// Heading of the section.
    title: &'static str,
    /// Whether it shows figures of the system, which must not be quoted from an invalid run.
    is_result: bool,
    /// Whether the run has data for the section.
    is_there: fn(&Record) -> bool,
    /// Draws the content.
    draw: fn(&Record) -> Markup,
}

const fn result(
    id: &'static str,
    title: &'static str,
    is_there: fn(&Record) -> bool,
    draw: fn(&Record) -> Markup,
) -> PageSection {
    PageSection { id, title, is_result: true, is_there, draw }
}

const fn beside(id: &'static str, title: &'static str, draw: fn(&Record) -> Markup) -> PageSection {
    PageSection { id, title, is_result: false, is_there: |_| true, draw }
}

const ALWAYS: fn(&Record) -> bool = |_| true;

/// The sections below the first screen, in order: those about the system, then those about the measurement.
const SECTIONS: [PageSection; 19] = [
    result("objectives", "Objectives", |record| !record.objectives.is_empty(), objectives::section),
    result("over-time", "Over time", ALWAYS, |record| {
        html! { (small_charts(record)) (tables::rates(record)) (tables::series(record)) }
    }),
    result("latency", "Latency", ALWAYS, |record| {
        html! { (charts(record, Section::Latency)) (tables::latencies(record)) }
    }),
    result(
        "breakdown",
        "Where the time went",
        |record| record.latency.breakdown.is_some(),
        |record| html! { (charts(record, Section::LatencyBreakdown)) (latency_breakdown::section(record)) },
    ),
    result("messages", "Messages", ALWAYS, |record| {
        html! { (charts(record, Section::Messages)) (tables::books(record)) }
    }),
    result("requests", "Requests", |record| record.requests.is_some(), requests::section),
    result("content", "Filtered by content", |record| !record.delivery.content.is_empty(), content::section),
    result("custom", "Metrics of your own", |record| !record.custom.is_empty(), custom::section),
    result("types", "By device type", ALWAYS, tables::types),
    result("nodes", "Nodes", |record| !record.tables.nodes.is_empty(), nodes::section),
    result("cost", "Cost", ALWAYS, cost::section),
    result("efficiency", "Protocol efficiency", |record| record.cost.efficiency.is_some(), efficiency::section),
    result("transform", "Transformed bodies", |record| !record.cost.transform.is_empty(), transform::section),
    result("links", "Links", |record| record.conditions.links.is_some(), links::section),
    result("faults", "Faults", |record| record.conditions.faults.is_some(), faults::section),
    result("connections", "Connections", ALWAYS, tables::connections),
    beside("generator", "How good was the generator?", |record| {
        html! { (generator::section(record)) (charts(record, Section::Generator)) (generator::threads(record)) }
    }),
    beside("notes", "Warnings and deviations", verdict::notes),
    beside("reproduce", "Repeat it", reproduction::section),
];

/// The page of a run.
pub fn run(record: &Record) -> String {
    let usable = usable(record);
    let shown = || SECTIONS.iter().filter(|section| (section.is_there)(record));
    let section = |section: &PageSection| {
        html! { section id=(section.id) { h2 { a href={ "#" (section.id) } { (section.title) } } ((section.draw)(record)) } }
    };
    // For an invalid run, the reason why its figures must not be used comes first.
    let reasons_first = record.verdict.status == VerdictStatus::Invalid;
    let body = html! {
        (head(record))
        @if reasons_first { (verdict::section(record)) }
        main.invalid[usable == Usable::Nothing].without-times[usable == Usable::AllButTimes] {
            section #result { h2.unseen { "Result" } (tiles::tiles(record)) }
            @if !reasons_first { (verdict::section(record)) }
            (contents(shown().map(|section| (section.id, section.title))))
            @for one in shown().filter(|section| section.is_result) { (section(one)) }
        }
        @for one in shown().filter(|section| !section.is_result) { (section(one)) }
    };
    page(
        &format!("{} on {}: {}", record.workload.name, record.system.name, words::verdict_word(record.verdict.status)),
        &body,
    )
}

fn head(record: &Record) -> Markup {
    html! {
        header {
            p.kind { "pubmark run" }
            h1 { (record.workload.name) " on " (record.system.name) }
            p { (words::workload(record)) }
            p { (words::system(record)) }
            @if let Some(client) = words::client(record) { p { "client: " (client) } }
            // Versions in publications are shown in the last section.
            @for fact in words::system_facts(&record.system).iter().filter(|fact| fact.name != "papers") { p { (fact.name) ": " (fact.text) } }
            p { (words::phases(record)) "; started " (record.run.started_at) }
        }
    }
}

fn charts(record: &Record, section: Section) -> Markup {
    html! {
        @for row in CHARTS.iter().filter(|row| row.section == section) {
            @let chart = (row.draw)(record);
            @if row.is_expected || !matches!(chart.picture, Picture::Missing(_)) { (figure::figure(row.id, &chart)) }
        }
    }
}

/// The charts over time: small, side by side, with a shared cursor.
fn small_charts(record: &Record) -> Markup {
    html! {
        div.small-charts {
            @for row in CHARTS.iter().filter(|row| row.section == Section::OverTime) {
                @let chart = (row.draw)(record);
                @if row.is_expected || !matches!(chart.picture, Picture::Missing(_)) { (figure::small(row.id, &chart)) }
            }
        }
    }
}
