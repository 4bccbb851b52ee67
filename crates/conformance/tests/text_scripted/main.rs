//! The clients of text protocols against a server with behaviour that is rare or impossible in real ones.

#![allow(clippy::unwrap_used)]

mod jetstream;
mod jetstream_refusals;
mod nats;
mod redis;
mod redis_lists;
mod redis_streams;
mod script;
