//! Scheduler lag over time: the largest of each bin.

use pubmark_record::record::Record;

use super::over_time::{bin_readings, bins, has_values, largest, panel};
use super::{Chart, Picture};
use crate::numbers::{TimeUnit, short, time};
use crate::plot::Axis;
use crate::plot::axis::run_time_label;
use crate::words::sentence;

const TITLE: &str = "Did pubmark keep its schedule?";
const CSV: &str = "csv/series.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.series;
    let lines = vec![bins(rows, "largest scheduler lag", 4, |row| row.max_scheduler_lag_us, |value| time(Some(value)))];
    let is_empty = !lines.iter().any(has_values);
    let top = largest(&lines);
    let (unit, divisor) = if top < 1_000.0 {
        (TimeUnit::Microseconds, 1.0)
    } else if top < 1e6 {
        (TimeUnit::Milliseconds, 1e3)
    } else {
        (TimeUnit::Seconds, 1e6)
    };
    // The axis is computed in its unit, so that its ticks are round numbers.
    let mut y = Axis::from_zero(top / divisor, &format!("due → ready, {}", unit.symbol()), short);
    if let crate::plot::Scale::Linear { to, .. } = &mut y.scale {
        *to *= divisor;
    }
    y.ticks.iter_mut().for_each(|tick| tick.value *= divisor);
    match panel(record, y, lines, bin_readings(rows)) {
        Some(plot) if !is_empty => Chart {
            title: TITLE,
            finding: finding(record),
            notes: vec!["lower is better".to_string(), "ours, part of the latency".to_string()],
            csv: CSV,
            picture: Picture::Plot(Box::new(plot)),
        },
        _ => Chart::missing(TITLE, CSV, "No scheduler lag was recorded over time."),
    }
}

fn finding(record: &Record) -> String {
    let worst = record
        .tables
        .series
        .iter()
        .filter(|row| row.t_s >= 0.0)
        .filter_map(|row| row.max_scheduler_lag_us.map(|lag| (row.t_s, lag)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    match worst {
        Some((at, lag)) => sentence(&format!("the largest lag was {}, at {}", time(Some(lag)), run_time_label(at))),
        None => "Nothing was measured after the warm-up.".to_string(),
    }
}
