//! The outcome of faults.

use std::sync::Arc;

use pubmark_record::faults::LevelBooks;

use super::log::{FaultNotes, LEVELS};
use super::planned::PlannedFault;

/// The outcome of faults.
#[derive(Clone, Debug, Default)]
pub struct FaultOutcome {
    /// The faults, as planned.
    pub planned: Arc<[PlannedFault]>,
    /// The records of all shards.
    pub notes: FaultNotes,
    /// Number of open connections that each fault was to break.
    pub chosen: Vec<u64>,
    /// The message accounting by segment and QoS level; there is one segment more than there are faults.
    pub books: Vec<[LevelBooks; LEVELS]>,
}
