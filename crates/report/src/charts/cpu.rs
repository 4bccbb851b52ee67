//! CPU use of the system and of pubmark over time.

use pubmark_record::record::Record;

use super::over_time::{has_values, largest, panel, resource_readings, resources};
use super::{Chart, Picture};
use crate::numbers::{cores, short};
use crate::plot::{Axis, Join};
use crate::words::sentence;

const TITLE: &str = "How much CPU did it take?";
const CSV: &str = "csv/resources.csv";

pub(super) fn draw(record: &Record) -> Chart {
    let rows = &record.tables.resource_series;
    let print = |value: f64| format!("{} %", short(value));
    let percent = |value: Option<f64>| value.map(|cores| cores * 100.0);
    let mut lines = vec![
        resources(rows, "system", 1, Join::StepBefore, |row| percent(row.system_cores), print),
        resources(rows, "pubmark", 2, Join::StepBefore, |row| percent(row.generator_cores), print),
    ];
    lines.retain(has_values);
    let is_empty = lines.is_empty();
    let y = Axis::from_zero(largest(&lines), "% of one core", short);
    match panel(record, y, lines, resource_readings(rows)) {
        Some(plot) if !is_empty => Chart {
            title: TITLE,
            finding: finding(record),
            notes: vec!["lower is better".to_string()],
            csv: CSV,
            picture: Picture::Plot(Box::new(plot)),
        },
        _ => Chart::missing(TITLE, CSV, "CPU was not measured over time."),
    }
}

fn finding(record: &Record) -> String {
    let side = |name: &str, usage: Option<pubmark_record::cost::Usage>| match usage {
        Some(usage) => format!("{name} used {} of a core", cores(Some(usage.cores))),
        None => format!("{name} was not measured"),
    };
    sentence(&format!("{}, {}", side("the system", record.cost.system), side("pubmark", record.cost.generator)))
}
