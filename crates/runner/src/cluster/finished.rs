//! Measurements of nodes at the end of a run.

use pubmark_record::cost::{Cost, ResourceRow, Usage};
use pubmark_record::record::SystemEnd;
use serde::{Deserialize, Serialize};

use crate::faults::FaultTimes;

/// Measurements of a system in one run.
#[derive(Default, Serialize, Deserialize)]
pub struct FinishedSystem {
    /// Resources that the system and its machine used, and effects of its resource limits.
    pub cost: Cost,
    /// The machine: boot id of its kernel; empty if unknown.
    #[serde(default)]
    pub machine: String,
    /// The system over time.
    pub rows: Vec<ResourceRow>,
    /// Run-queue wait of the system's threads during the drain, ns.
    pub drain_wait_ns: Option<u64>,
    /// Times of each fault of the run; empty for faults that are not of the system.
    pub done: Vec<FaultTimes>,
    /// How the system ended, if it did, and the end of its log.
    pub end: Option<(SystemEnd, String)>,
}

/// Usage of a worker process on a node in the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerUsage {
    /// Index of its first shard in the run.
    pub first_shard: u32,
    /// Its usage; `None` if the worker did not report it.
    pub usage: Option<Usage>,
}
