//! The individual messages that did not arrive, which the completed message accounting only counts.

use super::{Log, MissingRow};
use crate::books::Judged;

/// Largest number of rows of messages that did not arrive: 20 B each.
const MISSING_LIMIT: usize = 20_000_000;
/// Why rows of such messages are missing beyond that, and beyond the limit of the ledger.
const UNNAMED: &str = "too many messages are missing to list each";

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
        let unnamed = all.count() as u64 + judged.streams().map(|stream| stream.forgotten()).sum::<u64>();
        if unnamed > 0 {
            self.logged.missing += unnamed;
            self.logged.why.get_or_insert_with(|| UNNAMED.to_owned());
        }
        self.sent = judged.sent().collect();
        // Sorted by publisher, because their due times are looked up.
        self.missing.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use pubmark_metrics::ledger::Ledger;

    use super::*;
    use crate::absences::Absences;
    use crate::books::Received;
    use crate::shard_outcome::{PublisherBook, StreamRow};

    /// The log of one publisher's messages that a subscriber received, as its ledger knows.
    fn completed(book: PublisherBook, mut ledger: Ledger, arrived: &[u32]) -> Log {
        arrived.iter().for_each(|number| {
            ledger.enter(0, *number);
        });
        let streams = [StreamRow { subscriber: 0, publisher: 0, stream: 0, filters: 1, filtered_for: None }];
        let absences = Absences::new(&[], &|_, _| vec![0]);
        let sides = [Received { node: 0, ledger: &ledger, streams: &streams, absences }];
        let mut log = Log::default();
        log.add_missing(&Judged::new(&[book], &sides));
        log
    }

    fn book(last: u32) -> PublisherBook {
        let epochs = [(0, 1)].into_iter().collect();
        PublisherBook { written: last.into(), first_measured: 1, last, epochs, ..PublisherBook::default() }
    }

    #[test]
    fn lost_messages_whose_numbers_the_ledger_forgot_are_missing_rows_with_a_reason() {
        let log = completed(book(2_000), Ledger::with_range_limit(1, 0), &[1, 3, 2_000]);
        assert_eq!((log.missing.len(), log.logged.missing), (1_023, 974), "2, and 4 to 976, left the window");
        assert_eq!(log.logged.why.as_deref(), Some(UNNAMED));
        let exact = completed(book(2_000), Ledger::new(1), &[1, 3, 2_000]);
        assert_eq!((exact.missing.len(), exact.logged.missing, exact.logged.why), (1_997, 0, None));
    }

    #[test]
    fn a_message_whose_write_was_cut_off_was_sent_if_it_arrived() {
        let cut = PublisherBook { written: 1, broken: vec![2, 3], ..book(3) };
        assert_eq!(completed(cut, Ledger::new(1), &[1, 2]).sent, [(0, 2)].into());
    }
}
