//! The run record: everything a run found out, in one serialisable structure. All figures in reports come from it.
//!
//! Start with [`record::Record`], which has a field for each group of figures. A value that was not measured is absent
//! (`null`), never 0. [`verdict`] judges whether the figures can be trusted, [`warnings`] lists what else a reader
//! should know, [`store`] saves the record in a run folder and also reads records of schema 1 ([`schema1`]),
//! [`comparison`] compares several records, [`evaluation`] evaluates an experiment, [`threshold`] checks a record
//! against limits, [`conclusion`] gives the overall result of a command.

pub mod by_reason;
pub mod capacity;
pub mod check;
pub mod codes;
pub mod comparison;
pub mod conclusion;
pub mod conditions;
pub mod connections;
pub mod content;
pub mod cost;
pub mod custom;
pub mod delivery;
pub mod distribution;
pub mod efficiency;
pub mod environment;
pub mod evaluation;
pub mod experiment;
pub mod faults;
pub mod figures;
pub mod headline;
pub mod in_use;
pub mod judgement;
pub mod latency;
pub mod latency_bin;
pub mod latency_breakdown;
pub mod links;
pub mod message_log;
pub mod nodes;
pub mod objectives;
pub mod past_runs;
pub mod plain;
pub mod protocol;
pub mod quantity;
pub mod record;
pub mod requests;
pub mod reserve;
pub mod run;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
#[cfg(any(test, feature = "sample"))]
pub mod sample_experiment;
pub mod schema;
pub mod schema1;
pub mod settings;
pub mod statistics;
pub mod steadiness;
pub mod store;
pub mod system;
pub mod tables;
pub mod threshold;
pub mod throughput;
pub mod time;
pub mod transform;
pub mod unit;
pub mod verdict;
pub mod wanted;
pub mod warnings;
pub mod workload_info;
