//! Messages that subscribers filtered by content.

use pubmark_record::content::{ContentRow, FilterPlace};

use crate::numbers::{MISSING, bytes, count};

/// One group in a line: `alarms: 120 of 4,000 matched, 3,880 filtered at the client (465 kB wasted)`, or
/// `alarms: 120 of 120 matched, 3,880 filtered at the broker, 0 more at the client (0 B wasted)`.
pub fn content(row: &ContentRow) -> String {
    let at_broker = match (row.at, row.filtered_out) {
        (FilterPlace::Client, _) => String::new(),
        (FilterPlace::Broker, kept) => {
            format!("{} filtered at the broker, ", kept.map_or_else(|| MISSING.to_owned(), count))
        }
    };
    let mut text = format!(
        "{}: {} of {} matched, {at_broker}{}{} at the client ({} wasted)",
        row.group,
        count(row.matched),
        count(row.matched + row.filtered),
        count(row.filtered),
        if at_broker.is_empty() { " filtered" } else { " more" },
        bytes(Some(row.filtered_bytes as f64))
    );
    if row.unreadable > 0 {
        text.push_str(&format!(", {} of them unreadable", count(row.unreadable)));
    }
    match row.missed {
        Some(0) => {}
        Some(missed) => text.push_str(&format!("; {} more did not arrive", count(missed))),
        None => text.push_str(&format!("; {MISSING} did not arrive")),
    }
    text
}
