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
    /// First replies that arrived in the measured window, in time or late.
    pub replies_in_window: u64,
    /// Round trips of each group, in the order of the figures; `None` for one without replies.
    round_trips: Vec<Option<Bounds>>,
}

impl RequestOutcome {
    /// Lowers the lower bounds of round trips by `by_ns`.
    pub fn lower_by(&mut self, by_ns: u64) {
        let times = &mut self.times;
        for bounds in [&mut times.round_trip, &mut times.service, &mut times.travel] {
            bounds.lower_by(by_ns);
        }
        self.round_trips.iter_mut().flatten().for_each(|round_trip| round_trip.lower_by(by_ns));
        self.sum_up();
    }

    /// Writes the summaries of the times that have bounds.
    fn sum_up(&mut self) {
        let (figures, times) = (&mut self.figures, &self.times);
        figures.round_trip = bounds(&times.round_trip);
        figures.service_round_trip = bounds(&times.service);
        figures.travel = bounds(&times.travel);
        for (group, round_trip) in figures.by_group.iter_mut().zip(&self.round_trips) {
            group.round_trip = round_trip.as_ref().and_then(bounds);
        }
    }
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
        books.late_by_generator += book.late_by_generator;
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
    let mut of_groups: HashMap<u16, Bounds> = HashMap::new();
    let mut times = RequestTimes::default();
    let Parties { requesters, responders } = parties;
    let timeouts = workload.devices.iter().filter_map(|group| Some(group.requests.as_ref()?.timeout.as_secs_f64()));
    let timeout_s = timeouts.reduce(f64::min);
    let mut figures = RequestFigures { requesters, responders, timeout_s, ..RequestFigures::default() };
    let (mut answered_in_window, mut replies_in_window) = (0, 0);
    for shard in shards {
        for book in &shard.books {
            parts.entry(book.group).or_default().enter(book, &shard.ledger);
        }
        for (group, part) in &shard.groups {
            of_groups.entry(*group).or_insert_with(|| Bounds::new(Precision::Breakdown)).merge(part);
        }
        times.merge(&shard.times);
        figures.responses.add(&shard.responses);
        answered_in_window += shard.answered_in_window;
        replies_in_window += shard.replies_in_window;
        figures.without_write_start += shard.without_write_start;
        figures.peak_in_flight += shard.peak_open;
    }
    let mut round_trips = vec![];
    for (index, group) in (0u16..).zip(&workload.devices).filter(|(_, group)| group.requests.is_some()) {
        let books = parts.remove(&index).unwrap_or_default().close(&groups[usize::from(index)]);
        figures.outcomes.add(&books);
        figures.by_group.push(RequestGroup { name: group.name.clone(), outcomes: books, round_trip: None });
        round_trips.push(of_groups.remove(&index));
    }
    let per_s = |count: u64| if window_s > 0.0 { count as f64 / window_s } else { 0.0 };
    figures.answered_per_s = per_s(answered_in_window);
    figures.replies_per_s = Some(per_s(replies_in_window));
    figures.waiting = summary(&times.waiting);
    figures.responder_lag = summary(&times.responder_lag);
    figures.receive_lateness = summary(&times.receive_lateness);
    let mut outcome = RequestOutcome { figures, times, replies_in_window, round_trips };
    outcome.sum_up();
    Some(outcome)
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
    fn lower_bounds_are_lowered_of_the_run_and_of_each_group_and_upper_bounds_stay() {
        let mut all = Bounds::new(Precision::Total);
        let mut one = Bounds::new(Precision::Breakdown);
        (0..100).for_each(|_| {
            all.record(1_000_000, 0);
            one.record(1_000_000, 0);
        });
        let group = RequestGroup { name: "meter".to_owned(), ..RequestGroup::default() };
        let mut outcome = RequestOutcome {
            figures: RequestFigures { by_group: vec![group], ..RequestFigures::default() },
            times: RequestTimes { round_trip: all, ..RequestTimes::default() },
            replies_in_window: 0,
            round_trips: vec![Some(one)],
        };
        outcome.lower_by(400_000);
        let figures = &outcome.figures;
        for found in [&figures.round_trip, &figures.by_group[0].round_trip] {
            let found = found.as_ref().expect("samples");
            let [lower_us, upper_us] = [found.lower.as_ref().expect("a lower bound").max, found.upper.max];
            assert!((580.0..=605.0).contains(&lower_us), "{lower_us}");
            assert!((990.0..=1_010.0).contains(&upper_us), "{upper_us}");
        }
    }

    #[test]
    fn a_reply_after_the_time_out_makes_its_request_late() {
        let book = RequesterBook { answered: 6, expired: 4, late: 1, late_by_generator: 1, ..RequesterBook::default() };
        let books = part(book, &[1, 2, 3, 4, 5, 6, 8], sent(10, 0));
        assert_eq!((books.answered, books.late, books.timed_out, books.unknown), (6, 1, 3, 0));
        assert_eq!(books.late_by_generator, 1);
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
