//! What would be done, what it would need and how long it would take; at most 80 columns wide.

pub mod capacity;
pub mod choose;
pub mod experiment;
mod images;
pub mod paper;
mod placement;
pub mod run;
pub mod workload;
