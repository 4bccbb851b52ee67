//! Experiments: many runs over a grid of settings, in seeded random order, that can be interrupted and resumed.
//!
//! Start with [`Sitting`]. The way of an experiment: [`definition`] reads it and judges its names; [`planning`] makes a [`planning::Plan`], in
//! which every cell is either ready to be run or refused with its reason, before anything is started; the runner makes
//! the runs and notes each in the journal; the record is put together from the journal and the runs'
//! folders, after every block, so that what is there can be read at any time.
//!
//! A cell holds the specification of its runs: an experiment can do what a run can.

mod cell_spec;
pub mod comparison;
pub mod definition;
mod endpoint;
mod fetching;
mod folder;
pub mod journal;
pub mod outline;
pub mod pace;
pub mod planning;
pub mod quiet;
mod result;
mod runner;
mod sitting;
mod standing;

pub use runner::Finished;
pub use sitting::Sitting;
