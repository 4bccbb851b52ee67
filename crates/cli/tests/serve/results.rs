//! Folders of made-up results: each with a record, as `pubmark run` saves it.

use std::path::Path;

use pubmark_choose::Choice;
use pubmark_record::capacity::CapacityRecord;
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::record::Record;
use pubmark_record::store::{RunFolder, Stored as _, to_json};
use pubmark_record::{sample, sample_experiment};
use serde_json::json;

/// Two runs of one schedule, the second slower, and one of another schedule.
pub const ONE: &str = "20260301-090507-one";
pub const SLOW: &str = "20260302-090507-slow";
pub const OTHER: &str = "20260303-090507-other";

/// A submission whose second repetition failed, and the folder of its first.
const FAILED: &str = "20260304-090507-0000f41d";
const FAILED_FOLDER: &str = "20260304-090507-failed";

/// An experiment and a search for capacity.
pub const EXPERIMENT: &str = "20260201-090507-experiment";
pub const SEARCH: &str = "20260202-090507-capacity";
pub const CHOICE: &str = "20260203-090507-choose-smart-home";

/// A folder with a hostile name.
pub const HARM: &str = "20260101-090507-<img src=x onerror=document.title='broken'>";

/// Saves a made-up record.
pub fn save(runs: &Path, name: &str, change: impl FnOnce(&mut Record)) {
    let mut record = sample::record();
    record.run.name = name.to_owned();
    record.run.started_at = format!("{}-{}-{}T09:05:07Z", &name[..4], &name[4..6], &name[6..8]);
    change(&mut record);
    let folder = RunFolder::at(&runs.join(name)).unwrap();
    folder.write_record(&record).unwrap();
    folder.write_file("report.html", pubmark_report::html::run(&record).as_bytes()).unwrap();
}

/// Saves the three.
pub fn save_three(runs: &Path) {
    save(runs, ONE, |_| ());
    save(runs, SLOW, |record| {
        record.system.version = Some("0.2.0".to_owned());
        let latency = record.latency.total.as_mut().unwrap();
        for summary in [Some(&mut latency.upper), latency.lower.as_mut()].into_iter().flatten() {
            summary.p99 = summary.p99.map(|p99| p99 * 3.0);
            summary.max *= 3.0;
        }
    });
    save(runs, OTHER, |record| record.workload.schedule_hash = "another".to_owned());
}

/// Saves a submission as a server stored it: its first repetition has a report, its second failed.
pub fn save_failed(runs: &Path) {
    save(runs, FAILED_FOLDER, |record| record.workload.schedule_hash = "a fourth".to_owned());
    let at = "2026-03-04T09:05:07Z";
    let submission = json!({
        "id": FAILED, "order": 1, "submitted_at": at, "kind": "run", "name": "hello", "systems": ["mosquitto"],
        "verb": "run", "file": null, "options": [],
    });
    let error = json!({
        "chain": ["failed to connect to `mqtt://127.0.0.1:7`", "connection refused"], "hint": "start the system",
    });
    let status = json!({
        "state": "failed", "started_at": at, "ended_at": at, "exit_code": 6, "folders": [FAILED_FOLDER], "error": error,
    });
    let folder = runs.join(".serve/queue").join(FAILED);
    std::fs::create_dir_all(&folder).unwrap();
    for (file, content) in [("submission.json", submission), ("status.json", status)] {
        std::fs::write(folder.join(file), content.to_string()).unwrap();
    }
}

/// Saves an experiment, a search for capacity and a choice with a run and a search in it, all older than the three.
pub fn save_other_kinds(runs: &Path) {
    let experiment =
        ExperimentRecord { started_at: "2026-02-01T09:05:07Z".to_owned(), ..sample_experiment::experiment() };
    let search = CapacityRecord { started_at: "2026-02-02T09:05:07Z".to_owned(), ..sample_experiment::capacity() };
    for (name, file, text) in
        [(EXPERIMENT, ExperimentRecord::FILE, to_json(&experiment)), (SEARCH, CapacityRecord::FILE, to_json(&search))]
    {
        RunFolder::at(&runs.join(name)).unwrap().write_file(file, text.unwrap().as_bytes()).unwrap();
    }
    let choice = Choice { started_at: "2026-02-03T09:05:07Z".to_owned(), ..pubmark_choose::sample::choice(1) };
    let folder = runs.join(CHOICE);
    RunFolder::at(&folder).unwrap().write_file(Choice::FILE, to_json(&choice).unwrap().as_bytes()).unwrap();
    save(&folder.join("runs"), "1-small-race-1", |_| ());
    let search = folder.join("headroom/1-small");
    let text = to_json(&sample_experiment::capacity()).unwrap();
    RunFolder::at(&search).unwrap().write_file(CapacityRecord::FILE, text.as_bytes()).unwrap();
    for trial in sample_experiment::capacity().trials.iter().filter_map(|trial| trial.folder.as_ref()) {
        save(&search, trial, |_| ());
    }
}
