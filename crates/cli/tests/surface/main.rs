//! Every text that a person reads on the command line, at 80 columns: snapshots of command, exit code and both streams.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod absent;
mod call;
mod capacity_plan;
mod choose_plan;
mod deaf;
mod help;
mod past_runs;
mod tables;
mod wrong_input;
