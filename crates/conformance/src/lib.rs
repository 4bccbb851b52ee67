//! The test suite that every adapter must pass, run against real servers.
//!
//! The table of cases is [`cases::all`]; a test gives [`cases::run_all`] an adapter and a [`server::Server`]. A case that
//! cannot run is skipped with its reason, and one that does not end is named ([`deadline`]). An adapter is driven through
//! [`peer::Peer`], which records every event.

// A failed expectation has to panic, and no crate of the program depends on this one.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

pub mod artemis;
pub mod cases;
pub mod certificates;
pub mod dds;
pub mod deadline;
pub mod liar;
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
