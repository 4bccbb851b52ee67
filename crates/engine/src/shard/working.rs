//! Subscribers with a processing time for each message. A subscriber starts on a message when the message arrives, or
//! when it has finished the one before, and nothing is read for it meanwhile. Processing is a time in the shard's
//! timers, never a sleep.

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::Delivery;
use pubmark_protocol::header::Header;

use super::sessions::Sessions;
use super::timers::{Task, Timers};

impl Sessions {
    /// A session's subscriber starts on a message, whose header says when it was written, if it has one.
    #[inline]
    pub fn take_up(
        &mut self,
        session: SessionId,
        delivery: &Delivery<'_>,
        header: Option<&Header>,
        timers: &mut Timers,
    ) {
        let work = &mut self[session].work;
        if !work.takes_time() {
            return;
        }
        let sent_ns = header.map_or(0, Header::earliest_write_start_ns);
        work.add(delivery.at_ns, delivery.has_waited, delivery.late_ns(sent_ns));
        let until_ns = work.until_ns;
        if !std::mem::replace(&mut work.under_way, true) {
            self.at_work += 1;
            timers.add(until_ns, Task::Resume(session.0));
        }
    }

    /// Has a session's subscriber finished the work whose end was set for `due_ns`? The caller then lets it receive the
    /// next message.
    pub fn end_work(&mut self, session: u32, due_ns: u64, timers: &mut Timers) -> bool {
        let work = &mut self[session].work;
        if work.until_ns > due_ns {
            timers.add(work.until_ns, Task::Resume(session));
            return false;
        }
        work.under_way = false;
        self.at_work -= 1;
        true
    }

    /// Is a session's subscriber at work?
    #[inline]
    pub fn is_at_work(&self, session: SessionId) -> bool {
        self.at_work > 0 && self[session].work.under_way
    }
}
