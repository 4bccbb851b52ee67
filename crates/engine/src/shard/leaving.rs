//! Planned disconnects of devices.

use pubmark_model::churn::Leave;
use pubmark_protocol::clients::Goodbye;

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
        let counters = &mut totals.figures.counters;
        counters.planned_leaves += 1;
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
            State::Connecting(_) if leave == Leave::Cut => Some(Goodbye::Cut),
            // The system may already have accepted the connection. Without a graceful disconnect it would publish the
            // device's will.
            State::Connecting(_) => {
                let limit_ns = now_ns + QUIESCE_LIMIT.as_nanos() as u64;
                session.leaving = Some(limit_ns);
                timers.add(limit_ns, Task::Leave(index));
                None
            }
            State::Online if leave == Leave::Cut => {
                counters.wills_due += u64::from(session.has_will);
                Some(Goodbye::Cut)
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
}
