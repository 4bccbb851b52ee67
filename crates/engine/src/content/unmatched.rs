//! Streams that the system filters: the messages that the filter must remove, according to what their publishers built.

use pubmark_metrics::holes::Range;

use crate::shard_outcome::{PublisherBook, StreamRow};

/// Measured messages of a stream for which the predicate that the system filters by does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Their sequence numbers, as ascending, non-adjacent ranges; empty if nothing is filtered.
    pub ranges: Vec<Range>,
    /// The system filters, but the publisher does not have notes of all messages: everything counts as expected.
    pub is_unknown: bool,
}

impl Unmatched {
    /// The messages of a stream for which the predicate does not hold.
    pub fn of(stream: &StreamRow, book: &PublisherBook) -> Unmatched {
        let Some(group) = stream.filtered_for else { return Unmatched::default() };
        let measured = Range { first: book.first_measured, last: book.last }.count();
        let notes = book.matches.iter().find(|notes| notes.group == group && notes.covers(measured));
        let Some(notes) = notes else { return Unmatched { ranges: vec![], is_unknown: true } };
        let mut ranges: Vec<Range> = vec![];
        for number in (book.first_measured..=book.last).filter(|number| !notes.holds(number - book.first_measured)) {
            match ranges.last_mut() {
                Some(range) if range.last + 1 == number => range.last = number,
                _ => ranges.push(Range { first: number, last: number }),
            }
        }
        Unmatched { ranges, is_unknown: false }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pubmark_metrics::ledger::Ledger;
    use pubmark_record::record::Delivery;

    use super::*;
    use crate::absences::Absences;
    use crate::books::{Received, close};
    use crate::content::matches::MatchNotes;
    use crate::shard_outcome::Absence;

    /// A publisher of `holds.len()` measured messages, for which the predicate of group 3 holds or not.
    fn book(holds: &[bool]) -> PublisherBook {
        let last = holds.len() as u32;
        PublisherBook {
            offered: u64::from(last),
            written: u64::from(last),
            first_measured: 1,
            last,
            epochs: [(0, 1), (1, 7)].into_iter().collect(),
            matches: vec![MatchNotes::of(3, holds)],
            ..PublisherBook::default()
        }
    }

    fn closed(
        book: &PublisherBook,
        arrived: impl IntoIterator<Item = u32>,
        filtered_for: Option<u16>,
        absences: &[Absence],
    ) -> Delivery {
        let mut ledger = Ledger::new(1);
        arrived.into_iter().for_each(|number| {
            ledger.enter(0, number);
        });
        let streams = [StreamRow { subscriber: 0, publisher: 0, stream: 0, filters: 1, filtered_for }];
        let absences = Absences::new(absences, &|_, _| vec![0]);
        let received = [Received { node: 0, ledger: &ledger, streams: &streams, absences }];
        let delivery = close(std::slice::from_ref(book), &received, 1, None).delivery;
        assert_eq!(delivery.expected, delivery.delivered + delivery.lost + delivery.unknown, "{delivery:?}");
        delivery
    }

    #[test]
    fn unmatched_messages_are_neither_expected_nor_delivered() {
        let holds = [true, true, false, false, true, false, true, false];
        let publisher = PublisherBook { refused: [4].into_iter().collect(), unanswered: vec![2, 3], ..book(&holds) };
        let absence = [Absence { subscriber: 0, filter: 0, from_epoch: 1, to_epoch: None }];
        // 1 arrived; 2 is unknown; 3 was filtered out; 4 was refused; 5 is lost; 6 arrived although it does not match;
        // 7 and 8 were sent during an absence.
        let delivery = closed(&publisher, [1, 6], Some(3), &absence);
        assert_eq!((delivery.delivered, delivery.unknown, delivery.lost), (1, 1, 1), "{delivery:?}");
        assert_eq!((delivery.filtered_out, delivery.unmatched, delivery.absent), (1, 1, 2), "{delivery:?}");
        let at_client = closed(&publisher, [1, 6], None, &absence);
        assert_eq!((at_client.filtered_out, at_client.unmatched, at_client.expected), (0, 0, 5), "{at_client:?}");
        // Without notes of all messages it is unknown what should have arrived.
        let publisher = PublisherBook { matches: vec![MatchNotes::of(3, &holds[1..])], ..publisher };
        let unknown = closed(&publisher, [1, 6], Some(3), &absence);
        assert!(unknown.approximate && unknown.filtered_out == 0, "{unknown:?}");
    }

    proptest! {
        #[test]
        fn filters_that_err_agree_with_a_plain_model(
            fates in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..200),
        ) {
            let holds: Vec<bool> = fates.iter().map(|(holds, _)| *holds).collect();
            let arrived = (1u32..).zip(&fates).filter(|(_, (_, arrived))| *arrived).map(|(number, _)| number);
            let delivery = closed(&book(&holds), arrived, Some(3), &[]);
            let count = |meant: (bool, bool)| fates.iter().filter(|fate| **fate == meant).count() as u64;
            prop_assert_eq!(delivery.delivered, count((true, true)));
            prop_assert_eq!(delivery.lost, count((true, false)));
            prop_assert_eq!(delivery.unmatched, count((false, true)));
            prop_assert_eq!(delivery.filtered_out, count((false, false)));
        }
    }
}
