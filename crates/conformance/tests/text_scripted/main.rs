//! The clients of text protocols against a server that does what real ones do rarely or never.

#![allow(clippy::unwrap_used)]

mod jetstream;
mod nats;
mod redis;
mod redis_lists;
mod redis_streams;
mod script;
