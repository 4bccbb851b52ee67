//! The page of a capacity search: the result, results at each load, every trial.

use maud::{Markup, html};
use pubmark_record::capacity::{CapacityLimit, CapacityRecord, Knob, Trial};
use pubmark_record::record::Status;

use super::reproduction::{facts, machine};
use super::{contents, figure, local, page, with_code};
use crate::charts::capacity::{CAPACITY_CHARTS, OUTCOMES, outcome};
use crate::columns::ColumnUnit;
use crate::numbers::{MISSING, TimeUnit, count, duration, short, significant};
use crate::plot::mark;
use crate::words::{self, verdict_word};

/// The page of a search.
pub fn capacity(record: &CapacityRecord) -> String {
    let body = html! {
        header {
            p.kind { "pubmark capacity" }
            h1 { (record.workload) " on " (words::system_name(&record.system)) }
            p { "searched over the " (words::knob(record.knob)) " with " code { (record.objectives) } " on " (record.protocol) ", "
                (words::counted_trials(record)) " in " (duration(record.took_s)) "; started " (record.started_at) }
            @for fact in words::system_facts(&record.system).iter().filter(|fact| fact.name != "papers") { p { (fact.name) ": " (fact.text) } }
        }
        section #result { h2.unseen { "Result" } (tiles(record)) }
        (answer(record))
        (contents(CONTENTS.into_iter()))
        main {
            section #charts {
                h2 { "At each load" }
                (legend())
                @for row in &CAPACITY_CHARTS { (figure::shared(row.id, &(row.draw)(record))) }
            }
            section #trials { h2 { "Every trial" } (trials(record)) }
        }
        section #reproduce { h2 { "Repeat it" } (reproduce(record)) }
    };
    page(&format!("{} on {}: capacity", record.workload, record.system.name), &body)
}

/// Sections of the page.
const CONTENTS: [(&str, &str); 3] = [("charts", "At each load"), ("trials", "Every trial"), ("reproduce", "Repeat it")];

/// Tiles: the highest load that held, the load of the workload, the headroom between them, and figures at the highest
/// load.
fn tiles(record: &CapacityRecord) -> Markup {
    let at_answer = record.trial_at_the_result();
    let rate = |load: Option<f64>| (load.map_or_else(|| MISSING.to_string(), significant), "messages/s");
    let p99 = at_answer.map(|trial| {
        let [lower, upper] = trial.latency.bounds(|quantiles| quantiles.p99_us);
        let unit = TimeUnit::for_value(upper.unwrap_or_default());
        (unit.interval([lower, upper]), if upper.is_some() { unit.symbol() } else { "" })
    });
    let cores = at_answer.and_then(|trial| trial.system_cores);
    let limit = match (record.result.limit, record.result.holds_per_s) {
        (CapacityLimit::System, _) => "highest load that held",
        (CapacityLimit::NothingHeld, _) => "no load that was tried held",
        (_, None) => "no load is known to hold",
        (_, Some(_)) => "at least: the end was not found",
    };
    let tiles = [
        ("Carries", rate(record.result.holds_per_s), limit),
        ("The workload as written", rate(words::load_as_written(record)), "offered at factor 1"),
        (
            "Headroom",
            (words::headroom_text(record).unwrap_or_else(|| MISSING.to_string()), ""),
            match words::headroom(record) {
                Some(times) if times < 1.0 => "the workload as written is not carried",
                Some(_) => "times the workload as written",
                None => "nothing held",
            },
        ),
        ("Latency p99 there", p99.unwrap_or_else(|| (MISSING.to_string(), "")), "at the highest load that held"),
        (
            "CPU of the system there",
            (cores.map_or_else(|| MISSING.to_string(), significant), "cores"),
            "at the highest load that held",
        ),
    ];
    html! {
        div.tiles {
            @for (name, (value, unit), beside) in &tiles {
                div.tile {
                    div.name { (name) }
                    div.values { span.value { (value) @if !unit.is_empty() && value != MISSING { " " span.unit { (unit) } } } }
                    div.beside { (beside) }
                }
            }
        }
    }
}

fn answer(record: &CapacityRecord) -> Markup {
    let status = match (record.status, record.result.limit) {
        (Status::Interrupted, _) => "suspect",
        (_, CapacityLimit::System | CapacityLimit::Range) => "valid",
        (_, CapacityLimit::Generator | CapacityLimit::Time) => "suspect",
        (_, CapacityLimit::NothingHeld) => "invalid",
    };
    html! {
        section #verdict.(status) {
            h2 { (words::capitalised(&words::capacity_headline(record))) }
            p { (with_code(record.result.text.trim_end_matches('.'))) "." }
            @if record.status == Status::Interrupted { p { "The search was interrupted: this is what was known then." } }
            p { "The limit: " (words::capacity_limit(record)) "." }
            @if !record.cautions.is_empty() {
                ul.cautions { @for caution in &record.cautions { li { (with_code(caution)) } } }
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        ul.legend.outcomes {
            @for (word, shape, class) in OUTCOMES {
                li { (mark::sample(shape, class)) span { (word) } }
            }
        }
    }
}

fn trials(record: &CapacityRecord) -> Markup {
    let typical = record.trials.iter().filter_map(|trial| trial.latency.upper.p99_us).fold(0.0, f64::max);
    let unit = TimeUnit::for_value(typical);
    let memory = record.trials.iter().filter_map(|trial| trial.system_rss_bytes).max().unwrap_or(0) as f64;
    let memory = ColumnUnit::of(pubmark_record::comparison::Unit::Bytes, memory);
    html! {
        div.scroll { table.sortable {
            caption { "In the order in which they were made; latency in " (unit.symbol()) ", memory in " (memory.symbol) }
            thead { tr {
                th.number { "trial" } th.number { "factor" } th.number { "offered/s" }
                @if record.knob == Knob::Scale { th.number { "devices" } }
                th { "outcome" } th.number { "delivered/s" } th.number { "lost" } th.number { "p50" } th.number { "p99" }
                th.number { "growth/s" } th.number { "system cores" } th.number { "pubmark cores" } th.number { "memory" }
            } }
            tbody {
                @for (position, trial) in record.trials.iter().enumerate() {
                    (row(record, position + 1, trial, unit, memory))
                }
            }
        } }
        (reasons(record))
    }
}

/// Why loads did not hold.
fn reasons(record: &CapacityRecord) -> Markup {
    let reasons = || record.trials.iter().enumerate().filter(|(_, trial)| trial.reason.is_some());
    html! {
        @if reasons().next().is_some() {
            h3 { "Why loads did not hold" }
            div.scroll { table {
                thead { tr { th.number { "trial" } th.number { "offered/s" } th { "outcome" } th { "why" } } }
                tbody {
                    @for (position, trial) in reasons() {
                        @let (word, _, class) = outcome(trial);
                        tr.(class) {
                            th.number scope="row" { (position + 1) }
                            td.number { (significant(trial.offered_per_s)) }
                            td.result { (word) }
                            td { (with_code(trial.reason.as_deref().unwrap_or_default())) }
                        }
                    }
                }
            } }
        }
    }
}

fn row(record: &CapacityRecord, number: usize, trial: &Trial, unit: TimeUnit, memory: ColumnUnit) -> Markup {
    let (word, shape, class) = outcome(trial);
    let optional = |value: Option<f64>| value.map_or_else(|| MISSING.to_string(), significant);
    let cell = |value: Option<f64>, text: String| html! { td.number data-sort=(value.unwrap_or(-1.0)) { (text) } };
    html! {
        tr.(class) {
            td.number data-sort=(number) {
                @match &trial.folder { Some(folder) => a href=(local(&format!("{folder}/report.html"))) { (number) }, None => (number) }
            }
            (cell(Some(trial.factor), short(trial.factor)))
            (cell(Some(trial.offered_per_s), significant(trial.offered_per_s)))
            @if record.knob == Knob::Scale { (cell(Some(trial.devices as f64), count(trial.devices))) }
            td.result {
                span.key { (mark::sample(shape, class)) } (word)
                @if trial.attempt > 1 { small { "try " (trial.attempt) } }
                @if let Some(verdict) = trial.verdict.filter(|verdict| *verdict != pubmark_record::record::VerdictStatus::Valid) {
                    small { (verdict_word(verdict)) }
                }
            }
            (cell(trial.delivered_per_s, optional(trial.delivered_per_s)))
            (cell(trial.loss, trial.loss.map_or_else(|| MISSING.to_string(), words::loss_share)))
            @for bounds in [trial.latency.bounds(|it| it.p50_us), trial.latency.bounds(|it| it.p99_us)] {
                (cell(bounds[1], unit.interval(bounds)))
            }
            (cell(trial.latency_growth_us_per_s, unit.number(trial.latency_growth_us_per_s)))
            (cell(trial.system_cores, optional(trial.system_cores)))
            (cell(trial.generator_cores, optional(trial.generator_cores)))
            @let bytes = trial.system_rss_bytes.map(|bytes| bytes as f64);
            (cell(bytes, memory.optional(bytes)))
        }
    }
}

fn reproduce(record: &CapacityRecord) -> Markup {
    let mut rows = vec![
        ("pubmark", record.pubmark_version.clone()),
        ("search", format!("{}, started {}", record.name, record.started_at)),
        ("workload", format!("{}, seed {}", record.workload, record.seed)),
        ("system", words::system_name(&record.system)),
        ("endpoint", record.system.endpoint.clone()),
    ];
    rows.extend(words::system_facts(&record.system).into_iter().map(|fact| (fact.name, fact.text)));
    rows.extend(machine(&record.environment));
    html! {
        (facts(&record.command, &rows, &record.system))
        p { "Files beside this page: " a href="capacity.json" { "capacity.json" } ", " a href="csv/trials.csv" { "csv/trials.csv" } "." }
    }
}
