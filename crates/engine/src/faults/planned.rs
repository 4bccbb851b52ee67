//! The faults of a run, as the engine uses them.

use serde::{Deserialize, Serialize};

/// A fault of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// Time since the start of the measured window, ns; increases from fault to fault.
    pub at_ns: u64,
    /// Length, ns; `None` if the fault has no end.
    pub length_ns: Option<u64>,
    /// The connections that the engine breaks, if any.
    pub connections: Option<BreakConnections>,
}

/// Connections to be broken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakConnections {
    /// They end silently, without a packet; otherwise by a reset.
    pub silent: bool,
    /// Share of the connections, above 0, at most 1.
    pub share: f64,
    /// Only connections of this group, or of these clients.
    pub group: Option<String>,
}
