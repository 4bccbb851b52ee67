//! The individual messages that did not arrive, which the completed message accounting only counts.

use super::{Log, MissingRow};
use crate::books::Judged;

/// Largest number of rows of messages that did not arrive: 20 B each.
const MISSING_LIMIT: usize = 20_000_000;

impl Log {
    /// Adds the outcomes of messages that did not arrive.
    pub(crate) fn add_missing(&mut self, judged: &Judged<'_>) {
        let exempt = judged.exempt().map(|(publisher, sequence, outcome)| MissingRow {
            publisher,
            sequence,
            audience: None,
            outcome,
        });
        let streams = judged.streams().flat_map(|stream| {
            let row = *stream.row;
            let rows = stream.missing().map(move |(sequence, outcome)| MissingRow {
                publisher: row.publisher,
                sequence,
                audience: Some(row.subscriber),
                outcome,
            });
            rows.collect::<Vec<_>>()
        });
        let mut all = exempt.chain(streams);
        self.missing = all.by_ref().take(MISSING_LIMIT).collect();
        self.logged.missing += all.count() as u64;
        // Sorted by publisher, because their due times are looked up.
        self.missing.sort_unstable();
    }
}
