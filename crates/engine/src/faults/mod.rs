//! The engine's part of faults: it breaks connections, records what happens to sessions and messages during a fault,
//! and computes the effects of each fault. Faults of the system or of a link are injected elsewhere.
//!
//! The time from one fault to the next is a *segment*; segment 0 is before the first fault. Publishers record the first
//! sequence number that they send in each, so that the message accounting of a run can be divided by segment, and the
//! parts add up to the run's.

mod after;
pub mod latency;
pub(crate) mod log;
pub(crate) mod outcome;
pub(crate) mod planned;
mod segments;

pub use after::{FaultEffects, Span, figures};
pub use log::{EndedSessions, EndedStream, Event, FaultNotes, LEVELS};
pub use outcome::FaultOutcome;
pub use planned::{BreakConnections, PlannedFault};
pub(crate) use segments::{by_segment, levels_of_audiences};
