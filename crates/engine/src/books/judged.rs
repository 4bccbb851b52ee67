//! Both sides of the message accounting compared, for figures that need single messages or parts of a stream.

use std::collections::HashMap;

use pubmark_metrics::holes::Range;
use pubmark_metrics::ledger::Ledger;
use pubmark_record::record::Delivery;

use super::{Exempt, NotExpected, Received, arrived_anyway};
use crate::absences::holds;
use crate::content::unmatched::Unmatched;
use crate::message_log::Missing;
use crate::shard_outcome::{PublisherBook, StreamRow};

/// All publishers' sides compared with everything that was received, stream by stream.
pub(crate) struct Judged<'a> {
    exempt: HashMap<u32, Exempt<'a>>,
    received: &'a [Received<'a>],
}

/// A stream with measured messages.
pub(crate) struct JudgedStream<'a> {
    pub row: &'a StreamRow,
    pub book: &'a PublisherBook,
    exempt: &'a Exempt<'a>,
    ledger: &'a Ledger,
    absent: Vec<Range>,
    unmatched: Unmatched,
}

impl<'a> Judged<'a> {
    /// Prepares the comparison of both sides.
    pub fn new(publishers: &'a [PublisherBook], received: &'a [Received<'a>]) -> Judged<'a> {
        let arrived = arrived_anyway(publishers, received);
        let row = |book: &'a PublisherBook| (book.publisher, Exempt::new(book, arrived.get(&book.publisher)));
        Judged { exempt: publishers.iter().map(row).collect(), received }
    }

    /// Messages that no subscription could expect, by publisher and sequence number: refused, or not written completely
    /// and received by no subscriber.
    pub fn exempt(&self) -> impl Iterator<Item = (u32, u32, Missing)> {
        self.exempt.values().flat_map(|row| {
            row.all.iter().flat_map(|range| range.first..=range.last).map(|number| {
                let outcome = match () {
                    () if row.book.refused.contains(number) => Missing::Refused,
                    () if row.book.broken.contains(&number) => Missing::SkippedDisconnected,
                    () => Missing::Unsent,
                };
                (row.book.publisher, number, outcome)
            })
        })
    }

    /// Messages that each publisher sent, by its number, as the accounting counts them: those that it counts as unsent and
    /// that a subscriber received were sent.
    pub fn sent(&self) -> impl Iterator<Item = (u32, u64)> {
        self.exempt.iter().map(|(publisher, row)| {
            let mut own = Delivery::default();
            row.enter(&mut own);
            (*publisher, own.sent)
        })
    }

    /// The streams with measured messages.
    pub fn streams(&self) -> impl Iterator<Item = JudgedStream<'_>> {
        self.received.iter().flat_map(move |side| {
            side.streams.iter().filter_map(move |row| {
                let exempt = self.exempt.get(&row.publisher).filter(|exempt| exempt.book.first_measured > 0)?;
                let absent = side.absences.of(row, exempt.book);
                let unmatched = Unmatched::of(row, exempt.book);
                Some(JudgedStream { row, book: exempt.book, exempt, ledger: side.ledger, absent, unmatched })
            })
        })
    }
}

impl JudgedStream<'_> {
    /// Categorises the stream's sequence numbers within a range, all of which are measured.
    pub fn judge(&self, within: Range, delivery: &mut Delivery) {
        let not_expected = NotExpected { absent: &self.absent, unmatched: &self.unmatched.ranges };
        self.exempt.judge_within(self.ledger, self.row.stream, &not_expected, within, delivery);
    }

    /// The stream's measured sequence numbers.
    pub fn measured(&self) -> Range {
        Range { first: self.book.first_measured, last: self.book.last }
    }

    /// Ranges of the measured sequence numbers that did not arrive.
    pub fn missing_ranges(&self) -> Vec<Range> {
        self.ledger.missing(self.row.stream, self.book.first_measured, self.book.last)
    }

    /// Is it unknown for some numbers whether they arrived?
    pub fn is_approximate(&self) -> bool {
        self.ledger.is_approximate()
    }

    /// Lost messages whose sequence numbers are not known: [`JudgedStream::missing`] does not return them.
    pub fn forgotten(&self) -> u64 {
        let forgotten = self.ledger.forgotten(self.row.stream);
        if forgotten == 0 {
            return 0;
        }
        let mut part = Delivery::default();
        self.judge(self.measured(), &mut part);
        forgotten.min(part.delivered)
    }

    /// The stream's measured sequence numbers that were sent and did not arrive, with the outcomes that
    /// [`JudgedStream::judge`] counts.
    pub fn missing(&self) -> impl Iterator<Item = (u32, Missing)> {
        let exempt = self.exempt;
        let numbers = self.missing_ranges().into_iter().flat_map(|range| range.first..=range.last);
        numbers.filter(|number| !holds(&exempt.all, *number)).map(|number| {
            let outcome = match () {
                () if holds(&self.absent, number) => Missing::Absent,
                () if holds(&self.unmatched.ranges, number) => Missing::FilteredOut,
                () if exempt.unanswered.contains(&number) => Missing::Unknown,
                () => Missing::Lost,
            };
            (number, outcome)
        })
    }
}
