//! The asking side of a shard: which requests wait for their answers, which are given up, what an answer belongs to.
//!
//! A request is opened when it is handed to the adapter and closed by its first answer, its time-out or the system's refusal. What
//! is open is bounded by the group's `in_flight`; which requests were answered ever is in a ledger, as deliveries are.

use std::collections::BTreeMap;

use pubmark_metrics::ledger::Arrival;
use pubmark_model::requests::Requests;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Delivery, Token};
use pubmark_protocol::header::{self, Header};

use super::Shard;
use super::timers::Task;
use crate::requests::{RequesterBook, ShardRequests};

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// When it was handed over, ns of `CLOCK_MONOTONIC`: its time-out counts from here.
    handed_ns: u64,
    /// When its first byte went to the socket; `None` until its last one was taken.
    write_start_ns: Option<u64>,
    /// Due in the measured window.
    measured: bool,
    /// Its connection ended while it was open.
    orphaned: bool,
}

/// What a publisher has besides, if its messages are requests.
#[derive(Debug)]
pub struct Requester {
    timeout_ns: u64,
    in_flight: usize,
    /// The subscription for its answers is granted: requests may go out.
    listens: bool,
    open: BTreeMap<u32, Open>,
    /// A task is set for the oldest of them.
    armed: bool,
    /// Index of its book, and of its stream of answers.
    book: u32,
}

impl Requester {
    /// A requester that has asked nothing, with a book of its own among `books`.
    pub fn new(requests: Requests, group: u16, books: &mut Vec<RequesterBook>) -> Requester {
        let book = books.len() as u32;
        books.push(RequesterBook { group, stream: book, ..RequesterBook::default() });
        Requester {
            timeout_ns: requests.timeout.as_nanos() as u64,
            in_flight: usize::from(requests.in_flight),
            listens: false,
            open: BTreeMap::new(),
            armed: false,
            book,
        }
    }

    /// May one more request go out?
    pub fn has_room(&self) -> bool {
        self.listens && self.open.len() < self.in_flight
    }
}

impl ShardRequests {
    fn book(&mut self, requester: &Requester) -> &mut RequesterBook {
        &mut self.books[requester.book as usize]
    }
}

impl Shard {
    /// Does anybody ask on this shard?
    pub(super) fn has_requesters(&self) -> bool {
        !self.requests.books.is_empty()
    }

    /// A request was handed over.
    pub(super) fn open_request(&mut self, index: u32, sequence: u32, measured: bool, handed_ns: u64) {
        let Some(requester) = &mut self.publishers[index as usize].requester else { return };
        requester.open.insert(sequence, Open { handed_ns, write_start_ns: None, measured, orphaned: false });
        self.open_requests += 1;
        self.requests.peak_open = self.requests.peak_open.max(self.open_requests);
        if !std::mem::replace(&mut requester.armed, true) {
            self.timers.add(handed_ns + requester.timeout_ns, Task::RequestLimit(index));
        }
    }

    /// A request is in the socket wholly.
    pub(super) fn note_request_written(&mut self, index: u32, sequence: u32, write_start_ns: u64) {
        let requester = self.publishers[index as usize].requester.as_mut();
        if let Some(open) = requester.and_then(|requester| requester.open.get_mut(&sequence)) {
            open.write_start_ns = Some(write_start_ns);
        }
    }

    /// A request will never be in the socket wholly: it waits no more.
    pub(super) fn note_request_abandoned(&mut self, index: u32, sequence: u32) {
        let publisher = &mut self.publishers[index as usize];
        let measured = publisher.is_measured(sequence);
        let Some(requester) = &mut publisher.requester else { return };
        if requester.open.remove(&sequence).is_some() {
            self.let_ask(index);
        } else if measured && !self.requests.ledger.has(requester.book, sequence) {
            self.requests.book(requester).take_back(sequence);
        }
    }

    /// The system refuses a request. False if it was answered before that: then it was not refused after all.
    pub(super) fn note_request_refused(&mut self, index: u32, sequence: u32) -> bool {
        let Some(publisher) = self.publishers.get_mut(index as usize) else { return true };
        let measured = publisher.is_measured(sequence);
        let Some(requester) = &mut publisher.requester else { return true };
        if requester.open.remove(&sequence).is_some() {
            self.let_ask(index);
            return true;
        }
        if self.requests.ledger.has(requester.book, sequence) {
            return false;
        }
        if measured {
            // It is counted as refused instead.
            self.requests.book(requester).take_back(sequence);
        }
        true
    }

    /// The session's subscription for answers was granted or not.
    pub(super) fn note_answers_granted(&mut self, session: SessionId, granted: bool) {
        for index in self.sessions[session.0 as usize].publishers.clone() {
            let publisher = &mut self.publishers[index as usize];
            if let Some(requester) = &mut publisher.requester {
                requester.listens = granted;
                publisher.blocked = false;
                self.writable.push(session.0);
            }
        }
    }

    /// The session's connection ended: whether its open requests are answered nobody will know, unless they are.
    pub(super) fn orphan_requests(&mut self, session: SessionId) {
        for index in self.sessions[session.0 as usize].publishers.clone() {
            if let Some(requester) = &mut self.publishers[index as usize].requester {
                requester.listens = false;
                requester.open.values_mut().for_each(|open| open.orphaned = true);
            }
        }
    }

    /// Gives up requests whose time is over.
    pub(super) fn expire_requests(&mut self, index: u32, now_ns: u64) {
        let Some(requester) = &mut self.publishers[index as usize].requester else { return };
        requester.armed = false;
        let mut expired = 0;
        while let Some(entry) = requester.open.first_entry() {
            let open = *entry.get();
            let limit_ns = open.handed_ns + requester.timeout_ns;
            if limit_ns > now_ns {
                requester.armed = true;
                self.timers.add(limit_ns, Task::RequestLimit(index));
                break;
            }
            let sequence = *entry.key();
            entry.remove();
            expired += 1;
            if open.measured {
                let book = self.requests.book(requester);
                book.expired += 1;
                if open.orphaned {
                    book.orphans.push(sequence);
                }
            }
        }
        self.note_closed(index, expired);
    }

    /// A request waits no more: another one may go out.
    fn let_ask(&mut self, index: u32) {
        self.note_closed(index, 1);
    }

    fn note_closed(&mut self, index: u32, count: u64) {
        self.open_requests -= count;
        let publisher = &mut self.publishers[index as usize];
        if count > 0 && (publisher.backlog > 0 || publisher.blocked) {
            publisher.blocked = false;
            self.writable.push(publisher.session);
        }
    }

    /// An answer arrived at a session that asks.
    pub(super) fn enter_answer(&mut self, session: SessionId, request: Option<Token>, delivery: &Delivery<'_>) {
        let publishers = self.sessions[session.0 as usize].publishers.clone();
        let Some(header) = header::read_reply(delivery.payload, self.run) else {
            self.counters.foreign += 1;
            return;
        };
        let index = publishers.start + request.map_or(0, |request| u32::from(request.publication));
        let Some(publisher) = self.publishers.get(index as usize).filter(|_| publishers.contains(&index)) else {
            self.counters.foreign += 1;
            return;
        };
        let Some(requester) = &publisher.requester else {
            self.counters.foreign += 1;
            return;
        };
        let measured = self.window.measures(header.due_ns);
        let is_of_request = request.is_some_and(|request| request.sequence == header.sequence)
            && header.publisher == publisher.book.publisher
            && (1..publisher.next_sequence).contains(&header.sequence);
        let stream = requester.book;
        if !is_of_request {
            self.requests.books[stream as usize].misdirected += u64::from(measured);
            return;
        }
        if self.requests.ledger.enter(stream, header.sequence) == Arrival::Duplicate {
            self.requests.books[stream as usize].duplicated += u64::from(measured);
            return;
        }
        self.tally.received(session, delivery.payload.len() as u64);
        self.enter_first_answer(index, &header, delivery);
    }

    fn enter_first_answer(&mut self, index: u32, header: &Header, delivery: &Delivery<'_>) {
        let publisher = &mut self.publishers[index as usize];
        let measured = publisher.is_measured(header.sequence);
        let Some(requester) = &mut publisher.requester else { return };
        let Some(open) = requester.open.remove(&header.sequence) else {
            if measured {
                let book = self.requests.book(requester);
                let sending = &publisher.book;
                let is_unsent = [&sending.broken, &sending.stuck].iter().any(|list| list.contains(&header.sequence));
                if sending.refused.contains(&header.sequence) {
                    book.after_refusal += 1;
                } else {
                    book.late += 1;
                    book.late_unsent += u64::from(is_unsent);
                }
            }
            return;
        };
        if self.window.holds(delivery.at_ns) {
            self.requests.answered_in_window += 1;
        }
        if measured {
            self.requests.book(requester).answered += 1;
            let group = publisher.book.group;
            self.enter_times(group, header, &open, delivery);
        }
        self.let_ask(index);
    }

    fn enter_times(&mut self, group: u16, header: &Header, open: &Open, delivery: &Delivery<'_>) {
        let since = |from_ns: u64| delivery.at_ns as i64 - from_ns as i64;
        let round_trip_ns = since(header.due_ns);
        self.requests.enter_round_trip(group, round_trip_ns);
        let times = &mut self.requests.times;
        match open.write_start_ns {
            Some(write_start_ns) => times.service.record(since(write_start_ns)),
            None => self.requests.without_write_start += 1,
        }
        match header.write_start_us {
            Some(held_us) if held_us < u32::MAX => times.travel.record(round_trip_ns - i64::from(held_us) * 1_000),
            _ => times.travel.record_clipped(),
        }
        // Nothing is claimed where nothing is known, as in `super::receiver`.
        if let Some(seen_ns) = delivery.empty_at_ns.max(delivery.kernel_ns) {
            times.receive_lateness.record(since(seen_ns.max(header.due_ns)));
        }
    }

    /// Ends the books: what is open now was not answered.
    pub(super) fn settle_requests(&mut self) {
        for publisher in &mut self.publishers {
            let Some(requester) = &mut publisher.requester else { continue };
            let measured = requester.open.values().filter(|open| open.measured).count() as u64;
            self.requests.books[requester.book as usize].open += measured;
            requester.open.clear();
        }
        self.open_requests = 0;
    }
}
