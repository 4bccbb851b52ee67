//! AMQP 1.0 against servers with rare behaviour, or that violate the protocol on purpose.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod hostile;
mod incoming;
mod opening;
mod outgoing;
mod requests;
mod script;
