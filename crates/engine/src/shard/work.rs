//! The processing time of a subscriber for each message.

use std::time::Duration;

/// The work of one session's subscriber.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Processing time of each message, ns; 0 for none.
    pub(super) each_ns: u64,
    /// When the processing of the last message ends, ns of `CLOCK_MONOTONIC`.
    pub(super) until_ns: u64,
    /// It is processing a message.
    pub(super) under_way: bool,
}

impl Work {
    /// A subscriber with this processing time for each message.
    pub fn of(each: Duration) -> Work {
        Work { each_ns: each.as_nanos() as u64, ..Work::default() }
    }

    /// Does a message take processing time?
    pub fn takes_time(&self) -> bool {
        self.each_ns > 0
    }
}
