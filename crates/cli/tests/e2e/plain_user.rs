//! Commands of many runs by a user without root privileges: links in a user namespace, and a limit that this user cannot raise.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::experiment::{assert_ended_well, folder, list};
use crate::links::{NOBODY, can_be_made_by_nobody};
use crate::support::books::{assert_closed, names_deviation};
use crate::support::mosquitto::Mosquitto;
use crate::support::place::{Called, PUBMARK, Place};

/// Runs as short as they can be.
const SHORT: [&str; 4] = ["--duration", "1s", "--warmup", "0s"];

/// A folder of the user without any rights, with a copy of the binary that this user can read, wherever the tests were built.
fn place_of_nobody() -> Place {
    let place = Place::new();
    for folder in [place.path().to_owned(), place.temporary()] {
        chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    std::fs::copy(PUBMARK, place.path().join("pubmark")).unwrap();
    place
}

fn call(place: &Place, words: &[&str]) -> Called {
    let mut command = Command::new(place.path().join("pubmark"));
    command.uid(NOBODY).gid(NOBODY);
    place.start_by(command, words).wait()
}

/// Runs of an experiment were made with and without links of 20 ms each way, and messages crossed two of them.
fn assert_some_behind_links(experiment: &Path) {
    let runs = std::fs::read_dir(experiment.join("runs")).unwrap().map(|run| run.unwrap().path().join("record.json"));
    let records: Vec<Value> =
        runs.map(|record| serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap()).collect();
    records.iter().for_each(assert_closed);
    let (without, behind): (Vec<&Value>, Vec<&Value>) =
        records.iter().partition(|record| record["conditions"]["links"].is_null());
    assert!(!without.is_empty() && !behind.is_empty(), "{} without, {} behind", without.len(), behind.len());
    for record in behind {
        let min_us = record["latency"]["total"]["upper"]["min_us"].as_f64();
        assert!(min_us >= Some(40_000.0), "{}", record["latency"]["total"]);
    }
}

#[test]
fn a_plain_user_compares_runs_behind_links_with_others_and_goes_on_with_them() {
    if !can_be_made_by_nobody() {
        return;
    }
    let place = place_of_nobody();
    let grid = ["compare", "hello", "--systems", "builtin", "--link", "none,{delay: 20ms}", "--repeat", "1"];
    let called = call(&place, &[&grid[..], &SHORT, &["--wait", "0s", "--quiet"]].concat());
    assert_ended_well(&called);
    let folder = folder(&place);
    assert_some_behind_links(&folder);
    // As if it had been interrupted before its first run.
    let journal = folder.join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    std::fs::remove_dir_all(folder.join("runs")).unwrap();
    assert_ended_well(&call(&place, &["experiment", "--resume", folder.to_str().unwrap(), "--quiet"]));
    assert_some_behind_links(&folder);
}

#[test]
fn a_plain_user_is_told_before_runs_behind_links_would_cut_others_off() {
    if !can_be_made_by_nobody() {
        return;
    }
    let place = place_of_nobody();
    let grid = ["compare", "hello", "--endpoint", "ours=mqtt://127.0.0.1:9", "--link", "none,lte"];
    let called = call(&place, &[&grid[..], &SHORT].concat());
    assert_eq!(called.code(), 2, "{called:?}");
    let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("needs it: its system is at an endpoint"), "{words}");
    assert!(!place.path().join("runs").exists(), "it left a folder");
}

#[test]
fn a_plain_user_is_told_that_containers_cannot_join_links() {
    if !can_be_made_by_nobody() {
        return;
    }
    let place = place_of_nobody();
    // An image that does not exist: nothing is to be fetched or started.
    let system = ["--system", "emqx", "--image", "localhost/none:0", "--link", "lte"];
    for more in [&["--dry-run"][..], &[]] {
        let called = call(&place, &[&["run", "hello"][..], &system, &SHORT, more].concat());
        assert_eq!(called.code(), 2, "{called:?}");
        let words = called.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("which containers cannot join"), "{words}");
    }
}

#[test]
fn a_plain_user_searches_for_the_capacity_behind_links() {
    if !can_be_made_by_nobody() {
        return;
    }
    let place = place_of_nobody();
    let search = ["capacity", "pairs", "--set", "pairs=20", "--system", "builtin", "--link", "{delay: 20ms}"];
    let ends = ["--slo", "loss=0", "--most", "1", "--json", "--quiet"];
    let called = call(&place, &[&search[..], &SHORT, &ends].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let found = called.json();
    for trial in list(&found, "trials") {
        assert!(trial["latency"]["upper"]["max_us"].as_f64() >= Some(40_000.0), "{trial}");
    }
}

#[test]
fn a_plain_user_chooses_an_endpoint_behind_links() {
    if !can_be_made_by_nobody() {
        return;
    }
    let Some(broker) = Mosquitto::start("") else { return };
    let place = place_of_nobody();
    // By name: it is resolved in the network that the runs leave.
    let endpoint = format!("mqtt://localhost:{}", broker.port);
    let choice = ["choose", "--workload", "hello", "--endpoint", &endpoint, "--link", "{delay: 20ms}"];
    let ends = ["--slo", "loss=0", "--drain", "2s", "--no-headroom", "--within", "40s", "--json", "--quiet"];
    let called = call(&place, &[&choice[..], &SHORT, &ends].concat());
    // On a busy machine it is possible that no run counts.
    assert!(matches!(called.code(), 0 | 8), "{called:?}");
    let found = called.json();
    let folders = list(&found["candidates"][0], "runs").iter().filter_map(|run| run["folder"].as_str());
    assert_ne!(folders.clone().count(), 0, "{found}");
    for folder in folders {
        let path = place.path().join("runs/latest").join(folder).join("record.json");
        let record: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_closed(&record);
        assert!(names_deviation(&record, "relayed"), "{}", record["settings"]);
        let min_us = record["latency"]["total"]["upper"]["min_us"].as_f64();
        assert!(min_us >= Some(40_000.0), "{}", record["latency"]["total"]);
    }
}

#[test]
fn a_search_tells_what_was_measured_before_a_load_that_is_too_large() {
    // SAFETY: the call has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return pubmark_testing::skip("only root can give up its rights");
    }
    let place = place_of_nobody();
    let mut command = Command::new("sh");
    // Enough open files for 200 publishers, and not for 400.
    command.args(["-c", "ulimit -n 450 && exec \"$0\" \"$@\""]).arg(place.path().join("pubmark"));
    command.uid(NOBODY).gid(NOBODY);
    let search = ["capacity", "fan-in", "--system", "builtin", "--set", "publishers=200", "--set", "rate=1/s"];
    let ends = ["--vary", "scale", "--first", "1", "--slo", "loss=0", "--json", "--quiet"];
    let called = place.start_by(command, &[&search[..], &SHORT, &ends].concat()).wait();
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let found = called.json();
    let result = &found["result"];
    if called.code() == 5 {
        // pubmark was late at the first load on this machine.
        assert!(result["holds_per_s"].is_null(), "{result}");
        return;
    }
    assert_eq!((result["holds_factor"].as_f64(), &result["limit"]), (Some(1.0), &Value::from("generator")), "{result}");
    let larger = list(&found, "trials").iter().find(|trial| trial["factor"] == 2.0).expect("a trial of the next load");
    assert_eq!(larger["outcome"], "generator-limited", "{larger}");
    let reason = larger["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("the load is too large: 401 connections need 465 open files"), "{reason}");
    assert_eq!(found["status"], "complete");
}
