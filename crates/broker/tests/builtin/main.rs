//! The built-in broker against mosquitto's clients and against packets of our own.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod client;
mod server;
mod tokens;
mod with_mosquitto;
mod with_packets;
