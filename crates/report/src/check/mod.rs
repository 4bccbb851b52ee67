//! Results of the checks of a run or an experiment: [`text`] for people, [`json`] for programs, [`junit`] for
//! continuous integration.

pub mod json;
pub mod junit;
pub mod text;
