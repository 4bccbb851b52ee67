//! AMQP 0-9-1 clients against a server that does what real ones do rarely or never.

#![allow(clippy::unwrap_used)]

mod hostile;
mod incoming;
mod opening;
mod outgoing;
mod script;
mod subscribing;
