//! Sites in words: a site is all nodes with the same value of a label.

use pubmark_record::latency;
use pubmark_record::record::{Record, Summary};
use pubmark_record::tables::LabelRow;

use crate::numbers::{MISSING, TimeUnit, count};

/// Name of a site, or of the nodes without the label.
pub fn site(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("(no label)")
}

/// Messages from one site to another, in one line.
pub fn site_to_site(row: &LabelRow) -> String {
    let both = |figure: fn(&Summary) -> Option<f64>| latency::both(&row.latency, figure);
    let (p50, p99) = (both(|times| times.p50), both(|times| times.p99));
    let unit = TimeUnit::for_value(p99[1].or(p50[1]).unwrap_or(0.0));
    let time = |times: [Option<f64>; 2]| match times {
        [_, None] => MISSING.to_owned(),
        times => format!("{} {}", unit.interval(times), unit.symbol()),
    };
    format!(
        "{} → {}: delivered {} of {}, lost {}; p50 {}, p99 {}",
        site(&row.publisher_site),
        site(&row.subscriber_site),
        count(row.delivered),
        count(row.expected),
        count(row.lost),
        time(p50),
        time(p99)
    )
}

/// Labels with their rows; labels without rows are left out.
pub fn by_label(record: &Record) -> Vec<(&str, Vec<&LabelRow>)> {
    let mut found: Vec<(&str, Vec<&LabelRow>)> = vec![];
    for row in &record.tables.by_label {
        match found.iter_mut().find(|(label, _)| *label == row.label) {
            Some((_, rows)) => rows.push(row),
            None => found.push((&row.label, vec![row])),
        }
    }
    found
}
