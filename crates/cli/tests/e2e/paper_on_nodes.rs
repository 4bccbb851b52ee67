//! A publication whose experiments are measured with nodes: they join once, and belong to the identity of the results.

use std::path::PathBuf;
use std::time::Duration;

use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::experiment::{journal, list};
use crate::paper::{ONE_CELL, words};
use crate::support::cluster::{Cluster, stop};
use crate::support::mosquitto;
use crate::support::place::{Called, Place};

/// What selects the cell of [`ONE_CELL`], without its times.
const SELECTION: usize = 9;
/// Times of a short run that does not wait for a quiet machine.
const SHORT: [&str; 4] = ["--duration=1s", "--warmup=0s", "--repeat=1", "--wait=0s"];
/// Longest time that a call of one run takes with all that it waits for.
const LIMIT: Duration = Duration::from_secs(60);

fn call(place: &Place, more: &[&str]) -> Called {
    place.call(&[&ONE_CELL[..SELECTION], &SHORT, more].concat())
}

fn read(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_publication_is_measured_with_nodes_that_its_record_names() {
    if !mosquitto::is_installed() {
        return;
    }
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    let joins = ["--nodes", "2", "--listen", &listen];
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    // A second experiment: nodes that joined for the first one stay.
    let two = ["--only", "combench-efficiency", "--only", "system=mosquitto,MQTT"];
    let called = call(place, &[&two[..], &joins].concat());
    // On a busy machine no run may count.
    assert!([0, 5, 6].contains(&called.code()) && called.took < LIMIT * 2, "{called:?}");
    for node in nodes {
        let called = stop(node);
        assert_count_eq!(called.errors.matches("joined 127.0.0.1").count(), 1, "for all experiments: {called:?}");
    }
    let folder = place.path().join("runs/paper-combench-quick-2-nodes");
    let record = read(folder.join("paper.json"));
    let parts = list(&record, "experiments");
    assert_eq!(parts.len(), 2, "{record}");
    for part in parts {
        assert_eq!(part["runs"]["nodes"]["nodes"], 2, "{part}");
        let own = folder.join(part["folder"].as_str().unwrap());
        let experiment = read(own.join("experiment.json"));
        assert_eq!(experiment["nodes"]["nodes"], 2, "{}", experiment["nodes"]);
        let runs = experiment["cells"].as_array().unwrap().iter().flat_map(|cell| list(cell, "runs"));
        for run in runs {
            let run = read(own.join(run["folder"].as_str().unwrap()).join("record.json"));
            assert_count_eq!(list(&run["tables"], "nodes").len(), 2, "{}", run["tables"]["nodes"]);
        }
        assert_count!(!journal(&own, "began").is_empty(), "{part}");
    }
    let page = std::fs::read_to_string(folder.join("paper.md")).unwrap();
    assert!(page.contains("; 2 nodes"), "{page}");

    // Without them, the same folder is refused: its runs would be averaged with those of another number of nodes.
    let alone = call(place, &["--out", folder.to_str().unwrap()]);
    let why = words(&alone.errors);
    assert!(alone.code() == 2 && why.contains("began on 2 machines that joined, not on this machine alone"), "{why}");
    assert!(why.contains("--nodes"), "{why}");
}

#[test]
fn a_node_that_stays_away_ends_the_call_and_what_needs_more_nodes_is_named() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    let joins = ["--nodes", "2", "--listen", &listen, "--join-limit", "1s"];
    let only =
        |experiment: &'static str| [&["paper", "psmark", "--quick", "--only", experiment][..], &SHORT, &joins].concat();
    let lacking = place.call(&only("psmark-nodes"));
    let why = words(&lacking.errors);
    assert!(lacking.code() == 2 && why.contains("the axis `nodes` asks for 8 machines"), "{why}");
    assert!(why.contains("`--nodes 8`"), "{why}");
    let plan = [&only("psmark-one-node,psmark-nodes")[..], &["--dry-run"]].concat();
    let planned = place.call(&plan);
    let why = words(&planned.errors);
    assert!(
        why.contains("not measured, the axis `nodes` asks for 8 machines") && why.contains("psmark-nodes"),
        "{why}"
    );
    if !mosquitto::is_installed() {
        return;
    }
    let node = cluster.node("edge-1", &[]);
    let missing = call(place, &joins);
    let why = words(&missing.errors);
    assert!(missing.code() == 2 && missing.took < LIMIT, "as for a run and an experiment: {missing:?}");
    assert!(why.contains("of 2 nodes joined within 1 s") && why.contains("pubmark node --join"), "{why}");
    stop(node);
}
