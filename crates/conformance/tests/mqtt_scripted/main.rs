//! The MQTT clients against a server with behaviour that is rare or impossible in real ones.

#![allow(clippy::unwrap_used)]

mod hostile;
mod incoming;
mod opening;
mod options;
mod outgoing;
mod requests;
mod script;
mod websocket;
