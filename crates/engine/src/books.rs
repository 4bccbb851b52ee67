//! Completes the message accounting: compares the messages that publishers sent with those that subscriptions received,
//! message by message.
//!
//! Sequence numbers are used without gaps, so a stream's missing numbers are found as ranges. Each missing message is
//! then put into one category: never written completely (broken, stuck), refused, sent during an absence, unknown, or
//! lost.

mod judged;

use std::collections::{BTreeMap, HashMap, HashSet};

use pubmark_metrics::holes::Range;
use pubmark_metrics::ledger::Ledger;
use pubmark_record::delivery::{BrokenPromises, DueTimeAudit};
use pubmark_record::record::Delivery;

use crate::absences::{self, Absences, holds, intersection, merged};
use crate::content::unmatched::Unmatched;
use crate::pairs::Pairs;
use crate::shard_outcome::{PublisherBook, StreamRow};
pub(crate) use judged::{Judged, JudgedStream};

/// The message accounting of one device group.
#[derive(Clone, Debug, Default)]
pub struct GroupBooks {
    /// Its devices.
    pub devices: u64,
    /// Its part of the accounting; the caller sets the counters of duplicates and order.
    pub delivery: Delivery,
    /// Due times at which its devices were planned online.
    pub planned_online: u64,
    /// Sent messages that the publisher counted as unsent and that a subscriber received.
    pub arrived_unsent: u64,
}

/// The completed message accounting.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// The accounting of the run; the caller sets the counters of duplicates and order.
    pub delivery: Delivery,
    /// By group index.
    pub groups: Vec<GroupBooks>,
    /// Messages larger than the system accepts.
    pub too_large: u64,
    /// Payload sizes raised to the size of the header.
    pub sizes_raised: u64,
    /// Deliveries of messages never sent; if the publishers ran in other processes, they are detected only here.
    pub never_sent: u64,
    /// Due times that messages carried, compared with the schedule's; set by the caller.
    pub due_times: DueTimeAudit,
    /// By pair of nodes, in a run on several nodes.
    pub by_nodes: ByNodes,
    /// Writer–reader pairs without any delivery, likewise.
    pub silent_by_nodes: BTreeMap<(u16, u16), u64>,
    /// Did every writer–reader pair have a delivery?
    pub pairs: Pairs,
    /// Messages whose QoS level promises another outcome; set by the caller.
    pub broken_promises: BrokenPromises,
}

/// The part of the accounting between two nodes, by (senders' node, receivers' node).
pub type ByNodes = BTreeMap<(u16, u16), Delivery>;

/// The receivers' side of one shard: its ledger with the publisher and audience of its streams.
pub struct Received<'a> {
    /// Node of the shard.
    pub node: u16,
    /// First copies.
    pub ledger: &'a Ledger,
    /// Streams.
    pub streams: &'a [StreamRow],
    /// Periods in which the system did not hold their subscriptions.
    pub absences: Absences<'a>,
}

/// The sequence numbers of a publisher that no subscription can expect.
struct Exempt<'a> {
    book: &'a PublisherBook,
    /// Refused, or broken or stuck and delivered to no subscriber: ascending, non-adjacent ranges.
    all: Vec<Range>,
    unanswered: HashSet<u32>,
    /// Broken and stuck messages that a subscriber received: they were sent in spite of their state.
    broken_arrived: u64,
    stuck_arrived: u64,
}

/// Completes the accounting over all shards. `nodes` has the node of each publisher of the fleet, in a run on several
/// nodes.
pub fn close(publishers: &[PublisherBook], received: &[Received<'_>], groups: usize, nodes: Option<&[u16]>) -> Books {
    let mut books = Books { groups: vec![GroupBooks::default(); groups], ..Books::default() };
    let arrived = arrived_anyway(publishers, received);
    let mut exempt = HashMap::with_capacity(publishers.len());
    for book in publishers {
        let row = Exempt::new(book, arrived.get(&book.publisher));
        let group = &mut books.groups[usize::from(book.group)];
        group.devices += u64::from(book.leads);
        group.planned_online += book.planned_online;
        group.arrived_unsent += row.broken_arrived + row.stuck_arrived;
        row.enter(&mut group.delivery);
        books.too_large += book.too_large;
        books.sizes_raised += book.sizes_raised;
        exempt.insert(book.publisher, row);
    }
    for side in received {
        for stream in side.streams {
            let Some(row) = exempt.get(&stream.publisher) else { continue };
            books.never_sent += side.ledger.arrived_above(stream.stream, row.book.last);
            let group = &mut books.groups[usize::from(row.book.group)];
            group.delivery.prevented += if stream.filtered_for.is_none() { row.not_taken() } else { 0 };
            if row.book.first_measured == 0 {
                continue;
            }
            let absent = side.absences.of(stream, row.book);
            let mut part = Delivery::default();
            let unmatched = Unmatched::of(stream, row.book);
            let not_expected = NotExpected { absent: &absent, unmatched: &unmatched.ranges };
            row.judge(side.ledger, stream.stream, &not_expected, &mut part);
            // A message that is absent by merged epochs may have been sent before or after the absence, and be lost.
            let is_absence_unclear = part.absent > 0 && row.book.epochs.are_merged();
            books.delivery.approximate |= unmatched.is_unknown || is_absence_unclear;
            add(&mut group.delivery, &part);
            let is_silent = books.pairs.enter(&part, || row.was_delivered_before(side.ledger, stream.stream));
            if let Some(from) = nodes.and_then(|nodes| nodes.get(stream.publisher as usize)) {
                add(books.by_nodes.entry((*from, side.node)).or_default(), &part);
                *books.silent_by_nodes.entry((*from, side.node)).or_default() += u64::from(is_silent);
            }
        }
        books.delivery.approximate |= side.ledger.is_approximate();
    }
    for group in &books.groups {
        add(&mut books.delivery, &group.delivery);
    }
    books
}

/// Adds those counters of the accounting that this module sets.
pub(crate) fn add(total: &mut Delivery, part: &Delivery) {
    total.offered += part.offered;
    total.sent += part.sent;
    total.skipped_planned += part.skipped_planned;
    total.slowed += part.slowed;
    total.skipped_disconnected += part.skipped_disconnected;
    total.refused += part.refused;
    total.unsent += part.unsent;
    total.expected += part.expected;
    total.delivered += part.delivered;
    total.lost += part.lost;
    total.unknown += part.unknown;
    total.absent += part.absent;
    total.prevented += part.prevented;
    total.filtered_out += part.filtered_out;
    total.unmatched += part.unmatched;
    total.delivered_after_refusal += part.delivered_after_refusal;
}

/// Of the messages that publishers count as unsent, those that a subscriber received.
fn arrived_anyway(publishers: &[PublisherBook], received: &[Received<'_>]) -> HashMap<u32, HashSet<u32>> {
    let doubtful: HashMap<u32, &PublisherBook> = publishers
        .iter()
        .filter(|book| !book.broken.is_empty() || !book.stuck.is_empty())
        .map(|book| (book.publisher, book))
        .collect();
    let mut arrived: HashMap<u32, HashSet<u32>> = HashMap::new();
    if doubtful.is_empty() {
        return arrived;
    }
    for side in received {
        for stream in side.streams {
            let Some(book) = doubtful.get(&stream.publisher) else { continue };
            for number in book.broken.iter().chain(&book.stuck) {
                if side.ledger.has(stream.stream, *number) {
                    arrived.entry(stream.publisher).or_default().insert(*number);
                }
            }
        }
    }
    arrived
}

impl<'a> Exempt<'a> {
    fn new(book: &'a PublisherBook, arrived: Option<&HashSet<u32>>) -> Exempt<'a> {
        let has_arrived = |number: &&u32| arrived.is_some_and(|arrived| arrived.contains(number));
        let unsent = book.broken.iter().chain(&book.stuck).filter(|number| !has_arrived(number));
        let unsent = unsent.map(|number| Range { first: *number, last: *number });
        Exempt {
            book,
            all: merged(unsent.chain(book.refused.ranges().iter().copied()).collect()),
            unanswered: book.unanswered.iter().copied().collect(),
            broken_arrived: book.broken.iter().filter(has_arrived).count() as u64,
            stuck_arrived: book.stuck.iter().filter(has_arrived).count() as u64,
        }
    }

    /// Adds the publisher's side of the accounting.
    fn enter(&self, delivery: &mut Delivery) {
        let book = self.book;
        let refused_later = book.refused.count();
        delivery.offered += book.offered;
        delivery.skipped_planned += book.skipped_planned;
        delivery.slowed += book.slowed;
        delivery.skipped_disconnected += book.skipped_disconnected + book.broken.len() as u64 - self.broken_arrived;
        delivery.refused += book.too_large + refused_later;
        delivery.unsent += book.unsent + book.stuck.len() as u64 - self.stuck_arrived;
        delivery.sent += (book.written + self.broken_arrived + self.stuck_arrived).saturating_sub(refused_later);
    }

    /// Messages that the system refused or did not take, and those due on a connection that it had ended.
    fn not_taken(&self) -> u64 {
        let mut own = Delivery::default();
        self.enter(&mut own);
        own.refused + own.unsent + own.skipped_disconnected
    }

    /// Did a message of this stream arrive in the warm-up?
    fn was_delivered_before(&self, ledger: &Ledger, stream: u32) -> bool {
        let before = u64::from(self.book.first_measured.saturating_sub(1));
        let missing = || ledger.missing(stream, 1, self.book.first_measured - 1);
        before > 0 && missing().iter().map(|range| range.count()).sum::<u64>() < before
    }

    /// Categorises every measured sequence number of one stream.
    fn judge(&self, ledger: &Ledger, stream: u32, not_expected: &NotExpected<'_>, delivery: &mut Delivery) {
        let all = Range { first: self.book.first_measured, last: self.book.last };
        self.judge_within(ledger, stream, not_expected, all, delivery);
        // Beyond the ledger's capacity it is unknown which numbers arrived.
        let forgotten = ledger.forgotten(stream).min(delivery.delivered);
        delivery.delivered -= forgotten;
        delivery.lost += forgotten;
    }

    /// Categorises the measured sequence numbers of one stream within a range. Every number gets one outcome: disjoint
    /// sets of numbers are counted, so that no count can exceed its total. *Expected* is counted independently and
    /// checked against its parts (V08).
    fn judge_within(
        &self,
        ledger: &Ledger,
        stream: u32,
        not_expected: &NotExpected<'_>,
        within: Range,
        delivery: &mut Delivery,
    ) {
        let missing = ledger.missing(stream, within.first, within.last);
        let missing_count = absences::count(&missing);
        let of_both = |one: &[Range], other: &[Range]| absences::count(&intersection(one, other));

        let refused = intersection(&[within], self.book.refused.ranges());
        let refused_arrived = absences::count(&refused) - of_both(&refused, &missing);
        let exempt_missing = of_both(&self.all, &missing);
        let in_absence = intersection(&missing, not_expected.absent);
        let absent = absences::count(&in_absence) - of_both(&self.all, &in_absence);
        // Messages that the system's filter removed, and messages that it passed although the predicate does not hold.
        let filtered = intersection(&missing, not_expected.unmatched);
        let both = intersection(&in_absence, &filtered);
        let exempt_filtered = of_both(&self.all, &filtered) - of_both(&self.all, &both);
        let filtered_out = absences::count(&filtered) - absences::count(&both) - exempt_filtered;
        let all_unmatched = intersection(&[within], not_expected.unmatched);
        let refused_unmatched = intersection(&refused, &all_unmatched);
        let refused_passed = absences::count(&refused_unmatched) - of_both(&refused_unmatched, &missing);
        let unmatched = absences::count(&all_unmatched) - absences::count(&filtered) - refused_passed;
        let is_unknown = |number: &&u32| {
            holds(&missing, **number)
                && [&in_absence, &filtered, &self.all].iter().all(|ranges| !holds(ranges, **number))
        };
        let unknown = self.unanswered.iter().filter(is_unknown).count() as u64;

        let delivered = (within.count() - missing_count).saturating_sub(refused_arrived + unmatched);
        let lost = missing_count.saturating_sub(exempt_missing + absent + filtered_out + unknown);
        delivery.delivered += delivered;
        delivery.lost += lost;
        delivery.unknown += unknown;
        delivery.absent += absent;
        delivery.filtered_out += filtered_out;
        delivery.unmatched += unmatched;
        let unexpected = exempt_missing + refused_arrived + absent + filtered_out + unmatched;
        delivery.expected += within.count().saturating_sub(unexpected);
        delivery.delivered_after_refusal += refused_arrived;
    }
}

/// Sequence numbers of a stream that are not expected: sent during an absence, or the predicate that the system filters by
/// does not hold for them.
struct NotExpected<'a> {
    absent: &'a [Range],
    unmatched: &'a [Range],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epochs::Epochs;
    use crate::shard_outcome::Absence;
    use proptest::prelude::*;

    fn book(publisher: u32, last: u32) -> PublisherBook {
        PublisherBook {
            publisher,
            leads: true,
            offered: u64::from(last),
            written: u64::from(last),
            first_measured: 1,
            last,
            epochs: [(0, 1)].into_iter().collect(),
            ..PublisherBook::default()
        }
    }

    fn row(stream: u32, publisher: u32) -> StreamRow {
        StreamRow { subscriber: 0, publisher, stream, filters: 1, filtered_for: None }
    }

    fn closed(books: &[PublisherBook], ledger: &Ledger, streams: &[StreamRow], absences: &[Absence]) -> Delivery {
        let absences = Absences::new(absences, &|_, _| vec![0]);
        let delivery = close(books, &[Received { node: 0, ledger, streams, absences }], 1, None).delivery;
        assert_eq!(
            delivery.offered,
            delivery.sent
                + delivery.skipped_planned
                + delivery.skipped_disconnected
                + delivery.refused
                + delivery.unsent,
            "{delivery:?}"
        );
        assert_eq!(delivery.expected, delivery.delivered + delivery.lost + delivery.unknown, "{delivery:?}");
        delivery
    }

    fn ledger_with(numbers: impl IntoIterator<Item = u32>) -> Ledger {
        let mut ledger = Ledger::new(1);
        numbers.into_iter().for_each(|number| {
            ledger.enter(0, number);
        });
        ledger
    }

    #[test]
    fn a_message_that_did_not_arrive_is_lost() {
        let delivery = closed(&[book(0, 10)], &ledger_with([1, 2, 4, 5, 6, 7, 8]), &[row(0, 0)], &[]);
        assert_eq!((delivery.expected, delivery.delivered, delivery.lost), (10, 7, 3));
    }

    #[test]
    fn an_unanswered_message_is_unknown_only_if_it_did_not_arrive() {
        let mut publisher = book(0, 3);
        publisher.unanswered = vec![2, 3];
        let delivery = closed(&[publisher], &ledger_with([1, 2]), &[row(0, 0)], &[]);
        assert_eq!((delivery.delivered, delivery.unknown, delivery.lost), (2, 1, 0));
    }

    #[test]
    fn a_refused_message_is_neither_sent_nor_expected_even_if_it_arrives() {
        let mut publisher = book(0, 4);
        publisher.refused = [2, 3].into_iter().collect();
        let delivery = closed(&[publisher], &ledger_with([1, 2, 4]), &[row(0, 0)], &[]);
        assert_eq!((delivery.sent, delivery.refused, delivery.expected, delivery.delivered), (2, 2, 2, 2));
        assert_eq!(delivery.delivered_after_refusal, 1);
    }

    #[test]
    fn a_half_written_message_that_arrives_was_sent() {
        let mut publisher = book(0, 3);
        publisher.written = 1;
        publisher.broken = vec![2, 3];
        let delivery = closed(&[publisher], &ledger_with([1, 2]), &[row(0, 0)], &[]);
        assert_eq!((delivery.sent, delivery.skipped_disconnected, delivery.expected, delivery.delivered), (2, 1, 2, 2));
    }

    #[test]
    fn messages_sent_into_an_absence_are_separate_but_delivered_ones_count() {
        let mut publisher = book(0, 9);
        publisher.epochs = [(0, 1), (1, 4), (2, 7)].into_iter().collect();
        let absence = Absence { subscriber: 0, filter: 0, from_epoch: 1, to_epoch: Some(2) };
        let delivery = closed(&[publisher], &ledger_with([1, 2, 3, 6, 7, 8]), &[row(0, 0)], &[absence]);
        assert_eq!((delivery.absent, delivery.expected, delivery.delivered, delivery.lost), (2, 7, 6, 1));
    }

    #[test]
    fn messages_that_are_absent_by_merged_epochs_make_the_books_approximate() {
        let absence = Absence { subscriber: 0, filter: 0, from_epoch: 2, to_epoch: Some(3) };
        // One message in each of eight epochs; message 3 was sent during the absence.
        let of = |limit: usize, missing: &[u32]| {
            let mut publisher = book(0, 8);
            publisher.epochs = Epochs::default();
            (0..8).for_each(|epoch| publisher.epochs.note(epoch, epoch + 1, limit));
            let arrived = ledger_with((1..=8).filter(|number| !missing.contains(number)));
            let delivery = closed(&[publisher], &arrived, &[row(0, 0)], &[absence]);
            (delivery.absent, delivery.lost, delivery.approximate)
        };
        assert_eq!(of(8, &[3, 4]), (1, 1, false));
        assert_eq!(of(4, &[3, 4]), (2, 0, true), "two epochs are one");
        assert_eq!(of(4, &[5]), (0, 1, false), "nothing is missing in the absence");
    }

    #[test]
    fn warm_up_messages_are_not_in_the_books() {
        let mut publisher = book(0, 10);
        publisher.first_measured = 6;
        publisher.offered = 5;
        publisher.written = 5;
        let delivery = closed(&[publisher], &ledger_with([6, 7, 8, 9]), &[row(0, 0)], &[]);
        assert_eq!((delivery.sent, delivery.expected, delivery.delivered, delivery.lost), (5, 5, 4, 1));
    }
    #[test]
    fn a_message_that_its_publisher_never_sent_is_counted_separately() {
        let ledger = ledger_with((1..=10).chain([12, 5_000]));
        let absences = Absences::new(&[], &|_, _| vec![0]);
        let books =
            close(&[book(0, 10)], &[Received { node: 0, ledger: &ledger, streams: &[row(0, 0)], absences }], 1, None);
        assert_eq!((books.never_sent, books.delivery.delivered, books.delivery.lost), (2, 10, 0));
    }

    #[test]
    fn two_absences_within_one_epoch_are_not_counted_twice() {
        let mut publisher = book(0, 12);
        publisher.epochs = [(0, 1), (7, 4), (8, 8)].into_iter().collect();
        let absence = |from_epoch, to_epoch| Absence { subscriber: 0, filter: 0, from_epoch, to_epoch: Some(to_epoch) };
        let absences = [absence(7, 8), absence(7, 9)];
        let delivery = closed(&[publisher], &ledger_with([1, 2, 3]), &[row(0, 0)], &absences);
        assert_eq!((delivery.absent, delivery.expected, delivery.delivered, delivery.lost), (9, 3, 3, 0));
    }

    #[test]
    fn a_message_that_waited_at_the_end_and_arrives_was_sent_and_is_named_as_such() {
        let mut publisher = book(0, 4);
        publisher.written = 1;
        (publisher.stuck, publisher.broken) = (vec![2, 3], vec![4]);
        let (ledger, streams) = (ledger_with([1, 2, 4]), [row(0, 0)]);
        let delivery = closed(std::slice::from_ref(&publisher), &ledger, &streams, &[]);
        assert_eq!((delivery.sent, delivery.unsent, delivery.skipped_disconnected), (3, 1, 0));
        assert_eq!((delivery.expected, delivery.delivered, delivery.lost), (3, 3, 0));
        let absences = Absences::new(&[], &|_, _| vec![0]);
        let books = close(&[publisher], &[Received { node: 0, ledger: &ledger, streams: &streams, absences }], 1, None);
        assert_eq!(books.groups[0].arrived_unsent, 2);
    }

    /// The message accounting of one publisher's ten messages over several shards.
    fn over_shards(ledgers: &[Ledger]) -> Books {
        let streams = [row(0, 0)];
        let none = || Absences::new(&[], &|_, _| vec![0]);
        let side = |ledger| Received { node: 0, ledger, streams: &streams, absences: none() };
        close(&[book(0, 10)], &ledgers.iter().map(side).collect::<Vec<_>>(), 1, None)
    }

    #[test]
    fn one_approximate_shard_makes_the_books_approximate_and_they_add_up_all_the_same() {
        let mut approximate = Ledger::with_range_limit(1, 0);
        [1, 3, 5, 7, 9].into_iter().chain([2_000]).for_each(|number| {
            approximate.enter(0, number);
        });
        let exact = ledger_with(1..=10);
        for ledgers in [[approximate.clone(), exact.clone()], [exact.clone(), approximate]] {
            let books = over_shards(&ledgers);
            assert!(books.delivery.approximate);
            assert_eq!(books.delivery.expected, 20);
            assert_eq!(books.delivery.delivered + books.delivery.lost, 20, "{:?}", books.delivery);
            assert!(books.delivery.lost >= 5, "{:?}", books.delivery);
        }
        assert!(!over_shards(&[exact.clone(), exact]).delivery.approximate);
    }

    #[test]
    fn messages_never_sent_add_up_over_shards() {
        let forged = |numbers: &[u32]| ledger_with((1..=10).chain(numbers.iter().copied()));
        assert_eq!(over_shards(&[forged(&[11, 12]), forged(&[13])]).never_sent, 3);
    }

    #[test]
    fn each_missing_message_has_exactly_one_outcome() {
        let mut publisher = book(0, 9);
        // Message 1 belongs to the warm-up. Messages 2 and 3 were sent during an absence; 2 was refused and 3 never
        // acknowledged. The same holds for 5 and 6 later.
        (publisher.first_measured, publisher.offered, publisher.written) = (2, 8, 8);
        publisher.epochs = [(0, 1), (1, 2), (2, 4)].into_iter().collect();
        (publisher.refused, publisher.unanswered) = ([2, 5].into_iter().collect(), vec![3, 5, 6]);
        let absence = Absence { subscriber: 0, filter: 0, from_epoch: 1, to_epoch: Some(2) };
        let delivery = closed(&[publisher], &ledger_with([4, 7, 8]), &[row(0, 0)], &[absence]);
        assert_eq!((delivery.absent, delivery.unknown, delivery.lost), (1, 1, 1), "3; 6; 9: {delivery:?}");
        assert_eq!((delivery.expected, delivery.delivered, delivery.refused), (5, 3, 2), "{delivery:?}");
    }

    #[test]
    fn a_refused_message_of_the_warm_up_that_arrives_takes_nothing_from_the_measured() {
        let mut publisher = book(0, 6);
        (publisher.first_measured, publisher.offered, publisher.written) = (3, 4, 4);
        publisher.refused.insert(2);
        let delivery = close(
            &[publisher],
            &[Received {
                node: 0,
                ledger: &ledger_with(1..=6),
                streams: &[row(0, 0)],
                absences: Absences::new(&[], &|_, _| vec![0]),
            }],
            1,
            None,
        )
        .delivery;
        let counts = (delivery.expected, delivery.delivered, delivery.delivered_after_refusal);
        assert_eq!(counts, (4, 4, 0), "{delivery:?}");
    }

    /// One message: the tick in which it was sent, and whether it arrived.
    type Fate = (u32, bool);

    proptest! {
        /// Subscribers on other machines that connect and disconnect, against a model that examines each message
        /// separately.
        #[test]
        fn absences_agree_with_a_plain_model(
            gaps in proptest::collection::vec((0u32..4, any::<bool>()), 1..120),
            spans in proptest::collection::vec((0u32..200, 0u32..25), 0..12),
        ) {
            let mut tick = 0;
            let fates: Vec<Fate> = gaps.iter().map(|(gap, arrives)| { tick += gap; (tick, *arrives) }).collect();
            let absences: Vec<Absence> = spans
                .iter()
                .map(|(from, length)| {
                    Absence { subscriber: 0, filter: 0, from_epoch: *from, to_epoch: Some(from + length + 1) }
                })
                .collect();
            let mut publisher = book(0, fates.len() as u32);
            publisher.epochs = (1u32..).zip(&fates).map(|(number, (tick, _))| (*tick, number)).collect();
            let arrived = (1u32..).zip(&fates).filter(|(_, (_, arrived))| *arrived).map(|(number, _)| number);
            let delivery = closed(&[publisher], &ledger_with(arrived), &[row(0, 0)], &absences);

            let is_absent = |tick: u32| absences.iter().any(|absence| {
                (absence.from_epoch..absence.to_epoch.unwrap_or(u32::MAX)).contains(&tick)
            });
            let count = |meant: &dyn Fn(&Fate) -> bool| fates.iter().filter(|fate| meant(fate)).count() as u64;
            prop_assert_eq!(delivery.delivered, count(&|(_, arrived)| *arrived));
            prop_assert_eq!(delivery.absent, count(&|(tick, arrived)| !arrived && is_absent(*tick)));
            prop_assert_eq!(delivery.lost, count(&|(tick, arrived)| !arrived && !is_absent(*tick)));
        }

        /// Refused messages, missing acknowledgements and an absence, against a model that examines each message
        /// separately.
        #[test]
        fn refusals_agree_with_a_plain_model(
            fates in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..150),
            absent_from in 1u32..160,
        ) {
            let all = || (1u32..).zip(fates.iter().copied());
            let numbers = |meant: &dyn Fn(u32, (bool, bool, bool)) -> bool| -> Vec<u32> {
                all().filter(|(number, fate)| meant(*number, *fate)).map(|(number, _)| number).collect()
            };
            let mut publisher = book(0, fates.len() as u32);
            publisher.epochs = [(0, 1), (1, absent_from)].into_iter().collect();
            publisher.refused = numbers(&|_, (refused, _, _)| refused).into_iter().collect();
            publisher.unanswered = numbers(&|_, (_, unanswered, _)| unanswered);
            let absence = Absence { subscriber: 0, filter: 0, from_epoch: 1, to_epoch: None };
            let arrived = ledger_with(numbers(&|_, (_, _, arrived)| arrived));
            let delivery = closed(&[publisher], &arrived, &[row(0, 0)], &[absence]);

            let count = |meant: &dyn Fn(u32, (bool, bool, bool)) -> bool| numbers(meant).len() as u64;
            let missing = |(refused, _, arrived): (bool, bool, bool)| !refused && !arrived;
            prop_assert_eq!(delivery.refused, count(&|_, (refused, _, _)| refused));
            prop_assert_eq!(delivery.delivered, count(&|_, (refused, _, arrived)| !refused && arrived));
            prop_assert_eq!(delivery.delivered_after_refusal, count(&|_, (refused, _, arrived)| refused && arrived));
            prop_assert_eq!(delivery.absent, count(&|number, fate| missing(fate) && number >= absent_from));
            prop_assert_eq!(delivery.unknown, count(&|number, fate| missing(fate) && fate.1 && number < absent_from));
            prop_assert_eq!(delivery.lost, count(&|number, fate| missing(fate) && !fate.1 && number < absent_from));
        }
    }
}
