//! Machines that join a run: their combined counts, the loss of one, and the refusal of others.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pubmark_conformance::ports;
use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once, count};
use crate::support::cluster::{Cluster, ORPHANED, WORKLOAD, stop, worker_of};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::{Call, Called, Place};
use crate::support::processes::{is_there, signal, wait_for};
use crate::support::schema;

/// Longest wait for a process or a file to appear or to disappear.
const LIMIT: Duration = Duration::from_secs(20);
/// A lost node is noticed within this time.
const NOTICED: Duration = Duration::from_secs(3);

/// The output without line breaks.
fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn nodes_with_wrong_clocks_count_what_one_process_counts() {
    let cluster = Cluster::new();
    let times = ["--duration", "4s", "--warmup", "2s", "--seed", "11", "--json"];
    let one = cluster.place.record(&[&["spread.yaml"][..], &times[..6]].concat());
    let nodes = [("edge-1", "3600000000000,60"), ("edge-2", "-5000000000,-90")]
        .map(|(name, error)| cluster.node(name, &["--clock-error", error]));
    let called = cluster.run(2, &times).wait();
    // Complaints of workers are in the output of their nodes.
    for node in nodes {
        let called = stop(node);
        assert_eq!(called.code(), 0, "{called:?}");
        assert!(called.errors.contains("the run has ended"), "{called:?}");
    }
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    assert_delivered_once(&record);
    schema::assert_agrees(&record);
    for name in ["offered", "skipped_planned", "sent", "expected", "delivered"] {
        assert_count_eq!(count(&record, name), count(&one, name), "{name}: {}", record["tables"]["nodes"]);
    }
    for node in record["tables"]["nodes"].as_array().unwrap() {
        let clock = &node["clock"];
        let [bound, error] = ["bound_us", "true_error_us"].map(|name| clock[name].as_f64().unwrap());
        assert!(error <= bound && bound < 5_000.0, "{clock}");
        let measuring = node["control"]["while_measuring"].as_u64().unwrap();
        assert!((1..20_000).contains(&measuring), "{node}");
        assert!(node["generator"]["cpu_seconds"].as_f64() > Some(0.0) && node["lost"].is_null(), "{node}");
    }
    let bounds: Vec<f64> = record["tables"]["by_pair"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|pair| pair["clock_bound_us"].as_f64())
        .collect();
    assert_count_eq!((bounds.len(), bounds.iter().filter(|bound| **bound == 0.0).count()), (4, 2), "{bounds:?}");
}

/// Whether a run has measured for a second.
fn is_measuring(event: &Value) -> bool {
    event["phase"] == "measure" && event["elapsed_s"].as_f64() >= Some(1.0)
}

/// Sends a signal to one of two nodes after an event of a run, and checks the record.
fn lose_a_node(options: &[&str], is_time: impl Fn(&Value) -> bool, by: libc::c_int) -> (Value, Duration) {
    let cluster = Cluster::new();
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let run = cluster.run_with_events(2, &[options, &["--warmup", "0s", "--json", "--quiet"]].concat());
    let workers = [&nodes[0], &nodes[1]].map(worker_of);
    cluster.place.wait_for_event("the time to lose a node", is_time);
    let began = Instant::now();
    nodes[1].signal(by);
    let called = run.wait();
    let noticed = began.elapsed();
    assert_eq!(called.code(), 5, "{called:?}");
    for worker in workers {
        wait_for("the end of a worker", ORPHANED, || !is_there(worker));
    }
    if by == libc::SIGSTOP {
        nodes[1].signal(libc::SIGCONT);
    }
    let record = called.json();
    schema::assert_agrees(&record);
    let lost = |node: usize| record["tables"]["nodes"][node]["lost"].as_str().map(str::to_owned);
    assert!(lost(0).is_none() && lost(1).is_some(), "{}", record["tables"]["nodes"]);
    let checks = record["verdict"]["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["code"] == "V21").unwrap();
    assert_eq!(check["status"], "invalid", "{check}");
    (record, noticed)
}

#[test]
fn a_killed_node_ends_the_run_and_the_figures_of_the_others_remain() {
    let (record, noticed) = lose_a_node(&["--duration", "60s"], is_measuring, libc::SIGKILL);
    assert!(noticed < NOTICED, "{noticed:?}");
    assert!(count(&record, "offered") > 100, "{}", record["delivery"]);
}

#[test]
fn a_node_that_is_frozen_is_noticed_and_its_worker_ends() {
    let (record, noticed) = lose_a_node(&["--duration", "60s"], is_measuring, libc::SIGSTOP);
    assert!(noticed < NOTICED + Duration::from_secs(1), "{noticed:?}");
    let why = record["tables"]["nodes"][1]["lost"].as_str().unwrap();
    assert!(why.contains("silent"), "{why}");
}

#[test]
fn a_node_that_is_killed_while_it_connects_ends_the_run() {
    // Accepts connections and never responds.
    let mute = ports::listen();
    let endpoint = format!("mqtt://{}", mute.local_addr().unwrap());
    let connects = |event: &Value| event["phase"] == "subscribe";
    let (record, noticed) = lose_a_node(&["--duration", "60s", "--endpoint", &endpoint], connects, libc::SIGKILL);
    assert!(noticed < NOTICED, "{noticed:?}");
    assert_count_eq!(count(&record, "offered"), 0);
}

#[test]
fn a_node_that_stays_away_after_a_repetition_is_lost_and_no_error_of_the_call() {
    let cluster = Cluster::new();
    let [stays, goes] = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let options = ["--repeat", "2", "--duration", "60s", "--warmup", "0s", "--join-limit", "4s"];
    let run = cluster.run_with_events(2, &options);
    cluster.place.wait_for_event("the first repetition", is_measuring);
    goes.signal(libc::SIGKILL);
    let called = run.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    assert!(words(&called).contains("1 of 2 nodes joined within 4 s (edge-1)"), "{called:?}");
    assert_count_eq!(cluster.place.runs().len(), 1, "the second was not begun");
    assert_eq!(stop(stays).code(), 0);
}

#[test]
fn a_node_that_is_killed_during_the_drain_of_others_ends_the_run() {
    // Messages that were written into lost connections never arrive, so that the run waits as long as a client may need
    // to reconnect.
    let options = ["--duration", "1s", "--drain", "60s", "--fault", "cut:at=300ms,for=500ms,group=phone"];
    let (record, noticed) = lose_a_node(&options, |event| event["phase"] == "drain", libc::SIGKILL);
    assert!(noticed < NOTICED, "{noticed:?}");
    assert!(count(&record, "offered") > 100, "{}", record["delivery"]);
}

/// Sends a signal to the coordinator while its nodes publish: they stop.
fn lose_the_coordinator(by: libc::c_int) {
    let cluster = Cluster::new();
    let node = cluster.node("edge", &["--once"]);
    let run = cluster.run_with_events(1, &["--duration", "60s", "--warmup", "0s", "--quiet"]);
    let worker = worker_of(&node);
    cluster.place.wait_for_event("the load", is_measuring);
    signal(run.pid(), by);
    wait_for("the end of a worker", ORPHANED, || !is_there(worker));
    let called = node.wait();
    assert!(called.code() == 0 && called.errors.contains("left: "), "{called:?}");
    if by == libc::SIGSTOP {
        run.signal(libc::SIGCONT);
    }
}

#[test]
fn nodes_of_a_coordinator_that_is_killed_stop() {
    lose_the_coordinator(libc::SIGKILL);
}

#[test]
fn nodes_of_a_coordinator_that_is_frozen_stop() {
    lose_the_coordinator(libc::SIGSTOP);
}

#[test]
fn an_interrupted_run_ends_its_workers_and_its_nodes_wait_for_the_next() {
    let cluster = Cluster::new();
    let node = cluster.node("edge", &[]);
    for _ in 0..2 {
        let run = cluster.run_with_events(1, &["--duration", "60s", "--warmup", "0s", "--json", "--quiet"]);
        let worker = worker_of(&node);
        cluster.place.wait_for_event("the load", is_measuring);
        run.signal(libc::SIGINT);
        let called = run.wait();
        assert_eq!(called.code(), 130, "{called:?}");
        assert_closed(&called.json());
        wait_for("the end of a worker", ORPHANED, || !is_there(worker));
    }
    assert_eq!(stop(node).code(), 0);
}

#[test]
fn strangers_are_refused_and_both_sides_say_why() {
    let cluster = Cluster::new();
    assert_eq!(cluster.place.call(&["cluster", "init", "other"]).code(), 0);
    let run = cluster.run(2, &["--join-limit", "4s"]);
    let mut twins = [(); 2].map(|()| cluster.node("edge", &[]));
    // One of them joins, the other is refused.
    wait_for("a refusal", LIMIT, || twins.iter_mut().any(Call::has_ended));
    let [mut first, mut second] = twins;
    if first.has_ended() {
        std::mem::swap(&mut first, &mut second);
    }
    let refused = second.wait();
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(words(&refused).contains("there is a node `edge` already"), "{refused:?}");
    let token = cluster.node("b", &["--token", "wrong"]).wait();
    assert!(token.code() == 2 && words(&token).contains("its token is not this cluster's"), "{token:?}");
    let other = cluster.node("c", &["--credentials", "other/node"]).wait();
    assert!(other.code() == 2 && words(&other).contains("of another cluster"), "{other:?}");
    let mut stranger = TcpStream::connect(cluster.listen).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // Whatever it responds, it closes the connection.
    let _ = stranger.read_to_end(&mut vec![]);
    let missing = run.wait();
    assert_eq!(missing.code(), 2, "{missing:?}");
    let words = words(&missing);
    for said in [
        "1 of 2 nodes joined within 4 s (edge)",
        "its token is not this cluster's",
        "there is a node `edge` already",
        "it does not speak TLS",
        "does not trust this coordinator's certificate",
        "pubmark node --join",
    ] {
        assert!(words.contains(said), "`{said}` is not in {words}");
    }
    assert!(cluster.place.runs().is_empty(), "nothing was run");
    assert_eq!(stop(first).code(), 0);
}

#[test]
fn impossible_runs_are_refused_without_a_wait() {
    let place = Place::new();
    place.write("spread.yaml", WORKLOAD);
    let none = place.call(&["run", "spread.yaml", "--nodes", "2"]);
    assert!(none.code() == 2 && none.errors.contains("pubmark cluster init"), "{none:?}");
    let join = place.call(&["node", "--join", "somewhere"]);
    assert!(join.code() == 2 && join.errors.contains("`somewhere:7700`"), "{join:?}");
    assert_eq!(place.call(&["cluster", "init"]).code(), 0);
    let taken = ports::listen();
    let listen = taken.local_addr().unwrap().to_string();
    let taken = place.call(&["run", "spread.yaml", "--nodes", "2", "--listen", &listen]);
    assert!(taken.code() == 2 && taken.errors.contains("--listen"), "{taken:?}");
}

#[test]
fn a_system_elsewhere_is_observed_where_it_runs() {
    let Some(mosquitto) = Mosquitto::start("") else { return };
    let cluster = Cluster::new();
    let process = mosquitto.pid().to_string();
    let node = cluster.node("edge", &["--once"]);
    let observer = cluster.node("beside", &["--once", "--observe", &process]);
    let options = ["--observers", "1", "--duration", "3s", "--warmup", "1s", "--json", "--endpoint"];
    let called = cluster.run_with_events(1, &[&options[..], &[&mosquitto.endpoint()]].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    assert!(called.errors.contains("1 node and 1 observer"), "{called:?}");
    let record = called.json();
    assert_closed(&record);
    schema::assert_agrees(&record);
    let [system, host] = ["system", "host"].map(|side| &record["cost"][side]);
    let cpu = |usage: &Value| usage["cpu_seconds"].as_f64().unwrap();
    assert!(cpu(system) > 0.0 && cpu(system) <= mosquitto.cpu_seconds(), "{system}");
    assert!(system["peak_rss_bytes"].as_u64() > Some(1 << 20) && system["threads"] == 1, "{system}");
    assert_eq!((&host["url"], &host["failed_readings"]), (&"`beside`".into(), &0.into()), "{host}");
    // The whole machine includes the system and both sides; ticks are 10 ms long.
    assert!(host["cores"].as_f64().unwrap() + 0.05 > system["cores"].as_f64().unwrap(), "{host} {system}");
    assert_eq!(record["tables"]["nodes"].as_array().unwrap().len(), 1, "{}", record["tables"]["nodes"]);
    let series = record["tables"]["resource_series"].as_array().unwrap();
    assert!(series.iter().filter(|row| row["system_cores"].is_number()).count() > 8, "{series:?}");
    // The load was generated by the node, not by the process that led the run.
    let are_null = |row: &Value| row["generator_cores"].is_null() && row["generator_rss_bytes"].is_null();
    assert!(series.iter().all(are_null), "{series:?}");
    let mut progress = cluster.place.events();
    progress.retain(|event| event["event"] == "progress");
    assert!(!progress.is_empty() && progress.iter().all(|line| line["generator"].is_null()), "{progress:?}");
    for node in [node, observer] {
        assert_eq!(node.wait().code(), 0);
    }
}

#[test]
fn an_observer_that_finds_nothing_to_look_at_says_so_before_the_run() {
    let cluster = Cluster::new();
    let observer = cluster.node("beside", &["--once", "--observe", "no-such-system"]);
    // Nothing listens there either, which would be noticed later.
    let endpoint = format!("mqtt://{}", ports::free());
    let run = cluster.observed(&["--endpoint", &endpoint, "--duration", "1s"]).wait();
    assert_eq!(run.code(), 6, "{run:?}");
    assert!(
        words(&run).contains("`beside` cannot observe the system: there is no process `no-such-system`"),
        "{run:?}"
    );
    assert_eq!(observer.wait().code(), 0);
    let nobody = cluster.place.call(&["run", "spread.yaml", "--join-limit", "1s"]);
    assert!(nobody.code() == 2 && nobody.errors.contains("--observers"), "{nobody:?}");
}
