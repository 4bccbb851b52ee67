//! Memory over time: resident sets of the system and of pubmark.

use pubmark_record::cost::ResourceRow;
use pubmark_record::record::Record;

use super::over_time::{has_values, largest, panel, resource_readings, resources};
use super::{Chart, Picture};
use crate::numbers::{bytes, short};
use crate::plot::{Axis, Join};
use crate::words::sentence;

const TITLE: &str = "How much memory did it take?";
const CSV: &str = "csv/resources.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.resource_series;
    let megabytes =
        |get: fn(&ResourceRow) -> Option<u64>| move |row: &ResourceRow| get(row).map(|size| size as f64 / 1e6);
    let print = |value: f64| format!("{} MB", short(value));
    let mut lines = vec![
        resources(rows, "system", 1, Join::Straight, megabytes(|row| row.system_rss_bytes), print),
        resources(rows, "pubmark", 2, Join::Straight, megabytes(|row| row.generator_rss_bytes), print),
    ];
    lines.retain(has_values);
    let is_empty = lines.is_empty();
    let y = Axis::from_zero(largest(&lines), "resident, MB", short);
    match panel(record, y, lines, resource_readings(rows)) {
        Some(plot) if !is_empty => Chart {
            title: TITLE,
            finding: finding(record),
            notes: vec!["lower is better".to_string()],
            csv: CSV,
            picture: Picture::Plot(Box::new(plot)),
        },
        _ => Chart::missing(TITLE, CSV, "Memory was not measured over time."),
    }
}

fn finding(record: &Record) -> String {
    let side = |name: &str, usage: Option<pubmark_record::cost::Usage>| match usage {
        Some(usage) => format!("{name} took at most {}", bytes(Some(usage.peak_rss_bytes as f64))),
        None => format!("{name} was not measured"),
    };
    sentence(&format!("{}, {}", side("the system", record.cost.system), side("pubmark", record.cost.generator)))
}
