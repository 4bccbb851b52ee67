//! `pubmark check` in continuous integration: its output, its exit code, its files.
//!
//! `folders` makes runs and experiments of the made-up record; one test makes a real run.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[allow(dead_code, reason = "shared with the tests of the surface, which need all of it")]
#[path = "../surface/call.rs"]
mod call;
mod experiments;
mod folders;
mod junit;
mod runs;
