//! Offered messages are a property of the schedule, not of our punctuality: a generator that is stopped over the end of
//! its window nevertheless offers what was due.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use pubmark_testing::{assert_count, assert_count_eq};

use crate::liar::Liar;

const DEVICES: u64 = 10;
const WINDOW_MS: u64 = 3_000;

/// Established connections to a port of this machine, from `/proc/net/tcp` (state 01).
fn connected_to(port: u16) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    table
        .lines()
        .filter(|line| {
            matches!(line.split_whitespace().nth(2), Some(to) if to.ends_with(&remote))
                && line.split_whitespace().nth(3) == Some("01")
        })
        .count()
}

#[test]
fn a_generator_that_stands_still_over_the_end_offers_what_was_due() {
    let liar = Liar::start("");
    let port: u16 = liar.address.rsplit(':').next().unwrap().parse().unwrap();
    let window = format!("{WINDOW_MS}ms");
    let devices = format!("publishers={DEVICES}");
    let arguments = ["fan-in", "--set", &devices, "--set", "rate=100/s", "--duration", &window, "--warmup", "0s"];
    let child = liar.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(30);
    while connected_to(port) <= DEVICES as usize {
        assert!(Instant::now() < limit, "devices and subscriber never connected");
        thread::sleep(Duration::from_millis(5));
    }
    // The schedule begins a tenth of a second later; the stop covers the window's end.
    thread::sleep(Duration::from_millis(WINDOW_MS - 500));
    let pid = child.id() as i32;
    // SAFETY: signals to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    thread::sleep(Duration::from_millis(1_200));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
    let truth = liar.truth(&child.wait_with_output().unwrap());
    truth.demand_agreement();
    let scheduled = DEVICES * WINDOW_MS / 10;
    assert_count_eq!(truth.count("offered"), scheduled);
    assert_count_eq!(truth.record["workload"]["scheduled"], scheduled);
    assert_count_eq!(truth.count("sent") + truth.count("unsent"), scheduled);
    assert_count_eq!(truth.record["latency"]["scheduler_lag"]["count"], scheduled);
    let lag_us = truth.record["latency"]["scheduler_lag"]["max_us"].as_f64().unwrap();
    assert_count!(lag_us > 300_000.0, "the lag of what was late is kept: {lag_us} µs");
}
