//! One file a verb: what it takes from the command line, and what it does.

pub mod broker;
pub mod capacity;
pub mod check;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod compare;
pub mod demo;
#[cfg(feature = "cluster")]
pub mod deploy;
pub mod doctor;
pub mod experiment;
pub mod explain;
pub mod grid;
pub mod install;
pub mod list;
#[cfg(feature = "cluster")]
pub mod node;
pub mod reference;
pub mod report;
pub mod run;
pub mod run_arguments;
pub mod schema;
pub mod setup;
pub mod supervisor;
pub mod table;
pub mod worker;
