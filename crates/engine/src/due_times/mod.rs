//! The due times that messages carry, checked after the run: each shard keeps a random sample of those that arrived, and
//! they are compared with the schedule's own. A peer that changes due times within the measured window would otherwise
//! change latencies unnoticed.

pub mod audit;
pub mod sample;
