//! What a run is made of: devices, subscribers, schedules. Pure data, no input or output.
//!
//! Start with [`workload::Workload`], the validated description of a fleet; [`fleet::Fleet`]
//! is that fleet counted out device by device; [`schedule`] says when each device sends.

pub mod arrival;
pub mod churn;
pub mod fleet;
pub mod payload;
pub mod qos;
pub mod random;
pub mod schedule;
pub mod topic;
pub mod workload;
