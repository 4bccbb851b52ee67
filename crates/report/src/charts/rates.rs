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
    let rows: Vec<SeriesRow> = wide_bins(&record.tables.series, record.window_s()).copied().collect();
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
    use pubmark_record::record::Status;
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

    #[test]
    fn what_follows_the_end_of_a_stopped_run_is_its_drain() {
        let mut record = sample::record();
        record.run.status = Status::Interrupted;
        record.settings.window_end_ns = record.settings.window_start_ns + 400_000_000;
        let row = record.tables.series[2];
        let bin = |t_s: f64, width_s: f64, messages: u64| SeriesRow {
            t_s,
            width_s,
            offered: messages,
            sent: messages,
            delivered: messages,
            ..row
        };
        record.tables.series = vec![bin(0.0, 0.4, 400), bin(0.4, 1.0, 5)];
        record.tables.resource_series.clear();
        let Picture::Plot(plot) = draw(&record).picture else { panic!("no chart") };
        let drain = plot.bands.iter().find(|band| band.label == "drain").map(|band| (band.from, band.to));
        assert_eq!(drain, Some((0.4, 1.4)));
        let rates: Vec<Option<f64>> = plot.lines[0].points.iter().map(|(_, rate)| *rate).collect();
        assert_eq!(rates, [Some(1_000.0), Some(5.0), Some(5.0)], "the first bin is no remainder");
    }
}
