//! A run inside another program: `cargo run -p pubmark-runner --example embed -- PUBMARK`, where PUBMARK is the `pubmark` program.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example that prints")]

use std::time::Duration;

use pubmark_runner::{Host, Phase, RunError, RunObserver, RunProgress, RunSpec};

/// Prints each phase, and the median of the last seconds.
struct Watcher;

impl RunObserver for Watcher {
    fn phase(&mut self, phase: Phase) {
        eprintln!("{phase:?}");
    }

    fn progress(&mut self, progress: &RunProgress) {
        if let Some(p50) = progress.latency.and_then(|latency| latency.p50) {
            eprintln!("p50 between {} and {} ns, of the last {} s", p50.lower_ns, p50.upper_ns, p50.over_s);
        }
    }
}

fn main() -> Result<(), RunError> {
    let program = std::env::args().nth(1).unwrap_or_else(|| "pubmark".to_owned());
    let mut spec = RunSpec::new("smart-home");
    spec.window.warmup = Duration::from_secs(1);
    spec.window.duration = Duration::from_secs(8);

    let record = spec.prepare(&Host::with_program(program))?.run(&mut Watcher)?.record;

    match record.latency.total.as_ref().and_then(|latency| latency.upper.p99) {
        Some(p99) => println!("p99 {:.3} ms of {} deliveries", p99 / 1e3, record.delivery.messages.delivered),
        None => println!("p99 — : {} deliveries are too few", record.delivery.messages.delivered),
    }
    println!("{:?}", record.verdict.status);
    Ok(())
}
