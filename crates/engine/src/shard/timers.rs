//! What a shard has to do when: an exact heap of times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What to do; at one instant in this order, so that a message due on the tick of a leave is sent before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// The measured window begins: note CPU time.
    WindowStart,
    /// Publisher: its next message is due.
    Send(u32),
    /// Reaction: it is due.
    React(u32),
    /// Request at a responder: its reply is due.
    Reply(u32),
    /// Session: its subscriber is done with a message.
    Resume(u32),
    /// Publisher: its oldest open request has had its time.
    RequestLimit(u32),
    /// Publisher: a planned leave or return.
    Churn(u32),
    /// Session: try to connect.
    Connect(u32),
    /// Send a probe from each device that is up.
    Probe,
    /// Session: an attempt has had its time.
    AttemptLimit(u32),
    /// Session: leave now, whatever is under way.
    Leave(u32),
    /// The measured window ends: note CPU time.
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

    /// Takes the next task if it is due at `now_ns`.
    pub fn take(&mut self, now_ns: u64) -> Option<(u64, Task)> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
