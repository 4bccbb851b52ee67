//! The MQTT clients against a server that does what real ones do rarely or never.

#![allow(clippy::unwrap_used)]

mod hostile;
mod incoming;
mod opening;
mod options;
mod outgoing;
mod requests;
mod script;
mod websocket;
