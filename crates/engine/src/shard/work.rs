//! The time that a subscriber takes over each message.

use std::time::Duration;

/// The work of one session's subscriber.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Time over each message, ns; 0 for none.
    pub(super) each_ns: u64,
    /// When it will be done with the last one, ns of `CLOCK_MONOTONIC`.
    pub(super) until_ns: u64,
    /// It is not done.
    pub(super) under_way: bool,
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
}
