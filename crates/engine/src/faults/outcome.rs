//! What faults came to.

use std::sync::Arc;

use pubmark_record::faults::LevelBooks;

use super::log::{FaultNotes, LEVELS};
use super::planned::PlannedFault;

/// What faults came to.
#[derive(Clone, Debug, Default)]
pub struct FaultOutcome {
    /// The faults, as planned.
    pub planned: Arc<[PlannedFault]>,
    /// What was noted, of all shards.
    pub notes: FaultNotes,
    /// Connections that each fault was to break.
    pub chosen: Vec<u64>,
    /// The books by segment and level; one more than there are faults.
    pub books: Vec<[LevelBooks; LEVELS]>,
}
