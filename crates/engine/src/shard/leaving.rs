//! Planned disconnects of devices, and the wills of those that end without a goodbye.

use pubmark_model::churn::Leave;
use pubmark_protocol::clients::{Goodbye, SessionId};

use super::publisher::Publisher;
use super::session::State;
use super::sessions::Sessions;
use super::timers::{Task, Timers};
use super::totals::Totals;
use crate::faults::log::SessionChange;
use crate::plan::QUIESCE_LIMIT;

impl Sessions {
    /// Starts the planned disconnect of a session. Returns how the caller must end the connection now; `None` if it
    /// must not end yet.
    pub fn leave(
        &mut self,
        index: u32,
        leave: Leave,
        publishers: &[Publisher],
        timers: &mut Timers,
        totals: &mut Totals,
        now_ns: u64,
    ) -> Option<Goodbye> {
        totals.figures.counters.planned_leaves += 1;
        self.note_fault(now_ns, index, SessionChange::Left);
        let session = &mut self[index];
        session.wanted = false;
        let was_away = session.is_away();
        session.lost = false;
        let had_failed = std::mem::take(&mut session.failures) > 0;
        self.failing -= u64::from(had_failed);
        self.not_resumed -= u64::from(was_away);
        let session = &mut self[index];
        match session.state {
            State::Waiting => {
                session.state = State::Offline;
                None
            }
            State::Offline => None,
            State::Connecting(_) | State::Online if leave == Leave::Cut => Some(Goodbye::Cut),
            // The system may already have accepted the connection. Without a graceful disconnect it would publish the
            // device's will.
            State::Connecting(_) => {
                let limit_ns = now_ns + QUIESCE_LIMIT.as_nanos() as u64;
                session.leaving = Some(limit_ns);
                timers.add(limit_ns, Task::Leave(index));
                None
            }
            State::Online => {
                let limit_ns = now_ns + QUIESCE_LIMIT.as_nanos() as u64;
                session.leaving = Some(limit_ns);
                let is_busy = self.is_busy(index, publishers);
                if is_busy {
                    timers.add(limit_ns, Task::Leave(index));
                }
                (!is_busy).then_some(Goodbye::Graceful)
            }
        }
    }

    /// A connection of a session with a will ends without a goodbye.
    pub fn will_left(&self, session: SessionId, totals: &mut Totals) {
        let counters = &mut totals.figures.counters;
        let is_due = is_will_due(self[session].state, self.finishing);
        *if is_due { &mut counters.wills_due } else { &mut counters.wills_undetermined } += 1;
    }
}

/// Whether the will of a connection is published while subscribers listen. That is not known if the server's acceptance was not
/// read, or if all sessions are being ended.
fn is_will_due(state: State, finishing: bool) -> bool {
    state == State::Online && !finishing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_will_is_due_if_the_server_accepted_the_connection_and_subscribers_still_listen() {
        assert!(is_will_due(State::Online, false));
        assert!(!is_will_due(State::Online, true), "the run is over");
        assert!(!is_will_due(State::Connecting(5), false), "the acceptance was not read");
    }
}
