//! The hostile suite: servers that lie, records that are broken. Whatever comes, pubmark ends in
//! time with an exit code of its own, in bounded memory, without a panic, and calls no lie valid. A row of a table is a case.
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

/// Is the long form asked for?
fn is_full() -> bool {
    std::env::var("PUBMARK_HOSTILE").is_ok_and(|word| word == "full")
}
