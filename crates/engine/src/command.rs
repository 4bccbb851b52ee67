//! Commands to a shard.

use serde::{Deserialize, Serialize};

/// A command. None is given while a shard measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Bring the sessions up.
    Connect,
    /// Send a probe from each device that is up: see [`crate::probes`]. May be repeated.
    Probe,
    /// The measured window starts at this time of `CLOCK_MONOTONIC`. Every shard knows it before any device sends. May be repeated
    /// with a later time.
    Prepare {
        /// The time, ns.
        start_ns: u64,
    },
    /// Follow the schedule.
    Begin,
    /// Publishing is over.
    Close {
        /// Since this time, ns.
        at_ns: u64,
    },
    /// End the sessions and hand over the outcome.
    Finish,
}
