//! The hostile suite: servers that lie, records that are broken. In every case pubmark ends in time with one of its
//! exit codes, in bounded memory, without a panic, and judges no lie valid. A row of a table is a case.
//!
//! `PUBMARK_HOSTILE=full` runs the long form: more rounds of random bytes and of mutated records.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod amqp;
mod call;
mod case;
mod coap;
mod mqtt;
mod nats;
mod random;
mod records;
mod redis;
mod server;

/// Whether the long form is requested.
fn is_full() -> bool {
    std::env::var("PUBMARK_HOSTILE").is_ok_and(|word| word == "full")
}
