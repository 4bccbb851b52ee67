//! Resources of a run: both sides, effects of limits, the whole machine.

use maud::{Markup, html};
use pubmark_record::cost::Usage;
use pubmark_record::record::Record;

use crate::numbers::{MISSING, bytes, cores, count, significant};
use crate::words::{self, limit_effect, sentence};

/// A kind of resource use.
struct CostRow {
    name: &'static str,
    meaning: &'static str,
    print: fn(&Usage) -> Option<String>,
}

fn size(value: Option<u64>) -> Option<String> {
    value.map(|value| bytes(Some(value as f64)))
}

/// All kinds of resource use; those that neither side measured are left out. A new one is a row here.
const ROWS: [CostRow; 14] = [
    row("CPU time", "in the measured window", |usage| Some(format!("{} s", significant(usage.cpu_seconds)))),
    row("of a core", "over the window's length", |usage| Some(cores(Some(usage.cores)))),
    row("memory at its peak", "resident; shared pages count for each process", |usage| {
        size(Some(usage.peak_rss_bytes))
    }),
    row("memory when idle", "resident, before the first client", |usage| size(usage.idle_rss_bytes)),
    row("proportional memory", "shared pages divided among processes", |usage| size(usage.peak_pss_bytes)),
    row("charged memory", "by its control group, with socket buffers", |usage| size(usage.cgroup_peak_bytes)),
    row("threads", "most at a time", |usage| usage.threads.map(count)),
    row("open descriptors", "most at a time", |usage| usage.descriptors.map(count)),
    row("switches, waiting", "context switches because a thread waited", |usage| usage.voluntary_switches.map(count)),
    row("switches, preempted", "context switches because its time was over", |usage| {
        usage.involuntary_switches.map(count)
    }),
    row("run-queue wait", "its threads were ready and had no CPU, in all", |usage| {
        usage.run_queue_wait_ns.map(|ns| format!("{} s", significant(ns as f64 / 1e9)))
    }),
    row("long waits for a CPU", "of that, beyond what is usual for its threads", |usage| {
        usage.run_queue_long_wait_ns.map(|ns| format!("{} s", significant(ns as f64 / 1e9)))
    }),
    row("received", "by its TCP sockets, without headers", |usage| size(usage.received_bytes)),
    row("sent", "by its TCP sockets, without headers", |usage| size(usage.sent_bytes)),
];

const fn row(name: &'static str, meaning: &'static str, print: fn(&Usage) -> Option<String>) -> CostRow {
    CostRow { name, meaning, print }
}

pub(super) fn section(record: &Record) -> Markup {
    let (system, generator) = (&record.cost.system, &record.cost.generator);
    let programs = &record.cost.client_programs;
    if system.is_none() && generator.is_none() && record.cost.host.is_none() {
        return html! { p.missing { "Cost was not measured." } };
    }
    let value = |usage: &Option<Usage>, row: &CostRow| usage.as_ref().and_then(row.print);
    let is_known = |row: &&CostRow| [system, generator, programs].iter().any(|usage| value(usage, row).is_some());
    let rows = || ROWS.iter().filter(is_known);
    let text = |text: Option<String>| text.unwrap_or_else(|| MISSING.to_string());
    let unit_costs = words::unit_costs(record);
    html! {
        @if !unit_costs.is_empty() { p { "The system takes " (unit_costs.join(", ")) "." } }
        @if let Some(effect) = limit_effect(record) { p { (sentence(&format!("its limits were {effect}"))) } }
        @if let Some(host) = &record.cost.host {
            p { "Its whole machine, as " (host.url) " tells it: " (words::host(host)) "." }
        }
        @if let Some(contention) = words::contention(record) { p { "The machine: " (contention) "." } }
        div.scroll { table {
            caption { "Over the measured window; " (MISSING) " is what the machine does not tell" }
            thead { tr {
                th { "" } th.number { "system" } th.number { "pubmark" }
                @if programs.is_some() { th.number { "client program" } }
            } }
            tbody {
                (per_million(record))
                @for row in rows() {
                    tr {
                        th scope="row" { (row.name) small { (row.meaning) } }
                        td.number { (text(value(system, row))) }
                        td.number { (text(value(generator, row))) }
                        @if programs.is_some() { td.number { (text(value(programs, row))) } }
                    }
                }
            }
        } }
        @if !record.cost.groups.is_empty() { (groups(record)) }
    }
}

/// Groups of clients that had processes of their own.
fn groups(record: &Record) -> Markup {
    html! {
        div.scroll { table {
            caption { "Clients with processes of their own" }
            thead { tr { th { "" } th.number { "CPU time" } th.number { "of a core" } th.number { "peak memory" } } }
            tbody {
                @for (name, usage) in words::costs(record, "pubmark").iter().skip(words::sides(record)) {
                    tr {
                        th scope="row" { (name) }
                        td.number { (usage.map_or_else(|| MISSING.to_string(), |usage| format!("{} s", significant(usage.cpu_seconds)))) }
                        td.number { (cores(usage.map(|usage| usage.cores))) }
                        td.number { (bytes(usage.map(|usage| usage.peak_rss_bytes as f64))) }
                    }
                }
            }
        } }
    }
}

fn per_million(record: &Record) -> Markup {
    let cost = &record.cost;
    let cpu = |value: Option<f64>| value.map_or_else(|| MISSING.to_string(), |cpu| format!("{} s", significant(cpu)));
    html! {
        @if cost.system_cpu_s_per_million.is_some() || cost.generator_cpu_s_per_million.is_some() {
            tr {
                th scope="row" { "CPU time a million messages" small { "that arrived, replies included" } }
                td.number { (cpu(cost.system_cpu_s_per_million)) }
                td.number { (cpu(cost.generator_cpu_s_per_million)) }
                @if cost.client_programs.is_some() { td.number { (cpu(cost.client_programs_cpu_s_per_million)) } }
            }
        }
        @if let Some(size) = cost.system_bytes_per_connection {
            tr {
                th scope="row" { "memory a connection" small { "growth from idle to peak over the connections" } }
                td.number { (bytes(Some(size))) }
                td.number { (MISSING) }
                @if cost.client_programs.is_some() { td.number { (MISSING) } }
            }
        }
    }
}
