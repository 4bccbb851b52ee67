//! Which messages did not arrive, one by one: what the closed books count.

use super::{Log, MissingRow};
use crate::books::Judged;

/// Rows of messages that did not arrive, at most: 20 B each.
const MISSING_LIMIT: usize = 20_000_000;

impl Log {
    /// Adds what became of messages that did not arrive.
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
        // By publisher, as their due times are looked up.
        self.missing.sort_unstable();
    }
}
