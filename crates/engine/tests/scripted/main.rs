//! Runs over clients that exist only in memory and pause when a test requires it.

#![allow(clippy::unwrap_used)]

mod clients;
mod declined;
mod late_begin;
mod unprepared;

use std::time::Duration;

use pubmark_protocol::clock;

/// Sleeps until this time, for 0.2 ms at most, as clients without a socket do. Returns the time.
fn sleep_until(until_ns: Option<u64>) -> u64 {
    let wait_ns = until_ns.map_or(200_000, |until_ns| until_ns.saturating_sub(clock::monotonic_ns()).min(200_000));
    std::thread::sleep(Duration::from_nanos(wait_ns));
    clock::monotonic_ns()
}
