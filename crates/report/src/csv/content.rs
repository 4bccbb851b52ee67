//! Messages that subscribers filtered by content.

use pubmark_record::latency::{lower, upper};
use pubmark_record::record::Record;

use super::{Table, optional, text};

/// One row per group of subscribers with `where`.
pub fn content(record: &Record) -> String {
    let mut table = Table::new(&[
        "run",
        "group",
        "where",
        "arrived",
        "should_match",
        "matched",
        "filtered",
        "filtered_bytes",
        "unreadable",
        "missed",
        "latency_p50_us",
        "latency_p99_us",
        "at",
        "filtered_out",
        "latency_p50_lower_us",
        "latency_p99_lower_us",
    ]);
    let run = text(&record.run.name);
    for row in &record.delivery.content {
        let (latency, lower) = (upper(&row.latency), lower(&row.latency));
        table.row(&[
            run.clone(),
            text(&row.group),
            text(&row.r#where),
            optional(row.arrived),
            optional(row.should_match),
            row.matched.to_string(),
            row.filtered.to_string(),
            row.filtered_bytes.to_string(),
            row.unreadable.to_string(),
            optional(row.missed),
            optional(latency.and_then(|summary| summary.p50)),
            optional(latency.and_then(|summary| summary.p99)),
            row.at.as_str().to_owned(),
            optional(row.filtered_out),
            optional(lower.and_then(|summary| summary.p50)),
            optional(lower.and_then(|summary| summary.p99)),
        ]);
    }
    table.text
}
