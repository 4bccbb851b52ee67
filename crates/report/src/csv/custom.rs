//! User-defined metrics.

use pubmark_record::record::Record;

use super::{Table, optional, text};

/// One row per metric, and one for each of its parts; values are in the metric's unit.
pub fn custom(record: &Record) -> String {
    let mut table = Table::new(&["run", "metric", "part", "unit", "lower", "upper", "failure", "partial"]);
    let run = text(&record.run.name);
    for metric in &record.custom {
        let mut row = |part: &str, [lower, upper]: [Option<f64>; 2], failure: &str| {
            table.row(&[
                run.clone(),
                text(&metric.name),
                text(part),
                text(&metric.unit),
                optional(lower),
                optional(upper),
                text(failure),
                metric.partial.to_string(),
            ]);
        };
        row("", [metric.lower, metric.upper], metric.failure.as_deref().unwrap_or_default());
        for (part, bounds) in &metric.by {
            row(part, [Some(bounds.lower), Some(bounds.upper)], "");
        }
    }
    table.text
}
