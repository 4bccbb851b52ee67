//! What is built in, as tables for people (`pubmark list`) and as pages (`docs/reference`): one file a table.

pub mod experiments;
pub mod links;
pub mod protocols;
pub mod systems;
pub mod workloads;
