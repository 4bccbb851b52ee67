//! Settles messages that were passed to the adapter, and those that never were.

use pubmark_model::schedule::Due;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Reason, Token};

use super::figures::type_row;
use super::publisher::{Pending, Publisher};
use super::publishing::Publishing;
use super::requests::Requests;
use super::sessions::Sessions;
use super::timetable::Timetable;
use super::totals::Totals;
use super::window::Window;
use crate::message_log::row::RowKind;

/// When a message was written to its socket, and pubmark's part in that: ns, times of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy)]
pub struct Written {
    /// Start of the write of its first byte.
    pub start_ns: u64,
    /// When its last byte was accepted.
    pub end_ns: u64,
    /// What pubmark caused, or may have caused, of the time from its submission to that.
    pub own_ns: u64,
}

impl Publishing {
    /// A message was written to the socket completely.
    #[inline]
    pub fn written(
        &mut self,
        session: SessionId,
        token: Token,
        written: Written,
        sessions: &mut Sessions,
        window: &Window,
        totals: &mut Totals,
    ) {
        let Some(pending) = sessions.take_pending(session, token) else { return };
        if !pending.withheld {
            totals.tally.sent(session, u64::from(pending.payload_bytes));
        }
        totals.note_event();
        let figures = &mut totals.figures;
        figures.series.bin(window.relative(written.end_ns)).sent += 1;
        figures.counters.sent_in_window += u64::from(window.holds(written.end_ns));
        self.sent += 1;
        let publisher = &mut self.publishers[pending.publisher as usize];
        self.expected += u64::from(publisher.fan_out.saturating_sub(pending.excluded));
        if publisher.acknowledged {
            publisher.unacknowledged += 1;
        } else {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        if pending.measured {
            publisher.book.written += 1;
            let wait_ns = written.end_ns as i64 - pending.ready_ns as i64;
            // Pubmark's delays before the submission, and those after it.
            figures.times.backpressure.record(wait_ns, pending.own_ns.saturating_add(written.own_ns));
            type_row(&mut figures.types, publisher.book.group).backpressure.record(wait_ns);
        }
        if let Some(requester) = &mut publisher.requester {
            requester.note_written(token.sequence, written.start_ns);
        }
        sessions.note_settled(session, &self.publishers);
    }

    /// The adapter accepted a message but does not send it, because no remote reader has subscribed to it.
    pub fn withheld(session: SessionId, token: Token, sessions: &mut Sessions, totals: &mut Totals) {
        let Some(pending) = sessions.pending_mut(session, token) else { return };
        pending.withheld = true;
        totals.figures.counters.withheld += u64::from(pending.measured);
    }

    /// The system acknowledged a message, or refused it.
    pub fn acknowledged(
        &mut self,
        session: SessionId,
        token: Token,
        outcome: Result<(), Reason>,
        sessions: &mut Sessions,
        requests: &mut Requests,
        totals: &mut Totals,
    ) {
        let index = sessions.publisher_of(session, token);
        if outcome.is_err() && !self.may_be_refused(session, index, token.sequence, sessions) {
            return totals.count_cause("refusal of a message that was not sent, or was refused before".to_owned());
        }
        let Some(publisher) = self.publishers.get_mut(index as usize) else { return };
        let is_refused = outcome.is_err() && requests.refused(publisher, token.sequence, sessions);
        publisher.unacknowledged = publisher.unacknowledged.saturating_sub(1);
        if let Err(reason) = outcome {
            if is_refused && publisher.is_measured(token.sequence) {
                publisher.book.refused.insert(token.sequence);
            }
            // What was expected of it at least: what a content filter of the system removed is not known here.
            let filtered = publisher.matching.as_ref().map_or(0, |matching| matching.filtered_audiences());
            self.expected = self.expected.saturating_sub(u64::from(publisher.fan_out.saturating_sub(filtered)));
            self.excused += u64::from(publisher.fan_out);
            self.unexpected += u64::from(publisher.fan_out);
            totals.count_cause(format!("message refused: {reason}"));
        }
        // A message without acknowledgement was no longer in flight after it was written, but can still be refused.
        self.in_flight = self.in_flight.saturating_sub(u64::from(publisher.acknowledged));
        sessions.note_settled(session, &self.publishers);
    }

    /// Can the system refuse this message of a session? A peer may name any message, so only a message that was written
    /// completely and was not refused before can be refused.
    fn may_be_refused(&self, session: SessionId, index: u32, sequence: u32, sessions: &Sessions) -> bool {
        let session = &sessions[session];
        let Some(publisher) = self.publishers.get(index as usize).filter(|_| session.publishers.contains(&index))
        else {
            return false;
        };
        let waits = |pending: &Pending| (pending.publisher, pending.sequence) == (index, sequence);
        let book = &publisher.book;
        (1..publisher.next_sequence).contains(&sequence)
            && !book.refused.contains(sequence)
            && book.broken.binary_search(&sequence).is_err()
            && !session.pending.iter().any(waits)
    }

    /// A message's connection ended before the message was written.
    pub fn abandoned(&mut self, session: SessionId, token: Token, sessions: &mut Sessions, requests: &mut Requests) {
        let Some(pending) = sessions.take_pending(session, token) else { return };
        self.in_flight = self.in_flight.saturating_sub(1);
        let publisher = &mut self.publishers[pending.publisher as usize];
        self.excused += u64::from(publisher.fan_out);
        self.unexpected += u64::from(publisher.fan_out);
        if pending.measured {
            let book = &mut publisher.book;
            if sessions.finishing { &mut book.stuck } else { &mut book.broken }.push(pending.sequence);
        }
        requests.abandoned(publisher, token.sequence, sessions);
    }

    /// The client library refused a message, which was never written.
    pub fn declined(
        &mut self,
        session: SessionId,
        token: Token,
        sessions: &mut Sessions,
        requests: &mut Requests,
        totals: &mut Totals,
    ) {
        let Some(pending) = sessions.take_pending(session, token) else { return };
        self.in_flight = self.in_flight.saturating_sub(1);
        let publisher = &mut self.publishers[pending.publisher as usize];
        self.excused += u64::from(publisher.fan_out);
        self.unexpected += u64::from(publisher.fan_out);
        if requests.refused(publisher, token.sequence, sessions) && pending.measured {
            // The accounting subtracts refused messages from those written.
            publisher.book.written += 1;
            publisher.book.refused.insert(pending.sequence);
        }
        totals.count_cause("message refused: by the client library".to_owned());
        sessions.note_settled(session, &self.publishers);
    }

    /// A message's acknowledgement can no longer arrive. Its deliveries stay expected.
    pub fn unacknowledged(&mut self, session: SessionId, token: Token, sessions: &Sessions) {
        let index = sessions.publisher_of(session, token);
        let Some(publisher) = self.publishers.get_mut(index as usize) else { return };
        publisher.unacknowledged = publisher.unacknowledged.saturating_sub(1);
        self.excused += u64::from(publisher.fan_out);
        if publisher.is_measured(token.sequence) {
            publisher.book.unanswered.push(token.sequence);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Completes the publishers' side of the accounting: messages that still wait were not sent.
    pub fn settle(&mut self, timetable: &Timetable, totals: &mut Totals, now_ns: u64) {
        // The waiting messages first: a slowed device decides about its messages in the order of their due times.
        for publisher in &mut self.publishers {
            let rules = timetable.rules(publisher.book.group);
            let Some(mut waiting) = publisher.waiting.take() else { continue };
            while publisher.backlog > 0 {
                let Some(due) = waiting.cursor.take(rules) else { break };
                publisher.backlog -= 1;
                count_unsent(publisher, &due, timetable, totals);
            }
        }
        if timetable.closed {
            self.offer_the_rest(timetable, totals, now_ns);
        }
    }

    /// Offers the messages that were due before publishing ended and were never reached, because this thread was
    /// paused. They were not sent, and their lag is the generator's.
    fn offer_the_rest(&mut self, timetable: &Timetable, totals: &mut Totals, now_ns: u64) {
        for index in 0..self.publishers.len() as u32 {
            while let Some(due) = take_offered(&mut self.publishers[index as usize], timetable) {
                self.offer(index, &due, None, now_ns, timetable, totals);
                count_unsent(&mut self.publishers[index as usize], &due, timetable, totals);
            }
        }
    }
}

/// The next message of a publisher's schedule, if it was due before publishing ended.
fn take_offered(publisher: &mut Publisher, timetable: &Timetable) -> Option<Due> {
    let due_ns = publisher.schedule.peek_ns().filter(|_| !publisher.flood)?;
    let window = &timetable.window;
    window.offers(window.absolute(due_ns)).then_some(())?;
    publisher.schedule.take(timetable.rules(publisher.book.group))
}

/// Counts a message that was never passed to the adapter, if it is measured.
fn count_unsent(publisher: &mut Publisher, due: &Due, timetable: &Timetable, totals: &mut Totals) {
    let is_left_out = publisher.leaves_out(due);
    if !is_left_out && due.planned_online {
        publisher.note_turn(due);
    }
    if due.due_ns < 0 {
        return;
    }
    publisher.book.slowed += u64::from(is_left_out);
    let (count, kind) = match due.planned_online && !is_left_out {
        true => (&mut publisher.book.unsent, RowKind::Unsent),
        false => (&mut publisher.book.skipped_planned, RowKind::SkippedPlanned),
    };
    *count += 1;
    publisher.note_unsent(kind, due, timetable, totals);
}
