//! The systems that take seconds to start, or that `make test` does not install: RabbitMQ, Artemis, HiveMQ, the Zenoh
//! router, and several brokers as one. `make test-all` runs them: `cargo test --test slow_systems -- --ignored`.
//! A system that is not installed is skipped with a message that says how to install it.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod content;
mod encrypted;
mod faults;
mod groups;
mod leftovers;
mod levels;
mod requests;
mod several;
mod system;
mod tokens;
mod words;
