//! Worker processes that are killed or frozen during a run: it is noticed, the record is written and states it, the
//! measurements of the others are stored, and nothing is left.

use std::time::{Duration, Instant};

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::cluster::{Cluster, WORKLOAD, stop, worker_of};
use crate::support::place::{Call, Place};
use crate::support::processes::{children_of, family_of, is_there, signal, wait_for};
use crate::support::schema;

/// Longest wait for a process or a file to appear or to disappear.
const LIMIT: Duration = Duration::from_secs(20);
/// A frozen worker is noticed after 3 s; on a busy machine the record needs time, too.
const NOTICED: Duration = Duration::from_secs(9);
/// Times of runs that end because a worker ends.
const RUN: [&str; 6] = ["--duration", "60s", "--warmup", "0s", "--json", "--quiet"];

fn place() -> Place {
    let place = Place::new();
    place.write("spread.yaml", WORKLOAD);
    place
}

/// Whether it is a process of pubmark for this verb.
fn does(pid: u32, verb: &[u8]) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(verb)
}

/// The worker processes of a run, in the order in which they were started.
fn workers(run: &Call, count: usize) -> Vec<u32> {
    let mut found = vec![];
    wait_for("workers", LIMIT, || {
        found = children_of(run.pid()).into_iter().filter(|pid| does(*pid, b"worker")).collect();
        found.len() == count
    });
    found.sort_unstable();
    found
}

fn check<'a>(record: &'a Value, code: &str) -> &'a Value {
    let checks = record["verdict"]["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["code"] == code).unwrap_or_else(|| panic!("no {code} in {checks:?}"))
}

/// When each phase of a run began, and when its folder was written: they show what took long.
fn times(place: &Place) -> Vec<Value> {
    place.events().into_iter().filter(|event| matches!(event["event"].as_str(), Some("phase" | "ends"))).collect()
}

/// Waits for the end of a run that lost one of its workers; returns its record.
fn invalid(place: &Place, run: Call, began: Instant, workers: &[u32]) -> Value {
    let called = run.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    let took = began.elapsed();
    assert!(took < NOTICED, "{took:?}: {:?}: {called:?}", times(place));
    for worker in workers {
        wait_for("the end of a worker", Duration::from_secs(2), || !is_there(*worker));
    }
    let record = called.json();
    schema::assert_agrees(&record);
    let check = check(&record, "V21");
    assert_eq!(check["status"], "invalid", "{check}");
    record
}

#[test]
fn a_frozen_or_killed_worker_makes_the_run_invalid_and_the_figures_of_the_others_remain() {
    let place = place();
    for (options, count, by, words) in [
        (["--local-nodes", "3"], 3, libc::SIGSTOP, "silent for 3 s"),
        (["--local-nodes", "3"], 3, libc::SIGKILL, "signal: 9"),
        (["--isolate", "phone"], 1, libc::SIGSTOP, "silent for 3 s"),
        (["--isolate", "phone"], 1, libc::SIGKILL, "signal: 9"),
    ] {
        let arguments = [&["run", "spread.yaml", "--system", "builtin"], &options[..], &RUN].concat();
        let run = place.start_with_events(&arguments);
        let workers = workers(&run, count);
        place.wait_until_measured(2.0);
        let began = Instant::now();
        signal(workers[count - 1], by);
        let record = invalid(&place, run, began, &workers);
        let finding = check(&record, "V21")["text"].as_str().unwrap();
        let lost = if count > 1 { "local 3" } else { "`phone`" };
        assert!(finding.contains(words) && finding.contains(lost), "{finding}");
        for name in ["offered", "delivered"] {
            assert!(record["delivery"][name].as_u64() > Some(100), "{options:?}: {}", record["delivery"]);
        }
    }
}

#[test]
fn a_worker_that_freezes_before_anything_is_measured_ends_the_run_too() {
    let place = place();
    let run = place.start(&[&["run", "spread.yaml", "--system", "builtin", "--local-nodes", "2"], &RUN[..]].concat());
    let workers = workers(&run, 2);
    signal(workers[0], libc::SIGSTOP);
    let called = run.wait();
    // It is given 10 s to begin.
    assert!(called.code() == 5 && called.took < Duration::from_secs(19), "{called:?}");
    assert_eq!(check(&called.json(), "V21")["status"], "invalid");
    wait_for("the end of workers", Duration::from_secs(2), || !workers.iter().any(|worker| is_there(*worker)));
}

#[test]
fn an_interruption_works_while_a_worker_is_frozen_and_a_killed_run_leaves_no_process() {
    let place = place();
    for how in [libc::SIGINT, libc::SIGKILL] {
        let words = [&["run", "spread.yaml", "--system", "builtin", "--local-nodes", "3"], &RUN[..]].concat();
        let run = place.start_with_events(&words);
        let workers = workers(&run, 3);
        place.wait_until_measured(1.0);
        signal(workers[1], libc::SIGSTOP);
        run.signal(how);
        let called = run.wait();
        assert!(called.took < NOTICED, "{called:?}");
        wait_for("the end of workers", Duration::from_secs(2), || !workers.iter().any(|worker| is_there(*worker)));
        if how == libc::SIGINT {
            assert_eq!(called.json()["run"]["status"], "interrupted");
        }
    }
}

#[test]
fn a_node_whose_worker_is_frozen_ends_it_and_says_why() {
    let cluster = Cluster::new();
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let run = cluster.run_with_events(2, &RUN);
    let workers = [&nodes[0], &nodes[1]].map(worker_of);
    cluster.place.wait_until_measured(2.0);
    let began = Instant::now();
    signal(workers[1], libc::SIGSTOP);
    let record = invalid(&cluster.place, run, began, &workers);
    let lost = |node: usize| record["tables"]["nodes"][node]["lost"].as_str().map(str::to_owned);
    assert_eq!(
        (lost(0), lost(1).as_deref()),
        (None, Some("its worker was silent for 3 s")),
        "{}",
        record["tables"]["nodes"]
    );
    assert!(record["delivery"]["delivered"].as_u64() > Some(100), "{}", record["delivery"]);
    // The node serves the next run.
    let again = cluster.run(2, &["--duration", "1s", "--warmup", "0s", "--json", "--quiet"]).wait();
    assert_eq!(check(&again.json(), "V21")["status"], "valid", "{again:?}");
    for node in nodes {
        assert_eq!(stop(node).code(), 0);
    }
}

/// A run of two workers whose clients are all connecting, because its broker stands still; with the processes of the run.
fn connecting(place: &Place) -> (Call, Vec<u32>) {
    let options = ["--local-nodes", "2", "--system", "builtin", "--duration", "1s"];
    for _ in 0..3 {
        let run = place.start_with_events(&[&["run", "spread.yaml"], &options[..], &RUN[2..]].concat());
        workers(&run, 2);
        let all = family_of(run.pid());
        let broker = all.iter().copied().find(|pid| does(*pid, b"broker")).expect("a broker");
        signal(broker, libc::SIGSTOP);
        let mut connects = false;
        wait_for("clients that connect, or have connected", LIMIT, || {
            let events = place.events();
            connects |=
                events.iter().any(|event| event["phase"] == "subscribe" && event["elapsed_s"].as_f64() >= Some(1.0));
            connects || events.iter().any(|event| event["phase"] == "measure")
        });
        if connects {
            return (run, all);
        }
        // On a busy machine the broker may be stopped too late.
        signal(broker, libc::SIGCONT);
        run.wait();
    }
    panic!("in each of three runs all clients had connected before the broker was stopped");
}

/// As in a virtual machine whose host pauses it: time passes and nothing else happens.
#[test]
fn a_machine_that_pauses_while_clients_connect_loses_none_of_them() {
    let place = place();
    // Every attempt to connect is in progress when everything stops.
    let (run, all) = connecting(&place);
    all.iter().for_each(|pid| signal(*pid, libc::SIGSTOP));
    std::thread::sleep(Duration::from_millis(11_000));
    all.iter().for_each(|pid| signal(*pid, libc::SIGCONT));
    let called = run.wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_ne!(check(&record, "V21")["status"], "invalid", "{}", record["verdict"]);
    let connections = &record["connections"];
    assert_count_eq!(connections["refused"], 0, "{connections}");
}
