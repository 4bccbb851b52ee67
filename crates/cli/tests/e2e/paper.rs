//! A publication, repeated: one call, the same call again, and the published values beside the measured ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::experiment::{journal, list};
use crate::support::mosquitto;
use crate::support::place::{Called, PUBMARK, Place};
use crate::support::processes::wait_for;

/// One cell of ComBench's figure 5: 200 B at QoS 0, of which only bytes are judged. It does not wait for a quiet
/// machine.
pub const ONE_CELL: [&str; 14] = [
    "paper",
    "combench",
    "--quick",
    "--only",
    "combench-efficiency-qos",
    "--only",
    "payload=200B",
    "--only",
    "qos=0",
    "--duration",
    "2s",
    "--warmup",
    "0s",
    "--wait=0s",
];
/// Longest wait for a run's record.
const LIMIT: Duration = Duration::from_secs(40);

fn call(place: &Place, more: &[&str]) -> Called {
    place.call(&[&ONE_CELL, more].concat())
}

fn record(place: &Place) -> Value {
    let path = place.path().join("runs/paper-combench-quick/paper.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The folder of the one experiment.
fn experiment(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.map(|entry| entry.unwrap().path()).find(|path| path.is_dir() && !path.is_symlink())
}

/// A text without its line breaks.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_printed_value_stands_beside_ours_and_nothing_is_made_twice() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let first = call(&place, &["--repeat", "2"]);
    assert_eq!(first.code(), 0, "{first:?}");
    assert!(words(&first.printed).contains("1 of 1 cell measured"), "{}", first.printed);
    let found = record(&place);
    assert_eq!(found["status"], "complete");
    // The other tables are of experiments that were not selected.
    assert_eq!(list(&found, "tables").len(), 1, "{found}");
    let cell = &found["tables"][0]["cells"][0];
    assert_eq!((&cell["row"][0], &cell["column"][0]), (&Value::from("200B"), &Value::from("0")));
    assert_eq!(cell["printed"], 0.7256);
    let here = cell["measured"]["mean"].as_f64().unwrap();
    assert!((0.71..0.74).contains(&here), "ComBench's 200 B are 72.56 % of what was sent, here {here}");
    // On a busy machine one of the two may not count.
    assert!(cell["measured"]["runs"].as_u64() >= Some(1), "{cell}");
    assert!(list(&found, "statements").is_empty(), "QoS 2 was not measured: {found}");

    let folder = experiment(&place.path().join("runs/paper-combench-quick")).unwrap();
    let before = journal(&folder, "began");
    let again = call(&place, &["--repeat", "2"]);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(journal(&folder, "began"), before, "a run was made again");
    assert_eq!(record(&place)["tables"], found["tables"]);
    let machine = |record: &Value| record["experiments"][0]["runs"]["environment"].clone();
    assert_eq!(machine(&record(&place)), machine(&found), "the load of now is not that of the runs");

    // Other repetitions would be averaged with these.
    let other = call(&place, &["--repeat", "3"]);
    assert_eq!(other.code(), 2, "{other:?}");
    let why = words(&other.errors);
    assert!(why.contains("was begun with other repetitions") && why.contains("--out"), "{why}");

    // The page is made only from the record.
    let made = place.call(&["report", "runs/paper-combench-quick/paper.json", "--out", "again"]);
    assert_eq!(made.code(), 0, "{made:?}");
    let page = |folder: &str| std::fs::read_to_string(place.path().join(folder).join("paper.md")).unwrap();
    assert_eq!(page("again"), page("runs/paper-combench-quick"));
    assert!(page("again").contains("(printed 72.56"), "{}", page("again"));

    // Another experiment in the same folder, after the runs of the first were removed: its results are retained.
    std::fs::remove_dir_all(&folder).unwrap();
    let other = [
        &[
            "paper",
            "combench",
            "--quick",
            "--only",
            "combench-efficiency",
            "--only",
            "payload=200B",
            "--only",
            "system=MQTT",
        ],
        &ONE_CELL[9..],
        &["--repeat", "1"],
    ];
    let called = place.call(&other.concat());
    assert_eq!(called.code(), 0, "{called:?}");
    let both = record(&place);
    assert_eq!(list(&both, "tables").len(), 2, "{both}");
    assert_eq!(both["tables"][0]["experiment"], "combench-efficiency", "in the order of the publication");
    assert_eq!(both["tables"][1], found["tables"][0]);
    assert!(both["experiments"][1]["folder"].is_null() && both["experiments"][1]["runs"].is_object(), "{both}");
}

#[test]
fn the_same_call_goes_on_after_ctrl_c() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let options = [&ONE_CELL[..], &["--repeat", "2"]].concat();
    let under_way = place.start(&options);
    let folder = place.path().join("runs/paper-combench-quick");
    let has_a_run = || experiment(&folder).is_some_and(|found| !journal(&found, "counted").is_empty());
    wait_for("the first run", LIMIT, has_a_run);
    under_way.signal(libc::SIGINT);
    let stopped = under_way.wait();
    assert_eq!(stopped.code(), 130, "{stopped:?}");
    assert_eq!(record(&place)["status"], "interrupted");
    let went_on = place.call(&options);
    assert_eq!(went_on.code(), 0, "{went_on:?}");
    assert!(went_on.errors.contains("combench-efficiency-qos goes on"), "{}", went_on.errors);
    let found = record(&place);
    assert_eq!(found["status"], "complete");
    assert!(found["tables"][0]["cells"][0]["measured"]["runs"].as_u64() >= Some(1), "{found}");
}

#[test]
fn what_is_not_installed_is_named_and_left_out() {
    let place = Place::new();
    let mut command = Command::new(PUBMARK);
    // A home directory without installed systems.
    command.env("HOME", place.path()).env_remove("XDG_DATA_HOME");
    let called = place.start_by(command, &["paper", "edge", "--quick", "--only", "system=hivemq"]).wait();
    assert_eq!(called.code(), 6, "{called:?}");
    let path = place.path().join("runs/paper-edge-quick/paper.json");
    let found: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(found["status"], "complete", "nothing is missing that could be made here: {found}");
    for part in list(&found, "experiments") {
        assert!(part["reason"].as_str().unwrap().contains("hivemq is not installed"), "{part}");
    }
    let cells = list(&found, "tables").iter().flat_map(|table| list(table, "cells"));
    assert!(cells.clone().all(|cell| cell["reason"] == "left out" && cell["measured"].is_null()));
    assert!(cells.filter(|cell| cell["printed"].is_number()).count() > 0, "what is printed is shown all the same");
}

/// The publications with a committed record.
const COMMITTED: [&str; 4] = ["combench", "edge", "mq-bench", "psmark"];

/// The committed records of publications, in a folder of the test.
fn committed_records(place: &Place) -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut records = vec![];
    for name in COMMITTED {
        let folder = place.path().join("results").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        records.push(folder.join("paper.json"));
        std::fs::copy(results.join(name).join("paper.json"), folder.join("paper.json")).unwrap();
    }
    records
}

#[test]
fn a_folder_of_publications_gives_guidelines() {
    let place = Place::new();
    let records = committed_records(&place);
    let called = place.call(&["report", "results"]);
    assert_eq!(called.code(), 0, "{called:?}");
    let page = std::fs::read_to_string(place.path().join("results/guidelines.md")).unwrap();
    for found in ["## Latency-bound", "](mq-bench/paper.md#latency-by-payload-median)", "## Lossy link"] {
        assert!(page.contains(found), "no {found} in\n{page}");
    }
    for name in COMMITTED {
        assert!(page.contains(&format!("]({name}/paper.md#")), "no link to {name} in\n{page}");
    }
    // Experiments have labels of their own for it.
    let mosquitto = page.lines().filter(|line| line.starts_with("| mosquitto over mqtt311 |"));
    assert_eq!(mosquitto.count(), 1, "{page}");
    assert!(!page.contains("| MQTT |") && !page.contains("| Mosquitto |"), "{page}");
    assert!(page.contains("coap (the built-in broker is a demonstration, never ranked)"), "{page}");
    assert!(!page.contains("| coap") && !page.contains("first **coap"), "{page}");
    // A kernel reports some tenths of a percent more or less memory of one machine.
    let gigabytes = |bytes: &Value| format!("{:.0}", bytes.as_f64().unwrap() / 1e9);
    let mut machines: BTreeSet<(String, String)> = BTreeSet::new();
    for record in &records {
        let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
        let parts = list(&record, "experiments").iter().map(|part| &part["runs"]["environment"]);
        machines.extend(
            parts.filter(|one| one.is_object()).map(|one| (one["kernel"].to_string(), gigabytes(&one["memory_bytes"]))),
        );
    }
    let said = page.contains(&format!("on {} machines of one type (", machines.len()));
    assert_eq!(said, machines.len() > 1, "{machines:?} in\n{page}");
    let json = place.call(&["report", "results", "--json"]);
    assert_eq!(json.code(), 2, "{json:?}");
    assert!(words(&json.errors).contains("there is no JSON of guidelines"), "{json:?}");
}

#[test]
fn guidelines_are_of_one_machine_and_of_records_that_can_be_read() {
    let place = Place::new();
    let records = committed_records(&place);
    let mut other: Value = serde_json::from_str(&std::fs::read_to_string(&records[1]).unwrap()).unwrap();
    for part in other["experiments"].as_array_mut().unwrap().iter_mut().filter(|part| part["runs"].is_object()) {
        part["runs"]["environment"]["cores"] = 64.into();
    }
    std::fs::write(&records[1], other.to_string()).unwrap();
    let refused = place.call(&["report", "results"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(words(&refused.errors).contains("are of different machines"), "{refused:?}");
    std::fs::write(&records[1], "{").unwrap();
    let refused = place.call(&["report", "results"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(words(&refused.errors).contains("paper.json"), "{refused:?}");
    assert!(!place.path().join("results/guidelines.md").exists());
}
