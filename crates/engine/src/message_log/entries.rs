//! The log for users: for each message and each subscriber one entry with its outcome, built from the rows of shards
//! and from the messages that did not arrive.

use std::collections::{HashMap, HashSet};
use std::io;

use pubmark_metrics::bounds::lower_ns;
use pubmark_metrics::holes::{Holes, Range};

use super::files::rows;
use super::row::{ROW_BYTES, Row, RowKind};
use super::{Log, Missing, MissingRow};
use crate::content::matches::MatchNotes;
use crate::shard_outcome::PublisherBook;

/// The outcome of a message at a subscriber, or of a message that no subscription could expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryOutcome {
    /// Its first copy arrived.
    Delivered,
    /// A further copy arrived.
    Duplicated,
    /// A copy arrived for a second matching filter.
    Overlap,
    /// It arrived although the system had refused it.
    DeliveredAfterRefusal,
    /// It arrived although the predicate that the system filters by does not hold.
    Unmatched,
    /// It arrived, and its publisher never sent it.
    Foreign,
    /// It did not arrive: see [`Missing`].
    Missing(Missing),
    /// It was sent, and no subscription matches its topic.
    NoSubscriber,
    /// It was due while its device was planned to be offline.
    SkippedPlanned,
    /// It is larger than the system accepts.
    TooLarge,
}

impl EntryOutcome {
    /// The name of the outcome, as in the record.
    pub fn name(self) -> &'static str {
        match self {
            EntryOutcome::Delivered => "delivered",
            EntryOutcome::Duplicated => "duplicated",
            EntryOutcome::Overlap => "overlap",
            EntryOutcome::DeliveredAfterRefusal => "delivered_after_refusal",
            EntryOutcome::Unmatched => "unmatched",
            EntryOutcome::Foreign => "foreign",
            EntryOutcome::Missing(Missing::Lost) => "lost",
            EntryOutcome::Missing(Missing::Unknown) => "unknown",
            EntryOutcome::Missing(Missing::Absent) => "absent",
            EntryOutcome::Missing(Missing::FilteredOut) => "filtered_out",
            EntryOutcome::Missing(Missing::Refused) => "refused",
            EntryOutcome::Missing(Missing::SkippedDisconnected) => "skipped_disconnected",
            EntryOutcome::Missing(Missing::Unsent) => "unsent",
            EntryOutcome::NoSubscriber => "no_subscriber",
            EntryOutcome::SkippedPlanned => "skipped_planned",
            EntryOutcome::TooLarge => "too_large",
        }
    }
}

/// An entry of the log. Times are ns since the start of the measured window; `None` for an unknown value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its outcome.
    pub outcome: EntryOutcome,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// Its sequence number, if it was passed to the adapter.
    pub sequence: Option<u32>,
    /// Number in the message accounting of the audience that it is for, if any.
    pub audience: Option<u32>,
    /// Size of the whole payload, bytes.
    pub payload_bytes: Option<u32>,
    /// When it was due.
    pub due_ns: Option<i64>,
    /// When it was ready to be sent: when its scheduler reached it, or its due time if it waited for its session.
    pub ready_ns: Option<i64>,
    /// When the write of its first byte began.
    pub write_start_ns: Option<i64>,
    /// When it was received.
    pub received_ns: Option<i64>,
    /// Lower and upper bounds of its latency, ns.
    pub latency_ns: Option<(i64, i64)>,
    /// It arrived after a newer message.
    pub out_of_order: bool,
}

/// The known values of a message that was passed to the adapter.
#[derive(Clone, Copy)]
struct SubmittedMessage {
    sequence: u32,
    payload_bytes: u32,
    due_ns: u64,
    ready_ns: u64,
}

/// Messages that were passed to the adapter, by publisher, each in the order of their sequence numbers.
struct SubmittedMessages(HashMap<u32, Vec<SubmittedMessage>>);

impl SubmittedMessages {
    fn find(&self, publisher: u32, sequence: u32) -> Option<&SubmittedMessage> {
        let all = self.0.get(&publisher)?;
        all.binary_search_by_key(&sequence, |submitted| submitted.sequence).ok().map(|place| &all[place])
    }
}

impl Log {
    /// Calls `visit` with each entry, and stops at its first error. The order is: first copies that arrived, then
    /// messages that did not arrive, then messages that no subscription could expect. `window_ns` is the start of the
    /// measured window, ns of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// A file of the log cannot be read, or `visit` returned an error.
    pub fn entries(&self, window_ns: u64, mut visit: impl FnMut(&Entry) -> io::Result<()>) -> io::Result<()> {
        let submitted = self.submitted_messages()?;
        let at = |ns: u64| ns.wrapping_sub(window_ns) as i64;
        let books: HashMap<u32, &PublisherBook> = self.publishers.iter().map(|book| (book.publisher, book)).collect();
        self.each_row(|row| {
            let Some(outcome) = outcome_of(&row, &books, &self.filtered_for) else { return Ok(()) };
            let sender = if row.sequence == 0 { None } else { submitted.find(row.publisher, row.sequence) };
            let arrived = row.kind.has_arrived();
            // A row of another machine may have any values.
            let upper_ns = at(row.at_ns).wrapping_sub(at(row.due_ns));
            let delay_us = row.write_start_us.filter(|_| arrived);
            visit(&Entry {
                outcome,
                publisher: row.publisher,
                sequence: Some(row.sequence).filter(|sequence| *sequence > 0),
                audience: arrived.then_some(row.audience),
                payload_bytes: Some(row.payload_bytes),
                due_ns: Some(at(row.due_ns)),
                ready_ns: sender.map(|sender| at(sender.ready_ns)),
                write_start_ns: delay_us.map(|us| at(row.due_ns).wrapping_add(i64::from(us) * 1_000)),
                received_ns: arrived.then(|| at(row.at_ns)),
                latency_ns: arrived.then(|| (lower_ns(upper_ns, row.lag_ns.saturating_add(row.late_ns)), upper_ns)),
                out_of_order: row.kind == RowKind::DeliveredOutOfOrder,
            })
        })?;
        let unarrived = |outcome, publisher, sequence, audience, sender: Option<&SubmittedMessage>| Entry {
            outcome,
            publisher,
            sequence: Some(sequence),
            audience,
            payload_bytes: sender.map(|sender| sender.payload_bytes),
            due_ns: sender.map(|sender| at(sender.due_ns)),
            ready_ns: sender.map(|sender| at(sender.ready_ns)),
            write_start_ns: None,
            received_ns: None,
            latency_ns: None,
            out_of_order: false,
        };
        for row in &self.missing {
            let MissingRow { publisher, sequence, audience, outcome } = *row;
            let sender = submitted.find(publisher, sequence);
            visit(&unarrived(EntryOutcome::Missing(outcome), publisher, sequence, audience, sender))?;
        }
        let wanted: HashSet<u32> = self.streams.iter().map(|(_, publisher)| *publisher).collect();
        for (publisher, sent) in submitted.0.iter().filter(|(publisher, _)| !wanted.contains(publisher)) {
            let is_exempt = |sequence: u32| {
                let place =
                    self.missing.binary_search_by_key(&(*publisher, sequence), |row| (row.publisher, row.sequence));
                place.is_ok()
            };
            for sender in sent.iter().filter(|sender| !is_exempt(sender.sequence)) {
                visit(&unarrived(EntryOutcome::NoSubscriber, *publisher, sender.sequence, None, Some(sender)))?;
            }
        }
        Ok(())
    }

    /// Payload bytes that each publisher sent: of messages that were written completely and not refused, each counted
    /// once.
    ///
    /// # Errors
    /// A file of the log cannot be read.
    pub fn sent_bytes(&self) -> io::Result<HashMap<u32, u64>> {
        let refused: HashMap<u32, &Holes> =
            self.publishers.iter().map(|book| (book.publisher, &book.refused)).collect();
        let is_refused = |row: &Row| refused.get(&row.publisher).is_some_and(|refused| refused.contains(row.sequence));
        // Of the messages that did not arrive, those that no subscription could expect were not sent. Those that were
        // refused may be all of a run, so they are not listed again.
        let unsent: HashSet<(u32, u32)> = self
            .missing
            .iter()
            .filter(|row| row.audience.is_none() && row.outcome != Missing::Refused)
            .map(|row| (row.publisher, row.sequence))
            .collect();
        let mut sums: HashMap<u32, u64> = HashMap::new();
        self.each_row(|row| {
            let is_unsent = || is_refused(&row) || unsent.contains(&(row.publisher, row.sequence));
            if row.kind == RowKind::Submitted && !is_unsent() {
                *sums.entry(row.publisher).or_default() += u64::from(row.payload_bytes);
            }
            Ok(())
        })?;
        Ok(sums)
    }

    /// Number of rows in the files, of all kinds.
    ///
    /// # Errors
    /// The size of a file cannot be read.
    pub fn row_count(&self) -> io::Result<u64> {
        self.files.iter().try_fold(0, |rows, file| Ok(rows + file.metadata()?.len() / ROW_BYTES as u64))
    }

    fn each_row(&self, mut visit: impl FnMut(Row) -> io::Result<()>) -> io::Result<()> {
        self.files.iter().try_for_each(|file| rows(file)?.try_for_each(|row| visit(row?)))
    }

    fn submitted_messages(&self) -> io::Result<SubmittedMessages> {
        let mut all: HashMap<u32, Vec<SubmittedMessage>> = HashMap::new();
        self.each_row(|row| {
            if row.kind == RowKind::Submitted {
                all.entry(row.publisher).or_default().push(SubmittedMessage {
                    sequence: row.sequence,
                    payload_bytes: row.payload_bytes,
                    due_ns: row.due_ns,
                    ready_ns: row.at_ns,
                });
            }
            Ok(())
        })?;
        all.values_mut().for_each(|sent| sent.sort_unstable_by_key(|submitted| submitted.sequence));
        Ok(SubmittedMessages(all))
    }
}

/// The outcome of a row that is an entry by itself; `None` for other rows.
fn outcome_of(
    row: &Row,
    books: &HashMap<u32, &PublisherBook>,
    filtered_for: &HashMap<u32, u16>,
) -> Option<EntryOutcome> {
    let book = books.get(&row.publisher);
    Some(match row.kind {
        RowKind::Submitted => return None,
        RowKind::SkippedPlanned => EntryOutcome::SkippedPlanned,
        RowKind::SkippedDisconnected => EntryOutcome::Missing(Missing::SkippedDisconnected),
        RowKind::TooLarge => EntryOutcome::TooLarge,
        RowKind::Unsent => EntryOutcome::Missing(Missing::Unsent),
        // The publishers of a worker that was lost have no book. The message accounting leaves out what arrived from them.
        RowKind::Delivered | RowKind::DeliveredOutOfOrder if book.is_none() => return None,
        // A process cannot know what publishers in other processes have sent.
        RowKind::Delivered | RowKind::DeliveredOutOfOrder if book.is_some_and(|book| row.sequence > book.last) => {
            EntryOutcome::Foreign
        }
        RowKind::Delivered | RowKind::DeliveredOutOfOrder
            if book.is_some_and(|book| book.refused.contains(row.sequence)) =>
        {
            EntryOutcome::DeliveredAfterRefusal
        }
        RowKind::Delivered | RowKind::DeliveredOutOfOrder
            if book
                .zip(filtered_for.get(&row.audience))
                .is_some_and(|(book, group)| is_unmatched(row, book, *group)) =>
        {
            EntryOutcome::Unmatched
        }
        RowKind::Delivered | RowKind::DeliveredOutOfOrder => EntryOutcome::Delivered,
        RowKind::Duplicated => EntryOutcome::Duplicated,
        RowKind::Overlap => EntryOutcome::Overlap,
    })
}

/// Should the system's filter for this group have removed a message that arrived?
fn is_unmatched(row: &Row, book: &PublisherBook, group: u16) -> bool {
    let place = row.sequence.checked_sub(book.first_measured);
    let notes = book.matches.iter().find(|notes| notes.group == group);
    let measured = Range { first: book.first_measured, last: book.last };
    let covers = |notes: &&MatchNotes| notes.covers(measured.count());
    notes.filter(covers).zip(place).is_some_and(|(notes, place)| !notes.holds(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(publisher: u32, sequence: u32) -> Row {
        Row {
            kind: RowKind::Delivered,
            publisher,
            sequence,
            audience: 0,
            payload_bytes: 100,
            due_ns: 1,
            at_ns: 2,
            lag_ns: 0,
            late_ns: 0,
            write_start_us: None,
        }
    }

    #[test]
    fn only_a_message_that_its_publisher_did_not_send_is_foreign() {
        let known = PublisherBook { publisher: 3, first_measured: 1, last: 10, ..PublisherBook::default() };
        let books = HashMap::from([(3, &known)]);
        let outcome =
            |publisher: u32, sequence: u32| outcome_of(&delivered(publisher, sequence), &books, &HashMap::new());
        assert_eq!(outcome(3, 10), Some(EntryOutcome::Delivered));
        assert_eq!(outcome(3, 11), Some(EntryOutcome::Foreign));
        assert_eq!(outcome(4, 11), None, "the worker of its publisher was lost");
    }
}
