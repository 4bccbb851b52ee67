//! What a system that a node started came to.

use pubmark_record::cost::{Cost, ResourceRow};
use pubmark_record::record::SystemEnd;
use serde::{Deserialize, Serialize};

use crate::faults::FaultTimes;

/// What a system came to.
#[derive(Default, Serialize, Deserialize)]
pub struct FinishedSystem {
    /// Of it: what the system took, what its limits did, what its machine took.
    pub cost: Cost,
    /// The system over time.
    pub rows: Vec<ResourceRow>,
    /// Time that its threads waited for a processor during the drain, ns.
    pub drain_wait_ns: Option<u64>,
    /// By fault of the run: what was done; nothing of those that are not of the system.
    pub done: Vec<FaultTimes>,
    /// How it ended, if it did, and the end of its log.
    pub end: Option<(SystemEnd, String)>,
}
