//! Where the time went, in words.

use pubmark_record::residence::{PARTS, ResidenceFigures, ResidenceRow};

use crate::numbers::{TimeUnit, count, share};

/// The row with most messages: the one to say something about first.
pub fn first_residence(figures: &ResidenceFigures) -> Option<&ResidenceRow> {
    figures.rows.iter().filter(|row| row.seen > 0).max_by_key(|row| row.seen)
}

/// What was followed and seen, in one line.
pub fn residence(figures: &ResidenceFigures) -> String {
    let [followed, seen, agreeing] = figures.totals();
    let one_in = if figures.one_in > 1 { format!(", one message in {}", count(figures.one_in)) } else { String::new() };
    let dropped =
        if figures.dropped > 0 { format!("; {} too many to be kept", count(figures.dropped)) } else { String::new() };
    format!(
        "{} of {} deliveries seen at every link on their way ({}{one_in}); parts add up to the latency for {}{dropped}",
        count(seen),
        count(followed),
        share(seen, followed),
        share(agreeing, seen)
    )
}

/// A row's parts with their names: median and p99, and the same of the whole at the end; parts that no row has are left out.
pub fn residence_columns(figures: &ResidenceFigures) -> Vec<(usize, &'static str)> {
    let has = |place: usize| figures.rows.iter().any(|row| row.parts.in_order()[place].is_some());
    PARTS.into_iter().enumerate().filter(|(place, _)| has(*place)).collect()
}

/// A unit for the parts of all rows.
pub fn residence_unit(figures: &ResidenceFigures) -> TimeUnit {
    let whole = first_residence(figures).and_then(|row| row.parts.whole_us.as_ref());
    TimeUnit::for_value(whole.map_or(0.0, |whole| whole.p99.unwrap_or(whole.max)))
}
