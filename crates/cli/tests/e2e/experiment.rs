//! Experiments end to end: real systems, short runs, failures. Whether a run counts depends on how busy the machine is,
//! so the tests require that every repetition is accounted for, and that runs that count have figures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::support::mosquitto;
use crate::support::place::{Call, Called, Place};
use crate::support::processes::{wait_for, with_files_in};

/// Runs as short as they can be; a busy machine is not waited for.
const SHORT: &[&str] = &["--duration", "1s", "--warmup", "0s", "--drain", "2s", "--wait", "0s"];
/// Longest wait for an event.
const LIMIT: Duration = Duration::from_secs(40);

/// A system as a file; `offer` and `program` make it work or not.
fn system(program: &str, highest_qos: u8) -> String {
    format!(
        "name: mine\ntitle: Mine\ndescription: a test's\nranked: true\nlisteners:\n  mqtt: {{scheme: mqtt}}\n\
         protocols:\n  mqtt5: {{listener: mqtt, highest_qos: {highest_qos}}}\nback_ends:\n  process:\n    \
         program: \"{program}\"\n    install: nothing installs it\n    arguments:\n      \
         - add: [broker, --listen, \"{{host}}:{{port:mqtt}}\"]\nprofiles:\n  default: {{description: as it comes}}\n"
    )
}

/// The one experiment in `runs`.
pub fn folder(place: &Place) -> PathBuf {
    let entries = std::fs::read_dir(place.path().join("runs")).unwrap();
    let folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| !path.is_symlink()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

pub fn record(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("experiment.json")).unwrap()).unwrap()
}

/// Lines of the journal of one kind.
pub fn journal(folder: &Path, event: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("journal.jsonl")).unwrap_or_default();
    // The last line may be incomplete.
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"] == event).collect()
}

pub fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("no list `{name}` in {value}"))
}

pub fn cell<'a>(record: &'a Value, id: &str) -> &'a Value {
    list(record, "cells").iter().find(|cell| cell["id"] == id).unwrap_or_else(|| panic!("no cell {id}: {record}"))
}

/// Every repetition of a cell exists once: as a run with figures, or as a failure with a reason.
pub fn assert_accounted(record: &Value, id: &str, repetitions: u64) {
    let cell = cell(record, id);
    let runs = list(cell, "runs");
    let numbers = runs.iter().chain(list(cell, "failures")).map(|end| end["repetition"].as_u64().unwrap());
    let numbers: Vec<u64> = numbers.collect();
    let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(numbers.len(), distinct.len(), "a repetition is there twice: {cell}");
    let left_out = list(record, "cautions").iter().any(|caution| caution.as_str().unwrap().contains("left out"));
    // There are more if some were rerun.
    assert!(distinct.len() as u64 >= repetitions || left_out, "{repetitions} repetitions: {cell}");
    // Those that count but for their times are made up for.
    let whole = runs.iter().filter(|run| run["verdict"] != "invalid").count() as u64;
    assert!(whole <= repetitions, "{repetitions} repetitions: {cell}");
    for figure in list(cell, "figures") {
        assert_eq!(list(figure, "values").len(), runs.len(), "{figure}");
    }
    assert_eq!(list(cell, "figures").is_empty(), runs.is_empty(), "{cell}");
    for failure in list(cell, "failures") {
        assert!(!failure["text"].as_str().unwrap().is_empty(), "{failure}");
    }
}

pub fn assert_ended_well(called: &Called) {
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
}

#[test]
fn two_systems_are_compared() {
    if !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let call = ["compare", "hello", "--systems", "mosquitto,builtin", "--repeat", "3", "--json", "--quiet"];
    let called = place.call(&[&call[..], SHORT].concat());
    assert_ended_well(&called);
    assert!(called.errors.is_empty(), "not quiet: {}", called.errors);
    let folder = folder(&place);
    let record = record(&folder);
    assert_eq!(called.json(), record, "what is printed is not what is kept");
    assert_eq!(record["status"], "complete");
    let schedules: BTreeSet<&str> =
        list(&record, "cells").iter().map(|cell| cell["schedule_hash"].as_str().unwrap()).collect();
    assert_eq!(schedules.len(), 1, "one load for both: {schedules:?}");
    for id in ["mosquitto", "builtin"] {
        assert_accounted(&record, id, 3);
        for run in list(cell(&record, id), "runs") {
            let run = folder.join(run["folder"].as_str().unwrap());
            for file in ["record.json", "report.html", "latency.hdr"] {
                assert!(run.join(file).is_file(), "{file} is missing in {}", run.display());
            }
        }
    }
    for file in ["experiment.html", "experiment.md", "experiment.yaml", "csv/cells.csv", "journal.jsonl"] {
        assert!(folder.join(file).is_file(), "{file} is missing");
    }
    // The built-in broker is never ranked, so there is no contest.
    assert!(list(&record, "contests").is_empty(), "{record}");
    assert!(record["cautions"].to_string().contains("no part in the ranking: "), "{}", record["cautions"]);
    blocks_hold_each_cell_once(&folder, 2, 3);
}

/// Repetitions are blocks: no cell is run twice before every other was run once.
fn blocks_hold_each_cell_once(folder: &Path, cells: usize, repetitions: usize) {
    let began = journal(folder, "began");
    for (number, block) in began.chunks(cells).take(repetitions).enumerate() {
        let blocks: BTreeSet<u64> = block.iter().map(|run| run["repetition"].as_u64().unwrap()).collect();
        assert_eq!(blocks, [number as u64 + 1].into(), "{began:?}");
    }
}

#[test]
fn a_cell_that_fails_says_why_and_has_no_figures() {
    let place = Place::new();
    place.write("ends.yaml", system("/bin/false", 2));
    place.write("lower.yaml", system("{self}", 1));
    place.write("missing.yaml", system("no-such-broker", 2));
    let systems = "builtin,./ends.yaml,./lower.yaml,./missing.yaml";
    let call = ["compare", "hello", "--systems", systems, "--qos", "2", "--repeat", "3"];
    let called = place.call(&[&call[..], SHORT].concat());
    assert_ended_well(&called);
    let record = record(&folder(&place));
    for (id, kind, words) in [
        ("ends", "did-not-start", "ended while it was starting"),
        ("lower", "unsupported", "grants QoS 1 at most"),
        ("missing", "not-installed", "no-such-broker"),
    ] {
        let cell = cell(&record, id);
        let failure = &list(cell, "failures")[0];
        assert_eq!(failure["kind"], kind, "{cell}");
        assert!(failure["text"].as_str().unwrap().contains(words), "{failure}");
        assert!(list(cell, "figures").is_empty() && list(cell, "runs").is_empty(), "{cell}");
        assert!(called.errors.contains(words), "{id} is not named on the way: {}", called.errors);
    }
    // Two attempts are enough to show that it does not start.
    assert_eq!(list(cell(&record, "ends"), "failures").len(), 2);
    let cautions = record["cautions"].to_string();
    assert!(cautions.contains("ends: repetition 3 left out after 2 failures"), "{cautions}");
    assert_accounted(&record, "builtin", 3);
}

#[test]
fn an_image_that_cannot_be_had_is_looked_for_once() {
    let place = Place::new();
    let in_image = system("{self}", 2).replace(
        "  process:\n    program: \"{self}\"\n    install: nothing installs it\n",
        // Nothing listens there, so the container engine does not wait long.
        "  container:\n    image: 127.0.0.1:9/pubmark/nothing:1\n    ready_within_s: 5\n    stop_within_s: 5\n",
    );
    place.write("boxed.yaml", in_image);
    let call = ["compare", "hello", "--systems", "builtin,./boxed.yaml", "--qos", "0,1", "--repeat", "3"];
    let called = place.call(&[&call[..], SHORT].concat());
    assert_ended_well(&called);
    let folder = folder(&place);
    let record = record(&folder);
    for id in ["boxed_qos-0", "boxed_qos-1"] {
        let failures = list(cell(&record, id), "failures");
        assert_eq!(failures.len(), 1, "it was tried in a run: {failures:?}");
        assert_eq!(failures[0]["kind"], "not-installed", "{failures:?}");
    }
    assert!(called.errors.matches("looking for its image").count() <= 1, "{}", called.errors);
    assert!(!folder.join("images.log").exists(), "what the engine said is left behind");
    assert!(list(&record, "cells").len() == 4, "{record}");
}

#[test]
fn an_experiment_is_cut_down_to_some_values_and_to_few_repetitions() {
    let place = Place::new();
    let words = ["experiment", "combench-efficiency", "--quick", "--repeat", "4", "--only", "system=MQTT"];
    let called = place.call(&[&words[..], &["--only", "payload=100B,500B", "--dry-run"]].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    for words in ["8: 4 repetitions", "MQTT, payload 100B", "MQTT, payload 500B", "5 s measured"] {
        assert!(called.printed.contains(words), "{words} is missing: {}", called.printed);
    }
    assert!(!called.printed.contains("AMQP"), "{}", called.printed);
}

#[test]
fn an_experiment_of_which_nothing_can_be_run_starts_nothing() {
    let place = Place::new();
    place.write("lower.yaml", system("{self}", 0));
    let call = ["compare", "hello", "--systems", "./lower.yaml", "--qos", "1,2"];
    let called = place.call(&[&call[..], SHORT].concat());
    assert_eq!(called.code(), 6, "{called:?}");
    assert!(called.errors.contains("grants QoS 0 at most"), "{}", called.errors);
    assert!(!place.path().join("runs").exists(), "it left a folder");
}

#[test]
fn a_dry_run_lists_cells_runs_and_impossible_cells() {
    let place = Place::new();
    place.write("lower.yaml", system("{self}", 1));
    let call = ["compare", "hello", "--systems", "builtin,./lower.yaml", "--qos", "0,2", "--dry-run"];
    let called = place.call(&[&call[..], SHORT].concat());
    assert_eq!(called.code(), 0, "{called:?}");
    for words in
        ["✓ builtin, QoS 2", "✗ lower, QoS 2", "grants QoS 1 at most", "15: 5 repetitions", "can carry the load"]
    {
        assert!(called.printed.contains(words), "{words} is missing: {}", called.printed);
    }
    assert!(!place.path().join("runs").exists(), "it left a folder");
}

#[test]
fn a_size_too_large_for_this_machine_is_left_out_and_the_others_are_not() {
    let place = Place::new();
    // More connections to one endpoint than there are ports, on any machine.
    place.write(
        "sizes.yaml",
        "name: sizes\nworkload: fan-in\nrepeat: 3\nduration: 1s\naxes:\n  system: builtin\n  set: {publishers: [10, 70000]}\n",
    );
    let called = place.call(&["experiment", "sizes.yaml", "--dry-run"]);
    assert_eq!(called.code(), 0, "{called:?}");
    for words in ["✓ builtin, publishers 10", "✗ builtin, publishers 70000", "no room here: 70001 connections"] {
        assert!(called.printed.contains(words), "{words} is missing: {}", called.printed);
    }
}

/// Starts an experiment of four runs of a second, on the built-in broker under a workload of the test.
pub fn start_own(place: &Place) -> Call {
    place.write(
        "mine.yaml",
        "name: mine\ndevices:\n  - {name: d/t, every: 50ms, payload: 100B, topic: \"a/b\"}\nsubscribers:\n  - {filters: [\"a/#\"]}\n",
    );
    place.write(
        "experiment.yaml",
        "name: own\nworkload: ./mine.yaml\nduration: 1s\nwarmup: 0s\ndrain: 2s\nrepeat: 2\n\
         quiet_machine: {within: 0s}\naxes:\n  system: builtin\n  scale: [1, 2]\n",
    );
    place.start(&["experiment", "experiment.yaml"])
}

fn ended(folder: &Path) -> usize {
    journal(folder, "counted").len() + journal(folder, "failed").len()
}

/// Waits until N runs have ended, and returns the folder.
pub fn wait_for_runs(place: &Place, runs: usize) -> PathBuf {
    wait_for("the experiment's folder", LIMIT, || place.path().join("runs/latest").exists());
    let folder = folder(place);
    wait_for("the runs", LIMIT, || ended(&folder) >= runs);
    folder
}

#[test]
fn what_was_killed_goes_on_where_it_was() {
    let place = Place::new();
    let call = start_own(&place);
    let folder = wait_for_runs(&place, 1);
    call.signal(libc::SIGKILL);
    assert_eq!(call.wait().status.code(), None);
    let finished = journal(&folder, "began")[0].clone();
    let run =
        folder.join(format!("runs/{}-{}/record.json", finished["cell"].as_str().unwrap(), finished["repetition"]));
    let before = std::fs::read(&run).unwrap();
    let called = place.call(&["experiment", "--resume", folder.to_str().unwrap(), "--json", "--quiet"]);
    assert_ended_well(&called);
    let record = called.json();
    assert_eq!(record["status"], "complete");
    let ids: Vec<&str> = list(&record, "cells").iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["builtin_scale-1", "builtin_scale-2"]);
    ids.iter().for_each(|id| assert_accounted(&record, id, 2));
    assert_eq!(std::fs::read(&run).unwrap(), before, "a finished run was made again");
    assert_eq!(journal(&folder, "sitting").len(), 2);
    let orders: BTreeSet<u64> = journal(&folder, "began").iter().map(|run| run["order"].as_u64().unwrap()).collect();
    assert!(orders.is_superset(&[1, 2, 3, 4].into()), "not the order that was planned: {orders:?}");
    // Nothing is left to do, and that is not an error.
    let again = place.call(&["experiment", "--resume", folder.to_str().unwrap(), "--json", "--quiet"]);
    assert_ended_well(&again);
    // A cell of which no run counted is tried again.
    let counts = |id: &&str| list(cell(&record, id), "runs").iter().any(|run| run["verdict"] != "invalid");
    if ids.iter().all(counts) {
        assert_eq!(again.json()["cells"], record["cells"]);
    }
}

#[test]
fn what_has_changed_meanwhile_is_refused() {
    let place = Place::new();
    let call = start_own(&place);
    let folder = wait_for_runs(&place, 1);
    call.signal(libc::SIGKILL);
    call.wait();
    let workload = folder.join("workloads/mine.yaml");
    let text = std::fs::read_to_string(&workload).unwrap();
    std::fs::write(&workload, text.replace("50ms", "60ms")).unwrap();
    let called = place.call(&["experiment", "--resume", folder.to_str().unwrap()]);
    assert_eq!(called.code(), 2, "{called:?}");
    // Lines may be broken anywhere.
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("when the experiment began"), "{words}");
    // The original workload is no longer needed: the folder contains everything.
    std::fs::write(&workload, text).unwrap();
    std::fs::remove_file(place.path().join("mine.yaml")).unwrap();
    assert_ended_well(&place.call(&["experiment", "--resume", folder.to_str().unwrap(), "--quiet"]));
}

#[test]
fn ctrl_c_leaves_results_and_says_how_to_go_on() {
    let place = Place::new();
    let call = start_own(&place);
    let folder = wait_for_runs(&place, 1);
    call.signal(libc::SIGINT);
    let called = call.wait();
    assert_eq!(called.code(), 130, "{called:?}");
    let name = folder.file_name().unwrap().to_str().unwrap();
    assert!(called.errors.contains(&format!("pubmark experiment --resume runs/{name}")), "{}", called.errors);
    let record = record(&folder);
    assert_eq!(record["status"], "interrupted");
    let runs = list(&record, "cells").iter().flat_map(|cell| list(cell, "runs"));
    let counted = runs.filter(|run| run["verdict"] != "invalid").count();
    assert_eq!(counted, journal(&folder, "counted").len());
    assert!(folder.join("experiment.html").is_file());
    assert_eq!(with_files_in(&place.temporary()), Vec::<u32>::new(), "a system is left");
    let resumed = place.call(&["experiment", "--resume", folder.to_str().unwrap(), "--json", "--quiet"]);
    assert_ended_well(&resumed);
    assert_eq!(resumed.json()["status"], "complete");
}

#[test]
fn one_folder_is_not_run_by_two() {
    let place = Place::new();
    let call = start_own(&place);
    let folder = wait_for_runs(&place, 1);
    let second = place.call(&["experiment", "--resume", folder.to_str().unwrap()]);
    assert_eq!(second.code(), 2, "{second:?}");
    assert!(second.errors.contains("another pubmark is running"), "{}", second.errors);
    assert_ended_well(&call.wait());
}

#[test]
fn the_run_yaml_of_an_experiment_runs_again() {
    let place = Place::new();
    let call = [
        "compare",
        "hello",
        "--systems",
        "builtin",
        "--repeat",
        "1",
        "--vary",
        "devices.0.every=100ms,200ms",
        "--quiet",
    ];
    let called = place.call(&[&call[..], SHORT].concat());
    assert_ended_well(&called);
    let first = folder(&place);
    let file = first.join("experiment.yaml");
    let again = place.call(&["experiment", file.to_str().unwrap(), "--out", "again", "--json", "--quiet"]);
    assert_ended_well(&again);
    let (one, other) = (record(&first), again.json());
    assert_eq!(one["definition"], other["definition"]);
    let hashes = |record: &Value| -> Vec<Value> {
        list(record, "cells").iter().map(|cell| cell["schedule_hash"].clone()).collect()
    };
    assert_eq!(hashes(&one), hashes(&other));
    assert_ne!(hashes(&one)[0], hashes(&one)[1], "the setting did not change the schedule");
}
