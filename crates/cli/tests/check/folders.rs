//! Folders with made-up records.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pubmark_record::evaluation::{CellInput, RunInput, evaluate};
use pubmark_record::experiment::{
    Axis, CellFailure, CellRun, EXPERIMENT_FILE, EXPERIMENT_SCHEMA_VERSION, ExperimentRecord, FailureKind,
};
use pubmark_record::record::{Reason, Record, Status, VerdictStatus};
use pubmark_record::sample;
use pubmark_record::store::{RECORD_FILE, to_json};

/// A record of a system that may be ranked; `p99_us` is the upper bound of its p99.
pub fn record(p99_us: f64) -> Record {
    let mut record = sample::record();
    record.system.name = "mosquitto".to_owned();
    record.system.ranked = true;
    let total = record.latency.total.as_mut().unwrap();
    total.upper.p99 = Some(p99_us);
    // A fifth of it may be pubmark's delay, as in the sample.
    total.lower.as_mut().unwrap().p99 = Some(0.8 * p99_us);
    record
}

/// Sets the verdict of a record, with a reason.
pub fn judged(mut record: Record, status: VerdictStatus) -> Record {
    record.verdict.status = status;
    record.verdict.reasons = vec![Reason {
        code: "V01".to_owned(),
        status,
        text: "scheduler lag p99 is 3.1 ms".to_owned(),
        hint: "use `--realtime`".to_owned(),
    }];
    record
}

/// Writes a run folder.
pub fn run(folder: &Path, name: &str, record: &Record) {
    fs::create_dir_all(folder.join(name)).unwrap();
    let mut record = record.clone();
    name.clone_into(&mut record.run.name);
    fs::write(folder.join(name).join(RECORD_FILE), to_json(&record).unwrap()).unwrap();
}

/// Writes an experiment's folder: the p99 of each run in µs, by system; each of the `failed` systems has one more run,
/// which failed.
pub fn experiment(folder: &Path, name: &str, systems: &[(&str, &[f64])], failed: &[&str]) {
    let cells: Vec<CellInput> = systems.iter().map(|(system, p99s)| cell(system, p99s, failed)).collect();
    let values = systems.iter().map(|(system, _)| (*system).to_owned()).collect();
    let axes = vec![Axis { name: "system".to_owned(), values }];
    let found = evaluate(&axes, 1, &cells).unwrap();
    let one = sample::record();
    let record = ExperimentRecord {
        schema_version: EXPERIMENT_SCHEMA_VERSION,
        pubmark_version: one.run.pubmark_version,
        name: name.to_owned(),
        title: "made up".to_owned(),
        command: vec!["pubmark".to_owned()],
        started_at: one.run.started_at,
        took_s: 60.0,
        status: Status::Complete,
        workload: one.workload.name,
        variant: one.workload.variant.to_string(),
        has_readings: false,
        seed: 42,
        order_seed: 1,
        repetitions: cells[0].runs.len() as u32,
        warmup_s: 2.0,
        duration_s: 10.0,
        axes,
        cells: found.cells,
        contests: found.contests,
        cautions: found.cautions,
        papers: vec![],
        environment: one.environment,
        nodes: None,
        definition: String::new(),
    };
    fs::create_dir_all(folder.join(name)).unwrap();
    fs::write(folder.join(name).join(EXPERIMENT_FILE), serde_json::to_string_pretty(&record).unwrap()).unwrap();
}

fn cell(system: &str, p99s_us: &[f64], failed: &[&str]) -> CellInput {
    let run = |(repetition, p99_us): (u32, &f64)| RunInput {
        run: CellRun {
            repetition,
            order: repetition,
            folder: format!("{system}-{repetition}"),
            verdict: VerdictStatus::Valid,
            waited_ms: 0,
            busy: false,
        },
        record: record(*p99_us),
        latency: None,
        latency_lower: None,
    };
    let failure = CellFailure {
        repetition: 4,
        kind: FailureKind::OutOfMemory,
        text: "killed at 256 MB".to_owned(),
        folder: None,
    };
    CellInput {
        id: system.to_owned(),
        label: system.to_owned(),
        settings: BTreeMap::from([("system".to_owned(), system.to_owned())]),
        runs: (1..).zip(p99s_us).map(run).collect(),
        failures: if failed.contains(&system) { vec![failure] } else { Vec::new() },
    }
}
