//! User-defined metrics: their values, their values by category, and the programs that computed them.

use maud::{Markup, html};
use pubmark_record::custom::CustomMetric;
use pubmark_record::record::Record;

use crate::numbers::{MISSING, count, seconds};
use crate::words::{self, CustomUnit, PARTIAL, custom_value};

/// Most categories of a metric that are shown; csv/custom.csv has all.
const PARTS: usize = 20;
/// Digits of a hash that are shown; the record has all.
const HASH_DIGITS: usize = 12;

/// Section of a record with user-defined metrics.
pub(super) fn section(record: &Record) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "metric" } th.number { "value" } th { "computed by" } th.number { "took" } } }
            tbody { @for metric in &record.custom {
                tr {
                    th scope="row" { (metric.name) }
                    @if metric.failure.is_some() { td { (custom_value(metric)) } } @else { td.number { (custom_value(metric)) } }
                    td { (program(metric)) }
                    td.number { (metric.ran_s.map_or_else(|| MISSING.to_owned(), seconds)) }
                }
            } }
        } }
        @for metric in record.custom.iter().filter(|metric| !metric.by.is_empty()) { (parts(metric)) }
        p.hint { "Computed from the message log by programs that are not part of pubmark." }
    }
}

fn program(metric: &CustomMetric) -> Markup {
    html! {
        code { (words::command_line(&metric.command)) }
        @for (file, hash) in &metric.sources {
            br; small { (file) ": SHA-256 " (hash.get(..HASH_DIGITS).unwrap_or(hash)) "…" }
        }
    }
}

fn parts(metric: &CustomMetric) -> Markup {
    let hidden = metric.by.len().saturating_sub(PARTS);
    let largest = metric.by.values().flat_map(|bounds| [bounds.lower.abs(), bounds.upper.abs()]).fold(0.0, f64::max);
    let unit = CustomUnit::of(&metric.unit, largest);
    html! {
        div.scroll { table {
            caption {
                (metric.name) " by part" @if !unit.symbol.is_empty() { ", in " (unit.symbol) }
                @if metric.partial { " (" (PARTIAL) ")" }
            }
            thead { tr { th { "part" } th.number { "value" } } }
            tbody { @for (part, bounds) in metric.by.iter().take(PARTS) {
                tr { th scope="row" { (part) } td.number { (unit.number(*bounds)) } }
            } }
        } }
        @if hidden > 0 { p.hint { "And " (count(hidden as u64)) " more in csv/custom.csv." } }
    }
}
