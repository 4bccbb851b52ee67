//! Complete runs with the binary, as by a user: output, files, and ways to end. Loads are small and short.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod between_protocols;
mod brokerless_dds;
mod client_programs;
mod ending;
mod fast_systems;
mod program;
mod systems;
mod transform;
