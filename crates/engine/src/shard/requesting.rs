//! The requesters of a shard: open requests, time-outs, and the matching of replies to requests.
//!
//! A request is opened when it is passed to the adapter and closed by its first reply, its time-out or the system's
//! refusal. A reply is in time if it was read before the time-out was over, whichever of the two this thread notices
//! first. The number of open requests is bounded by the group's `in_flight`. A ledger records which requests received a
//! reply, in the same way as deliveries.

use pubmark_metrics::ledger::Arrival;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Delivery, Token};
use pubmark_protocol::header::{self, Header};

use super::publisher::Publisher;
use super::requester::{OpenRequest, Requester};
use super::requests::Requests;
use super::sessions::Sessions;
use super::timers::{Task, Timers};
use super::totals::Totals;
use super::window::Window;
use crate::requests::{RequesterBook, ShardRequests};

/// A reply as it arrived.
#[derive(Clone, Copy)]
pub struct Reply<'a> {
    /// The session at which it arrived.
    pub session: SessionId,
    /// The request that the reply names, if it belongs to the session.
    pub request: Option<Token>,
    /// The message.
    pub delivery: &'a Delivery<'a>,
}

impl ShardRequests {
    fn book(&mut self, requester: &Requester) -> &mut RequesterBook {
        &mut self.books[requester.book as usize]
    }
}

impl Requests {
    /// A publisher passed a message to the adapter. If the publisher is a requester, this opens a request.
    #[inline]
    pub fn open(
        &mut self,
        index: u32,
        publisher: &mut Publisher,
        sequence: u32,
        measured: bool,
        timers: &mut Timers,
        submitted_ns: u64,
    ) {
        let Some(requester) = &mut publisher.requester else { return };
        requester.open.insert(sequence, OpenRequest { submitted_ns, write_start_ns: None, measured, orphaned: false });
        self.open += 1;
        self.figures.peak_open = self.figures.peak_open.max(self.open);
        if !std::mem::replace(&mut requester.armed, true) {
            timers.add(submitted_ns + requester.timeout_ns, Task::RequestLimit(index));
        }
    }

    /// A message will never be written to the socket completely. If it is a request, it is no longer open.
    pub fn abandoned(&mut self, publisher: &mut Publisher, sequence: u32, sessions: &mut Sessions) {
        let measured = publisher.is_measured(sequence);
        let Some(requester) = &mut publisher.requester else { return };
        if requester.open.remove(&sequence).is_some() {
            self.note_closed(publisher, 1, sessions);
        } else if measured && !self.figures.ledger.has(requester.book, sequence) {
            self.figures.book(requester).take_back(sequence);
        }
    }

    /// The system refused a message. Returns false for a request that received a reply before: such a request does not
    /// count as refused.
    pub fn refused(&mut self, publisher: &mut Publisher, sequence: u32, sessions: &mut Sessions) -> bool {
        let measured = publisher.is_measured(sequence);
        let Some(requester) = &mut publisher.requester else { return true };
        if requester.open.remove(&sequence).is_some() {
            self.note_closed(publisher, 1, sessions);
            return true;
        }
        if self.figures.ledger.has(requester.book, sequence) {
            return false;
        }
        if measured {
            // The request is counted as refused instead.
            self.figures.book(requester).take_back(sequence);
        }
        true
    }

    /// Closes the requests of a publisher whose time-out is over.
    pub fn expire(
        &mut self,
        index: u32,
        publisher: &mut Publisher,
        sessions: &mut Sessions,
        timers: &mut Timers,
        now_ns: u64,
    ) {
        let Some(requester) = &mut publisher.requester else { return };
        requester.armed = false;
        let mut expired = 0;
        while let Some(entry) = requester.open.first_entry() {
            let open = *entry.get();
            let limit_ns = open.submitted_ns + requester.timeout_ns;
            if limit_ns > now_ns {
                requester.armed = true;
                timers.add(limit_ns, Task::RequestLimit(index));
                break;
            }
            let sequence = *entry.key();
            entry.remove();
            expired += 1;
            if open.measured {
                let book = self.figures.book(requester);
                book.expired += 1;
                if open.orphaned {
                    book.orphans.push(sequence);
                }
            }
        }
        self.note_closed(publisher, expired, sessions);
    }

    /// This many requests are no longer open, so that others may be sent.
    fn note_closed(&mut self, publisher: &mut Publisher, count: u64, sessions: &mut Sessions) {
        self.open -= count;
        if count > 0 && publisher.is_waiting() {
            publisher.blocked = false;
            sessions.writable.push(publisher.session);
        }
    }

    /// A reply arrived at a session.
    pub fn record_reply(
        &mut self,
        reply: &Reply<'_>,
        publishers: &mut [Publisher],
        sessions: &mut Sessions,
        window: &Window,
        totals: &mut Totals,
    ) {
        let Reply { session, request, delivery } = *reply;
        let own = sessions[session].own_mut(publishers);
        let place = request.map_or(0, |request| usize::from(request.publication));
        let found = header::read_reply(delivery.payload, self.run, delivery.at_ns).zip(own.get_mut(place));
        let found = found.and_then(|(header, publisher)| Some((header, publisher.requester.as_ref()?.book, publisher)));
        let Some((header, stream, publisher)) = found else {
            totals.figures.counters.foreign += 1;
            return;
        };
        let measured = u64::from(window.measures(header.due_ns));
        let is_of_request = request.is_some_and(|request| request.sequence == header.sequence)
            && header.publisher == publisher.book.publisher
            && (1..publisher.next_sequence).contains(&header.sequence);
        let book = &mut self.figures.books[stream as usize];
        if !is_of_request {
            book.misdirected += measured;
        } else if self.figures.ledger.enter(stream, header.sequence) == Arrival::Duplicate {
            book.duplicated += measured;
        } else {
            totals.tally.received(session, delivery.payload.len() as u64);
            self.figures.replies_in_window += u64::from(window.holds(delivery.at_ns));
            self.record_first_reply(publisher, &header, delivery, sessions, window);
        }
    }

    fn record_first_reply(
        &mut self,
        publisher: &mut Publisher,
        header: &Header,
        delivery: &Delivery<'_>,
        sessions: &mut Sessions,
        window: &Window,
    ) {
        let measured = publisher.is_measured(header.sequence);
        let Some(requester) = &mut publisher.requester else { return };
        let Some(open) = requester.open.remove(&header.sequence) else {
            if measured {
                self.record_late(publisher, header, delivery);
            }
            return;
        };
        let limit_ns = open.submitted_ns.saturating_add(requester.timeout_ns);
        if delivery.at_ns <= limit_ns {
            self.figures.answered_in_window += u64::from(window.holds(delivery.at_ns));
            if measured {
                self.figures.book(requester).answered += 1;
                self.record_times(publisher.book.group, header, &open, delivery);
            }
        } else if measured {
            // The time-out was over before the read. Its task comes after the events of a turn, so that a thread that is late
            // finds the reply first.
            self.figures.book(requester).expired += 1;
            self.record_late(publisher, header, delivery);
        }
        if publisher.is_waiting() {
            // Without a wait that it ends now, the time would be taken for the end of a later one. The lag in the header is not
            // subtracted: it contains that of the request, which is this wait, so it would grow with each round.
            let certain_ns = delivery.at_ns.saturating_sub(delivery.late_ns(open.submitted_ns)).min(limit_ns);
            sessions[publisher.session].free_since_ns.get_or_insert(certain_ns);
        }
        self.note_closed(publisher, 1, sessions);
    }

    /// The first reply to a measured request arrived after the time-out, or after a refusal.
    fn record_late(&mut self, publisher: &Publisher, header: &Header, delivery: &Delivery<'_>) {
        let Some(requester) = &publisher.requester else { return };
        let book = self.figures.book(requester);
        let sending = &publisher.book;
        if sending.refused.contains(header.sequence) {
            book.after_refusal += 1;
            return;
        }
        let is_unsent = [&sending.broken, &sending.stuck].iter().any(|list| list.contains(&header.sequence));
        book.late += 1;
        book.late_unsent += u64::from(is_unsent);
        let round_trip_ns = delivery.at_ns as i64 - header.due_ns as i64;
        let may_be_in_time = may_be_in_time(round_trip_ns, width_ns(header, delivery), requester.timeout_ns);
        book.late_by_generator += u64::from(!is_unsent && may_be_in_time);
    }

    fn record_times(&mut self, group: u16, header: &Header, open: &OpenRequest, delivery: &Delivery<'_>) {
        let since = |from_ns: u64| delivery.at_ns as i64 - from_ns as i64;
        let round_trip_ns = since(header.due_ns);
        let sent_ns = header.earliest_write_start_ns();
        // The parts of the round trip have no wider intervals than the whole, apart from rounding.
        let width_ns = width_ns(header, delivery);
        self.figures.record_round_trip(group, round_trip_ns, width_ns);
        let times = &mut self.figures.times;
        match open.write_start_ns {
            Some(write_start_ns) => times.service.record(since(write_start_ns), width_ns),
            None => self.figures.without_write_start += 1,
        }
        match travel(round_trip_ns, width_ns, header.write_start_us) {
            Some((travel_ns, width_ns)) => times.travel.record(travel_ns, width_ns),
            None => times.travel.record_clipped(),
        }
        // Nothing is recorded if nothing is known, as in `super::receiver`.
        if delivery.absent_at_ns().is_some() {
            times.receive_lateness.record(delivery.receive_lateness_ns(sent_ns) as i64);
        }
    }

    /// Completes the accounting of requesters: requests that are open now received no reply.
    pub fn settle_requesters(&mut self, publishers: &mut [Publisher]) {
        for requester in publishers.iter_mut().filter_map(|publisher| publisher.requester.as_mut()) {
            let measured = requester.open.values().filter(|open| open.measured).count() as u64;
            self.figures.book(requester).open += measured;
            requester.open.clear();
        }
        self.open = 0;
    }
}

/// May a late reply have been in time without the generator's part? The time-out counts from the submission of the request,
/// which is not known any more; a wait for the system between the due time and the submission counts as the system's.
fn may_be_in_time(round_trip_ns: i64, width_ns: u64, timeout_ns: u64) -> bool {
    round_trip_ns.saturating_sub_unsigned(width_ns) <= timeout_ns as i64
}

/// Upper bound of the generator's part in a round trip, ns: the header's lag, which is that of request and reply, and the
/// time that the reply waited in our socket.
fn width_ns(header: &Header, delivery: &Delivery<'_>) -> u64 {
    header.lag_ns.saturating_add(delivery.late_ns(header.earliest_write_start_ns()))
}

/// A round trip without the time at its responder, with the width of its interval, ns; `None` if that time is unknown.
fn travel(round_trip_ns: i64, width_ns: u64, held_us: Option<u32>) -> Option<(i64, u64)> {
    let held_us = held_us.filter(|held_us| *held_us < u32::MAX)?;
    let width_ns = width_ns.saturating_add(header::WRITE_START_ROUNDED_NS);
    Some((round_trip_ns - i64::from(held_us) * 1_000, width_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_late_because_of_the_generator_if_the_rest_of_its_round_trip_is_within_the_time_out() {
        assert!(may_be_in_time(510, 10, 500));
        assert!(!may_be_in_time(510, 9, 500), "the system alone was late");
        assert!(may_be_in_time(510, u64::MAX, 500));
    }

    #[test]
    fn the_time_at_a_responder_is_rounded_down_and_may_have_been_longer() {
        assert_eq!(travel(900_000, 10_000, Some(300)), Some((600_000, 10_999)));
        assert_eq!((travel(900_000, 10_000, Some(u32::MAX)), travel(900_000, 10_000, None)), (None, None));
    }
}
