//! The MQTT clients against a server with behaviour that is rare or impossible in real ones.

#![allow(clippy::unwrap_used)]

mod earlier_runs;
mod hostile;
mod incoming;
mod opening;
mod options;
mod outgoing;
mod requests;
mod script;
mod tls;
mod websocket;
