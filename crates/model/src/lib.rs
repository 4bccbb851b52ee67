//! What a run is made of: devices, subscribers, schedules. Plain data; the only input is the file of a workload.
//!
//! Start with [`load::load`], which makes a [`workload::Workload`], the validated description of a fleet, from a name or
//! a file; [`fleet::Fleet`] is that fleet counted out device by device; [`schedule`] says when each device sends.

pub mod adjust;
pub mod arrival;
pub mod builtin;
pub mod churn;
pub mod connection_groups;
pub mod experiment;
pub mod fault;
pub mod file_name;
pub mod fleet;
pub mod group_settings;
pub mod identity;
pub mod jsonschema;
pub mod link;
pub mod listing;
pub mod load;
pub mod metric;
pub mod pace;
pub mod payload;
pub mod placement;
pub mod plan;
pub mod predicate;
pub mod profile;
pub mod qos;
pub mod random;
pub mod reaction;
pub mod requests;
pub mod schedule;
pub mod secret;
pub mod slowdown;
pub mod states;
pub mod template;
pub mod token;
pub mod topic;
pub mod topology;
pub mod transform;
pub mod units;
pub mod workload;
