//! Rates over time: messages per second, offered, sent and delivered.

use pubmark_record::record::Record;
use pubmark_record::tables::SeriesRow;

use super::over_time::{bin_readings, bins, largest, panel};
use super::{Chart, Picture};
use crate::numbers::{short, significant};
use crate::plot::Axis;
use crate::words::sentence;

const TITLE: &str = "Was the offered load carried?";
const CSV: &str = "csv/series.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.series;
    let per_second =
        |get: fn(&SeriesRow) -> u64| move |row: &SeriesRow| (row.width_s > 0.0).then(|| get(row) as f64 / row.width_s);
    let print = |value: f64| format!("{}/s", significant(value));
    let lines = vec![
        bins(rows, "offered", 7, per_second(|row| row.offered), print),
        bins(rows, "sent", 1, per_second(|row| row.sent), print),
        bins(rows, "delivered", 2, per_second(|row| row.delivered), print),
    ];
    let y = Axis::from_zero(largest(&lines), "messages per second", short);
    match panel(record, y, lines, bin_readings(rows)) {
        Some(plot) if !rows.is_empty() => Chart {
            title: TITLE,
            finding: finding(record),
            notes: vec!["delivered near expected is better".to_string()],
            csv: CSV,
            picture: Picture::Plot(Box::new(plot)),
        },
        _ => Chart::missing(TITLE, CSV, "No rates were recorded over time."),
    }
}

fn finding(record: &Record) -> String {
    let rates = &record.throughput;
    let mut text = format!(
        "offered {}/s, sent {}/s, delivered {}/s",
        significant(rates.offered_per_s),
        significant(rates.sent_per_s),
        significant(rates.delivered_per_s)
    );
    if let Some(windows) = &rates.windows_1s {
        text.push_str(&format!(
            "; full seconds delivered {} to {}, median {}",
            significant(windows.min),
            significant(windows.max),
            significant(windows.median)
        ));
    }
    sentence(&text)
}
