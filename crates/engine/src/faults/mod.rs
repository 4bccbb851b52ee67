//! Faults as far as the engine goes: it breaks connections itself, notes what sessions and messages go through while anything
//! is broken, and works out what followed from each fault. Who breaks the system or a link is not known here.
//!
//! From one fault to the next is a *segment*; segment 0 is before the first. Publishers note the first sequence number that they
//! hand over in each, so that the closed books of a run can be told apart by segment, and add up to the run's.

mod after;
pub mod latency;
pub(crate) mod log;
pub(crate) mod outcome;
pub(crate) mod planned;
mod segments;

pub use after::{Followed, Span, figures};
pub use log::{Event, FaultNotes, LEVELS};
pub use outcome::FaultOutcome;
pub use planned::{BreakConnections, PlannedFault};
pub(crate) use segments::by_segment;
