//! Throttling over time: share of the time in which the system's limit gave it no CPU although it was ready to run.

use pubmark_record::record::Record;

use super::over_time::{has_values, largest, panel, resource_readings, resources};
use super::{Chart, Picture};
use crate::numbers::{percentage, short};
use crate::plot::{Axis, Join};
use crate::words::{limit_effect, sentence};

const TITLE: &str = "Did a limit hold the system back?";
const CSV: &str = "csv/resources.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.resource_series;
    let print = |value: f64| percentage(Some(value / 100.0));
    let percent = |value: Option<f64>| value.map(|share| share * 100.0);
    let mut lines =
        vec![resources(rows, "system held back", 1, Join::StepBefore, |row| percent(row.system_throttled), print)];
    lines.retain(has_values);
    let is_empty = lines.is_empty();
    let y = Axis::from_zero(largest(&lines), "% of the time", short);
    match panel(record, y, lines, resource_readings(rows)) {
        Some(plot) if !is_empty => Chart {
            title: TITLE,
            finding: limit_effect(record)
                .map_or_else(|| "No limit was set.".to_string(), |effect| sentence(&format!("the limit was {effect}"))),
            notes: vec!["lower is better".to_string()],
            csv: CSV,
            picture: Picture::Plot(Box::new(plot)),
        },
        _ => Chart::missing(TITLE, CSV, "Whether a limit held the system back was not measured over time."),
    }
}
