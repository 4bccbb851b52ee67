//! The latency breakdown in words.

use pubmark_record::latency::upper;
use pubmark_record::latency_breakdown::{BreakdownRow, LatencyBreakdown, PARTS};

use crate::numbers::{TimeUnit, count, share};

/// The row with most messages, which is described first.
pub fn first_breakdown(figures: &LatencyBreakdown) -> Option<&BreakdownRow> {
    figures.rows.iter().filter(|row| row.complete > 0).max_by_key(|row| row.complete)
}

/// Number of deliveries followed and seen, in one line.
pub fn latency_breakdown(figures: &LatencyBreakdown) -> String {
    let [followed, complete, consistent] = figures.totals();
    let one_in = if figures.one_in > 1 { format!(", one message in {}", count(figures.one_in)) } else { String::new() };
    let dropped =
        if figures.dropped > 0 { format!("; {} too many to be kept", count(figures.dropped)) } else { String::new() };
    format!(
        "{} of {} deliveries seen at every link on their way ({}{one_in}); parts add up to the latency for {}{dropped}",
        count(complete),
        count(followed),
        share(complete, followed),
        share(consistent, complete)
    )
}

/// Parts that at least one row has: index in [`PARTS`] and name.
pub fn breakdown_columns(figures: &LatencyBreakdown) -> Vec<(usize, &'static str)> {
    let has = |place: usize| figures.rows.iter().any(|row| row.parts.in_order()[place].is_some());
    PARTS.into_iter().enumerate().filter(|(place, _)| has(*place)).collect()
}

/// The common unit for the parts of all rows.
pub fn breakdown_unit(figures: &LatencyBreakdown) -> TimeUnit {
    let whole = first_breakdown(figures).and_then(|row| upper(&row.parts.whole));
    TimeUnit::for_value(whole.map_or(0.0, |whole| whole.p99.unwrap_or(whole.max)))
}
