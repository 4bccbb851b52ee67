//! The list of past runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use pubmark_record::record::{Record, Status, VerdictStatus};
use pubmark_record::store::{Stored, to_json};
use pubmark_record::{sample, sample_experiment};

use crate::call::{assert_fits, call_in};

fn save<Kind: Stored>(root: &Path, name: &str, record: &Kind) {
    let folder = root.join("runs").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(Kind::FILE), to_json(record).unwrap()).unwrap();
}

fn run(started_at: &str, workload: &str, system: &str, verdict: VerdictStatus) -> Record {
    let mut record = sample::record();
    record.run.started_at = started_at.to_owned();
    record.workload.name = workload.to_owned();
    record.system.name = system.to_owned();
    record.verdict.status = verdict;
    record
}

/// Folders of every kind: runs, an experiment, a search, a run that never began, one whose record is broken.
fn folder_of_runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (valid, invalid) = (VerdictStatus::Valid, VerdictStatus::Invalid);
    save(root, "20260301-090507-smart-home", &run("2026-03-01T09:05:12Z", "smart-home", "mosquitto", valid));
    let long = run("2026-03-02T10:00:05Z", "smart-manufacturing-x100", "a-system-with-a-long-name", invalid);
    save(root, "20260302-100000-smart-manufacturing-x100", &long);
    save(root, "20260303-110000-brokers", &sample_experiment::experiment());
    save(root, "20260304-120000-capacity-pairs", &sample_experiment::capacity());
    save(root, "20260304-110000-choose-smart-home", &pubmark_choose::sample::choice(1));
    fs::create_dir(root.join("runs/20260305-130000-hello")).unwrap();
    fs::create_dir(root.join("runs/20260305-140000-hello")).unwrap();
    fs::write(root.join("runs/20260305-140000-hello/record.json"), "{\"schema_version\": 99}").unwrap();
    std::os::unix::fs::symlink("20260304-120000-capacity-pairs", root.join("runs/latest")).unwrap();
    folder
}

#[test]
fn past_runs_are_listed_newest_first_and_unreadable_ones_are_named() {
    let text = call_in(folder_of_runs().path(), &["runs"]);
    assert_fits(&text);
    insta::assert_snapshot!("runs", text);
}

#[test]
fn a_filter_chooses_and_says_when_nothing_is_left() {
    let folder = folder_of_runs();
    for (name, arguments) in [
        ("system", &["runs", "--system", "mosquitto", "kind=run"][..]),
        ("since", &["runs", "--since", "2026-03-02", "kind=run"]),
        ("none", &["runs", "smart", "verdict=suspect"]),
        ("limit", &["runs", "--limit", "1", "kind=experiment"]),
        ("wrong-key", &["runs", "sistem=mosquitto"]),
        ("wrong-time", &["runs", "--since", "yesterday"]),
        ("no-folder", &["runs", "--folder", "elsewhere"]),
    ] {
        let text = call_in(folder.path(), arguments);
        assert_fits(&text);
        insta::assert_snapshot!(format!("runs-{name}"), text);
    }
}

#[test]
fn a_path_and_a_verdict_that_does_not_exist_are_refused() {
    let folder = folder_of_runs();
    let text = call_in(folder.path(), &["runs", "/nonexistent"]);
    assert!(text.contains("--folder /nonexistent") && text.ends_with("[exit code 2]\n"), "{text}");
    let text = call_in(folder.path(), &["runs", "verdict=good"]);
    assert!(text.contains("valid, suspect, invalid") && text.ends_with("[exit code 2]\n"), "{text}");
}

#[test]
fn a_folder_of_a_running_command_is_running() {
    let folder = folder_of_runs();
    let (mut experiment, mut choice) = (sample_experiment::experiment(), pubmark_choose::sample::choice(1));
    (experiment.status, choice.status) = (Status::Interrupted, Status::Interrupted);
    save(folder.path(), "20260303-110000-brokers", &experiment);
    save(folder.path(), "20260304-110000-choose-smart-home", &choice);
    for name in ["20260303-110000-brokers", "20260304-110000-choose-smart-home"] {
        let journal = fs::File::create(folder.path().join("runs").join(name).join("journal.jsonl")).unwrap();
        let shown = |words: &[&str]| call_in(folder.path(), words);
        assert!(shown(&["runs", name]).contains(", interrupted"), "{name}");
        journal.lock().unwrap();
        let text = shown(&["runs", "status=running"]);
        assert!(text.contains(name) && text.contains(", running") && !text.contains("interrupted"), "{text}");
        assert!(shown(&["runs", "--json", name]).contains(r#""in_progress": true"#), "{name}");
    }
}

#[test]
fn the_list_is_json_with_a_schema() {
    let text = call_in(folder_of_runs().path(), &["runs", "--json", "--all"]);
    let body: String = text.lines().skip(1).take_while(|line| !line.starts_with('[')).collect();
    let list: pubmark_record::headline::RunList = serde_json::from_str(&body).unwrap();
    assert_eq!((list.runs.len(), list.without_record, list.unreadable.len()), (5, 1, 1));
    assert_eq!(list.runs[0].folder, "20260304-120000-capacity-pairs");
}

#[test]
fn an_empty_folder_says_how_to_make_a_run() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let text = call_in(folder.path(), &["runs"]);
        assert!(text.contains("no runs in `runs`: `pubmark run smart-home` makes one"), "{text}");
        assert!(text.ends_with("[exit code 0]\n"), "{text}");
        // The folder does not exist at first, then it is empty.
        let _ = fs::create_dir(folder.path().join("runs"));
    }
}

/// 3,000 records of more than 100 KB would take a gigabyte if they were held together.
#[test]
fn thousands_of_runs_are_listed_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = sample::record();
    record.system.configuration = Some("a line of a configuration file\n".repeat(4_000));
    save(folder.path(), "20260301-090507-smart-home", &record);
    let first = folder.path().join("runs/20260301-090507-smart-home/record.json");
    assert!(fs::metadata(&first).unwrap().len() > 100_000);
    for number in 0..3_000 {
        let another = folder.path().join(format!("runs/20260302-{number:06}-smart-home"));
        fs::create_dir(&another).unwrap();
        fs::hard_link(&first, another.join("record.json")).unwrap();
    }
    let program = assert_cmd::cargo::cargo_bin("pubmark");
    let limited = "ulimit -v 300000 && exec \"$0\" runs --all --json";
    let output = Command::new("sh").args(["-c", limited]).arg(program).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list: pubmark_record::headline::RunList = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list.runs.len(), 3_001);
}
