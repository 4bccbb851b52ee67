//! Network traffic over time: bytes that the system's sockets received and sent.

use pubmark_record::cost::ResourceRow;
use pubmark_record::record::Record;

use super::over_time::{has_values, largest, panel, resource_readings, resources};
use super::{Chart, Picture};
use crate::numbers::{bytes, short};
use crate::plot::{Axis, Join};
use crate::words::sentence;

const TITLE: &str = "How many bytes did the system move?";
const CSV: &str = "csv/resources.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.resource_series;
    let print = |value: f64| format!("{} MB/s", short(value));
    let megabytes = |get: fn(&ResourceRow) -> Option<f64>| move |row: &ResourceRow| get(row).map(|rate| rate / 1e6);
    let mut lines = vec![
        resources(rows, "received", 1, Join::StepBefore, megabytes(|row| row.system_received_per_s), print),
        resources(rows, "sent", 2, Join::StepBefore, megabytes(|row| row.system_sent_per_s), print),
    ];
    lines.retain(has_values);
    let is_empty = lines.is_empty();
    let y = Axis::from_zero(largest(&lines), "MB/s", short);
    match panel(record, y, lines, resource_readings(rows)) {
        Some(plot) if !is_empty => Chart {
            title: TITLE,
            finding: finding(record),
            notes: vec!["bytes of TCP payload, without headers and repetitions".to_string()],
            csv: CSV,
            picture: Picture::Plot(Box::new(plot)),
        },
        _ => Chart::missing(TITLE, CSV, "The system's network use was not measured over time."),
    }
}

fn finding(record: &Record) -> String {
    let usage = record.cost.system;
    let text = |value: Option<u64>| bytes(value.map(|value| value as f64));
    sentence(&format!(
        "the system's sockets received {} and sent {} in the measured window",
        text(usage.and_then(|usage| usage.received_bytes)),
        text(usage.and_then(|usage| usage.sent_bytes))
    ))
}
