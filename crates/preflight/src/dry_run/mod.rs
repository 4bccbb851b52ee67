//! Plans for `--dry-run`: what would be executed, what it needs and how long it takes; at most 80 columns wide.

pub mod capacity;
pub mod choose;
pub mod experiment;
mod images;
pub mod paper;
mod placement;
pub mod run;
pub mod workload;
