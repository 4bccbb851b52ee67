//! Sessions come up, go down, and are tried again.

use pubmark_model::churn::Leave;
use pubmark_protocol::clients::{Clients, Goodbye, SessionId};
use pubmark_protocol::events::{Cause, Secured};
use serde::{Deserialize, Serialize};

use super::Shard;
use super::session::State;
use super::timers::Task;
use crate::faults::What;
use crate::plan::{ATTEMPT_LIMIT, BACKOFF, QUIESCE_LIMIT, STALL};

/// How sessions came up before the schedule began. Times are ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ramp {
    /// Sessions that were accepted.
    pub accepted: u64,
    /// The first try, and the last acceptance; `None` while there was none.
    pub span_ns: Option<(u64, u64)>,
}

impl Ramp {
    /// A session is tried for.
    fn tried(&mut self, at_ns: u64) {
        self.span_ns.get_or_insert((at_ns, at_ns));
    }

    /// A session was accepted.
    fn accepted(&mut self, at_ns: u64) {
        self.accepted += 1;
        let (first_ns, last_ns) = self.span_ns.get_or_insert((at_ns, at_ns));
        *last_ns = at_ns.max(*last_ns).max(*first_ns);
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: &Ramp) {
        self.accepted += other.accepted;
        self.span_ns = match (self.span_ns, other.span_ns) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
    }

    /// From the first try to the last acceptance, s; `None` if nobody was accepted.
    pub fn seconds(&self) -> Option<f64> {
        let (first_ns, last_ns) = self.span_ns.filter(|_| self.accepted > 0)?;
        Some((last_ns - first_ns) as f64 / 1e9)
    }
}

impl Shard {
    /// TLS was agreed on.
    pub(super) fn note_secured(&mut self, index: u32, secured: &Secured) {
        let Secured { began_ns, done_ns, agreed } = *secured;
        let times = &mut self.times;
        let handshake = if agreed.resumed { &mut times.resumed_handshake } else { &mut times.full_handshake };
        handshake.record(done_ns as i64 - began_ns as i64);
        self.counters.count_secured(&agreed);
        self.sessions[index as usize].secured_ns = Some(done_ns);
    }

    /// A session was accepted: how long did that take?
    pub(super) fn note_accepted(&mut self, index: u32, now_ns: u64) {
        let session = &mut self.sessions[index as usize];
        if let State::Connecting(since_ns) = session.state {
            self.times.connect.record(now_ns as i64 - since_ns as i64);
        }
        if let Some(secured_ns) = session.secured_ns.take() {
            self.times.opening.record(now_ns as i64 - secured_ns as i64);
        }
        if !self.window.is_set() {
            self.ramp.accepted(now_ns);
        }
    }

    /// Starts connecting every session that is planned to be up at the start, evenly at the ramp-up's rate.
    pub(super) fn connect_all(&mut self, now_ns: u64) {
        let gap_ns = 1e9 / self.connects_per_s;
        let mut started = 0u32;
        for index in 0..self.sessions.len() {
            let session = &self.sessions[index];
            let subscribes = session.subscriber.is_some();
            let online =
                session.publishers.clone().any(|publisher| self.publishers[publisher as usize].online_at_start());
            if subscribes || online {
                self.sessions[index].wanted = true;
                let at_ns = now_ns + (f64::from(started) * gap_ns) as u64;
                self.timers.add(at_ns, Task::Connect(index as u32));
                started += 1;
            }
        }
    }

    /// Starts an attempt, if the session should be up and is not.
    pub(super) fn connect<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        let session = &mut self.sessions[index as usize];
        if !session.wanted || !matches!(session.state, State::Offline | State::Waiting) {
            return;
        }
        if session.state == State::Waiting {
            self.counters.retried += 1;
        }
        if self.faults.as_mut().is_some_and(|log| log.holds(index, now_ns)) {
            return self.turn_away(index, now_ns);
        }
        let session = &mut self.sessions[index as usize];
        session.state = State::Connecting(now_ns);
        session.secured_ns = None;
        if !self.window.is_set() {
            self.ramp.tried(now_ns);
        }
        self.counters.attempted += 1;
        self.timers.add(now_ns + ATTEMPT_LIMIT.as_nanos() as u64, Task::AttemptLimit(index));
        clients.connect(SessionId(index), &mut self.at(now_ns));
    }

    /// Gives up an attempt that has had its time.
    pub(super) fn end_attempt<C: Clients>(&mut self, clients: &mut C, index: u32, at_ns: u64, now_ns: u64) {
        let limit_ns = ATTEMPT_LIMIT.as_nanos() as u64;
        match self.sessions[index as usize].state {
            // A later attempt has a limit of its own.
            State::Connecting(since_ns) if since_ns + limit_ns <= at_ns => {}
            _ => return,
        }
        // Neither we nor perhaps the system ran meanwhile: the attempt has not had its time.
        if now_ns.saturating_sub(at_ns) > STALL.as_nanos() as u64 {
            self.timers.add(now_ns + limit_ns, Task::AttemptLimit(index));
            return;
        }
        clients.disconnect(SessionId(index), Goodbye::Cut, &mut self.at(now_ns));
        let seconds = ATTEMPT_LIMIT.as_secs();
        self.note_failure(now_ns, index, &Cause::Unreachable(format!("no answer within {seconds} s")));
    }

    /// Counts a failed attempt or a lost connection and plans the next attempt.
    pub(super) fn note_failure(&mut self, now_ns: u64, index: u32, cause: &Cause) {
        let was_up = self.sessions[index as usize].state == State::Online;
        self.count_cause(was_up, cause);
        self.note_fault(now_ns, index, if was_up { What::Lost } else { What::Failed });
        let session = &mut self.sessions[index as usize];
        // One that left as planned and is not let in again waits, as a device does that was never up.
        session.lost |= was_up;
        self.counters.wills_due += u64::from(was_up && session.has_will);
        if session.failures == 0 && !was_up {
            self.failing += 1;
        }
        session.failures += u32::from(!was_up);
        session.state = State::Waiting;
        if was_up {
            self.online -= 1;
        }
        let pause_ns = self.draw_pause_ns(self.sessions[index as usize].failures);
        if self.sessions[index as usize].wanted && !self.finishing {
            self.timers.add(now_ns + pause_ns, Task::Connect(index));
        } else {
            let session = &mut self.sessions[index as usize];
            session.state = State::Offline;
            session.lost = false;
        }
    }

    /// Doubles with each failure, up to a limit, and spread over its upper half so that a fleet does not come back as one.
    fn draw_pause_ns(&mut self, failures: u32) -> u64 {
        let (first, longest) = BACKOFF;
        let pause = first.saturating_mul(1 << failures.min(16)).min(longest).as_nanos() as f64;
        self.backoffs_drawn += 1;
        (pause * (0.5 + 0.5 * self.backoff.unit(self.backoffs_drawn))) as u64
    }

    fn count_cause(&mut self, was_up: bool, cause: &Cause) {
        let counters = &mut self.counters;
        let words = match cause {
            Cause::Ours => return,
            Cause::Unreachable(words) => format!("unreachable: {words}"),
            Cause::Refused(said) => format!("refused: {said}"),
            Cause::NotAuthorized(said) => format!("not authorized: {said}"),
            Cause::Tls(words) => format!("TLS: {words}"),
            Cause::Server { said, .. } => format!("ended by the server: {said}"),
            Cause::Dropped(words) => format!("dropped: {words}"),
            Cause::Silent => "dropped: the server stopped answering".to_owned(),
            Cause::Protocol(words) => format!("protocol error of the server: {words}"),
        };
        match cause {
            _ if was_up => counters.dropped += 1,
            Cause::NotAuthorized(_) => counters.auth_failed += 1,
            Cause::Tls(_) => counters.tls_failed += 1,
            _ => counters.refused += 1,
        }
        counters.count_cause(words);
    }

    /// Plans a publisher's next leave or return.
    pub(super) fn plan_churn(&mut self, index: u32) {
        let publisher = &self.publishers[index as usize];
        if let Some(at_ns) = publisher.churn.as_ref().and_then(|churn| churn.peek_ns()) {
            self.timers.add(self.window.absolute(at_ns), Task::Churn(index));
        }
    }

    /// Carries out a planned leave or return.
    pub(super) fn change_connectivity<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        if self.closed {
            return;
        }
        let publisher = &mut self.publishers[index as usize];
        let group = usize::from(publisher.book.group);
        let session = publisher.session;
        let Some(change) = publisher.churn.as_mut().and_then(|churn| churn.take(&self.rules[group])) else { return };
        let leave = self.workload.devices[group].churn.map_or(Leave::Graceful, |churn| churn.leave);
        self.plan_churn(index);
        if change.online {
            self.sessions[session as usize].wanted = true;
            self.connect(clients, session, now_ns);
        } else {
            self.leave(clients, session, leave, now_ns);
        }
    }

    fn leave<C: Clients>(&mut self, clients: &mut C, index: u32, leave: Leave, now_ns: u64) {
        self.counters.planned_leaves += 1;
        self.note_fault(now_ns, index, What::Left);
        let session = &mut self.sessions[index as usize];
        session.wanted = false;
        session.lost = false;
        if session.failures > 0 {
            session.failures = 0;
            self.failing -= 1;
        }
        match session.state {
            State::Waiting => session.state = State::Offline,
            State::Offline => {}
            State::Connecting(_) => clients.disconnect(SessionId(index), Goodbye::Cut, &mut self.at(now_ns)),
            State::Online if leave == Leave::Cut => {
                self.counters.wills_due += u64::from(session.has_will);
                clients.disconnect(SessionId(index), Goodbye::Cut, &mut self.at(now_ns));
            }
            State::Online => {
                let limit_ns = now_ns + QUIESCE_LIMIT.as_nanos() as u64;
                session.leaving = Some(limit_ns);
                if self.is_busy(index) {
                    self.timers.add(limit_ns, Task::Leave(index));
                } else {
                    self.finish_leave(clients, index, now_ns);
                }
            }
        }
    }

    /// Has the session messages that wait, are not written, or not acknowledged?
    pub(super) fn is_busy(&self, index: u32) -> bool {
        let session = &self.sessions[index as usize];
        let is_open = |index| {
            let publisher = &self.publishers[index as usize];
            publisher.backlog > 0 || publisher.unacknowledged > 0
        };
        !session.pending.is_empty() || session.publishers.clone().any(is_open)
    }

    /// A graceful leave has had its time, unless it is over and the session leaves once more by now.
    pub(super) fn end_leave<C: Clients>(&mut self, clients: &mut C, index: u32, at_ns: u64, now_ns: u64) {
        if self.sessions[index as usize].leaving == Some(at_ns) {
            self.finish_leave(clients, index, now_ns);
        }
    }

    /// Ends a graceful leave, and comes back at once if the return was planned meanwhile.
    pub(super) fn finish_leave<C: Clients>(&mut self, clients: &mut C, index: u32, now_ns: u64) {
        if self.sessions[index as usize].leaving.take().is_none() {
            return;
        }
        clients.disconnect(SessionId(index), Goodbye::Graceful, &mut self.at(now_ns));
        self.connect(clients, index, now_ns);
    }
}
