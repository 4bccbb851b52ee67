//! The suite that every adapter passes, against real servers.
//!
//! The table of cases is [`cases::all`]; a test gives [`cases::run_all`] an adapter and a [`server::Server`]. What cannot be run
//! is a skip with its reason. An adapter is driven through [`peer::Peer`], which keeps every event.

// A failed expectation is what a suite is for; the binary never links this crate.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

pub mod artemis;
pub mod cases;
pub mod certificates;
pub mod dds;
pub mod mosquitto;
pub mod nats;
pub mod peer;
pub mod ports;
pub mod processes;
pub mod rabbitmq;
pub mod recorder;
pub mod redis;
pub mod server;
pub mod zeromq;
