//! Protocol efficiency: payload over bytes transferred, by group.

use maud::{Markup, html};
use pubmark_record::efficiency::{GroupEfficiency, PacketCounts};
use pubmark_record::record::Record;

use crate::numbers::{MISSING, bytes, count};
use crate::words;

/// Section of a record with efficiency figures.
pub(super) fn section(record: &Record) -> Markup {
    let Some(figures) = &record.cost.efficiency else { return html! {} };
    html! {
        p { (words::how_efficiency_is_counted(figures)) }
        div.scroll { table {
            caption { "Payload over bytes carried in the measured window" }
            thead { tr {
                th { "group" }
                @for name in ["published", "sent", "Ethernet", "IP", "delivered", "received", "Ethernet", "IP"] {
                    th.number { (name) }
                }
                th { "counts" }
            } }
            tbody { @for group in &figures.groups { (row(group)) } (row(&figures.total)) }
        } }
        div.scroll { table {
            caption { "Packets with their IP headers" }
            thead { tr {
                th { "group" } th { "when" }
                @for name in ["sent", "bytes", "received", "bytes"] { th.number { (name) } }
            } }
            tbody { @for group in &figures.groups {
                (packets(&group.group, "window", group.window.as_ref()))
                @if group.estimated_window.is_some() {
                    (packets(&group.group, "window, estimated", group.estimated_window.as_ref()))
                }
                (packets(&group.group, "before it", group.set_up.as_ref()))
            } }
        } }
    }
}

fn row(group: &GroupEfficiency) -> Markup {
    let sent = group.window.map(|window| window.sent_bytes as f64);
    let received = group.window.map(|window| window.received_bytes as f64);
    let ratios = &group.ratios;
    html! { tr {
        th scope="row" { (group.group) }
        td.number { (bytes(Some(group.published_bytes as f64))) }
        td.number { (bytes(sent)) }
        td.number { (words::ratio(ratios.sent_ethernet)) }
        td.number { (words::ratio(ratios.sent_ip)) }
        td.number { (bytes(Some(group.delivered_bytes as f64))) }
        td.number { (bytes(received)) }
        td.number { (words::ratio(ratios.received_ethernet)) }
        td.number { (words::ratio(ratios.received_ip)) }
        td { (words::source(group)) }
    } }
}

fn packets(group: &str, when: &str, counts: Option<&PacketCounts>) -> Markup {
    let packets =
        |get: fn(&PacketCounts) -> u64| counts.map_or_else(|| MISSING.to_owned(), |counts| count(get(counts)));
    let size = |get: fn(&PacketCounts) -> u64| bytes(counts.map(|counts| get(counts) as f64));
    html! { tr {
        th scope="row" { (group) }
        td { (when) }
        td.number { (packets(|counts| counts.sent_packets)) }
        td.number { (size(|counts| counts.sent_bytes)) }
        td.number { (packets(|counts| counts.received_packets)) }
        td.number { (size(|counts| counts.received_bytes)) }
    } }
}
