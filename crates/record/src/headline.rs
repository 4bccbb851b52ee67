//! Headlines: the fields of a record that a list of past runs shows. A list holds only these fields of each record in
//! memory, so it can have thousands of runs.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::capacity::{CapacityRecord, TrialLatency};
use crate::delivery::Delivery;
use crate::experiment::{Cell, CellRun, ExperimentRecord};
use crate::figures::delivered_share;
use crate::in_use::is_in_use;
use crate::latency::LatencyBounds;
use crate::protocol::ProtocolInfo;
use crate::record::{Record, RunInfo, Status, SystemInfo, VerdictStatus, WorkloadInfo};
use crate::schema1::Step;
use crate::store::{self, StoreError, Stored};

/// Version of [`RunList`]'s schema. It changes only when a field changes its meaning or is removed.
pub const RUN_LIST_SCHEMA_VERSION: u32 = 1;

/// Name of the file in the folder of a choice.
pub const CHOICE_FILE: &str = "choice.json";
/// Version of the schema of a choice: changes only when a field changes its meaning or goes away.
pub const CHOICE_SCHEMA_VERSION: u32 = 1;

/// The runs, experiments, capacity searches and choices of a folder, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// [`RUN_LIST_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The folder.
    pub folder: String,
    /// Folders inside it that may have a record.
    pub folders: u64,
    /// Folders that were read: all, unless the list was full before.
    pub read: u64,
    /// Entries that match the filter, newest first.
    pub runs: Vec<Headline>,
    /// Folders read that have no record: the run never began, or is still in progress.
    pub without_record: u64,
    /// Records that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// A folder whose record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unreadable {
    /// Name of the folder.
    pub folder: String,
    /// Why it cannot be read.
    pub reason: String,
}

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One run.
    Run,
    /// Many runs over a grid of settings.
    Experiment,
    /// A capacity search.
    Capacity,
    /// A choice of a system.
    Choice,
}

impl Kind {
    /// Name in lists and filters.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Experiment => "experiment",
            Kind::Capacity => "capacity",
            Kind::Choice => "choice",
        }
    }
}

/// The fields of a record that a list shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// Name of the folder.
    pub folder: String,
    /// Kind of the record.
    pub kind: Kind,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Whether it was completed.
    pub status: Status,
    /// Name of the workload; all names in an experiment that varies the workload.
    pub workload: Vec<String>,
    /// The reading of the workload; `null` for a capacity search and a choice.
    pub variant: Option<String>,
    /// Systems that were measured; of a choice, the candidates that were run.
    pub system: Vec<String>,
    /// Protocols of the clients, if the record has them.
    pub protocol: Vec<String>,
    /// QoS levels of the devices, if the record has them.
    pub qos: Vec<String>,
    /// Messages expected by subscribers; runs only.
    pub expected: Option<u64>,
    /// Messages delivered; runs only.
    pub delivered: Option<u64>,
    /// Share of the wanted deliveries that arrived, as limits and rankings have it; `null` where none was wanted, and for other
    /// kinds than runs.
    #[serde(default)]
    pub delivered_share: Option<f64>,
    /// Latency of a run, or of a search at the load of its result.
    pub latency: Option<TrialLatency>,
    /// Highest load that held, messages per second; searches only.
    pub holds_per_s: Option<f64>,
    /// Objectives of a search or a choice, as written.
    pub objectives: Option<String>,
    /// Combinations of settings of an experiment; candidates of a choice.
    pub cells: Option<u64>,
    /// Runs that an experiment planned: the repetitions of all cells that can be run; `null` for a run and a search.
    pub runs_planned: Option<u64>,
    /// Fully usable runs of an experiment, trials of a search, or runs of a choice; `null` for a run.
    pub runs_counted: Option<u64>,
    /// Verdict of a run, or worst verdict of the fully usable runs of an experiment; `null` where there is none.
    pub verdict: Option<VerdictStatus>,
    /// Codes of the reasons for a run's verdict.
    pub reasons: Vec<String>,
    /// Candidates of a choice that qualify.
    #[serde(default)]
    pub qualify: Vec<String>,
    /// The candidate that a choice recommends; `null` where it recommends none over the others.
    #[serde(default)]
    pub recommended: Option<String>,
    /// Whether a command is still at work on an experiment or a choice. `status` is `interrupted` then, and the other fields
    /// are what is known so far.
    #[serde(default)]
    pub in_progress: bool,
}

impl Headline {
    /// Whether a command is at work on it now, in this folder. An experiment or a choice that is running has a record of what
    /// is known so far, which says that it was interrupted, in case the command is killed.
    pub fn is_running(&self, folder: &Path) -> bool {
        let is_of_many = matches!(self.kind, Kind::Experiment | Kind::Choice);
        is_of_many && self.status == Status::Interrupted && is_in_use(folder)
    }

    /// The status in words: `complete`, `interrupted`, or `running`.
    pub fn status_word(&self) -> &'static str {
        if self.in_progress { "running" } else { self.status.as_str() }
    }
}

/// Further facts about a run for a library of results; read together with its headline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Hash of the schedule.
    pub schedule_hash: String,
    /// Number of devices.
    pub devices: u64,
    /// Messages offered per second.
    pub offered_per_s: f64,
}

/// Reads the headline of the record in `folder`; `None` without a record.
///
/// # Errors
/// The record exists and cannot be read.
pub fn of_folder(folder: &Path) -> Result<Option<Headline>, StoreError> {
    let Some((mut headline, _)) = with_facts(folder)? else { return Ok(None) };
    headline.in_progress = headline.is_running(folder);
    Ok(Some(headline))
}

/// Reads the headline together with the further facts about a run; whether a command is at work is not looked for.
///
/// # Errors
/// As [`of_folder`].
pub fn with_facts(folder: &Path) -> Result<Option<(Headline, Option<RunFacts>)>, StoreError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let there = |file: &str| folder.join(file).is_file();
    if there(ExperimentRecord::FILE) {
        return store::load_as(folder).map(|record| Some((of_experiment(name, record), None)));
    }
    if there(CapacityRecord::FILE) {
        return store::load_as(folder).map(|record| Some((of_search(name, record), None)));
    }
    if there(ChoiceHead::FILE) {
        return store::load_as(folder).map(|record| Some((of_choice(name, record), None)));
    }
    if !there(Record::FILE) {
        return Ok(None);
    }
    let (head, share) = match read_as::<RunHead>(&folder.join(Record::FILE)) {
        Some(head) if head.is_enough() => {
            let Delivery { expected, delivered, .. } = head.delivery.messages;
            (head, (expected > 0).then(|| delivered as f64 / expected as f64))
        }
        // Another version or no version: the full reader converts it or returns the error. And where the system prevented
        // deliveries, the share depends on fields behind the head.
        _ => {
            let record = store::load(folder)?;
            let share = delivered_share(&record);
            (RunHead::from(record), share)
        }
    };
    let facts = RunFacts {
        schedule_hash: head.workload.schedule_hash.clone(),
        devices: head.workload.devices,
        offered_per_s: head.throughput.offered_per_s,
    };
    Ok(Some((of_run(name, head, share), Some(facts))))
}

/// The fields of a run's record that are read; fields between them are skipped and not stored.
#[derive(Deserialize)]
struct RunHead {
    schema_version: u64,
    run: RunInfo,
    verdict: VerdictHead,
    workload: WorkloadInfo,
    system: SystemInfo,
    protocol: ProtocolInfo,
    delivery: DeliveryHead,
    latency: LatencyHead,
    throughput: ThroughputHead,
}

impl RunHead {
    /// Whether the headline follows from these fields alone: all wanted deliveries were expected, so the run's conditions do not matter
    /// to [`delivered_share`].
    fn is_enough(&self) -> bool {
        let books = &self.delivery.messages;
        self.schema_version == u64::from(Record::VERSION) && books.absent == 0 && books.prevented == 0
    }
}

#[derive(Deserialize)]
struct ThroughputHead {
    offered_per_s: f64,
}

#[derive(Deserialize)]
struct VerdictHead {
    status: VerdictStatus,
    reasons: Vec<ReasonHead>,
}

#[derive(Deserialize)]
struct ReasonHead {
    code: String,
}

#[derive(Deserialize)]
struct DeliveryHead {
    /// These fields are mixed with the other fields of the section.
    #[serde(flatten)]
    messages: Delivery,
}

#[derive(Deserialize)]
struct LatencyHead {
    total: Option<LatencyBounds>,
}

impl From<Record> for RunHead {
    fn from(record: Record) -> RunHead {
        let reasons = record.verdict.reasons.into_iter().map(|reason| ReasonHead { code: reason.code }).collect();
        RunHead {
            schema_version: u64::from(record.schema_version),
            run: record.run,
            verdict: VerdictHead { status: record.verdict.status, reasons },
            workload: record.workload,
            system: record.system,
            protocol: record.protocol,
            delivery: DeliveryHead { messages: record.delivery.messages },
            latency: LatencyHead { total: record.latency.total },
            throughput: ThroughputHead { offered_per_s: record.throughput.offered_per_s },
        }
    }
}

/// Bytes at the beginning of a record that hold the fields read here, unless the record has a breakdown of hundreds of
/// groups: 13 to 16 KB in records of 30 to 210 KB.
const HEAD_BYTES: u64 = 24 << 10;
/// Start of a top-level field, as [`store::to_json`] writes it: nested fields are indented further, and strings have no
/// line feed.
const FIELD: &[u8] = b",\n  \"";

/// Reads the fields from the beginning of a record, or from the whole record if the beginning does not have all of
/// them.
fn read_as<Head: DeserializeOwned>(file: &Path) -> Option<Head> {
    let mut opened = File::open(file).ok()?;
    // Read into memory first: from a file, serde_json reads single bytes, which is several times slower.
    let mut text = Vec::new();
    opened.by_ref().take(HEAD_BYTES).read_to_end(&mut text).ok()?;
    if let Some(end) = text.windows(FIELD.len()).rposition(|part| part == FIELD)
        && is_whole(&mut opened)
        && let Ok(head) = serde_json::from_slice(&[&text[..end], b"}"].concat())
    {
        return Some(head);
    }
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Whether the file ends as a record ends. This detects a truncated record whose beginning is intact.
fn is_whole(file: &mut File) -> bool {
    let mut end = [0; 3];
    file.seek(SeekFrom::End(-(end.len() as i64))).and_then(|_| file.read_exact(&mut end)).is_ok() && end == *b"\n}\n"
}

fn of_run(folder: String, head: RunHead, delivered_share: Option<f64>) -> Headline {
    let mut reasons: Vec<String> = head.verdict.reasons.into_iter().map(|reason| reason.code).collect();
    reasons.dedup();
    Headline {
        folder,
        kind: Kind::Run,
        started_at: head.run.started_at,
        status: head.run.status,
        qos: head.workload.qos.iter().map(|qos| qos.level().to_string()).collect(),
        workload: vec![head.workload.name],
        variant: Some(head.workload.variant.as_str().to_owned()),
        system: vec![head.system.name],
        protocol: protocols(head.protocol),
        expected: Some(head.delivery.messages.expected),
        delivered: Some(head.delivery.messages.delivered),
        delivered_share,
        latency: head.latency.total.as_ref().map(TrialLatency::of),
        holds_per_s: None,
        objectives: None,
        cells: None,
        runs_planned: None,
        runs_counted: None,
        verdict: Some(head.verdict.status),
        reasons,
        qualify: vec![],
        recommended: None,
        in_progress: false,
    }
}

fn of_experiment(folder: String, record: ExperimentRecord) -> Headline {
    let axis = |name: &str| -> Vec<String> {
        record.axes.iter().find(|axis| axis.name == name).map(|axis| axis.values.clone()).unwrap_or_default()
    };
    let workloads = axis("workload");
    let runnable = record.cells.iter().filter(|cell| !is_refused(cell)).count() as u64;
    // Invalid runs in this list are those of which everything except the times is usable.
    let wholly = |run: &&CellRun| run.verdict != VerdictStatus::Invalid;
    let counted = || record.cells.iter().flat_map(|cell| &cell.runs).filter(wholly);
    Headline {
        folder,
        kind: Kind::Experiment,
        system: axis("system"),
        protocol: axis("protocol"),
        qos: axis("qos"),
        workload: if workloads.is_empty() { vec![record.workload.clone()] } else { workloads },
        cells: Some(record.cells.len() as u64),
        runs_planned: Some(runnable * u64::from(record.repetitions)),
        runs_counted: Some(counted().count() as u64),
        verdict: counted().map(|run| run.verdict).max(),
        started_at: record.started_at,
        status: record.status,
        variant: Some(record.variant),
        expected: None,
        delivered: None,
        delivered_share: None,
        latency: None,
        holds_per_s: None,
        objectives: None,
        reasons: vec![],
        qualify: vec![],
        recommended: None,
        in_progress: false,
    }
}

/// One protocol, or those of both sides if they differ.
fn protocols(info: ProtocolInfo) -> Vec<String> {
    let mut names = vec![info.publish, info.subscribe];
    names.dedup();
    names
}

/// Whether the cell was refused before any run.
fn is_refused(cell: &Cell) -> bool {
    cell.runs.is_empty() && cell.failures.iter().any(|failure| failure.repetition == 0)
}

fn of_search(folder: String, record: CapacityRecord) -> Headline {
    let at_result = record.trial_at_the_result();
    Headline {
        folder,
        kind: Kind::Capacity,
        latency: at_result.map(|trial| trial.latency),
        verdict: at_result.and_then(|trial| trial.verdict),
        runs_planned: None,
        runs_counted: Some(record.trials.len() as u64),
        started_at: record.started_at,
        status: record.status,
        workload: vec![record.workload],
        variant: None,
        system: vec![record.system.name],
        protocol: vec![record.protocol],
        qos: vec![],
        expected: None,
        delivered: None,
        delivered_share: None,
        holds_per_s: record.result.holds_per_s,
        objectives: Some(record.objectives),
        cells: None,
        reasons: vec![],
        qualify: vec![],
        recommended: None,
        in_progress: false,
    }
}

/// The fields of a choice that are read. The rest of it is defined where choices are made.
#[derive(Serialize, Deserialize)]
struct ChoiceHead {
    schema_version: u32,
    started_at: String,
    status: Status,
    objectives: Vec<String>,
    workload: String,
    candidates: Vec<CandidateHead>,
    recommendation: RecommendationHead,
}

#[derive(Serialize, Deserialize)]
struct CandidateHead {
    label: String,
    protocol: Option<String>,
    state: StateHead,
    runs: Vec<ChoiceRunHead>,
}

#[derive(Serialize, Deserialize)]
struct StateHead {
    state: String,
}

#[derive(Serialize, Deserialize)]
struct ChoiceRunHead {}

#[derive(Serialize, Deserialize)]
struct RecommendationHead {
    candidate: Option<String>,
}

impl Stored for ChoiceHead {
    const FILE: &'static str = CHOICE_FILE;
    const VERSION: u32 = CHOICE_SCHEMA_VERSION;
    // Version 1 is the first.
    const FROM_SCHEMA_1: &'static [Step] = &[];
}

fn of_choice(folder: String, record: ChoiceHead) -> Headline {
    let candidates = record.candidates.len() as u64;
    let runs: usize = record.candidates.iter().map(|candidate| candidate.runs.len()).sum();
    let qualify = record.candidates.iter().filter(|candidate| candidate.state.state == "qualifies");
    let qualify = qualify.map(|candidate| candidate.label.clone()).collect();
    let run: Vec<CandidateHead> =
        record.candidates.into_iter().filter(|candidate| !candidate.runs.is_empty()).collect();
    let mut protocol: Vec<String> = run.iter().filter_map(|candidate| candidate.protocol.clone()).collect();
    protocol.sort_unstable();
    protocol.dedup();
    Headline {
        folder,
        kind: Kind::Choice,
        started_at: record.started_at,
        status: record.status,
        workload: vec![record.workload],
        variant: None,
        system: run.into_iter().map(|candidate| candidate.label).collect(),
        protocol,
        qos: vec![],
        expected: None,
        delivered: None,
        delivered_share: None,
        latency: None,
        holds_per_s: None,
        objectives: Some(record.objectives.join(",")),
        cells: Some(candidates),
        runs_planned: None,
        runs_counted: Some(runs as u64),
        verdict: None,
        reasons: vec![],
        qualify,
        recommended: record.recommendation.candidate,
        in_progress: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{sample, sample_experiment};

    fn saved<Kind: Stored>(record: &Kind) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let text = store::to_json(record).expect("JSON");
        std::fs::write(folder.path().join(Kind::FILE), text).expect("written");
        folder
    }

    #[test]
    fn a_run_is_read_without_the_rest_of_its_record() {
        let record = sample::record();
        let folder = saved(&record);
        let headline = of_folder(folder.path()).expect("readable").expect("there");
        assert_eq!(headline.kind, Kind::Run);
        assert_eq!(headline.delivered, Some(record.delivery.messages.delivered));
        assert_eq!(headline.system, std::slice::from_ref(&record.system.name));
        assert_eq!(headline.delivered_share, Some(1.0));
        assert_eq!(headline, of_run(headline.folder.clone(), RunHead::from(record), Some(1.0)));
    }

    #[test]
    fn the_share_delivered_is_that_of_limits_whatever_the_system_prevented() {
        type Change = fn(&mut Record);
        let changes: [(Change, Option<f64>); 5] = [
            (|record| record.delivery.messages.absent = 2, Some(0.8)),
            (|record| (record.delivery.messages.refused, record.delivery.messages.prevented) = (4, 8), Some(0.5)),
            (|record| (record.delivery.messages.prevented, record.settings.flood) = (8, true), Some(1.0)),
            (|record| (record.delivery.messages.delivered, record.delivery.messages.lost) = (6, 2), Some(0.75)),
            (|record| (record.delivery.messages.delivered, record.delivery.messages.expected) = (0, 0), None),
        ];
        for (number, (change, expected)) in changes.into_iter().enumerate() {
            let mut record = sample::record();
            record.delivery.messages =
                Delivery { offered: 8, sent: 4, expected: 8, delivered: 8, ..Delivery::default() };
            change(&mut record);
            let headline = of_folder(saved(&record).path()).expect("readable").expect("there");
            assert_eq!((headline.delivered_share, delivered_share(&record)), (expected, expected), "change {number}");
        }
        let mut old =
            serde_json::to_value(of_folder(saved(&sample::record()).path()).expect("readable")).expect("JSON");
        old.as_object_mut().expect("a headline").remove("delivered_share");
        let old: Headline = serde_json::from_value(old).expect("it has a default");
        assert_eq!(old.delivered_share, None);
    }

    #[test]
    fn the_beginning_of_a_record_is_enough_and_one_that_was_cut_is_none() {
        let record = sample::record();
        let folder = saved(&record);
        let file = folder.path().join(Record::FILE);
        let whole = std::fs::read(&file).expect("written");
        let expected = of_folder(folder.path()).expect("readable");
        let needed =
            whole.windows(10).position(|part| part == b"\n  \"cost\":").expect("a field behind those that are read");
        assert!(needed < HEAD_BYTES as usize && whole.len() > 2 * HEAD_BYTES as usize, "{needed} of {}", whole.len());
        // The part after the bytes that are read may have any content, because it is not parsed.
        let broken = [&whole[..HEAD_BYTES as usize], b"?".repeat(100_000).as_slice(), b"\n}\n"].concat();
        std::fs::write(&file, broken).expect("written");
        assert_eq!(of_folder(folder.path()).expect("its beginning is readable"), expected);
        for cut in [HEAD_BYTES as usize - 1, HEAD_BYTES as usize + 1, whole.len() - 2] {
            std::fs::write(&file, &whole[..cut]).expect("written");
            assert!(of_folder(folder.path()).is_err(), "cut at {cut} of {}", whole.len());
        }
        // On one line, as another program may write it.
        let value: serde_json::Value = serde_json::from_slice(&whole).expect("JSON");
        std::fs::write(&file, value.to_string()).expect("written");
        assert_eq!(of_folder(folder.path()).expect("readable"), expected);
    }

    #[test]
    fn an_experiment_counts_the_runs_that_could_be_made() {
        let record = sample_experiment::experiment();
        let headline = of_folder(saved(&record).path()).expect("readable").expect("there");
        assert_eq!(headline.kind, Kind::Experiment);
        assert_eq!(headline.cells, Some(record.cells.len() as u64));
        assert!(headline.runs_counted <= headline.runs_planned, "{headline:?}");
    }

    #[test]
    fn a_search_has_the_latency_at_its_result() {
        let mut record = sample_experiment::capacity();
        let latency = record.trial_at_the_result().map(|trial| trial.latency);
        record.trials.iter_mut().for_each(|trial| trial.outcome = crate::capacity::TrialOutcome::Held);
        assert_eq!(of_search(String::new(), record).latency, latency, "not that of a higher load which held by chance");
    }

    #[test]
    fn unreadable_records_are_named_and_an_empty_folder_is_no_record() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(of_folder(folder.path()).expect("nothing there"), None);
        std::fs::write(folder.path().join(Record::FILE), "{\"schema_version\": 99}").expect("written");
        assert!(matches!(of_folder(folder.path()), Err(StoreError::OtherVersion { found: 99, .. })));
    }
}
