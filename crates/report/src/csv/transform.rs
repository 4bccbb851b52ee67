//! Steps of `transform`.

use pubmark_record::record::Record;
use pubmark_record::transform::StepUse;

use super::{Table, text};

/// Two rows per step of a device group: publishers and subscribers.
pub fn transform(record: &Record) -> String {
    let mut table =
        Table::new(&["run", "group", "step", "side", "messages", "cpu_s", "bytes_before", "bytes_after", "failed"]);
    for row in &record.cost.transform {
        let mut add = |side: &str, used: &StepUse, failed: u64| {
            table.row(&[
                text(&record.run.name),
                text(&row.group),
                text(&row.step),
                side.to_owned(),
                used.messages.to_string(),
                used.cpu_s.to_string(),
                used.bytes_before.to_string(),
                used.bytes_after.to_string(),
                failed.to_string(),
            ]);
        };
        add("publishing", &row.publishing, 0);
        add("receiving", &row.receiving, row.failed);
    }
    table.text
}
