//! Sessions connect, lose their connections, and reconnect.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Connected, Secured};

use super::publisher::Publisher;
use super::session::State;
use super::sessions::Sessions;
use super::timers::{Task, Timers};
use super::timetable::Timetable;
use super::totals::Totals;
use crate::faults::log::SessionChange;
use crate::plan::{ATTEMPT_LIMIT, BACKOFF, STALL};
use crate::shard_outcome::Counters;

impl Sessions {
    /// Schedules the connects of every session that is planned to be connected at the start, evenly over the ramp-up.
    pub fn connect_all(&mut self, publishers: &[Publisher], timers: &mut Timers, now_ns: u64) {
        let is_wanted = |index: &u32| {
            let session = &self[*index];
            session.subscriber.is_some() || session.own(publishers).iter().any(Publisher::online_at_start)
        };
        let wanted: Vec<u32> = (0..self.count()).filter(is_wanted).collect();
        let gap_ns = self.ramp_up.as_nanos() as f64 / wanted.len() as f64;
        for (started, index) in (0u32..).zip(wanted) {
            self[index].wanted = true;
            timers.add(now_ns.saturating_add((f64::from(started) * gap_ns) as u64), Task::Connect(index));
        }
    }

    /// Begins an attempt, if the session should be connected and is not, and no fault prevents it. Returns true if the
    /// caller must then connect the session.
    pub fn begin_attempt(&mut self, index: u32, timetable: &mut Timetable, totals: &mut Totals, now_ns: u64) -> bool {
        let counters = &mut totals.figures.counters;
        let session = &mut self[index];
        if !session.wanted || !matches!(session.state, State::Offline | State::Waiting) {
            return false;
        }
        if session.state == State::Waiting {
            counters.retried += 1;
        }
        counters.attempted += 1;
        if self.faults.as_mut().is_some_and(|log| log.holds(index, now_ns)) {
            let cause = Cause::Unreachable("held off by a fault of the run".to_owned());
            self.note_failure(now_ns, index, &cause, &mut timetable.timers, totals);
            return false;
        }
        let session = &mut self[index];
        session.state = State::Connecting(now_ns);
        session.secured_ns = None;
        if !timetable.window.is_set() {
            self.ramp.tried(now_ns);
        }
        timetable.timers.add(now_ns + ATTEMPT_LIMIT.as_nanos() as u64, Task::AttemptLimit(index));
        true
    }

    /// Has an attempt used up its time, by a limit that was set for `at_ns`? The caller then ends it.
    pub fn is_over(&self, index: u32, at_ns: u64, timers: &mut Timers, now_ns: u64) -> bool {
        let limit_ns = ATTEMPT_LIMIT.as_nanos() as u64;
        match self[index].state {
            // A later attempt has a separate limit.
            State::Connecting(since_ns) if since_ns + limit_ns <= at_ns => {}
            _ => return false,
        }
        // This thread was paused meanwhile, and perhaps the system too: the attempt has not had its full time.
        let was_paused = now_ns.saturating_sub(at_ns) > STALL.as_nanos() as u64;
        if was_paused {
            timers.add(now_ns + limit_ns, Task::AttemptLimit(index));
        }
        !was_paused
    }

    /// A TLS handshake was completed.
    pub fn secured(&mut self, session: SessionId, secured: &Secured, totals: &mut Totals) {
        let Secured { began_ns, done_ns, agreed } = *secured;
        let times = &mut totals.figures.times;
        let handshake = if agreed.resumed { &mut times.resumed_handshake } else { &mut times.full_handshake };
        handshake.record(done_ns as i64 - began_ns as i64);
        totals.figures.counters.count_secured(&agreed);
        self[session].secured_ns = Some(done_ns);
    }

    /// The server accepted a session.
    pub fn connected(
        &mut self,
        id: SessionId,
        connected: Connected,
        publishers: &mut [Publisher],
        timetable: &Timetable,
        totals: &mut Totals,
        now_ns: u64,
    ) {
        self.note_accepted(id, timetable, totals, now_ns);
        let session = &mut self[id];
        session.state = State::Online;
        let should_be_present = session.persistent && session.was_up && session.lost;
        let is_resumed = session.is_away();
        session.lost = false;
        session.was_up = true;
        let had_failed = std::mem::take(&mut session.failures) > 0;
        let subscribes = session.subscriber.is_some();
        self.failing -= u64::from(had_failed);
        self.not_resumed -= u64::from(is_resumed);
        self.online += 1;
        let counters = &mut totals.figures.counters;
        counters.established += 1;
        counters.publish_level_lower += u64::from(connected.maximum_qos.is_some());
        counters.topic_alias_refused += u64::from(connected.topic_alias_refused);
        totals.note_event();
        if connected.maximum_qos == Some(Qos::BestEffort) {
            // Messages are sent at the QoS that the server accepts, so nothing will be acknowledged.
            self[id].own_mut(publishers).iter_mut().for_each(|publisher| publisher.acknowledged = false);
        }
        if should_be_present {
            self.note_fault(
                now_ns,
                id.0,
                if connected.session_present { SessionChange::SessionResumed } else { SessionChange::SessionLost },
            );
        }
        if !subscribes {
            self.note_fault(now_ns, id.0, SessionChange::Connected);
        }
        if subscribes && connected.session_present {
            // The server retained the subscriptions: it sends no responses to them again, and no message was missed.
            self.subscriber_present(id, timetable, now_ns);
        }
        self.unblock(id, publishers);
    }

    /// Records the time from the connect to its acceptance.
    fn note_accepted(&mut self, id: SessionId, timetable: &Timetable, totals: &mut Totals, now_ns: u64) {
        let session = &mut self[id];
        let times = &mut totals.figures.times;
        if let State::Connecting(since_ns) = session.state {
            times.connect.record(now_ns as i64 - since_ns as i64);
        }
        if let Some(secured_ns) = session.secured_ns.take() {
            times.opening.record(now_ns as i64 - secured_ns as i64);
        }
        if !timetable.window.is_set() && !session.was_up {
            self.ramp.accepted(now_ns);
        }
    }

    /// A connection ended or could not be established. Returns the first epoch after the session's subscriptions, if they ended.
    pub fn closed(
        &mut self,
        id: SessionId,
        cause: &Cause,
        timetable: &mut Timetable,
        totals: &mut Totals,
        now_ns: u64,
    ) -> Option<u32> {
        let ended = self.subscriber_lost(id, timetable, now_ns);
        let session = &mut self[id];
        session.leaving = None;
        if *cause == Cause::Ours {
            let was_online = std::mem::replace(&mut session.state, State::Offline) == State::Online;
            self.online -= u64::from(was_online);
            if was_online {
                // Of a session that was accepted although it was to leave; every other one was noted in `leave`.
                self.note_fault(now_ns, id.0, SessionChange::Left);
            }
        } else {
            self.note_failure(now_ns, id.0, cause, &mut timetable.timers, totals);
            // A device that lost its connection discards its waiting messages: see `Publishing::step`.
            self.writable.push(id.0);
        }
        ended
    }

    /// Counts a failed attempt or a lost connection and schedules the next attempt.
    pub fn note_failure(&mut self, now_ns: u64, index: u32, cause: &Cause, timers: &mut Timers, totals: &mut Totals) {
        let was_up = self[index].state == State::Online;
        let counters = &mut totals.figures.counters;
        count(counters, was_up, cause);
        self.note_fault(now_ns, index, if was_up { SessionChange::Lost } else { SessionChange::Failed });
        let session = &mut self[index];
        // A session that disconnected as planned and is not accepted again waits, like that of a device that was never
        // connected.
        let was_away = session.is_away();
        session.lost |= was_up;
        let goes_away = session.is_away() && !was_away;
        let fails_first = session.failures == 0 && !was_up;
        session.failures += u32::from(!was_up);
        session.state = State::Waiting;
        let (failures, is_wanted) = (session.failures, session.wanted);
        self.failing += u64::from(fails_first);
        self.not_resumed += u64::from(goes_away);
        self.online -= u64::from(was_up);
        let pause_ns = self.draw_pause_ns(failures);
        if is_wanted && !self.finishing {
            timers.add(now_ns + pause_ns, Task::Connect(index));
        } else {
            let session = &mut self[index];
            let was_away = session.is_away();
            session.state = State::Offline;
            session.lost = false;
            self.not_resumed -= u64::from(was_away);
        }
    }

    /// The pause before a reconnect, ns. It doubles with each failure, up to a limit, and is random within the upper
    /// half of that time so that a fleet does not reconnect all at once.
    fn draw_pause_ns(&mut self, failures: u32) -> u64 {
        let (first, longest) = BACKOFF;
        let pause = first.saturating_mul(1 << failures.min(16)).min(longest).as_nanos() as f64;
        (pause * (0.5 + 0.5 * self.draw_backoff())) as u64
    }
}

fn count(counters: &mut Counters, was_up: bool, cause: &Cause) {
    let words = match cause {
        Cause::Ours => return,
        Cause::Unreachable(words) => format!("unreachable: {words}"),
        Cause::Refused(reason) => format!("refused: {reason}"),
        Cause::NotAuthorized(reason) if was_up => format!("ended by the server, credentials no longer valid: {reason}"),
        Cause::NotAuthorized(reason) => format!("not authorized: {reason}"),
        Cause::Tls(words) => format!("TLS: {words}"),
        Cause::Server { reason, .. } => format!("ended by the server: {reason}"),
        Cause::Dropped(words) => format!("dropped: {words}"),
        Cause::Silent => "dropped: the server stopped responding".to_owned(),
        Cause::Protocol(words) => format!("protocol error of the server: {words}"),
    };
    counters.log_in_ended += u64::from(was_up && matches!(cause, Cause::NotAuthorized(_)));
    match cause {
        _ if was_up => counters.dropped += 1,
        Cause::NotAuthorized(_) => counters.auth_failed += 1,
        Cause::Tls(_) => counters.tls_failed += 1,
        _ => counters.refused += 1,
    }
    counters.count_cause(words);
}
