//! Commands to a shard.

use serde::{Deserialize, Serialize};

/// A command to a shard. No command is sent while a shard measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Establish the sessions.
    Connect,
    /// Send a probe from each connected device: see [`crate::probes`]. May be repeated.
    Probe,
    /// Announces when the measured window starts. Every shard knows it before any device sends. May be repeated with a
    /// later time.
    Prepare {
        /// Start of the window, ns of `CLOCK_MONOTONIC`.
        start_ns: u64,
    },
    /// Follow the schedule.
    Begin,
    /// Publishing has ended.
    Close {
        /// Time of the end, ns.
        at_ns: u64,
    },
    /// End the sessions and return the outcome.
    Finish,
}
