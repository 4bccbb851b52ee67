//! A run inside another program: `cargo run -p pubmark-runner --example embed -- PUBMARK`, where PUBMARK is the `pubmark` program.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example that prints")]

use std::time::Duration;

use pubmark_runner::{Host, Phase, RunError, RunObserver, RunSpec};

struct Phases;

impl RunObserver for Phases {
    fn phase(&mut self, phase: Phase) {
        eprintln!("{phase:?}");
    }
}

fn main() -> Result<(), RunError> {
    let program = std::env::args().nth(1).unwrap_or_else(|| "pubmark".to_owned());
    let mut spec = RunSpec::new("smart-home");
    spec.window.warmup = Duration::from_secs(1);
    spec.window.duration = Duration::from_secs(8);

    let outcome = spec.prepare(&Host::with_program(program))?.run(&mut Phases)?;

    let record = &outcome.record;
    match record.latency.total.as_ref().and_then(|latency| latency.upper.p99) {
        Some(p99) => println!("p99 {:.3} ms of {} deliveries", p99 / 1e3, record.delivery.messages.delivered),
        None => println!("p99 — : {} deliveries are too few", record.delivery.messages.delivered),
    }
    println!("{:?}", record.verdict.status);
    Ok(())
}
