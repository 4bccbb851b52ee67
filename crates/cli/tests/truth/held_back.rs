//! Messages that the system holds back because the generator reads late: TCP sends no more than its window before an
//! acknowledgement, and nothing small with Nagle's algorithm. This time is the generator's, not the system's.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::intervals::{DELAY, MESSAGES, demand_truth_inside};
use crate::liar::{Liar, Truth};

/// As `LOAD` of `intervals.rs`, twice as many messages: 100 in 50 ms do not fit into TCP's window of ten small packets.
const FASTER: [&str; 10] = [
    "fan-in",
    "--set",
    "publishers=20",
    "--set",
    "rate=100/s",
    "--duration",
    "2s",
    "--warmup",
    "0s",
    "--message-log=csv",
];

/// The child process that has a thread of this name; `None` before it has one.
fn process_of(parent: u32, thread_name: &str) -> Option<i32> {
    let threads = |process: &str| -> Vec<std::path::PathBuf> {
        let folder = std::fs::read_dir(format!("/proc/{process}/task"));
        folder.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    let children = threads(&parent.to_string()).into_iter().flat_map(|thread| {
        let text = std::fs::read_to_string(thread.join("children")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let has_thread = |process: &String| {
        let names = threads(process).into_iter().map(|thread| std::fs::read_to_string(thread.join("comm")));
        names.flatten().any(|name| name.starts_with(thread_name))
    };
    children.into_iter().find(has_thread)?.parse().ok()
}

/// Stops the process of the subscriber for 50 ms, again and again, until the run has ended.
fn stop_the_subscriber(child: &mut Child) -> u32 {
    let mut stops = 0;
    while child.try_wait().unwrap().is_none() {
        if let Some(process) = process_of(child.id(), "subscriber") {
            // SAFETY: signals to a process of our own run; it may have ended meanwhile, then they fail.
            stops += u32::from(unsafe { libc::kill(process, libc::SIGSTOP) } == 0);
            thread::sleep(Duration::from_millis(50));
            // SAFETY: as above.
            unsafe { libc::kill(process, libc::SIGCONT) };
        }
        thread::sleep(Duration::from_millis(60));
    }
    stops
}

fn run_with_stops(liar: Liar, qos: &str) -> Truth {
    let mut command = liar.command(&[&FASTER[..], &["--qos", qos, "--isolate", "subscriber"]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stops = stop_the_subscriber(&mut child);
    assert!(stops >= 5, "{stops} stops");
    liar.truth(&child.wait_with_output().unwrap())
}

#[test]
fn what_waits_for_a_subscriber_that_stands_still_is_not_the_systems_time() {
    for qos in ["0", "1"] {
        demand_truth_inside(&run_with_stops(Liar::start_alone(DELAY, &[]), qos), 2 * MESSAGES);
    }
}
