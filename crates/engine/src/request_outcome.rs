//! Requests and their replies, merged over all shards: the accounting completed, the times merged.

use std::collections::HashMap;

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::Precision;
use pubmark_metrics::ledger::Ledger;
use pubmark_model::workload::Workload;
use pubmark_record::distribution::{bounds, summary};
use pubmark_record::requests::{RequestBooks, RequestFigures, RequestGroup};

use crate::books::GroupBooks;
use crate::plan::Parties;
use crate::requests::{RequestTimes, RequesterBook, ShardRequests};

/// Requests of a whole run.
#[derive(Debug)]
pub struct RequestOutcome {
    /// Figures for the record; their times are summaries of `times`.
    pub figures: RequestFigures,
    /// Merged times.
    pub times: RequestTimes,
}

impl RequestOutcome {
    /// Lowers the lower bounds of round trips by `by_ns`; the lower bounds of groups are then unknown.
    pub fn lower_by(&mut self, by_ns: u64) {
        let times = &mut self.times;
        for bounds in [&mut times.round_trip, &mut times.service, &mut times.travel] {
            bounds.lower_by(by_ns);
        }
        sum_up(&mut self.figures, times);
        self.figures
            .by_group
            .iter_mut()
            .filter_map(|group| group.round_trip.as_mut())
            .for_each(|both| both.lower = None);
    }
}

/// Writes the summaries of the times that have bounds.
fn sum_up(figures: &mut RequestFigures, times: &RequestTimes) {
    figures.round_trip = bounds(&times.round_trip);
    figures.service_round_trip = bounds(&times.service);
    figures.travel = bounds(&times.travel);
}

/// The accounting of a group while it is added up.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    books: RequestBooks,
    late_unsent: u64,
}

impl Part {
    fn enter(&mut self, book: &RequesterBook, ledger: &Ledger) {
        // An orphan whose reply arrived in spite of that is counted as late.
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

    /// Adds the counts of the sending side.
    fn close(mut self, sending: &GroupBooks) -> RequestBooks {
        self.books.sent = sending.delivery.sent;
        // Abandoned by the requester, but received by a responder: it was sent, and it is unknown why there is no
        // reply.
        self.books.unknown += sending.arrived_unsent.saturating_sub(self.late_unsent);
        self.books
    }
}

/// Completes the accounting over all shards; `None` without requesters.
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
    let mut round_trips: HashMap<u16, Bounds> = HashMap::new();
    let mut times = RequestTimes::default();
    let Parties { requesters, responders } = parties;
    let mut figures = RequestFigures { requesters, responders, ..RequestFigures::default() };
    let mut answered_in_window = 0;
    for shard in shards {
        for book in &shard.books {
            parts.entry(book.group).or_default().enter(book, &shard.ledger);
        }
        for (group, part) in &shard.groups {
            round_trips.entry(*group).or_insert_with(|| Bounds::new(Precision::Breakdown)).merge(part);
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
    sum_up(&mut figures, &times);
    figures.waiting = summary(&times.waiting);
    figures.responder_lag = summary(&times.responder_lag);
    figures.receive_lateness = summary(&times.receive_lateness);
    Some(RequestOutcome { figures, times })
}

#[cfg(test)]
mod tests {
    use pubmark_record::record::Delivery;

    use super::*;

    /// Ten requests were sent; `answers` are those whose replies arrived.
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
    fn a_reply_after_the_time_out_makes_its_request_late() {
        let book = RequesterBook { answered: 6, expired: 4, late: 1, ..RequesterBook::default() };
        let books = part(book, &[1, 2, 3, 4, 5, 6, 8], sent(10, 0));
        assert_eq!((books.answered, books.late, books.timed_out, books.unknown), (6, 1, 3, 0));
    }

    #[test]
    fn a_request_given_up_after_its_connection_ended_is_unknown_without_a_reply() {
        let book = RequesterBook { answered: 6, expired: 4, late: 1, orphans: vec![7, 8], ..RequesterBook::default() };
        let books = part(book, &[1, 2, 3, 4, 5, 6, 8], sent(10, 0));
        assert_eq!((books.answered, books.late, books.timed_out, books.unknown), (6, 1, 2, 1));
    }

    #[test]
    fn an_abandoned_request_that_arrived_is_late_or_unknown() {
        // Two were abandoned and reached the responder; one of them received a reply.
        let book = RequesterBook { answered: 7, expired: 1, late: 1, late_unsent: 1, ..RequesterBook::default() };
        let books = part(book, &[1, 2, 3, 4, 5, 6, 7, 9], sent(10, 2));
        assert_eq!((books.answered, books.late, books.timed_out, books.unknown), (7, 1, 1, 1));
    }

    #[test]
    fn a_request_given_up_and_never_written_was_not_sent() {
        // Two of ten were given up while they waited for the socket; one of them after its connection had ended.
        let mut book = RequesterBook { answered: 8, expired: 2, orphans: vec![9], ..RequesterBook::default() };
        book.take_back(9);
        book.take_back(10);
        let books = part(book, &[1, 2, 3, 4, 5, 6, 7, 8], sent(8, 0));
        assert_eq!((books.answered, books.timed_out, books.unknown), (8, 0, 0));
    }

    #[test]
    fn a_request_open_at_the_end_is_unknown() {
        let book = RequesterBook { answered: 8, open: 2, ..RequesterBook::default() };
        assert_eq!(part(book, &[1, 2, 3, 4, 5, 6, 7, 8], sent(10, 0)).unknown, 2);
    }
}
