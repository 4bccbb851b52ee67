//! Faults as far as the engine goes: it breaks connections itself, notes what sessions and messages go through while anything
//! is broken, and works out what followed from each fault. Who breaks the system or a link is not known here.
//!
//! From one fault to the next is a *segment*; segment 0 is before the first. Publishers note the first sequence number that they
//! hand over in each, so that the closed books of a run can be told apart by segment, and add up to the run's.

mod after;
mod choosing;
pub mod latency;
pub(crate) mod log;
mod segments;

use std::sync::Arc;

use pubmark_record::faults::LevelBooks;
use serde::{Deserialize, Serialize};

pub use after::{Followed, Span, figures};
pub(crate) use choosing::{choose, identity};
pub use log::{Event, FaultNotes, LEVELS};
pub(crate) use log::{FaultLog, What};
pub(crate) use segments::by_segment;

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
