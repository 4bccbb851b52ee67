//! The lying broker: each lie, what subscribers see of it, and what the journal lets an independent program work out.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "../builtin/client.rs"]
mod client;
mod connections;
mod messages;
mod process;
mod stage;
mod times;
