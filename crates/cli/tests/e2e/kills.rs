//! Processes of a run that are killed or frozen at random moments: each call ends in time, says why, and leaves nothing behind.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pubmark_systems::{Definition, install};
use serde_json::Value;

use crate::support::cluster::{Cluster, ORPHANED, WORKLOAD, stop, worker_of};
use crate::support::place::{Called, Place};
use crate::support::processes::{children_of, is_there, signal, wait_for, with_files_in};

/// Number of random moments for each kind of process.
pub const MOMENTS: usize = 3;
/// Longest wait for a process or a file to appear or to disappear.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A random moment in the first seconds of a run.
pub fn random_moment() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    // SplitMix64's mix.
    let mixed = (now ^ (now >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    Duration::from_micros((mixed ^ (mixed >> 27)) % 2_500_000)
}

/// Whether it is a process of pubmark for this verb.
pub fn named(pid: u32, word: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(word.as_bytes())
}

/// The record states that a part is missing, or, if nothing had begun, the message does.
pub fn assert_says_what_was_lost(called: &Called, context: &str) {
    assert_eq!(called.code(), 5, "{context}: {called:?}");
    let Ok(record) = serde_json::from_str::<Value>(&called.printed) else {
        assert!(called.errors.contains("lost"), "{context}: {called:?}");
        return;
    };
    let checks = record["verdict"]["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["code"] == "V21").expect("V21");
    assert_eq!(check["status"], "invalid", "{context}: {check}");
}

/// Times of runs that end because a part of them ends.
pub const RUN: [&str; 6] = ["--duration", "60s", "--warmup", "0s", "--json", "--quiet"];

#[test]
fn a_worker_may_go_at_any_moment() {
    let place = Place::new();
    place.write("spread.yaml", WORKLOAD);
    for number in 0..2 * MOMENTS {
        let by = if number % 2 == 0 { libc::SIGKILL } else { libc::SIGSTOP };
        let run =
            place.start(&[&["run", "spread.yaml", "--system", "builtin", "--local-nodes", "2"], &RUN[..]].concat());
        let mut workers = vec![];
        wait_for("a worker", LIMIT, || {
            workers = children_of(run.pid()).into_iter().filter(|pid| named(*pid, "worker")).collect();
            !workers.is_empty()
        });
        let moment = random_moment();
        let context = format!("signal {by} after {moment:?}");
        std::thread::sleep(moment);
        signal(workers[0], by);
        let called = run.wait();
        // If it is frozen before its first heartbeat, it is given 10 s, and the others are finished first.
        assert!(called.took < LIMIT, "{context}: {called:?}");
        assert_says_what_was_lost(&called, &context);
        wait_for("the end of workers", ORPHANED, || !workers.iter().any(|worker| is_there(*worker)));
    }
}

#[test]
fn a_node_may_go_at_any_moment() {
    for by in [libc::SIGKILL, libc::SIGSTOP, libc::SIGKILL] {
        let cluster = Cluster::new();
        let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
        let run = cluster.run(2, &RUN);
        let workers = [&nodes[0], &nodes[1]].map(worker_of);
        let moment = random_moment();
        let context = format!("signal {by} after {moment:?}");
        std::thread::sleep(moment);
        nodes[1].signal(by);
        let called = run.wait();
        assert!(called.took < LIMIT, "{context}: {called:?}");
        assert_says_what_was_lost(&called, &context);
        for worker in workers {
            wait_for("the end of a worker", ORPHANED, || !is_there(worker));
        }
        if by == libc::SIGSTOP {
            nodes[1].signal(libc::SIGCONT);
        }
        let [first, _] = nodes;
        assert_eq!(stop(first).code(), 0, "{context}");
    }
}

#[test]
fn a_coordinator_may_be_killed_at_any_moment() {
    for _ in 0..MOMENTS {
        let cluster = Cluster::new();
        let node = cluster.node("edge", &["--once"]);
        let run = cluster.run(1, &["--duration", "60s", "--warmup", "0s", "--quiet"]);
        let worker = worker_of(&node);
        let moment = random_moment();
        std::thread::sleep(moment);
        run.signal(libc::SIGKILL);
        wait_for("the end of a worker", ORPHANED, || !is_there(worker));
        let called = node.wait();
        assert!(called.code() == 0 && called.took < LIMIT, "after {moment:?}: {called:?}");
    }
}

#[test]
fn a_supervisor_may_be_killed_at_any_moment() {
    if install::found(&Definition::load("mosquitto").unwrap()).is_none() {
        pubmark_testing::skip("mosquitto is not installed");
        return;
    }
    let place = Place::new();
    place.write("spread.yaml", WORKLOAD);
    for _ in 0..MOMENTS {
        let run = place.start(&[
            "run",
            "spread.yaml",
            "--system",
            "mosquitto",
            "--duration",
            "3s",
            "--warmup",
            "0s",
            "--json",
            "--quiet",
        ]);
        let mut supervisors = vec![];
        wait_for("a supervisor", LIMIT, || {
            supervisors = children_of(run.pid()).into_iter().filter(|pid| named(*pid, "supervisor")).collect();
            !supervisors.is_empty()
        });
        let moment = random_moment();
        std::thread::sleep(moment);
        signal(supervisors[0], libc::SIGKILL);
        let called = run.wait();
        // The system ended with its supervisor: it failed, before the run or during it.
        assert_eq!(called.code(), 6, "after {moment:?}: {called:?}");
        wait_for("the end of the system", ORPHANED, || with_files_in(&place.temporary()).is_empty());
    }
}
