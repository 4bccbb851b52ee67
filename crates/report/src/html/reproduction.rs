//! What is needed to repeat the run: command, seed, versions, machine, configuration.

use maud::{Markup, html};
use pubmark_record::record::{Environment, Record, SystemInfo};

use super::local;
use crate::numbers::{MISSING, bytes, count, percentage, seconds, short};
use crate::words::{command_line, system_facts};

pub(super) fn section(record: &Record) -> Markup {
    html! {
        (facts(&record.run.command, &rows(record), &record.system))
        p { "Files beside this page: " a href="record.json" { "record.json" } ", "
            @for (holds, file) in &record.run.files { a href=(local(file)) { (file) } " (" (holds) "), " }
            "and one CSV file a table. " code { "pubmark report RUN" } " makes this page again." }
    }
}

/// The command, further requirements, and the system's configuration.
pub(super) fn facts(command: &[String], rows: &[(&'static str, String)], system: &SystemInfo) -> Markup {
    html! {
        p { "The exact command:" }
        pre { code { (command_line(command)) } }
        div.scroll { table.facts { tbody {
            @for (name, value) in rows { tr { th scope="row" { (name) } td { (value) } } }
        } } }
        @if let Some(configuration) = &system.configuration {
            details { summary { "Configuration of " (system.name) } pre { code { (configuration) } } }
        }
    }
}

fn rows(record: &Record) -> Vec<(&'static str, String)> {
    let (workload, settings) = (&record.workload, &record.settings);
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(|| MISSING.to_string());
    let yes_no = |value: bool| if value { "yes" } else { "no" }.to_string();
    let mut rows = vec![
        ("pubmark", record.run.pubmark_version.clone()),
        ("run", format!("{}, started {}", record.run.name, record.run.started_at)),
        (
            "workload",
            format!(
                "{}{}, scale {}, seed {}",
                workload.name,
                workload.reading().map_or_else(String::new, |reading| format!(" ({reading})")),
                workload.scale,
                workload.seed
            ),
        ),
        ("schedule", workload.schedule_hash.clone()),
        ("source of the workload", optional(&workload.source)),
        (
            "system",
            format!(
                "{} {}, {}, profile {}",
                record.system.name,
                optional(&record.system.version),
                record.system.back_end,
                optional(&record.system.profile)
            ),
        ),
        ("endpoint", record.system.endpoint.clone()),
        ("protocol", format!("{}; sent means {}", record.protocol, record.protocol.sent_means)),
        ("delivery levels", workload.levels().join(", ")),
        (
            "phases",
            format!(
                "{} warm-up, {} measured, drain {} of at most {}",
                seconds(settings.warmup_s),
                seconds(settings.duration_s),
                seconds(settings.drain_s),
                seconds(settings.drain_limit_s)
            ),
        ),
        (
            "threads",
            format!(
                "{} publishing, {} subscribing; pace: {}; real-time: {}; CPU idle states prevented: {}",
                settings.publisher_shards,
                settings.subscriber_shards,
                settings.pace,
                yes_no(settings.realtime),
                yes_no(settings.cpu_idle_disabled)
            ),
        ),
        ("connects started", format!("at most {}/s", short(settings.connects_per_s))),
        ("TLS", yes_no(settings.tls)),
        (
            "congestion control of our sockets",
            settings.congestion_control.clone().unwrap_or_else(|| "the machine's".to_string()),
        ),
        (
            "raised, resent, too large",
            format!(
                "{}, {}, {}",
                count(record.delivery.sizes_raised),
                count(record.connections.resent),
                count(record.delivery.too_large)
            ),
        ),
        ("bytes left in our sockets", count(record.delivery.at_end.socket_unsent_bytes)),
        ("bytes left in the system's sockets", known_count(record.delivery.at_end.system_unsent_bytes)),
        ("bytes that the system had not read", known_count(record.delivery.at_end.system_unread_bytes)),
        (
            "bytes left in the relay, on links",
            [record.delivery.at_end.relay_bytes, record.delivery.at_end.link_bytes].map(known_count).join(", "),
        ),
        ("bytes that busy subscribers had not processed", count(record.delivery.at_end.held_bytes)),
        ("subscribers' sessions not connected again", count(record.delivery.at_end.sessions_not_resumed)),
    ];
    rows.extend(system_facts(&record.system).into_iter().map(|fact| (fact.name, fact.text)));
    rows.extend(machine(&record.environment));
    rows
}

fn known_count(value: Option<u64>) -> String {
    value.map_or_else(|| MISSING.to_string(), count)
}

/// The machine and its state, as rows of a table.
pub(super) fn machine(machine: &Environment) -> Vec<(&'static str, String)> {
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(|| MISSING.to_string());
    let load = |value: Option<f64>| value.map_or_else(|| MISSING.to_string(), |load| format!("{load:.2}"));
    vec![
        ("machine", format!("{}, {} cores, {}", machine.cpu, machine.cores, bytes(Some(machine.memory_bytes as f64)))),
        ("operating system", format!("{}, kernel {}", machine.os, machine.kernel)),
        ("virtualisation", optional(&machine.virtualization)),
        ("frequency governor", optional(&machine.governor)),
        ("load before, after", format!("{}, {}", load(machine.load_before), load(machine.load_after))),
        ("CPU stolen", percentage(machine.steal)),
        ("descriptor limit", count(machine.descriptor_limit)),
        ("congestion control", optional(&machine.congestion_control)),
        ("clock", machine.clock.clone()),
    ]
}
