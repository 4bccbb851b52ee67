//! The run record: everything a run found out, in one serialisable structure. Whatever a report shows comes from here.
//!
//! Start with [`record::Record`]. A value that was not measured is absent (`null`), never 0.
//! [`verdict`] judges whether it may be believed, [`warnings`] says what a reader should know besides, [`store`] keeps it
//! in a run folder, [`comparison`] puts several side by side,
//! [`evaluation`] judges an experiment, [`threshold`] holds a record against limits.

pub mod capacity;
pub mod check;
pub mod codes;
pub mod comparison;
pub mod connecting;
pub mod cost;
pub mod distribution;
pub mod efficiency;
pub mod evaluation;
pub mod experiment;
pub mod faults;
pub mod figures;
pub mod links;
pub mod nodes;
pub mod plain;
pub mod record;
pub mod requests;
pub mod reserve;
pub mod residence;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
#[cfg(any(test, feature = "sample"))]
pub mod sample_experiment;
pub mod schema;
pub mod statistics;
pub mod steadiness;
pub mod store;
pub mod system;
pub mod tables;
pub mod threshold;
pub mod time;
pub mod verdict;
pub mod warnings;

mod quantity;
