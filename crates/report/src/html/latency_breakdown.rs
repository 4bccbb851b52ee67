//! Latency breakdown: the parts of a message's way, by class of device.

use maud::{Markup, html};
use pubmark_record::latency::both;
use pubmark_record::record::{Record, Summary};

use crate::numbers::{count, share};
use crate::words::{breakdown_columns, breakdown_unit};

/// The two rows of a class.
const QUANTILES: [fn(&Summary) -> Option<f64>; 2] = [|summary| summary.p50, |summary| summary.p99];

/// The table; the chart is above it.
pub(super) fn section(record: &Record) -> Markup {
    let Some(figures) = &record.latency.breakdown else { return html! {} };
    let (unit, columns) = (breakdown_unit(figures), breakdown_columns(figures));
    let quantile = |p99: bool| QUANTILES[usize::from(p99)];
    html! {
        p {
            "Each packet between a group and the system crosses the emulator, where a message's front is stamped as it comes to a "
            "link and its end as it leaves. A message is not seen if it is encrypted or masked, or if it comes in pieces of which "
            "the emulator cannot tell the last; the share that was seen stands beside it."
        }
        div.scroll { table {
            caption { "Parts of the way from due to delivery, in " (unit.symbol()) }
            thead { tr {
                th { "devices" } th.number { "followed" } th.number { "seen" } th.number { "add up" } th { "" }
                @for (_, name) in &columns { th.number { (name) } }
                th.number { "whole" }
            } }
            tbody { @for row in &figures.rows { @for p99 in [false, true] { tr {
                th scope="row" { (row.class) }
                @if p99 { td {} td {} td {} } @else {
                    td.number { (count(row.followed)) }
                    td.number { (share(row.complete, row.followed)) }
                    td.number { (share(row.consistent, row.complete)) }
                }
                td { @if p99 { "p99" } @else { "p50" } }
                @for (place, _) in &columns { td.number { (unit.number(row.parts.in_order()[*place].and_then(quantile(p99)))) } }
                td.number { (unit.interval(both(&row.parts.whole, quantile(p99)))) }
            } } } }
        } }
    }
}
