//! Experiments: many runs over a grid of settings, in seeded random order, that can be interrupted and resumed.
//!
//! Start with [`PreparedExperiment`]. [`definition`] reads an experiment and validates its names. [`planning`] creates
//! a [`planning::Plan`], in which every cell is either ready to be run or refused with a reason, before anything is
//! started. The runner executes the runs and writes each to the journal. The record is built from the journal and the
//! folders of the runs after every block, so that the results so far can be read at any time.
//!
//! A cell holds the specification of its runs: an experiment can do what a run can.

mod cell_spec;
pub mod comparison;
pub mod definition;
mod endpoint;
mod extension;
mod fetching;
mod folder;
pub mod journal;
pub mod links;
pub mod outline;
pub mod pace;
pub mod planning;
mod prepared;
mod progress;
pub mod quiet;
mod result;
mod runner;

pub use prepared::PreparedExperiment;
pub use runner::Finished;
