//! The lying broker: each lie, its effect on subscribers, and what an independent program can compute from the journal.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "../builtin/client.rs"]
mod client;
mod connections;
mod messages;
mod process;
mod stage;
mod times;
