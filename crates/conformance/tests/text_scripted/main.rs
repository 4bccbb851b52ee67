//! The clients of text protocols against a server that does what real ones do rarely or never.

#![allow(clippy::unwrap_used)]

mod nats;
mod redis;
mod script;
