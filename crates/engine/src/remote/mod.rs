//! Shards in separate processes. The process that leads the run computes the plan, starts worker processes, and sends
//! them over a socket the commands that threads would receive. Counters are in memory that all of them map. Nothing is
//! sent while a run measures.
//!
//! A worker process computes the same shards from the same plan and runs those that were assigned to it. Where a device
//! runs therefore has no effect on what the device does, and the outcome is the same as that of a thread. See
//! docs/explanation/engine.md.

mod access;
mod allowance;
mod frames;
mod heartbeat;
pub(crate) mod launcher;
mod messages;
pub(crate) mod order;
pub(crate) mod process;
mod serve;
mod task;

pub use access::{AccessNetwork, AccessReport, LARGEST_REPORT, Service};
pub use heartbeat::{HeartbeatWatch, beat};
pub use launcher::{Launcher, Started};
pub use serve::{follow_clock, serve};
