//! Requests and their answers, put together over all shards: the books closed, the times merged.

use std::collections::HashMap;

use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_metrics::ledger::Ledger;
use pubmark_model::workload::Workload;
use pubmark_record::distribution::{bounds, summary};
use pubmark_record::requests::{RequestBooks, RequestFigures, RequestGroup, ResponseBooks};
use serde::{Deserialize, Serialize};

use crate::books::GroupBooks;
use crate::outcome::TYPE_LIMIT;
use crate::remote;

/// One requester's side of the books. Counts are of measured requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequesterBook {
    /// Index of its group.
    pub group: u16,
    /// Its stream of answers in the shard's ledger.
    pub stream: u32,
    /// Answered in time.
    pub answered: u64,
    /// Given up when their time was over.
    pub expired: u64,
    /// Answered after they were given up.
    pub late: u64,
    /// Of these, requests that were abandoned before they were written, as far as we could know.
    pub late_unsent: u64,
    /// Given up, but their connection had ended while they were open.
    pub orphans: Vec<u32>,
    /// Open when the run ended.
    pub open: u64,
    /// Further answers.
    pub duplicated: u64,
    /// Answers to other requests.
    pub misdirected: u64,
    /// Answers to refused requests.
    pub after_refusal: u64,
}

impl RequesterBook {
    /// A request that was given up turns out not to have been sent.
    pub fn take_back(&mut self, sequence: u32) {
        self.expired = self.expired.saturating_sub(1);
        self.orphans.retain(|orphan| *orphan != sequence);
    }
}

/// Times of requests answered in time, and of their answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestTimes {
    /// Answer's arrival − request's due time.
    pub round_trip: Distribution,
    /// Answer's arrival − request's write start.
    pub service: Distribution,
    /// The round trip without what the responder took.
    pub travel: Distribution,
    /// Wait of a request at its responder.
    pub waiting: Distribution,
    /// An answer's ready time − its due time at the responder.
    pub responder_lag: Distribution,
    /// Our read of an answer − the latest time at which it cannot have been there.
    pub receive_lateness: Distribution,
}

impl Default for RequestTimes {
    fn default() -> RequestTimes {
        let empty = || Distribution::new(Precision::Total);
        RequestTimes {
            round_trip: empty(),
            service: empty(),
            travel: empty(),
            waiting: empty(),
            responder_lag: empty(),
            receive_lateness: empty(),
        }
    }
}

impl RequestTimes {
    /// Adds another shard's.
    pub fn merge(&mut self, other: &RequestTimes) {
        self.round_trip.merge(&other.round_trip);
        self.service.merge(&other.service);
        self.travel.merge(&other.travel);
        self.waiting.merge(&other.waiting);
        self.responder_lag.merge(&other.responder_lag);
        self.receive_lateness.merge(&other.receive_lateness);
    }
}

/// What one shard found out about requests.
#[derive(Serialize, Deserialize)]
pub struct ShardRequests {
    /// Its requesters' books.
    pub books: Vec<RequesterBook>,
    /// First answers, a stream a requester.
    pub ledger: Ledger,
    /// Times.
    pub times: RequestTimes,
    /// Round trips by group, below [`TYPE_LIMIT`].
    #[serde(deserialize_with = "remote::map_of_at_most::<TYPE_LIMIT, _, _, _>")]
    pub groups: HashMap<u16, Distribution>,
    /// What its responders did.
    pub responses: ResponseBooks,
    /// Answers in time that arrived in the measured window.
    pub answered_in_window: u64,
    /// Answers in time that came before it was known when the write of their request began.
    pub without_write_start: u64,
    /// Requests open at once, at most.
    pub peak_open: u64,
}

impl ShardRequests {
    /// Nothing yet, for the requesters with these books.
    pub fn new(books: Vec<RequesterBook>) -> ShardRequests {
        ShardRequests {
            ledger: Ledger::new(books.len()),
            books,
            times: RequestTimes::default(),
            groups: HashMap::new(),
            responses: ResponseBooks::default(),
            answered_in_window: 0,
            without_write_start: 0,
            peak_open: 0,
        }
    }

    /// Enters a round trip.
    pub fn enter_round_trip(&mut self, group: u16, time_ns: i64) {
        self.times.round_trip.record(time_ns);
        if usize::from(group) < TYPE_LIMIT {
            let row = self.groups.entry(group).or_insert_with(|| Distribution::new(Precision::Breakdown));
            row.record(time_ns);
        }
    }
}

/// Requests of a whole run.
#[derive(Debug)]
pub struct RequestOutcome {
    /// For the record; its times are summed up from `times`.
    pub figures: RequestFigures,
    /// Times, merged.
    pub times: RequestTimes,
}

/// Requesters and responders of a run.
#[derive(Clone, Copy, Debug)]
pub struct Parties {
    /// Clients that ask.
    pub requesters: u64,
    /// Clients that answer.
    pub responders: u64,
}

/// A group's books while they are added up.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    books: RequestBooks,
    late_unsent: u64,
}

impl Part {
    fn enter(&mut self, book: &RequesterBook, ledger: &Ledger) {
        // An orphan whose answer came all the same is among the late.
        let unresolved = book.orphans.iter().filter(|number| !ledger.has(book.stream, **number)).count() as u64;
        let books = &mut self.books;
        books.answered += book.answered;
        books.late += book.late;
        books.timed_out += (book.expired + book.late_unsent).saturating_sub(book.late + unresolved);
        books.unknown += unresolved + book.open;
        books.duplicated += book.duplicated;
        books.misdirected += book.misdirected;
        books.after_refusal += book.after_refusal;
        books.approximate |= ledger.is_approximate();
        self.late_unsent += book.late_unsent;
    }

    /// Adds what the sending side knows.
    fn close(mut self, sending: &GroupBooks) -> RequestBooks {
        self.books.sent = sending.delivery.sent;
        // Abandoned by us, yet received by a responder: sent after all, and without an answer nobody knows why.
        self.books.unknown += sending.arrived_unsent.saturating_sub(self.late_unsent);
        self.books
    }
}

/// Closes the books over all shards; `None` where nobody asks.
pub fn close(
    workload: &Workload,
    parties: Parties,
    groups: &[GroupBooks],
    shards: Vec<ShardRequests>,
    window_s: f64,
) -> Option<RequestOutcome> {
    if !workload.has_requests() {
        return None;
    }
    let mut parts: HashMap<u16, Part> = HashMap::new();
    let mut round_trips: HashMap<u16, Distribution> = HashMap::new();
    let mut times = RequestTimes::default();
    let Parties { requesters, responders } = parties;
    let mut figures = RequestFigures { requesters, responders, ..RequestFigures::default() };
    let mut answered_in_window = 0;
    for shard in shards {
        for book in &shard.books {
            parts.entry(book.group).or_default().enter(book, &shard.ledger);
        }
        for (group, part) in &shard.groups {
            round_trips.entry(*group).or_insert_with(|| Distribution::new(Precision::Breakdown)).merge(part);
        }
        times.merge(&shard.times);
        figures.responses.add(&shard.responses);
        answered_in_window += shard.answered_in_window;
        figures.without_write_start += shard.without_write_start;
        figures.peak_in_flight += shard.peak_open;
    }
    for (index, group) in (0u16..).zip(&workload.devices).filter(|(_, group)| group.requests.is_some()) {
        let books = parts.remove(&index).unwrap_or_default().close(&groups[usize::from(index)]);
        figures.outcomes.add(&books);
        let round_trip = round_trips.get(&index).and_then(bounds);
        figures.by_group.push(RequestGroup { name: group.name.clone(), outcomes: books, round_trip });
    }
    figures.answered_per_s = if window_s > 0.0 { answered_in_window as f64 / window_s } else { 0.0 };
    figures.round_trip = bounds(&times.round_trip);
    figures.service_round_trip = bounds(&times.service);
    figures.travel = bounds(&times.travel);
    figures.waiting = summary(&times.waiting);
    figures.responder_lag = summary(&times.responder_lag);
    figures.receive_lateness = summary(&times.receive_lateness);
    Some(RequestOutcome { figures, times })
}

#[cfg(test)]
mod tests {
    use pubmark_record::record::Delivery;

    use super::*;

    /// Ten requests were sent; answers to these came.
    fn part(book: RequesterBook, answers: &[u32], sending: GroupBooks) -> RequestBooks {
        let mut ledger = Ledger::new(1);
        answers.iter().for_each(|number| {
            ledger.enter(0, *number);
        });
        let mut part = Part::default();
        part.enter(&book, &ledger);
        let books = part.close(&sending);
        assert!(books.close(), "{books:?}");
        books
    }

    fn sent(sent: u64, arrived_unsent: u64) -> GroupBooks {
        GroupBooks { delivery: Delivery { sent, ..Delivery::default() }, arrived_unsent, ..GroupBooks::default() }
    }

    #[test]
    fn what_was_given_up_and_answered_later_is_late_and_not_timed_out() {
        let book = RequesterBook { answered: 6, expired: 4, late: 1, ..RequesterBook::default() };
        let books = part(book, &[1, 2, 3, 4, 5, 6, 8], sent(10, 0));
        assert_eq!((books.answered, books.late, books.timed_out, books.unknown), (6, 1, 3, 0));
    }

    #[test]
    fn what_was_given_up_after_its_connection_ended_is_unknown_unless_it_was_answered() {
        let book = RequesterBook { answered: 6, expired: 4, late: 1, orphans: vec![7, 8], ..RequesterBook::default() };
        let books = part(book, &[1, 2, 3, 4, 5, 6, 8], sent(10, 0));
        assert_eq!((books.answered, books.late, books.timed_out, books.unknown), (6, 1, 2, 1));
    }

    #[test]
    fn what_was_abandoned_and_arrived_all_the_same_is_late_or_unknown() {
        // Two were abandoned and reached the responder; one of them was answered.
        let book = RequesterBook { answered: 7, expired: 1, late: 1, late_unsent: 1, ..RequesterBook::default() };
        let books = part(book, &[1, 2, 3, 4, 5, 6, 7, 9], sent(10, 2));
        assert_eq!((books.answered, books.late, books.timed_out, books.unknown), (7, 1, 1, 1));
    }

    #[test]
    fn what_was_given_up_and_then_never_written_was_not_sent() {
        // Two of ten were given up while they waited for the socket; one of them after its connection had ended.
        let mut book = RequesterBook { answered: 8, expired: 2, orphans: vec![9], ..RequesterBook::default() };
        book.take_back(9);
        book.take_back(10);
        let books = part(book, &[1, 2, 3, 4, 5, 6, 7, 8], sent(8, 0));
        assert_eq!((books.answered, books.timed_out, books.unknown), (8, 0, 0));
    }

    #[test]
    fn what_is_open_at_the_end_is_unknown() {
        let book = RequesterBook { answered: 8, open: 2, ..RequesterBook::default() };
        assert_eq!(part(book, &[1, 2, 3, 4, 5, 6, 7, 8], sent(10, 0)).unknown, 2);
    }
}
