//! Rates over time: messages per second, offered, sent and delivered.

use pubmark_record::record::Record;
use pubmark_record::tables::{SeriesRow, wide_bins};

use super::over_time::{bin_readings, bins, largest, panel};
use super::{Chart, Picture};
use crate::numbers::{short, significant};
use crate::plot::Axis;
use crate::words::sentence;

const TITLE: &str = "Was the offered load carried?";
const CSV: &str = "csv/series.csv";

pub(super) fn draw(record: &Record) -> Chart {
    // The rate of a short bin is that of a few messages.
    let rows: Vec<SeriesRow> = wide_bins(&record.tables.series, record.settings.duration_s).copied().collect();
    let rows = rows.as_slice();
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

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_record::sample;

    #[test]
    fn a_short_bin_at_the_end_of_the_window_is_no_spike() {
        let mut record = sample::record();
        let highest = |record: &Record| match draw(record).picture {
            Picture::Plot(plot) => largest(&plot.lines),
            _ => 0.0,
        };
        let before = highest(&record);
        assert!(before > 0.0);
        let last = *record.tables.series.last().expect("the sample has bins");
        record.settings.duration_s += 0.001;
        record.tables.series.push(SeriesRow { t_s: last.t_s + last.width_s, width_s: 0.001, ..last });
        assert_eq!(highest(&record), before);
    }
}
