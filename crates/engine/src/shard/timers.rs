//! The timers of a shard: an exact heap of tasks by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task. Tasks at the same instant are executed in this order, so that a message due at the instant of a disconnect
/// is sent before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// The measured window begins: read the CPU time.
    WindowStart,
    /// Publisher: its next message is due.
    Send(u32),
    /// Reaction: it is due.
    React(u32),
    /// Request at a responder: its reply is due.
    Reply(u32),
    /// Session: its subscriber has finished its work on a message.
    Resume(u32),
    /// Publisher: its oldest open request has used up its time.
    RequestLimit(u32),
    /// Publisher: a planned disconnect or reconnect is due.
    Churn(u32),
    /// Session: connect.
    Connect(u32),
    /// Send a probe from each connected device.
    Probe,
    /// Session: an attempt has used up its time.
    AttemptLimit(u32),
    /// Session: disconnect now, even if exchanges are pending.
    Leave(u32),
    /// The measured window ends: read the CPU time.
    WindowEnd,
    /// A fault begins.
    Fault(u16),
    /// A fault that breaks connections ends.
    FaultEnd(u16),
}

/// Tasks by time, ns of `CLOCK_MONOTONIC`.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<(u64, Task)>>);

impl Timers {
    /// Adds a task.
    pub fn add(&mut self, at_ns: u64, task: Task) {
        self.0.push(Reverse((at_ns, task)));
    }

    /// When the next task is due.
    pub fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Removes and returns the next task if it is due at `now_ns`.
    pub fn take(&mut self, now_ns: u64) -> Option<(u64, Task)> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
