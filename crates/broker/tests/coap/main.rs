//! The CoAP broker, datagram by datagram.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod client;
mod publishing;
mod subscribing;
