//! AMQP 1.0: what is written is read back, in every form that the standard allows, and no bytes break the reader.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod frames;
mod model;
mod performatives;
mod values;
