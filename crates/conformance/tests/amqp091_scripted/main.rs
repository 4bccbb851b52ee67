//! AMQP 0-9-1 clients against a server with behaviour that is rare or impossible in real ones.

#![allow(clippy::unwrap_used)]

mod hostile;
mod incoming;
mod opening;
mod outgoing;
mod script;
mod subscribing;
