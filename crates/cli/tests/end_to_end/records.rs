//! What a run leaves, and what is made of it afterwards.

use std::fs;

use crate::program::{assert_closed, call, only_run, record_of};

/// A second of a small load, without warm-up.
const SHORT: &[&str] = &["pairs", "--set", "pairs=5", "--set", "rate=20/s", "--duration", "1s", "--warmup", "0s"];

#[test]
fn a_run_keeps_a_folder_and_prints_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let output = call(folder.path(), &[&["run"], SHORT].concat());
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    let summary = String::from_utf8(output.stdout).unwrap();
    for words in ["pairs", "builtin", "delivery", "latency", "cost", "report.html"] {
        assert!(summary.contains(words), "{words} is missing from\n{summary}");
    }
    assert!(!summary.contains('\u{1b}'), "colour without a terminal:\n{summary}");
    let (run, record) = only_run(&folder.path().join("runs"));
    assert_closed(&record);
    assert_eq!(record["status"], "complete");
    assert_eq!(record["delivery"]["offered"], 100, "5 devices × 20/s × 1 s");
    assert_eq!(record["delivery"]["delivered"], 100);
    assert_eq!(record["run"].as_str(), run.file_name().and_then(|name| name.to_str()));
    for file in record["files"].as_object().unwrap().values() {
        assert!(run.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    let latest = fs::read_link(folder.path().join("runs/latest")).unwrap();
    assert_eq!(Some(latest.as_os_str()), run.file_name());
}

#[test]
fn the_report_is_rebuilt_from_the_record_alone() {
    let folder = tempfile::tempdir().unwrap();
    record_of(folder.path(), SHORT);
    let (run, _) = only_run(&folder.path().join("runs"));
    let before = fs::read_to_string(run.join("report.html")).unwrap();
    fs::remove_file(run.join("report.html")).unwrap();
    fs::remove_dir_all(run.join("csv")).unwrap();
    let output = call(folder.path(), &["report", "runs/latest"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let after = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(before == after, "the rebuilt report differs");
    assert!(run.join("csv/summary.csv").is_file());
}

#[test]
fn json_is_the_record_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let printed = record_of(folder.path(), SHORT);
    let (_, kept) = only_run(&folder.path().join("runs"));
    assert_eq!(printed, kept);
    let again = call(folder.path(), &["report", "runs/latest", "--json"]);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&again.stdout).unwrap(), kept);
}

#[test]
fn repetitions_are_numbered_and_have_one_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let records = record_of(folder.path(), &[SHORT, &["--repeat", "2"]].concat());
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 2);
    for (index, record) in records.iter().enumerate() {
        assert_closed(record);
        assert_eq!(record["settings"]["repetition"], index + 1);
        assert_eq!(record["settings"]["repetitions"], 2);
        assert_eq!(record["workload"]["schedule_hash"], records[0]["workload"]["schedule_hash"]);
    }
    assert_ne!(records[0]["run_id"], records[1]["run_id"]);
}

#[test]
fn runs_are_compared_only_if_their_schedules_are_one() {
    let folder = tempfile::tempdir().unwrap();
    for (out, seed) in [("a", "1"), ("b", "1"), ("c", "2")] {
        record_of(folder.path(), &[SHORT, &["--out", out, "--seed", seed]].concat());
    }
    let same = call(folder.path(), &["compare", "a/latest", "b/latest", "--html", "both.html"]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    assert!(String::from_utf8_lossy(&same.stdout).contains("p50"), "{same:?}");
    assert!(fs::read_to_string(folder.path().join("both.html")).unwrap().contains("</html>"));
    // Periodic devices start at seeded phases, so another seed is another schedule.
    let other = call(folder.path(), &["compare", "a/latest", "c/latest"]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(String::from_utf8_lossy(&other.stderr).contains("different schedules"), "{other:?}");
}

#[test]
fn the_schedule_is_the_same_for_any_number_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    let dump = |shards: &str| {
        let output =
            call(folder.path(), &["run", "smart-home", "--duration", "5s", "--shards", shards, "--dump-schedule"]);
        assert_eq!(output.status.code(), Some(0));
        output.stdout
    };
    let one = dump("1");
    assert!(one.iter().filter(|byte| **byte == b'\n').count() > 1_000, "148 msg/s for 10 s");
    assert_eq!(one, dump("3"));
    let record = |shards: &str| {
        let record = record_of(
            folder.path(),
            &["smart-home", "--duration", "1s", "--warmup", "0s", "--shards", shards, "--out", shards],
        );
        assert_closed(&record);
        assert_eq!(record["settings"]["publisher_shards"].to_string(), shards);
        (record["workload"]["schedule_hash"].clone(), record["delivery"]["offered"].clone())
    };
    assert_eq!(record("1"), record("3"), "schedule and offered load");
}
