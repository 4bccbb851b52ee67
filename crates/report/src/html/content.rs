//! Messages that subscribers filtered by content.

use maud::{Markup, html};
use pubmark_record::content::ContentRow;
use pubmark_record::latency::both;
use pubmark_record::record::Record;

use crate::numbers::{MISSING, bytes, count, interval};

/// Section of a record whose subscribers have predicates.
pub(super) fn section(record: &Record) -> Markup {
    html! {
        div.scroll { table {
            thead { tr {
                th { "subscribers" } th { "where" } th { "filtered at" } th.number { "matched" } th.number { "should match" }
                th.number { "kept back" } th.number { "filtered" } th.number { "wasted" } th.number { "unreadable" } th.number { "missed" }
                th.number { "p50 of matched" }
            } }
            tbody { @for row in &record.delivery.content { (line(row)) } }
        } }
        p.hint {
            "A client filters what it received: the message accounting has all of it as delivered. A broker keeps back what does "
            "not match: the message accounting expects the rest. “Filtered” are messages that arrived and do not match. "
            "“Should match” is what publishers say of the messages that arrived."
        }
    }
}

fn line(row: &ContentRow) -> Markup {
    let known = |value: Option<u64>| value.map_or_else(|| MISSING.to_owned(), count);
    html! {
        tr {
            th scope="row" { (row.group) }
            td { code { (row.r#where) } }
            td { (row.at.as_str()) }
            td.number { (count(row.matched)) }
            td.number { (known(row.should_match)) }
            td.number { (known(row.filtered_out)) }
            td.number { (count(row.filtered)) }
            td.number { (bytes(Some(row.filtered_bytes as f64))) }
            td.number { (count(row.unreadable)) }
            td.number { (known(row.missed)) }
            td.number { (interval(both(&row.latency, |summary| summary.p50))) }
        }
    }
}
