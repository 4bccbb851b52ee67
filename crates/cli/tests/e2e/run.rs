//! Successful runs: on both systems, at every level, over both protocols, in both readings; their output and files.

use std::fs;

use pubmark_testing::assert_count_eq;
use serde_json::Value;

use crate::support::books::{assert_closed, assert_delivered_once, count, names_cause};
use crate::support::mosquitto;
use crate::support::place::Place;
use crate::support::schema;

/// One second of 20 devices with churn.
const HOME: &[&str] = &["smart-home", "--duration", "1s", "--warmup", "0s"];
/// One second of 100 messages without churn.
const SMALL: &[&str] =
    &["fan-in", "--set", "publishers=10", "--set", "rate=10/s", "--duration", "1s", "--warmup", "0s"];

/// smart-home at every level; `None` where the system is not installed.
fn every_level(system: &str, variant: &str, protocol: &str) {
    if system == "mosquitto" && !mosquitto::is_installed() {
        return;
    }
    let place = Place::new();
    let options = ["--system", system, "--variant", variant, "--protocol", protocol, "--profile", "tuned"];
    let mut schedules: Vec<Value> = Vec::new();
    for qos in ["0", "1", "2"] {
        let record = place.record(&[HOME, &options, &["--qos", qos]].concat());
        schema::assert_agrees(&record);
        assert_closed(&record);
        assert_delivered_once(&record);
        assert_count_eq!(count(&record, "expected"), count(&record, "sent"), "one subscriber: {}", record["delivery"]);
        assert_eq!(record["run"]["status"], "complete");
        assert_eq!(record["system"]["name"], system);
        assert_eq!(record["protocol"]["publish"], protocol);
        assert_eq!(record["workload"]["variant"], variant);
        let word = ["best-effort", "at-least-once", "exactly-once"][qos.parse::<usize>().unwrap()];
        assert_eq!(record["workload"]["qos"], serde_json::json!([word]));
        assert_count_eq!(record["connections"]["granted_qos_lower"], 0);
        assert_count_eq!(record["connections"]["dropped"], 0, "{}", record["connections"]);
        let delivery = &record["delivery"];
        schedules.push(serde_json::json!([
            record["workload"]["schedule_hash"],
            delivery["offered"],
            delivery["skipped_planned"]
        ]));
    }
    assert!(schedules.iter().all(|schedule| *schedule == schedules[0]), "the level moves the schedule: {schedules:?}");
}

#[test]
fn corrected_on_the_builtin_broker_over_mqtt5() {
    every_level("builtin", "corrected", "mqtt5");
}

#[test]
fn corrected_on_the_builtin_broker_over_mqtt311() {
    every_level("builtin", "corrected", "mqtt311");
}

#[test]
fn published_on_the_builtin_broker_over_mqtt5() {
    every_level("builtin", "published", "mqtt5");
}

#[test]
fn published_on_the_builtin_broker_over_mqtt311() {
    every_level("builtin", "published", "mqtt311");
}

#[test]
fn corrected_on_mosquitto_over_mqtt5() {
    every_level("mosquitto", "corrected", "mqtt5");
}

#[test]
fn corrected_on_mosquitto_over_mqtt311() {
    every_level("mosquitto", "corrected", "mqtt311");
}

#[test]
fn published_on_mosquitto_over_mqtt5() {
    every_level("mosquitto", "published", "mqtt5");
}

#[test]
fn published_on_mosquitto_over_mqtt311() {
    every_level("mosquitto", "published", "mqtt311");
}

/// What must not depend on where and how a schedule is executed: its hash, and the offered messages, in total and by
/// type.
fn schedule_of(record: &Value) -> Value {
    let row = |table: &Value| serde_json::json!([table["offered"], table["skipped_planned"]]);
    let types: Vec<Value> =
        record["tables"]["by_type"].as_array().unwrap().iter().map(|entry| row(&entry["delivery"])).collect();
    serde_json::json!([record["workload"]["schedule_hash"], row(&record["delivery"]), types])
}

#[test]
fn systems_protocols_and_shards_leave_the_schedule_alone_and_a_seed_does_not() {
    let place = Place::new();
    let run = |options: &[&str]| {
        let record = place.record(&[HOME, options].concat());
        assert_closed(&record);
        schedule_of(&record)
    };
    let one = run(&["--shards", "1"]);
    assert!(count_of(&one) > 0, "churn of smart-home skips nothing with this seed: {one}");
    assert_eq!(one, run(&["--shards", "3", "--protocol", "mqtt311"]));
    if mosquitto::is_installed() {
        assert_eq!(one, run(&["--shards", "3", "--system", "mosquitto", "--qos", "2"]));
    }
    assert_ne!(one[0], run(&["--seed", "2"])[0], "another seed is another schedule");
}

/// Planned to be skipped, of [`schedule_of`].
fn count_of(schedule: &Value) -> u64 {
    schedule[1][1].as_u64().unwrap()
}

#[test]
fn a_warm_up_is_no_part_of_the_books() {
    let place = Place::new();
    let with = place.record(&["fan-in", "--set", "publishers=10", "--duration", "1s", "--warmup", "1s"]);
    assert_closed(&with);
    assert_delivered_once(&with);
    assert_count_eq!(count(&with, "offered"), 100, "10 devices × 10/s × 1 s");
    let before: u64 = with["tables"]["series"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["t_s"].as_f64().unwrap() < 0.0)
        .map(|row| row["delivered"].as_u64().unwrap())
        .sum();
    assert!((90..=100).contains(&before), "the warm-up's deliveries are in the series: {before}");
    let bins = with["tables"]["latency_bins"].as_array().unwrap().iter();
    let measured: u64 = bins
        .filter(|bin| bin["t_s"].as_f64().unwrap() >= 0.0)
        .flat_map(|bin| bin["counts"].as_array().unwrap())
        .map(|count| count.as_u64().unwrap())
        .sum();
    let latencies = with["latency"]["total"]["upper"]["count"].as_u64().unwrap();
    assert_count_eq!(measured, latencies, "each latency of the window is in one bucket of the heat map");
}

#[test]
fn json_is_one_document_and_equals_the_saved_record() {
    let place = Place::new();
    let called = place.call(&[&["run"], SMALL, &["--json"]].concat());
    assert!(matches!(called.code(), 0 | 5), "{called:?}");
    let printed = called.json();
    schema::assert_agrees(&printed);
    assert_eq!(printed, place.only_record());
    assert_eq!(printed["run"]["command"].as_array().unwrap()[1..], [&["run"], SMALL, &["--json"]].concat()[..]);
}

#[test]
fn two_repetitions_are_two_folders_and_one_document() {
    let place = Place::new();
    let printed = place.record(&[SMALL, &["--repeat", "2"]].concat());
    let kept: Vec<Value> = place.runs().into_iter().map(|(_, record)| record).collect();
    assert_eq!(kept.len(), 2);
    assert_eq!(printed, Value::Array(kept.clone()));
    for (index, record) in kept.iter().enumerate() {
        schema::assert_agrees(record);
        assert_closed(record);
        assert_delivered_once(record);
        assert_eq!(record["run"]["repetition"], index + 1);
    }
    assert_eq!(schedule_of(&kept[0]), schedule_of(&kept[1]));
    assert_ne!(kept[0]["run"]["name"], kept[1]["run"]["name"]);
    let left = fs::read_dir(place.temporary()).unwrap().count();
    assert_eq!(left, 0, "something stays in the folder for temporary files");
}

#[test]
fn a_dumped_schedule_does_not_depend_on_the_shards_and_has_what_a_run_offers() {
    let place = Place::new();
    let dump = |options: &[&str]| {
        let called = place.call(&[&["run"], HOME, options, &["--dump-schedule"]].concat());
        assert_eq!(called.code(), 0, "{called:?}");
        called.printed
    };
    let one = dump(&["--shards", "1"]);
    assert!(one == dump(&["--shards", "4"]), "the schedule depends on the shards");
    assert!(one != dump(&["--seed", "2"]), "the schedule does not depend on the seed");
    place.call(&[&["run"], HOME, &["--shards", "4", "--dump-schedule", "schedule.txt"]].concat());
    assert!(one == fs::read_to_string(place.path().join("schedule.txt")).unwrap());
    let dumped = one.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).count() as u64;
    let record = place.record(HOME);
    assert_count_eq!(dumped, count(&record, "offered"), "lines of messages in\n{}", &one[..one.len().min(400)]);
    assert!(!names_cause(&record, ""), "{}", record["connections"]);
}

#[test]
fn a_report_is_rebuilt_after_it_was_deleted() {
    let place = Place::new();
    place.record(SMALL);
    let (folder, record) = place.runs().remove(0);
    let before = fs::read_to_string(folder.join("report.html")).unwrap();
    fs::remove_file(folder.join("report.html")).unwrap();
    let called = place.call(&["report", "runs/latest"]);
    assert_eq!(called.code(), 0, "{called:?}");
    assert!(before == fs::read_to_string(folder.join("report.html")).unwrap(), "the rebuilt report differs");
    for (what, name) in record["run"]["files"].as_object().unwrap() {
        let file = folder.join(name.as_str().unwrap());
        assert!(file.is_file(), "{what} is named in the record and not there: {}", file.display());
    }
}

#[test]
fn the_builtin_broker_is_compared_and_never_ranked_and_other_schedules_not_even_compared() {
    let place = Place::new();
    place.record(SMALL);
    place.record(SMALL);
    place.record(&[SMALL, &["--seed", "2"]].concat());
    let runs: Vec<String> = place.runs().into_iter().map(|(folder, _)| folder.display().to_string()).collect();
    let called = place.call(&["compare", &runs[0], &runs[1]]);
    assert_eq!(called.code(), 0, "{called:?}");
    let words: Vec<&str> = called.printed.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("p50"), "{text}");
    assert_count_eq!(text.matches("not ranked: builtin is a demonstration").count(), 2, "{text}");
    assert!(text.contains("no best value is marked"), "{text}");
    let called = place.call(&["compare", &runs[0], &runs[2]]);
    assert_eq!(called.code(), 2, "{called:?}");
    assert!(called.errors.contains("different schedules"), "{}", called.errors);
    assert!(called.printed.is_empty(), "{}", called.printed);
}

#[test]
fn the_check_of_the_books_finds_each_count_that_is_off_by_one() {
    let place = Place::new();
    let record = place.record(SMALL);
    assert_closed(&record);
    for (name, value) in record["delivery"].as_object().unwrap() {
        // Values that no identity contains; separate tests check them.
        let alone = ["retained_replay", "foreign", "truncated", "too_large", "sizes_raised"];
        if !value.is_u64() || alone.contains(&name.as_str()) {
            continue;
        }
        let mut wrong = record.clone();
        wrong["delivery"][name] = (value.as_u64().unwrap() + 1).into();
        let found = std::panic::catch_unwind(|| assert_closed(&wrong)).is_err();
        assert!(found, "{name} can be off by one without being noticed");
    }
}
