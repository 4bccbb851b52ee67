//! A choice whose runs are made with nodes: they join once, for all candidates, and belong to the record.

use std::time::Duration;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::experiment::list;
use crate::support::cluster::{Cluster, stop};
use crate::support::place::Called;
use crate::support::processes::wait_for;
use crate::support::schema;

/// Runs as short as they can be.
const CALL: [&str; 15] = [
    "choose",
    "--workload",
    "hello",
    "--slo",
    "loss=0,max<1h",
    "--systems",
    "builtin",
    "--duration=1s",
    "--warmup=0s",
    "--drain=2s",
    "--no-headroom",
    "--within=40s",
    "--nodes",
    "2",
    "--json",
];
/// Longest wait for an event.
const LIMIT: Duration = Duration::from_secs(40);

/// The messages without line breaks.
fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn candidates_are_measured_with_nodes_that_the_record_names() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let called = place.call(&[&CALL[..], &["--listen", &listen]].concat());
    let choice = called.json();
    schema::assert_choice_agrees(&choice);
    let state = choice["candidates"][0]["state"]["state"].as_str().unwrap();
    // On a busy machine it is possible that no run counts.
    let expected = match state {
        "qualifies" => 0,
        "undecided" => 8,
        wrong => panic!("{wrong}: {choice}"),
    };
    assert_eq!(called.code(), expected, "{called:?}");
    assert_eq!((&choice["requirements"]["nodes"], &choice["nodes"]["nodes"]), (&2.into(), &2.into()), "{choice}");
    let folder = std::fs::canonicalize(place.path().join("runs/latest")).unwrap();
    let folders = choice["candidates"][0]["runs"].as_array().unwrap().iter().filter_map(|run| run["folder"].as_str());
    for run in folders {
        let text = std::fs::read_to_string(folder.join(run).join("record.json")).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        assert_count_eq!(list(&record["tables"], "nodes").len(), 2, "{}", record["tables"]["nodes"]);
    }
    let page = std::fs::read_to_string(folder.join("choice.md")).unwrap();
    assert!(page.contains(", 2 nodes") && page.contains("; with 2 nodes on 1 × ("), "{page}");
    for node in nodes {
        let called = stop(node);
        assert_count_eq!(called.errors.matches("joined 127.0.0.1").count(), 1, "for all candidates: {called:?}");
    }
}

#[test]
fn a_node_that_stays_away_ends_the_call_before_anything_is_run() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    let node = cluster.node("edge-1", &[]);
    let missing = place.call(&[&CALL[..], &["--listen", &listen, "--join-limit", "1s"]].concat());
    let why = words(&missing);
    assert!(missing.code() == 2 && missing.took < LIMIT, "as for a run and an experiment: {missing:?}");
    assert!(why.contains("of 2 nodes joined within 1 s") && why.contains("pubmark node --join"), "{why}");
    assert!(!place.path().join("runs").exists(), "nothing was run");
    let both = place.call(&[&CALL[..], &["--local-nodes", "2"]].concat());
    assert!(both.code() == 2 && words(&both).contains("cannot be used with"), "{both:?}");
    stop(node);
}

#[test]
fn a_node_that_is_lost_and_stays_away_makes_the_choice_invalid() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let call = place.start(&[&CALL[..], &["--listen", &listen, "--join-limit", "4s"]].concat());
    wait_for("the folder of the choice", LIMIT, || place.path().join("runs").exists());
    let [stays, goes] = nodes;
    goes.signal(libc::SIGKILL);
    let called = call.wait();
    // A choice needs several runs.
    assert_eq!(called.code(), 5, "{called:?}");
    let why = words(&called);
    assert!(why.contains("1 of 2 nodes joined within 4 s (edge-1)"), "{why}");
    assert!(why.contains("start the nodes again; the same call goes on"), "{why}");
    stop(stays);
}
