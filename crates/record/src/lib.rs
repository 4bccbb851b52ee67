//! The run record: everything a run found out, in one serialisable structure. Whatever a report shows comes from here.
//!
//! Start with [`record::Record`], which has a field for each group of figures. A value that was not measured is absent (`null`), never 0.
//! [`verdict`] judges whether it may be believed, [`warnings`] says what a reader should know besides, [`store`] saves it
//! in a run folder and reads records of schema 1, too ([`schema1`]), [`comparison`] puts several side by side,
//! [`evaluation`] judges an experiment, [`threshold`] holds a record against limits, [`conclusion`] says what a command came to.

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
pub mod warnings;
pub mod workload_info;

mod quantity;
