//! Drives a fleet and measures what comes back. Knows the traits of `pubmark-protocol`, never a protocol's name.
//!
//! [`plan::RunPlan`] describes the run; [`run::run`] executes it over one adapter and returns an [`outcome::Outcome`];
//! [`sections`] converts that into the parts of a record. A run's shards are threads that own the data that they
//! change, except for shared counters (the modules `worker` and `shard`), in this process or in others ([`remote`]).

pub mod absences;
pub mod announced;
mod bodies;
pub mod books;
pub mod by_label;
pub mod calibration;
mod command;
mod content;
mod due_times;
pub mod endpoints;
pub mod epochs;
pub mod error;
mod fault_targets;
pub mod faults;
mod followed;
pub mod live;
pub mod losses;
mod merging;
pub mod message_log;
pub mod outcome;
pub mod pacing;
pub mod pairs;
pub mod plan;
pub mod precision;
pub mod probes;
pub mod progress;
mod promises;
mod ramp;
pub mod realtime;
pub mod remote;
mod request_outcome;
pub mod requests;
pub mod run;
pub mod sections;
mod setup;
mod shard;
mod shard_outcome;
pub mod shared_connections;
pub mod shared_memory;
pub mod shares;
mod sides;
mod socket_drops;
mod traffic;
mod transform;
mod usage;
#[cfg(test)]
mod virtual_time;
pub mod window_latency;
mod worker;

#[doc(hidden)]
pub use shard::{figures, receiver, window};
