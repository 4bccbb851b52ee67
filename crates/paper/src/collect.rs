//! Builds a publication's tables from the records of its experiments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pubmark_experiment::experiment::definition::{DEFINITION_FILE, hashes_of};
use pubmark_model::experiment::{Experiment, PlannedCell, cells};
use pubmark_record::by_reason::{by_reason, named};
use pubmark_record::experiment::{Cell, ExperimentRecord, FailureKind};
use pubmark_record::record::Status;
use pubmark_runner::target::definition;

use crate::definition::Paper;
use crate::record::{ComparedSystem, ExperimentPart, Omission, PAPER_SCHEMA_VERSION, PaperRecord, RunsSummary};
use crate::table::own_words;
use crate::{series, statement, table};

/// Reason of a cell, or of an experiment, that was not run.
pub(crate) const NOT_RUN: &str = "not run";
/// Reason of a cell of an experiment that cannot be run here.
pub(crate) const LEFT_OUT: &str = "left out";

/// Repetition of the failure of a cell that was refused before any run of a call.
const REFUSED: u32 = 0;

/// An experiment and its results.
#[derive(Clone, Debug)]
pub struct Part {
    /// The experiment with the selected values.
    pub experiment: Experiment,
    /// Its folder, relative to the publication's; `None` if the experiment was not started.
    pub folder: Option<String>,
    /// Its record, or the reason why there is none.
    pub record: Result<ExperimentRecord, String>,
    /// The experiment cannot be run here at all.
    pub left_out: bool,
}

impl Part {
    /// A cell of the record, or a short reason why there is none. The full reason is in the experiment's entry.
    pub(crate) fn cell(&self, id: &str) -> Result<&Cell, String> {
        let none = if self.left_out { LEFT_OUT } else { NOT_RUN };
        let record = self.record.as_ref().map_err(|_| none.to_owned())?;
        record.cells.iter().find(|cell| cell.id == id).ok_or_else(|| NOT_RUN.to_owned())
    }

    /// Returns whether all planned repetitions of a cell were made, or it cannot be run here. The record does not name repetitions that
    /// were left out after failures: unless the experiment is complete, these count as missing.
    pub(crate) fn is_cell_complete(&self, id: &str) -> bool {
        let Ok(record) = &self.record else { return self.left_out };
        let Some(cell) = record.cells.iter().find(|cell| cell.id == id) else { return false };
        let is_refused = cell.failures.iter().any(|failure| failure.repetition == REFUSED);
        self.is_complete() || is_refused || has_all_repetitions(record, cell)
    }

    /// Returns whether all runs of the experiment were made.
    pub fn is_complete(&self) -> bool {
        self.record.as_ref().is_ok_and(|record| record.status == Status::Complete)
    }
}

/// Builds the record. Tables and conclusions whose experiments were not selected are left out. Folders of the parts are
/// relative to `base`.
pub fn record(paper: &Paper, parts: &[Part], base: &Path, command: &[String], quick: bool) -> PaperRecord {
    let part_of = |name: &str| parts.iter().find(|part| part.experiment.name == name);
    let tables = paper.tables.iter().filter_map(|table| Some(table::table(table, part_of(&table.experiment)?)));
    let over_time = paper.series.iter().filter_map(|one| Some(series::table(one, part_of(&one.experiment)?, base)));
    let tables = tables.chain(over_time).collect();
    let statements = paper
        .statements
        .iter()
        .map(|statement| statement::judge(statement, parts, base))
        .filter(|statement| !statement.cases.is_empty())
        .collect();
    let is_done = |part: &Part| part.left_out || part.is_complete();
    PaperRecord {
        schema_version: PAPER_SCHEMA_VERSION,
        pubmark_version: env!("CARGO_PKG_VERSION").to_owned(),
        paper: paper.name.clone(),
        title: paper.title.clone(),
        citation: paper.citation.clone(),
        command: command.to_vec(),
        earlier_commands: vec![],
        quick,
        status: if parts.iter().all(is_done) { Status::Complete } else { Status::Interrupted },
        experiments: parts.iter().map(experiment_part).collect(),
        tables,
        statements,
        not_repeated: paper
            .not_repeated
            .iter()
            .map(|one| Omission { what: one.what.clone(), why: one.why.clone() })
            .collect(),
    }
}

fn experiment_part(part: &Part) -> ExperimentPart {
    ExperimentPart {
        name: part.experiment.name.clone(),
        folder: part.folder.clone(),
        reason: part.record.as_ref().err().cloned(),
        runs: part.record.as_ref().ok().map(|record| runs(&part.experiment, record)),
    }
}

fn runs(experiment: &Experiment, record: &ExperimentRecord) -> RunsSummary {
    let is_measured = |cell: &&Cell| !cell.runs.is_empty();
    let mut systems: Vec<String> = vec![];
    for system in record.cells.iter().filter_map(|cell| cell.system.as_ref()) {
        let words = match &system.version {
            Some(version) => format!("{} {version}", system.name),
            None => system.name.clone(),
        };
        if !systems.contains(&words) {
            systems.push(words);
        }
    }
    RunsSummary {
        status: record.status,
        started_at: record.started_at.clone(),
        took_s: record.took_s,
        cells: record.cells.len() as u32,
        cells_measured: record.cells.iter().filter(is_measured).count() as u32,
        refused: refused(record),
        repetitions: record.repetitions,
        duration_s: record.duration_s,
        warmup_s: record.warmup_s,
        systems,
        pubmark_version: Some(record.pubmark_version.clone()),
        conditions: conditions(experiment, record),
        compared: compared(experiment, record),
        cautions: record.cautions.clone(),
        environment: record.environment.clone(),
        nodes: record.nodes.clone(),
    }
}

/// Was each repetition of the cell made? A failure is a result, too.
fn has_all_repetitions(record: &ExperimentRecord, cell: &Cell) -> bool {
    let failures = cell.failures.iter().filter(|failure| failure.kind != FailureKind::Interrupted);
    let made = failures.map(|failure| failure.repetition).chain(cell.runs.iter().map(|run| run.repetition));
    let made: BTreeSet<u32> = made.collect();
    (1..=record.repetitions).all(|repetition| made.contains(&repetition))
}

/// The cells that lack runs and could not be run here, as [`RunsSummary::refused`]. Such a cell may have runs of an earlier call, for
/// instance if its system was removed since.
fn refused(record: &ExperimentRecord) -> Vec<String> {
    let refusal = |cell: &Cell| {
        let refusal = cell.failures.iter().find(|failure| failure.repetition == REFUSED)?;
        (!has_all_repetitions(record, cell)).then(|| format!("{}: {}", refusal.kind.words(), own_words(&refusal.text)))
    };
    let found = record.cells.iter().filter_map(|cell| Some((cell.label.as_str(), refusal(cell)?)));
    by_reason(found).into_iter().map(|(reason, labels)| format!("{}: {reason}", named(&labels))).collect()
}

/// Name of the axis of systems.
pub(crate) const SYSTEM: &str = "system";
/// Beginning of the name of a system's condition.
pub(crate) const OF_SYSTEM: &str = "system ";
/// What stands between the ways in which a system was run, in its condition.
pub(crate) const BETWEEN_WAYS: &str = "; ";
/// Keys of a definition that are not conditions of its runs: values of axes belong to cells, lengths are compared with their units,
/// and the order and the wait before a run are no settings of it.
const NO_CONDITIONS: [&str; 7] =
    ["axes", "duration", "warmup", "exact_warmup", "repeat", "order_seed", "quiet_machine"];

/// What the runs of an experiment have in common, as [`RunsSummary::conditions`].
fn conditions(experiment: &Experiment, record: &ExperimentRecord) -> BTreeMap<String, String> {
    // Only a file that a definition names could be unreadable, and those of publications name none.
    let keys = hashes_of(experiment, Path::new("")).unwrap_or_default();
    let own_key = |name: &str| name.strip_prefix(DEFINITION_FILE)?.strip_prefix(": ").map(str::to_owned);
    let keys = keys.into_iter().filter_map(|(name, hash)| Some((own_key(&name)?, hash)));
    let mut found: BTreeMap<String, String> = keys.filter(|(key, _)| !NO_CONDITIONS.contains(&key.as_str())).collect();
    let mut systems: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for cell in &record.cells {
        let (Some(label), Some(system)) = (cell.settings.get(SYSTEM), &cell.system) else { continue };
        let protocol = cell.settings.get("protocol").filter(|_| experiment.axes.protocol.is_empty());
        let profile = system.profile.as_ref().filter(|_| experiment.axes.profile.is_empty());
        let parts = [Some(system.back_end.as_str()), system.image.as_deref(), profile.map(String::as_str)];
        let parts = parts.into_iter().chain([protocol.map(String::as_str)]).flatten();
        systems.entry(label).or_default().insert(parts.collect::<Vec<_>>().join(", "));
    }
    let of_systems = systems
        .into_iter()
        .map(|(label, ways)| (format!("{OF_SYSTEM}{label}"), ways.into_iter().collect::<Vec<_>>().join(BETWEEN_WAYS)));
    found.extend(of_systems);
    found
}

/// The systems behind the values of the axis `system`, in the order of the experiment.
fn compared(experiment: &Experiment, record: &ExperimentRecord) -> Vec<ComparedSystem> {
    let planned = cells(experiment);
    let mut found: Vec<ComparedSystem> = vec![];
    for cell in &planned {
        let Some(label) = cell.values.get(SYSTEM) else { continue };
        if found.iter().any(|system| system.label == *label) {
            continue;
        }
        let has_label = |other: &&PlannedCell| other.values.get(SYSTEM) == Some(label);
        let is_alike = |other: &PlannedCell| other.settings.protocol == cell.settings.protocol;
        let has_one_protocol = planned.iter().filter(has_label).all(is_alike);
        let mut own = record.cells.iter().filter(|cell| cell.settings.get(SYSTEM) == Some(label));
        let started = own.find_map(|cell| cell.system.as_ref());
        let name = started.map(|system| &system.name).or(cell.settings.system.as_ref()).unwrap_or(label);
        found.push(ComparedSystem {
            label: label.clone(),
            system: name.clone(),
            protocol: cell.settings.protocol.clone().filter(|_| has_one_protocol),
            ranked: match started {
                Some(system) => system.ranked,
                None => definition(name).ok().is_none_or(|definition| definition.ranked),
            },
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use pubmark_model::experiment::parse;
    use pubmark_record::experiment::CellFailure;
    use pubmark_record::sample_experiment;

    use super::*;

    #[test]
    fn a_cell_is_complete_when_all_its_repetitions_were_made_or_it_cannot_be_run() {
        let text = "{name: t, workload: hello, axes: {system: [alphamq, betamq]}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).expect("an experiment");
        let mut record = sample_experiment::experiment();
        record.status = Status::Interrupted;
        let id = record.cells[0].id.clone();
        let runs = record.cells[0].runs.len();
        record.cells[0].failures.clear();
        record.repetitions = u32::try_from(runs).expect("few");
        for (run, repetition) in record.cells[0].runs.iter_mut().zip(1..) {
            run.repetition = repetition;
        }
        let is_complete = |change: &dyn Fn(&mut ExperimentRecord)| {
            let mut record = record.clone();
            change(&mut record);
            Part { experiment: experiment.clone(), folder: None, record: Ok(record), left_out: false }
                .is_cell_complete(&id)
        };
        let failed = |repetition: u32, kind: FailureKind| {
            move |record: &mut ExperimentRecord| {
                let text = String::new();
                record.cells[0].runs.pop();
                record.cells[0].failures = vec![CellFailure { repetition, kind, text, folder: None }];
            }
        };
        let last = record.repetitions;
        assert!(is_complete(&|_| {}), "whatever the others lack");
        assert!(!is_complete(&|record| drop(record.cells[0].runs.pop())));
        assert!(is_complete(&failed(last, FailureKind::OutOfMemory)), "a failure is a result");
        assert!(!is_complete(&failed(last, FailureKind::Interrupted)));
        assert!(is_complete(&failed(0, FailureKind::NotInstalled)), "no call can run it");
        let is_made = |record: &mut ExperimentRecord| {
            record.cells[0].runs.pop();
            record.status = Status::Complete;
        };
        assert!(is_complete(&is_made), "the last one was left out");
        let mut part = Part { experiment, folder: None, record: Err(NOT_RUN.to_owned()), left_out: false };
        assert!(!part.is_cell_complete(&id));
        part.left_out = true;
        assert!(part.is_cell_complete(&id));
    }

    #[test]
    fn cells_that_lack_runs_and_could_not_be_run_are_named_with_the_reason() {
        let text = "{name: t, workload: hello, axes: {system: [alphamq, betamq]}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).expect("an experiment");
        let mut record = sample_experiment::experiment();
        let refused = |record: &ExperimentRecord| runs(&experiment, record).refused;
        let label = &record.cells.iter().find(|cell| cell.runs.is_empty()).expect("a refused cell").label;
        let never_run = format!("{label}: not offered: gammamq grants at-least-once at most");
        assert_eq!(refused(&record), std::slice::from_ref(&never_run));
        // Its system was removed after its runs.
        let text = "`alphamq` is not here; it printed: no such file".to_owned();
        let removed = CellFailure { repetition: REFUSED, kind: FailureKind::NotInstalled, text, folder: None };
        record.cells[0].failures = vec![removed];
        assert_eq!(refused(&record), std::slice::from_ref(&never_run), "nothing of the first cell is missing");
        record.cells[0].runs.pop();
        let of_first = format!("{}: not installed: `alphamq` is not here", record.cells[0].label);
        assert_eq!(refused(&record), [of_first, never_run.clone()]);
        let text = String::new();
        let out_of_memory = FailureKind::OutOfMemory;
        let failed = CellFailure { repetition: record.repetitions, kind: out_of_memory, text, folder: None };
        record.cells[0].failures.push(failed);
        assert_eq!(refused(&record), [never_run], "a failure is a result");
    }

    #[test]
    fn the_conditions_of_runs_are_their_settings_and_those_of_their_systems_but_not_the_values_of_axes() {
        let of = |change: &str, axes: &str| {
            let text = format!("{{name: t, workload: hello, {change}axes: {{{axes}}}}}");
            let experiment = parse("t.yaml", &text, &|_, _| Ok(())).expect("an experiment");
            let mut record = sample_experiment::experiment();
            record.cells.truncate(1);
            record.cells[0].settings =
                [(SYSTEM.to_owned(), "alphamq".to_owned()), ("protocol".to_owned(), "mqtt5".to_owned())].into();
            conditions(&experiment, &record)
        };
        let one = of("", "system: [alphamq]");
        let system = &one["system alphamq"];
        assert!(system.ends_with(", mqtt5"), "{system}");
        assert_eq!(of("", "system: [alphamq, betamq], qos: [1, 2]"), one);
        assert_eq!(of("repeat: 9, duration: 7s, warmup: 3s, quiet_machine: {within: 1s}, ", "system: [alphamq]"), one);
        for change in ["seed: 7, ", "generator: {awake: true}, ", "set: {every: 2s}, ", "drain: 3s, "] {
            assert_ne!(of(change, "system: [alphamq]"), one, "{change}");
        }
        let varied = of("", "system: [alphamq], protocol: [mqtt5]");
        assert!(!varied["system alphamq"].contains("mqtt5"), "it is a value of an axis");
    }

    #[test]
    fn a_label_is_recorded_with_its_system_and_whether_that_is_ranked() {
        let text = "name: t\nworkload: hello\naxes:\n  system:\n    - {label: MQTT, system: alphamq, protocol: mqtt311}\n    \
                    - {label: CoAP, system: coap, protocol: coap}\n    - {label: Other, system: gammamq, protocol: mqtt5}\n    \
                    - {label: Not started, system: coap, protocol: coap}\n";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).expect("an experiment");
        let mut record = sample_experiment::experiment();
        record.cells.truncate(2);
        for (cell, (label, name)) in record.cells.iter_mut().zip([("MQTT", "alphamq"), ("CoAP", "coap")]) {
            cell.settings.insert(SYSTEM.to_owned(), label.to_owned());
            let system = cell.system.as_mut().expect("the sample's cells have systems");
            (system.name, system.ranked) = (name.to_owned(), name != "coap");
        }
        let found = compared(&experiment, &record);
        let found: Vec<(&str, &str, Option<&str>, bool)> = found
            .iter()
            .map(|one| (one.label.as_str(), one.system.as_str(), one.protocol.as_deref(), one.ranked))
            .collect();
        // What was not started has the name that the experiment gives it.
        let expected = [
            ("MQTT", "alphamq", Some("mqtt311"), true),
            ("CoAP", "coap", Some("coap"), false),
            ("Other", "gammamq", Some("mqtt5"), true),
            ("Not started", "coap", Some("coap"), false),
        ];
        assert_eq!(found, expected);
    }
}
