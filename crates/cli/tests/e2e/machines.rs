//! Experiments and searches over machines that join once, and over systems that already run.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pubmark_conformance::ports;
use pubmark_testing::{assert_count, assert_count_eq};
use serde_json::Value;

use crate::experiment::{assert_accounted, assert_ended_well, cell, folder, journal, list, record, wait_for_runs};
use crate::support::cluster::{Cluster, stop};
use crate::support::mosquitto;
use crate::support::place::{Called, PUBMARK, Place};
use crate::support::processes::wait_for;

/// Longest wait for an event.
const LIMIT: Duration = Duration::from_secs(20);

/// The output without line breaks.
fn words(called: &Called) -> String {
    called.errors.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.filter(|path| !path.is_symlink()).flat_map(|path| match path.is_dir() {
        true => files_with(&path, text),
        false => {
            let bytes = std::fs::read(&path).unwrap();
            let holds = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            holds.then(|| path.display().to_string()).into_iter().collect()
        }
    });
    found.collect()
}

#[test]
fn a_system_that_is_started_is_compared_with_one_that_runs_already() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let address = ports::free();
    let broker = place.start(&["broker", "--listen", &address.to_string()]);
    wait_for("the broker", LIMIT, || TcpStream::connect(address).is_ok());
    place.write(
        "both.yaml",
        format!(
            "name: both\nworkload: hello\nduration: 1s\nwarmup: 0s\ndrain: 2s\nrepeat: 2\nquiet_machine: {{within: 0s}}\naxes:\n  \
             system: [mosquitto, {{label: ours, endpoint: 'mqtt://{address}', user: ann, password_env: WORD}}]\n"
        ),
    );
    let mut command = Command::new(PUBMARK);
    command.env("WORD", "planted-word");
    let called = place.start_by(command, &["experiment", "both.yaml", "--json", "--quiet"]).wait();
    assert_ended_well(&called);
    let record = called.json();
    for id in ["mosquitto", "ours"] {
        assert_accounted(&record, id, 2);
    }
    let has_cpu = |id: &str| {
        let figures = list(cell(&record, id), "figures");
        figures
            .iter()
            .any(|figure| figure["figure"] == "system CPU" && !list(figure, "values").iter().all(Value::is_null))
    };
    assert!(has_cpu("mosquitto") && !has_cpu("ours"), "what an endpoint took is not known: {record}");
    assert!(record["definition"].as_str().unwrap().contains(&format!("endpoint: \"mqtt://{address}\"")), "{record}");
    assert_eq!(files_with(&place.path().join("runs"), "planted-word"), Vec::<String>::new());
    stop(broker);
}

/// Two cells, of which one uses both nodes.
const GRID: &str = "name: grid\nworkload: ./spread.yaml\nduration: 1s\nwarmup: 500ms\ndrain: 3s\nrepeat: 2\n\
                    quiet_machine: {within: 0s}\naxes:\n  system: builtin\n  nodes: [1, 2]\n";

#[test]
fn an_experiment_without_an_axis_of_nodes_gets_one_of_worker_processes() {
    let place = Place::new();
    place.write(
        "plain.yaml",
        "name: plain\nworkload: hello\nduration: 1s\nwarmup: 0s\nrepeat: 1\nquiet_machine: {within: 0s}\naxes: {system: builtin}\n",
    );
    let plan = ["experiment", "plain.yaml", "--dry-run", "--local-nodes"];
    let called = place.call(&[&plan[..], &["1,2"]].concat());
    assert!(called.code() == 0 && called.printed.contains("2 nodes"), "{called:?}");
    let called = place.call(&[&plan[..], &["2", "--nodes", "2"]].concat());
    assert!(called.code() == 2 && words(&called).contains("cannot be used with"), "{called:?}");
    place.write("grid.yaml", GRID.replace("./spread.yaml", "hello"));
    let called = place.call(&["experiment", "grid.yaml", "--dry-run", "--local-nodes", "2"]);
    assert!(called.code() == 2 && words(&called).contains("has an axis `nodes` of its own: 1,2"), "{called:?}");
}

#[test]
fn nodes_join_once_and_an_interrupted_experiment_goes_on_with_them() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    place.write("grid.yaml", GRID);
    let joins = ["--nodes", "2", "--listen", &listen];
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let call = place.start(&[&["experiment", "grid.yaml"][..], &joins].concat());
    let folder = wait_for_runs(place, 1);
    call.signal(libc::SIGINT);
    let called = call.wait();
    assert_eq!(called.code(), 130, "{called:?}");
    assert!(words(&called).contains(&format!("--nodes 2 --listen {listen}")), "{called:?}");
    let resume = ["experiment", "--resume", folder.to_str().unwrap()];
    let alone = place.call(&resume);
    assert_eq!(alone.code(), 2, "{alone:?}");
    assert!(words(&alone).contains("began on 2 machines that joined, not on this machine alone"), "{alone:?}");
    let called = place.call(&[&resume[..], &joins, &["--json", "--quiet"]].concat());
    assert_ended_well(&called);
    let record = called.json();
    assert_eq!(record["status"], "complete");
    for (id, wanted) in [("builtin_nodes-1", 1), ("builtin_nodes-2", 2)] {
        assert_accounted(&record, id, 2);
        for run in list(cell(&record, id), "runs") {
            let path = folder.join(run["folder"].as_str().unwrap()).join("record.json");
            let run: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let rows = list(&run["tables"], "nodes");
            assert_count_eq!(rows.len(), wanted, "{rows:?}");
            let quiet = |row: &Value| row["control"]["while_measuring"].as_u64() < Some(20_000);
            assert_count!(rows.iter().all(|row| row["lost"].is_null() && quiet(row)), "{rows:?}");
        }
    }
    for node in nodes {
        let called = stop(node);
        assert_count_eq!(called.errors.matches("joined 127.0.0.1").count(), 2, "once for each start: {called:?}");
    }
}

#[test]
fn a_run_that_lost_a_node_is_made_again_once_the_node_is_back() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    place.write("grid.yaml", GRID.replace("nodes: [1, 2]", "nodes: 2").replace("duration: 1s", "duration: 3s"));
    let [stays, goes] = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let call = place.start_with_events(&["experiment", "grid.yaml", "--nodes", "2", "--listen", &listen]);
    wait_for("the first run", LIMIT, || place.path().join("runs/latest").exists());
    let folder = folder(place);
    // Two seconds or more of a window are left.
    wait_for("a window that has just begun", LIMIT, || {
        let last = place.events().pop();
        last.is_some_and(|event| event["phase"] == "measure" && event["elapsed_s"].as_f64() < Some(1.0))
    });
    goes.signal(libc::SIGKILL);
    wait_for("the end of the run", LIMIT, || !journal(&folder, "failed").is_empty());
    let back = cluster.node("edge-2", &[]);
    let called = call.wait();
    assert_ended_well(&called);
    assert!(called.errors.contains("`edge-2` left"), "{called:?}");
    // Beside other tests the generator may be late, too, and that is the reason in the journal.
    let failed = &journal(&folder, "failed")[0];
    let path = folder.join(failed["folder"].as_str().unwrap()).join("record.json");
    let run: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let lost = list(&run["verdict"], "reasons").iter().find(|reason| reason["code"] == "V21");
    assert!(lost.is_some_and(|reason| reason["text"].as_str().unwrap().contains("edge-2")), "{failed}");
    let found = record(&folder);
    assert_eq!(found["status"], "complete");
    assert_accounted(&found, "builtin", 2);
    [stays, back].into_iter().for_each(|node| drop(stop(node)));
}

#[test]
fn a_search_over_two_nodes_finds_what_a_slow_broker_carries() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    let address = ports::free();
    // Its capacity is known.
    let broker = place.start(&["broker", "--listen", &address.to_string(), "--at-most", "2000"]);
    wait_for("the broker", LIMIT, || TcpStream::connect(address).is_ok());
    let nodes = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let endpoint = format!("mqtt://{address}");
    let search = ["capacity", "pairs", "--endpoint", &endpoint, "--nodes", "2", "--listen", &listen];
    let short = ["--duration", "1s", "--warmup", "500ms", "--precision", "20", "--within", "40s", "--json", "--quiet"];
    let called = place.call(&[&search[..], &short].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let found = called.json();
    let trials = list(&found, "trials");
    assert_count!(trials.len() > 2, "{trials:?}");
    let holds = found["result"]["holds_per_s"].as_f64();
    match called.code() {
        // pubmark was late at every load on this machine.
        5 => assert_eq!(holds, None, "{}", found["result"]),
        _ => assert!(holds.is_some_and(|holds| (200.0..2_400.0).contains(&holds)), "{}", found["result"]),
    }
    for node in nodes {
        let called = stop(node);
        assert_count_eq!(called.errors.matches("joined 127.0.0.1").count(), 1, "for all trials: {called:?}");
    }
    stop(broker);
}

#[test]
fn a_search_whose_node_stays_away_tells_what_was_measured_before() {
    let cluster = Cluster::new();
    let (place, listen) = (&cluster.place, cluster.listen.to_string());
    let address = ports::free();
    let broker = place.start(&["broker", "--listen", &address.to_string()]);
    wait_for("the broker", LIMIT, || TcpStream::connect(address).is_ok());
    let [stays, goes] = ["edge-1", "edge-2"].map(|name| cluster.node(name, &[]));
    let endpoint = format!("mqtt://{address}");
    let search = ["capacity", "pairs", "--endpoint", &endpoint, "--nodes", "2", "--listen", &listen];
    let short = ["--join-limit", "10s", "--duration", "1s", "--warmup", "500ms", "--quiet"];
    let call = place.start_with_events(&[&search[..], &short].concat());
    place.wait_for_event("the second trial", |event| event["event"] == "trial-begins" && event["number"] == 2);
    goes.signal(libc::SIGKILL);
    let called = call.wait();
    assert_eq!(called.code(), 5, "{called:?}");
    assert!(words(&called).contains("pubmark node --join"), "{called:?}");
    let text = std::fs::read_to_string(folder(place).join("capacity.json")).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["status"], "interrupted");
    assert!(!list(&found, "trials").is_empty(), "{found}");
    let caution = found["cautions"][0].as_str().expect("a caution");
    assert!(caution.starts_with("an error ended the search before its answer was known: "), "{caution}");
    drop(goes);
    [stays, broker].into_iter().for_each(|call| drop(stop(call)));
}
