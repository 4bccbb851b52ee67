//! Experiments: many runs over a grid of settings, in seeded random order, that can be interrupted and resumed.
//!
//! Start with [`conduct`]. The way of an experiment: [`definition`] reads it and judges its names; [`planning`] makes a [`planning::Plan`], in
//! which every cell is either ready to be run or refused with its reason, before anything is started; [`runner`] makes
//! the runs and notes each in the [`journal`]; [`result`] puts the record together from the journal and the runs'
//! folders, after every block, so that what is there can be read at any time. Which runs are owed is told by [`standing`].
//!
//! A cell holds the specification of its runs ([`cell_spec`]): an experiment can do what a run can.

pub mod cell_spec;
pub mod classify;
pub mod conduct;
pub mod definition;
pub mod dry_run;
pub mod fetching;
pub mod folder;
pub mod journal;
pub mod planning;
pub mod progress;
pub mod quiet;
pub mod result;
pub mod runner;
pub mod standing;
