//! The history of one configuration: all runs of one schedule with the same settings, compared in order of time.

use std::path::Path;

use axum::http::StatusCode;
use pubmark_record::check::{Demands, Kind as CheckKind, Outcome, Subject, judge};
use pubmark_record::comparison::{MACHINE, compare, machine};
use pubmark_record::figures::delivered_share;
use pubmark_record::headline::Kind;
use pubmark_record::record::{LatencyBounds, Record, Status, Summary, VerdictStatus};
use pubmark_record::store;
use pubmark_record::threshold::Conditions;
use pubmark_runner::objectives::unread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Listed;
use super::loaded::run_of;
use crate::problem::Problem;
use crate::shared::Shared;

/// Default conditions for a regression.
pub const FAIL_ON: &str = "p99>+10%,rate<-5%,loss>0.1%";
/// Maximum number of runs in a history; the newest are shown.
pub const MOST_RUNS: usize = 200;
/// Differences that are allowed between the runs of one configuration, besides [`MACHINE`]: a history shows their effects.
const CONTEXT: [&str; 3] = ["pubmark", "clients", "image"];

/// Selects a configuration and the conditions for a regression.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// A run of the configuration: a submission or a folder of results.
    pub run: String,
    /// Conditions that must not be true, in the form of `POST /check`; `p99>+10%,rate<-5%,loss>0.1%` if left out.
    pub fail_on: Option<String>,
    /// Baseline of all changes, a run of the history; the previous run for each if left out.
    pub baseline: Option<String>,
}

/// Runs of one configuration.
#[derive(Debug, Serialize, JsonSchema)]
pub struct History {
    /// Name of the workload.
    pub workload: String,
    /// Name of the system.
    pub system: String,
    /// Hash of the schedule.
    pub schedule_hash: String,
    /// Conditions for a regression.
    pub fail_on: String,
    /// The runs, the oldest first; the newest 200 if there are more, and the chosen baseline.
    pub runs: Vec<HistoryRun>,
}

/// A run of a history.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HistoryRun {
    /// Name of the results folder.
    pub folder: String,
    /// Time of the start, RFC 3339, UTC.
    pub started_at: String,
    /// Version of the system; `null` if it is not known.
    pub system_version: Option<String>,
    /// Version of pubmark that executed the run.
    pub pubmark_version: String,
    /// Processor, cores and kernel of the machine, and the machines of the nodes.
    pub machine: String,
    /// Verdict of the run.
    pub verdict: VerdictStatus,
    /// Messages expected.
    pub expected: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Share of the wanted deliveries that arrived, as limits have it; `null` where none was wanted.
    pub delivered_share: Option<f64>,
    /// Median latency, µs: lower and upper bound; `null` if it was not measured.
    pub p50_us: [Option<f64>; 2],
    /// 99th percentile of latency, µs, in the same way.
    pub p99_us: [Option<f64>; 2],
    /// The run that this one is compared with; `null` if this run is not compared.
    pub baseline: Option<String>,
    /// Conditions that are true, with their figures: a regression if there are any.
    pub regressions: Vec<String>,
    /// Reason why the run is not compared, or what is undecided; `null` otherwise.
    pub remark: Option<String>,
    /// What else may have made a change, such as another machine or version of the baseline.
    pub notes: Vec<String>,
}

impl HistoryRun {
    fn of(folder: String, record: &Record) -> HistoryRun {
        let messages = &record.delivery.messages;
        let total = record.latency.total.as_ref();
        HistoryRun {
            folder,
            started_at: record.run.started_at.clone(),
            system_version: record.system.version.clone(),
            pubmark_version: record.run.pubmark_version.clone(),
            machine: machine(record),
            verdict: record.verdict.status,
            expected: messages.expected,
            delivered: messages.delivered,
            delivered_share: delivered_share(record),
            p50_us: bounds(total, |summary| summary.p50),
            p99_us: bounds(total, |summary| summary.p99),
            baseline: None,
            regressions: vec![],
            remark: not_judged(record).map(str::to_owned),
            notes: vec![],
        }
    }
}

/// Reason why a run is neither compared nor a baseline; `None` if it is.
fn not_judged(record: &Record) -> Option<&'static str> {
    match (record.verdict.status, record.run.status) {
        (VerdictStatus::Invalid, _) => Some("not judged: the run is invalid"),
        (_, Status::Interrupted) => Some("not judged: the run was interrupted"),
        _ => None,
    }
}

fn bounds(latency: Option<&LatencyBounds>, of: fn(&Summary) -> Option<f64>) -> [Option<f64>; 2] {
    let lower = latency.and_then(|latency| latency.lower.as_ref()).and_then(of);
    [lower, latency.and_then(|latency| of(&latency.upper))]
}

/// The history of the configuration of a run, whose folder is `folder`.
///
/// # Errors
/// It is not a run, the conditions cannot be used, or the chosen baseline has another configuration.
pub fn history(shared: &Shared, query: &HistoryQuery, folder: &Path) -> Result<History, Problem> {
    let fail_on = query.fail_on.clone().filter(|text| !text.trim().is_empty()).unwrap_or_else(|| FAIL_ON.to_owned());
    let conditions = Conditions::parse(&fail_on).map_err(|error| unread("`fail_on`", &error))?;
    let record = run_of(folder, &query.run, "a history")?;
    let mut history = History {
        workload: record.workload.name.clone(),
        system: record.system.name.clone(),
        schedule_hash: record.workload.schedule_hash.clone(),
        fail_on,
        runs: runs(shared, record, query.baseline.as_deref())?,
    };
    let demands = Demands { fail_on: Some(conditions), ..Demands::default() };
    judge_all(&mut history.runs, &demands, shared.store.runs(), query.baseline.as_deref())?;
    Ok(history)
}

/// All runs of the configuration, the oldest first; if there are too many, the newest and the chosen one.
fn runs(shared: &Shared, mut record: Record, chosen: Option<&str>) -> Result<Vec<HistoryRun>, Problem> {
    let listed = shared.library.list(shared.store.runs()).map_err(|error| Problem::internal(&error))?;
    let mut runs = Vec::new();
    for one in listed.results {
        let folder = &one.headline.folder;
        let is_beyond = runs.len() >= MOST_RUNS && chosen != Some(folder);
        if is_beyond || !may_be_alike(&one, &record) {
            continue;
        }
        // A run that was removed meanwhile is left out.
        let Ok(other) = store::load(&shared.store.runs().join(folder)) else { continue };
        let run = HistoryRun::of(folder.clone(), &other);
        let pair = [record, other];
        if is_alike(&pair) {
            runs.push(run);
        }
        [record, _] = pair;
    }
    runs.sort_by(|one, other| (&one.started_at, &one.folder).cmp(&(&other.started_at, &other.folder)));
    Ok(runs)
}

/// Whether the listed data of a result match a run, so that its record is worth reading.
fn may_be_alike(one: &Listed, record: &Record) -> bool {
    let hash = one.facts.as_ref().map(|facts| &facts.schedule_hash);
    // In a record of an earlier version this is known only after the whole record is read.
    one.headline.kind == Kind::Run
        && one.headline.system.contains(&record.system.name)
        && one.headline.workload.contains(&record.workload.name)
        && hash.is_none_or(|hash| *hash == record.workload.schedule_hash)
}

/// Whether both have the same load, system and settings.
fn is_alike(pair: &[Record; 2]) -> bool {
    let is_context = |name: &str| CONTEXT.contains(&name) || MACHINE.contains(&name);
    pair[0].system.name == pair[1].system.name
        && compare(pair).is_ok_and(|compared| compared.differences.iter().all(|found| is_context(found.name)))
}

fn judge_all(runs: &mut [HistoryRun], demands: &Demands, root: &Path, chosen: Option<&str>) -> Result<(), Problem> {
    let load = |folder: &str| {
        Subject::load(&root.join(folder))
            .map_err(|error| Problem::new(StatusCode::CONFLICT, format!("`{folder}` cannot be judged: {error}")))
    };
    let mut baseline = match chosen {
        Some(name) if runs.iter().any(|run| run.folder == name) => Some((name.to_owned(), load(name)?)),
        Some(name) => {
            let problem = format!("`{name}` is no run of this configuration");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, problem)
                .hint("take one of the history, or leave `baseline` out"));
        }
        None => None,
    };
    for run in runs {
        // A run that is not compared is not a baseline of the next run.
        if run.remark.is_some() {
            continue;
        }
        let subject = load(&run.folder)?;
        match &baseline {
            Some((name, _)) if *name == run.folder => run.remark = Some("the baseline".to_owned()),
            Some((name, against)) => judge_one(run, &subject, demands, name, against)?,
            None => run.remark = Some("the first that can be judged".to_owned()),
        }
        if chosen.is_none() {
            baseline = Some((run.folder.clone(), subject));
        }
    }
    Ok(())
}

fn judge_one(
    run: &mut HistoryRun,
    subject: &Subject,
    demands: &Demands,
    name: &str,
    baseline: &Subject,
) -> Result<(), Problem> {
    let judged = judge(subject, demands, Some(baseline))
        .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).hint(error.hint()))?;
    run.baseline = Some(name.to_owned());
    let of_gates = || judged.rows.iter().filter(|row| matches!(row.kind, CheckKind::FailOn | CheckKind::Regression));
    for row in of_gates() {
        let text = format!("{}: {}", row.name, row.detail);
        match row.outcome {
            Outcome::Failed => run.regressions.push(text),
            Outcome::Undecided | Outcome::NotMeasured => run.remark = Some(text),
            Outcome::Passed | Outcome::Warned => {}
        }
    }
    run.notes = judged.notes;
    Ok(())
}
