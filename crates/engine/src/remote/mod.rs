//! Shards in processes of their own. Whoever leads the run works out the plan, starts worker processes, and tells them over a
//! socket what it would tell threads; counters lie in memory that all of them map. Nothing is sent while a run measures.
//!
//! A worker process works out the same shards from the same plan and runs those that it was given, so that where a device runs
//! changes nothing about what it does, and its outcome is what a thread's would have been. See docs/explanation/engine.md.

mod access;
mod allowance;
pub(crate) mod bounded;
mod frames;
mod heartbeat;
pub(crate) mod launcher;
mod messages;
mod order;
pub(crate) mod process;
mod serve;

pub use access::{AccessNetwork, AccessReport, LARGEST_REPORT, Service};
pub use heartbeat::{HeartbeatWatch, beat};
pub use launcher::{Launcher, Started};
pub use serve::{follow_clock, serve};
