//! Steps of `transform` in words.

use pubmark_record::transform::{StepUse, TransformRow};

use crate::numbers::{MISSING, bytes, count, percentage, time};

/// One step in a line: `sensors, compress zstd 3: 46 % of the size, 4.1 µs for each message sent, 1.2 µs for each received`.
pub fn transform(row: &TransformRow) -> String {
    let each = |used: &StepUse| used.cpu_us_each().map_or_else(|| MISSING.to_owned(), |us| time(Some(us)));
    let mut text = format!(
        "{}, {}: {}, {} for each message sent, {} for each received",
        row.group,
        row.step,
        step_size(&row.publishing),
        each(&row.publishing),
        each(&row.receiving)
    );
    if row.failed > 0 {
        text.push_str(&format!("; {} arrived corrupt", count(row.failed)));
    }
    text
}

/// Size after a step: `46 % of the size`, or `+28 B` if it is larger.
pub fn step_size(used: &StepUse) -> String {
    match used.size_ratio() {
        None => MISSING.to_owned(),
        Some(_) if used.bytes_after > used.bytes_before => {
            let added = (used.bytes_after - used.bytes_before) as f64 / used.messages.max(1) as f64;
            format!("+{}", bytes(Some(added)))
        }
        Some(ratio) => format!("{} of the size", percentage(Some(ratio))),
    }
}
