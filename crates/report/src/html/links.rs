//! Emulated links: requested conditions, results of probes, traffic.

use maud::{Markup, html};
use pubmark_record::links::{LinkCheck, LinkDirection, LinkGroup};
use pubmark_record::record::Record;

use crate::numbers::{MISSING, bytes, count, share};
use crate::words::{self, sentence};

/// Section of a record with links.
pub(super) fn section(record: &Record) -> Markup {
    let Some(links) = &record.conditions.links else { return html! {} };
    html! {
        p { (sentence(&words::emulator(links))) }
        @if let Some(relay) = &links.relay { p { (sentence(&words::relay(relay))) } }
        @if let Some(trunk) = &links.trunk { p { (sentence(&words::trunk(trunk))) } }
        div.scroll { table {
            caption { "Conditions of each link, and what probes found before the run" }
            thead { tr { th { "group" } th { "link" } th { "direction" } th { "requested" } th { "measured" } } }
            tbody { @for group in &links.groups { @for (name, side) in sides(group) { tr {
                th scope="row" { (group.group) }
                td { (group.link) @if let Some(source) = &group.source { br; small { (source) } } }
                td { (name) }
                td { @for step in &side.requested { div { (step) } } }
                td {
                    @for check in &side.checks { div { (found(check)) } }
                    @if side.requested.len() > 1 { div { "later steps: not measured" } }
                }
            } } } }
        } }
        div.scroll { table {
            caption { "Packets in the measured window, with their IP headers" }
            thead { tr {
                th { "group" } th { "direction" }
                @for name in ["packets", "bytes", "lost", "twice", "ahead", "passed on", "bytes"] {
                    th.number { (name) }
                }
            } }
            tbody { @for group in &links.groups { @for (name, side) in sides(group) { @let traffic = &side.traffic; tr {
                th scope="row" { (group.group) }
                td { (name) }
                td.number { (count(traffic.entered_packets)) }
                td.number { (bytes(Some(traffic.entered_bytes as f64))) }
                td.number { (count(traffic.gone())) " (" (share(traffic.gone(), traffic.entered_packets)) ")" }
                td.number { (known(traffic.duplicated)) }
                td.number { (known(traffic.reordered)) }
                td.number { (count(traffic.left_packets)) }
                td.number { (bytes(Some(traffic.left_bytes as f64))) }
            } } } }
        } }
    }
}

/// A count, if the back end provides it.
fn known(number: Option<u64>) -> String {
    number.map_or_else(|| MISSING.to_string(), count)
}

fn sides(group: &LinkGroup) -> [(&'static str, &LinkDirection); 2] {
    [("up", &group.up), ("down", &group.down)]
}

fn found(check: &LinkCheck) -> String {
    let (name, measured) = (&check.name, &check.measured);
    match check.as_requested {
        Some(true) => format!("{name} {measured}"),
        Some(false) => format!("{name} {measured}: not as requested"),
        None => format!("{name} not measured: {measured}"),
    }
}
