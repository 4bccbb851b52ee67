//! Sends messages, from the due time until they are passed to the adapter. Every due time is processed whatever the
//! system does. Messages that the system does not accept yet are represented by the distance between two cursors of one
//! schedule, never by a queue.

use pubmark_model::schedule::Due;
use pubmark_protocol::clients::{Clients, Outgoing, SendOutcome, SessionId};
use pubmark_protocol::header::Root;
use pubmark_protocol::timing::Timing;

use super::publisher::{Pending, WaitingMessages};
use super::publishing::Publishing;
use super::requests::Requests;
use super::session::State;
use super::sessions::Sessions;
use super::timetable::Timetable;
use super::totals::Totals;
use crate::content::matches::Noted;
use crate::message_log::row::{Row, RowKind};
use crate::transform;

/// Bytes that a flooding publisher passes to the adapter between two writes.
const FLOOD_BYTES: usize = 64 * 1024;

/// What sending needs in addition to the publishers: the adapter, and the other parts of the shard. No session is
/// flushed here.
pub struct Sending<'a, C> {
    /// The adapter, which accepts the messages.
    pub clients: &'a mut C,
    /// The sessions that carry the messages.
    pub sessions: &'a mut Sessions,
    /// For publishers whose messages are requests.
    pub requests: &'a mut Requests,
    /// The schedule's window.
    pub timetable: &'a mut Timetable,
    /// Where scheduler lags and offered messages are counted.
    pub totals: &'a mut Totals,
    /// When the scheduler reached the message that is sent now, ns of `CLOCK_MONOTONIC`.
    pub now_ns: u64,
}

impl<C: Clients> Sending<'_, C> {
    /// For a session that waited and can send now: the time up to which the system certainly kept it from sending.
    pub fn take_free_since_ns(&mut self, session: u32) -> Option<u64> {
        let by_clients = self.clients.take_free_since_ns(SessionId(session));
        self.sessions[session].free_since_ns.take().or(by_clients)
    }
}

/// A message that became due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) due: Due,
    /// The root of its chain, if it is a reaction.
    pub(super) root: Option<Root>,
    /// Its *ready* timestamp, ns of `CLOCK_MONOTONIC`: when the scheduler reached it, or its due time if it waited for
    /// its session.
    pub(super) ready_ns: u64,
    /// Upper bound of the generator's part in the time since it was due, ns.
    pub(super) lag_ns: u64,
}

/// Result of an attempt to send a message.
pub(super) enum Step {
    /// Passed to the adapter.
    Submitted,
    /// Skipped or refused.
    Settled,
    /// It must wait.
    Waits,
}

impl Publishing {
    /// Processes a due time: the message is offered, and sent if no earlier message of this publisher waits. Returns
    /// the session that the caller must flush, if the message was passed to the adapter.
    pub fn send_due<C: Clients>(&mut self, sending: &mut Sending<'_, C>, index: u32) -> Option<SessionId> {
        let publisher = &mut self.publishers[index as usize];
        let window = &sending.timetable.window;
        let is_offered = |due_ns| window.offers(window.absolute(due_ns));
        publisher.schedule.peek_ns().filter(|due_ns| is_offered(*due_ns))?;
        let before = publisher.schedule.clone();
        let due = publisher.schedule.take(sending.timetable.rules(publisher.book.group))?;
        self.plan_send(index, sending.timetable);
        let ready_ns = sending.now_ns;
        self.offer(index, &due, None, ready_ns, sending.timetable, sending.totals);
        let lag_ns = ready_ns.saturating_sub(sending.timetable.window.absolute(due.due_ns));
        if let Some(waiting) = &mut self.publishers[index as usize].waiting {
            waiting.join(lag_ns);
            self.add_to_backlog(index);
            return None;
        }
        let session = self.publishers[index as usize].session;
        match self.step(sending, index, &Message { due, root: None, ready_ns, lag_ns }) {
            Step::Submitted => Some(SessionId(session)),
            Step::Settled => None,
            Step::Waits => {
                let waiting = WaitingMessages::new(before, lag_ns, ready_ns);
                self.publishers[index as usize].waiting = Some(Box::new(waiting));
                self.add_to_backlog(index);
                None
            }
        }
    }

    fn add_to_backlog(&mut self, index: u32) {
        self.publishers[index as usize].backlog += 1;
        self.backlog += 1;
    }

    /// Counts a message as offered, with the generator's lag.
    pub(super) fn offer(
        &mut self,
        index: u32,
        due: &Due,
        root_ns: Option<u64>,
        ready_ns: u64,
        timetable: &Timetable,
        totals: &mut Totals,
    ) {
        let lag_ns = timetable.window.relative(ready_ns) - due.due_ns;
        totals.figures.series.record_offer(due.due_ns, u64::try_from(lag_ns).ok());
        if is_measured(due, root_ns, timetable) {
            totals.figures.times.scheduler_lag.record(lag_ns);
            self.record_offer(index, due);
        }
    }

    /// Counts a reaction that never became ready as offered.
    pub(super) fn count_offer(&mut self, index: u32, due: &Due, root_ns: u64, timetable: &Timetable) {
        if is_measured(due, Some(root_ns), timetable) {
            self.record_offer(index, due);
        }
    }

    fn record_offer(&mut self, index: u32, due: &Due) {
        self.offered += 1;
        let book = &mut self.publishers[index as usize].book;
        book.offered += 1;
        book.planned_online += u64::from(due.planned_online);
        book.sizes_raised += u64::from(due.size_raised);
    }

    /// Settles one message, or returns that it must wait.
    pub(super) fn step<C: Clients>(&mut self, sending: &mut Sending<'_, C>, index: u32, message: &Message) -> Step {
        let Message { due, root, ready_ns, lag_ns } = *message;
        let Sending { clients, sessions, requests, timetable, totals, now_ns } = sending;
        let measured = is_measured(&due, root.map(|root| root.due_ns), timetable);
        let publisher = &mut self.publishers[index as usize];
        let is_left_out = publisher.leaves_out(&due);
        if !due.planned_online || is_left_out {
            if measured {
                publisher.book.skipped_planned += 1;
                publisher.book.slowed += u64::from(is_left_out);
                publisher.note_unsent(RowKind::SkippedPlanned, &due, timetable, totals);
            }
            return Step::Settled;
        }
        let session = &sessions[publisher.session];
        if session.lost {
            publisher.note_turn(&due);
            if measured {
                publisher.book.skipped_disconnected += 1;
                publisher.note_unsent(RowKind::SkippedDisconnected, &due, timetable, totals);
                sessions.note_skipped(timetable.level(publisher.book.group));
            }
            return Step::Settled;
        }
        if session.state != State::Online || !publisher.may_send() {
            return Step::Waits;
        }
        self.announced.announce(publisher.book.publisher, publisher.next_sequence);
        let due_ns = timetable.window.absolute(due.due_ns);
        let mut message = Outgoing {
            publication: publisher.publication,
            sequence: publisher.next_sequence,
            timing: Timing { due_ns, submitted_ns: *now_ns, lag_ns },
            root,
            draw: due.draw,
            plain_body_bytes: 0,
            payload_bytes: due.payload_bytes,
        };
        let transformed_message = publisher.steps.as_ref().map(|steps| {
            let has_waited = ready_ns != *now_ns;
            steps.make(publisher.book.publisher, &mut message, has_waited)
        });
        match clients.send(SessionId(publisher.session), message) {
            SendOutcome::Accepted => {
                publisher.note_turn(&due);
                let (epoch, segment) = (timetable.epoch(*now_ns), sessions.segment());
                let sequence = publisher.use_sequence(measured, epoch, segment);
                let mut excluded = 0;
                if let Some(matching) = &publisher.matching {
                    let noted = Noted { draw: due.draw, due_ns, is_measured: measured };
                    excluded = matching.note(noted, &mut self.note_room, &mut publisher.book.matches);
                }
                let payload_bytes = message.payload_bytes;
                let own_ns = own_since_ready_ns(lag_ns, due_ns, ready_ns);
                let ready_ns =
                    ready_ns + transformed_message.map_or(0, |transformed_message| transformed_message.delay_ns);
                if measured && let Some(transformed_message) = transformed_message {
                    let (group, all) = (publisher.book.group, &mut totals.figures.transform);
                    transform::record_transform(all, group, &timetable.workload, &transformed_message.costs);
                }
                let pending = Pending {
                    publisher: index,
                    sequence,
                    ready_ns,
                    own_ns,
                    measured,
                    payload_bytes,
                    excluded,
                    withheld: false,
                };
                sessions[publisher.session].pending.push_back(pending);
                if measured && let Some(log) = &mut totals.figures.log {
                    log.note(submitted(publisher.book.publisher, sequence, (due_ns, ready_ns), payload_bytes));
                }
                self.in_flight += 1;
                requests.open(index, publisher, sequence, measured, &mut timetable.timers, *now_ns);
                Step::Submitted
            }
            SendOutcome::WouldBlock => Step::Waits,
            SendOutcome::TooLarge(_) => {
                publisher.note_turn(&due);
                if measured {
                    publisher.book.too_large += 1;
                    publisher.note_unsent(RowKind::TooLarge, &due, timetable, totals);
                }
                Step::Settled
            }
        }
    }

    /// Continues with the messages that waited for a session; the caller flushes it.
    pub fn catch_up_session<C: Clients>(
        &mut self,
        sending: &mut Sending<'_, C>,
        session: u32,
        free_since_ns: Option<u64>,
    ) {
        for index in sending.sessions[session].publishers.clone() {
            self.catch_up(sending, index, free_since_ns);
        }
        self.catch_up_reactions(sending, session, free_since_ns);
    }

    /// Sends the waiting messages, in order, until one must wait again. A waiting message was ready when it was due:
    /// the scheduler lag includes the generator's lag at that time, and the wait after it is caused by the system.
    fn catch_up<C: Clients>(&mut self, sending: &mut Sending<'_, C>, index: u32, free_since_ns: Option<u64>) {
        while self.publishers[index as usize].backlog > 0 {
            let publisher = &mut self.publishers[index as usize];
            let Some(mut waiting) = publisher.waiting.take() else { return };
            let before = waiting.cursor.clone();
            let Some(due) = waiting.cursor.take(sending.timetable.rules(publisher.book.group)) else { return };
            let ready_ns = sending.timetable.window.absolute(due.due_ns);
            let lag_ns = waiting.lag_ns(free_since_ns, sending.now_ns);
            match self.step(sending, index, &Message { due, root: None, ready_ns, lag_ns }) {
                Step::Submitted | Step::Settled => {
                    let publisher = &mut self.publishers[index as usize];
                    publisher.backlog -= 1;
                    self.backlog -= 1;
                    publisher.waiting = (publisher.backlog > 0).then_some(waiting);
                }
                Step::Waits => {
                    waiting.cursor = before;
                    self.publishers[index as usize].waiting = Some(waiting);
                    return;
                }
            }
        }
    }

    /// Is there a flooding publisher that could send now?
    pub fn wants_to_flood(&self, sessions: &Sessions, timetable: &Timetable) -> bool {
        !timetable.closed
            && timetable.window.is_set()
            && self.flooding.iter().any(|index| self.can_flood(*index, sessions))
    }

    fn can_flood(&self, index: u32, sessions: &Sessions) -> bool {
        let publisher = &self.publishers[index as usize];
        let session = &sessions[publisher.session];
        // A session that is about to disconnect completes its exchanges, and begins none.
        !publisher.blocked && session.state == State::Online && session.leaving.is_none()
    }

    /// Number of publishers that flood.
    pub fn flooding(&self) -> usize {
        self.flooding.len()
    }

    /// Sends one write of the publisher at this position among those that flood, if it can send. Due = ready = now.
    /// Returns the session that the caller must flush, and the bytes passed to the adapter.
    pub fn flood_one<C: Clients>(
        &mut self,
        sending: &mut Sending<'_, C>,
        position: usize,
    ) -> Option<(SessionId, usize)> {
        let index = self.flooding[position];
        let now_ns = sending.now_ns;
        let is_early = sending.timetable.window.relative(now_ns) < self.series_start_ns;
        if !self.can_flood(index, sending.sessions) || is_early {
            return None;
        }
        let session = self.publishers[index as usize].session;
        let mut bytes = 0;
        while bytes < FLOOD_BYTES {
            let publisher = &mut self.publishers[index as usize];
            let before = publisher.schedule.clone();
            let Some(mut due) = publisher.schedule.take(sending.timetable.rules(publisher.book.group)) else { break };
            due.due_ns = sending.timetable.window.relative(now_ns);
            // The schedule of a flood stays at its start, and so does its plan of connectivity. The session follows the plan.
            due.planned_online = true;
            if !sending.timetable.is_within(due.due_ns) {
                publisher.schedule = before;
                break;
            }
            match self.step(sending, index, &Message { due, root: None, ready_ns: now_ns, lag_ns: 0 }) {
                Step::Submitted | Step::Settled => {
                    self.offer(index, &due, None, now_ns, sending.timetable, sending.totals);
                }
                Step::Waits => {
                    // Not offered: a flood has no schedule that it could miss. `can_flood` is false until the adapter
                    // reports writable.
                    let publisher = &mut self.publishers[index as usize];
                    publisher.schedule = before;
                    publisher.blocked = true;
                    break;
                }
            }
            bytes += due.payload_bytes as usize;
        }
        Some((SessionId(session), bytes))
    }
}

/// The generator's part in the time since a message was ready, ns: its part in the time since the message was due, without
/// the scheduler lag before it was ready. A message that waited was ready when it was due.
fn own_since_ready_ns(lag_ns: u64, due_ns: u64, ready_ns: u64) -> u64 {
    lag_ns.saturating_sub(ready_ns.saturating_sub(due_ns))
}

/// A message that its session accepted, as a row of the message log.
fn submitted(publisher: u32, sequence: u32, (due_ns, ready_ns): (u64, u64), payload_bytes: u32) -> Row {
    Row {
        kind: RowKind::Submitted,
        publisher,
        sequence,
        audience: 0,
        payload_bytes,
        due_ns,
        at_ns: ready_ns,
        lag_ns: 0,
        late_ns: 0,
        write_start_us: None,
    }
}

/// Does a message belong to the measured window? A reaction belongs to the window of its root.
fn is_measured(due: &Due, root_ns: Option<u64>, timetable: &Timetable) -> bool {
    root_ns.map_or(due.due_ns >= 0, |root_ns| timetable.window.measures(root_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduler_lag_is_a_part_of_the_back_pressure_of_messages_that_waited_only() {
        assert_eq!(own_since_ready_ns(300, 1_000, 1_300), 0, "it was sent as soon as the scheduler reached it");
        assert_eq!(own_since_ready_ns(300, 1_000, 1_000), 300, "it waited");
        assert_eq!(own_since_ready_ns(0, 1_000, 1_000), 0, "a flood");
    }
}
