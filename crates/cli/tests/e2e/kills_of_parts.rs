//! Further processes that are killed at random moments: the leader of an experiment, the worker of an isolated group, a
//! client program, an observer, the node that starts the system. Each call ends in time with the reason, and no process
//! continues after it.

use std::path::Path;

use crate::experiment::{assert_accounted, assert_ended_well, start_own, wait_for_runs};
use crate::kills::{LIMIT, MOMENTS, RUN, assert_says_what_was_lost, named, random_moment};
use crate::links::can_be_made;
use crate::support::bed::Bed;
use crate::support::cluster::{Cluster, ORPHANED, WORKLOAD, stop};
use crate::support::mosquitto::{self, Mosquitto};
use crate::support::place::Place;
use crate::support::processes::{children_of, family_of, signal, wait_for, with_environment_of};

/// Kills a process; false if it has ended already.
fn kill(pid: u32) -> bool {
    // SAFETY: a plain system call that touches no memory.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) == 0 }
}

/// All processes that calls in a folder started have ended.
fn assert_nothing_goes_on(place: &Place, context: &str) {
    wait_for(&format!("the end of all ({context})"), ORPHANED, || with_environment_of(&place.temporary()).is_empty());
}

#[test]
fn an_experiment_may_be_killed_at_any_moment_and_goes_on_where_it_was() {
    for _ in 0..MOMENTS {
        let place = Place::new();
        let call = start_own(&place);
        let folder = wait_for_runs(&place, 1);
        let moment = random_moment();
        let context = format!("after {moment:?}");
        std::thread::sleep(moment);
        call.signal(libc::SIGKILL);
        drop(call);
        assert_nothing_goes_on(&place, &context);
        let resumed = place.call(&["experiment", "--resume", folder.to_str().unwrap(), "--json", "--quiet"]);
        assert_ended_well(&resumed);
        let record = resumed.json();
        assert_eq!(record["status"], "complete", "{context}");
        ["builtin_scale-1", "builtin_scale-2"].iter().for_each(|cell| assert_accounted(&record, cell, 2));
    }
}

#[test]
fn a_worker_apart_may_go_at_any_moment_behind_a_link_too() {
    let links: &[&[&str]] = if can_be_made() { &[&[], &["--link", "phone={delay: 5ms}"]] } else { &[&[]] };
    for link in links {
        for _ in 0..MOMENTS - 1 {
            let place = Place::new();
            place.write("spread.yaml", WORKLOAD);
            let options = ["run", "spread.yaml", "--system", "builtin", "--isolate", "phone"];
            let run = place.start(&[&options[..], link, &RUN].concat());
            let mut workers = vec![];
            wait_for("a worker", LIMIT, || {
                workers = family_of(run.pid()).into_iter().filter(|pid| named(*pid, "worker")).collect();
                !workers.is_empty()
            });
            let moment = random_moment();
            let context = format!("{link:?} after {moment:?}");
            std::thread::sleep(moment);
            signal(workers[0], libc::SIGKILL);
            let called = run.wait();
            assert!(called.took < LIMIT, "{context}: {called:?}");
            assert_says_what_was_lost(&called, &context);
            assert_nothing_goes_on(&place, &context);
        }
    }
}

#[test]
fn a_client_program_may_be_killed_at_any_moment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let python = root.join("target/clients/paho/bin/python3");
    if !python.exists() {
        return pubmark_testing::skip("Paho is not installed (`.ci/install-clients paho`)");
    }
    let Some(broker) = Mosquitto::start("") else { return };
    let client = format!("{} {}", python.display(), root.join("clients/paho/client.py").display());
    for _ in 0..MOMENTS {
        let place = Place::new();
        place.write("spread.yaml", WORKLOAD);
        let endpoint = broker.endpoint();
        let options = ["run", "spread.yaml", "--endpoint", &endpoint, "--client", &client, "--duration", "5s"];
        let run = place.start(&[&options[..], &RUN[2..]].concat());
        let is_program = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words.contains("client.py"))
        };
        let program = || children_of(run.pid()).into_iter().find(is_program);
        let mut first = None;
        wait_for("a program", LIMIT, || {
            first = program();
            first.is_some()
        });
        let moment = random_moment();
        let context = format!("after {moment:?}");
        std::thread::sleep(moment);
        // The first process describes itself and ends; those of the run follow it.
        let mut killed = None;
        wait_for("a program to kill", LIMIT, || {
            killed = program().filter(|pid| kill(*pid));
            killed.is_some()
        });
        let called = run.wait();
        assert!(called.took < LIMIT, "{context}: {called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        match serde_json::from_str::<serde_json::Value>(&called.printed) {
            Ok(record) => {
                let ended = record["connections"]["client_programs"]["ended"].to_string();
                if killed == first && ended == "null" {
                    // It had described itself and was about to end.
                    assert!(matches!(called.code(), 0 | 5), "{context}: {called:?}");
                } else {
                    assert!(matches!(called.code(), 5 | 6), "{context}: {called:?}");
                    assert!(ended.contains("signal: 9"), "{context}: {ended}");
                    assert_ne!(record["verdict"]["status"], "valid", "{context}");
                }
            }
            // Before it had described itself.
            Err(_) => assert!(called.code() == 2 && words.contains("signal: 9"), "{context}: {called:?}"),
        }
        assert_nothing_goes_on(&place, &context);
    }
}

#[test]
fn an_observer_may_be_killed_at_any_moment() {
    let Some(broker) = Mosquitto::start("") else { return };
    for _ in 0..MOMENTS {
        let cluster = Cluster::new();
        let process = broker.pid().to_string();
        let observer = cluster.node("beside", &["--observe", &process, "--once"]);
        let endpoint = broker.endpoint();
        let options = ["--endpoint", &endpoint, "--join-limit", "5s", "--duration", "5s", "--warmup", "0s"];
        let run = cluster.observed(&[&options[..], &["--json", "--quiet"]].concat());
        let moment = random_moment();
        let context = format!("after {moment:?}");
        std::thread::sleep(moment);
        observer.signal(libc::SIGKILL);
        let called = run.wait();
        assert!(called.took < LIMIT, "{context}: {called:?}");
        match serde_json::from_str::<serde_json::Value>(&called.printed) {
            // Measurements of clients are correct; the resource usage of the system is unknown.
            Ok(record) => {
                assert!(matches!(called.code(), 0 | 5), "{context}: {called:?}");
                let (system, host) = (&record["cost"]["system"], &record["cost"]["host"]["url"]);
                assert!(system.is_null(), "{context}: {}", record["cost"]);
                assert!(host.as_str().is_some_and(|host| host.starts_with("`beside` (lost")), "{context}: {host}");
            }
            Err(_) => assert!(matches!(called.code(), 2 | 5 | 6) && !called.errors.is_empty(), "{context}: {called:?}"),
        }
        drop(observer);
        assert_nothing_goes_on(&cluster.place, &context);
    }
}

#[test]
fn a_node_with_the_system_may_be_killed_at_any_moment() {
    if !mosquitto::is_installed() {
        return;
    }
    for _ in 0..MOMENTS - 1 {
        let Some(bed) = Bed::new(3) else { return };
        let node = bed.node(1, &bed.listen, &[]);
        let host = bed.node(2, &bed.listen, &["--start-systems"]);
        let options = ["spread.yaml", "--nodes", "1", "--listen", &bed.listen, "--system", "mosquitto"];
        let times = ["--system-node", "edge-3", "--duration", "5s", "--warmup", "0s"];
        let run = bed.run(&[&options[..], &times].concat());
        wait_for("a system", LIMIT, || family_of(host.pid()).len() > 1);
        let moment = random_moment();
        let context = format!("after {moment:?}");
        std::thread::sleep(moment);
        host.signal(libc::SIGKILL);
        let called = run.wait();
        assert!(called.took < LIMIT && matches!(called.code(), 5 | 6), "{context}: {called:?}");
        assert!(format!("{called:?}").contains("edge-3"), "{context}: it is not named: {called:?}");
        drop(host);
        assert_eq!(stop(node).code(), 0, "{context}");
        assert_nothing_goes_on(&bed.cluster.place, &context);
    }
}
