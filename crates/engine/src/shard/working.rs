//! Subscribers that take their time over each message: one takes up a message when it arrives, or when it is done with the one
//! before, and nothing is read for it meanwhile. Working is a time in the shard's timers, never a sleep.

use std::time::Duration;

use pubmark_protocol::clients::{Clients, SessionId};

use super::Shard;
use super::timers::Task;

/// The work of one session's subscriber.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Time over each message, ns; 0 for none.
    each_ns: u64,
    /// When it will be done with the last one, ns of `CLOCK_MONOTONIC`.
    until_ns: u64,
    /// It is not done.
    under_way: bool,
}

impl Work {
    /// A subscriber that takes this time over each message.
    pub fn of(each: Duration) -> Work {
        Work { each_ns: each.as_nanos() as u64, ..Work::default() }
    }

    /// Does a message take it any time?
    pub fn takes_time(&self) -> bool {
        self.each_ns > 0
    }

    /// Is it at work?
    pub fn is_under_way(&self) -> bool {
        self.under_way
    }
}

impl Shard {
    /// A session's subscriber takes up a message.
    pub(super) fn take_up(&mut self, session: SessionId, at_ns: u64) {
        let work = &mut self.sessions[session.0 as usize].work;
        if work.each_ns == 0 {
            return;
        }
        // A message that comes while it is at work, as none should, waits behind that.
        work.until_ns = work.until_ns.max(at_ns) + work.each_ns;
        if !std::mem::replace(&mut work.under_way, true) {
            self.at_work += 1;
            self.timers.add(work.until_ns, Task::Resume(session.0));
        }
    }

    /// A session's subscriber is done, and is given what follows.
    pub(super) fn resume<C: Clients>(&mut self, clients: &mut C, session: u32, due_ns: u64, now_ns: u64) {
        let work = &mut self.sessions[session as usize].work;
        if work.until_ns > due_ns {
            self.timers.add(work.until_ns, Task::Resume(session));
            return;
        }
        work.under_way = false;
        self.at_work -= 1;
        clients.resume(SessionId(session), due_ns, &mut self.at(now_ns));
    }
}
