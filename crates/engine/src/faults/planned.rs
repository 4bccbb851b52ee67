//! The faults of a run, as the engine needs to know them.

use serde::{Deserialize, Serialize};

/// A fault of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// Since the start of the measured window, ns; rising from fault to fault.
    pub at_ns: u64,
    /// Length, ns; `None` where it has no end of its own.
    pub length_ns: Option<u64>,
    /// What the engine itself breaks.
    pub connections: Option<BreakConnections>,
}

/// Connections to be broken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakConnections {
    /// They die without a word, otherwise by a reset.
    pub silent: bool,
    /// Which part, above 0, at most 1.
    pub share: f64,
    /// Of this group, or of these clients.
    pub group: Option<String>,
}
