//! Builds the record of an experiment from its journal and the folders of its runs, whether it is complete or not.

use std::collections::BTreeMap;

use pubmark_model::experiment::Experiment;
use pubmark_record::evaluation::{self, CellInput, RunInput};
use pubmark_record::experiment::{
    Cell as ExperimentCell, CellFailure, CellRun, EXPERIMENT_FILE, EXPERIMENT_SCHEMA_VERSION, ExperimentRecord,
    FailureKind, PaperFigures, PaperValue,
};
use pubmark_record::nodes::JoinedMachines;
use pubmark_record::record::{Environment, Record, Status, VerdictStatus};
use pubmark_record::store;
use pubmark_record::verdict::usable::{Usable, usable};
use pubmark_report::numbers::counted as number_of;
use pubmark_runner::{ErrorKind, RunError};
use pubmark_systems::environment;

use super::definition;
use super::folder::ExperimentFolder;
use super::journal::{Effort, Event, Extended, Journal, RunPosition};
use super::planning::{Cell, Plan};
use super::progress::LEFT_OUT_AFTER;

/// Builds the record. `complete` states whether all planned runs were executed.
pub fn record(
    plan: &Plan,
    journal: &Journal,
    folder: &ExperimentFolder,
    complete: bool,
) -> Result<ExperimentRecord, RunError> {
    let inputs: Vec<CellInput> =
        plan.cells.iter().map(|cell| input(cell, journal, folder)).collect::<Result<_, _>>()?;
    let experiment = &plan.experiment;
    let judged = evaluation::evaluate(&plan.axes, experiment.order_seed, &inputs).map_err(|error| {
        RunError::from_error(ErrorKind::Input, &error).hint("run the experiment again in a new folder")
    })?;
    let mut cells = judged.cells;
    for (judged, planned) in cells.iter_mut().zip(&plan.cells) {
        // Known before anything is run.
        if let Ok(run) = &planned.run {
            judged.schedule_hash.get_or_insert_with(|| run.schedule.hash.clone());
        }
    }
    let planned = journal.planned();
    let joined = JoinedMachines::new(planned.nodes, planned.system_node.as_deref());
    // A call that executes no further run does not describe the machine of the runs.
    let runs = |cells: &[ExperimentCell]| cells.iter().map(|cell| cell.runs.len()).sum::<usize>();
    let earlier: Option<ExperimentRecord> = store::load_as(&folder.path).ok();
    let unchanged =
        earlier.filter(|earlier| earlier.status == Status::Complete && runs(&earlier.cells) == runs(&cells));
    let environment = unchanged.map_or_else(|| after_runs(environment::read()), |earlier| earlier.environment);
    Ok(ExperimentRecord {
        schema_version: EXPERIMENT_SCHEMA_VERSION,
        pubmark_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: folder.name.clone(),
        title: experiment.title.clone(),
        command: planned.command.clone(),
        started_at: planned.at.clone(),
        took_s: took_s(journal.events()),
        status: if complete { Status::Complete } else { Status::Interrupted },
        workload: workload_name(plan),
        variant: experiment.variant.as_str().to_owned(),
        has_readings: plan.has_readings(),
        seed: experiment.seed,
        order_seed: experiment.order_seed,
        repetitions: experiment.repeat,
        warmup_s: experiment.warmup.as_secs_f64(),
        duration_s: experiment.duration.as_secs_f64(),
        axes: plan.axes.clone(),
        cells,
        contests: judged.contests,
        cautions: [judged.cautions, plan.cautions.clone(), left_out(plan, journal.events()), added(journal.events())]
            .concat(),
        papers: papers(experiment, plan),
        environment,
        nodes: joined.map(|joined| {
            let runs = inputs.iter().flat_map(|cell| &cell.runs);
            joined.with_machines(runs.map(|run| run.record.tables.nodes.as_slice()))
        }),
        definition: experiment.to_yaml(),
    })
}

/// The environment as it was read after the runs: the load in it is not that before them.
fn after_runs(read: Environment) -> Environment {
    Environment { load_before: None, load_after: read.load_before, ..read }
}

/// Figures of publications, by cell.
fn papers(experiment: &Experiment, plan: &Plan) -> Vec<PaperFigures> {
    let of = |paper: &pubmark_model::experiment::PaperFigures| {
        let value = |row: &pubmark_model::experiment::PaperRow| {
            let cells = plan.cells.iter().filter(|cell| {
                let mut values = paper.columns.iter().zip(&row.at);
                values.all(|(column, value)| cell.planned.values.get(column) == Some(value))
            });
            cells.map(|cell| PaperValue { cell: cell.planned.id.clone(), value: row.value }).collect::<Vec<_>>()
        };
        PaperFigures {
            source: paper.source.clone(),
            versions: paper.versions.clone(),
            figure: paper.figure.clone(),
            differs: paper.differs.clone(),
            values: paper.rows.iter().flat_map(value).collect(),
        }
    };
    experiment.papers.iter().map(of).collect()
}

/// Writes the record and all files that are generated from it to the experiment's folder.
pub fn write(record: &ExperimentRecord, folder: &ExperimentFolder) -> Result<(), RunError> {
    let mut text =
        serde_json::to_string_pretty(record).map_err(|error| RunError::from_error(ErrorKind::Internal, &error))?;
    text.push('\n');
    // The record is written first, because the other files can be generated from it.
    let mut files = vec![(EXPERIMENT_FILE.to_owned(), text)];
    files.extend(pubmark_report::exports::experiment(record));
    folder.write(&files).map_err(|failure| RunError { kind: ErrorKind::NotWritten, ..failure })
}

/// The workload's own name, as records of runs have it; what was written where no cell could load it.
fn workload_name(plan: &Plan) -> String {
    if !plan.experiment.axes.workload.is_empty() {
        return definition::workload_words(&plan.experiment);
    }
    let own = plan.cells.iter().find_map(|cell| Some(cell.run.as_ref().ok()?.workload.name.clone()));
    own.unwrap_or_else(|| plan.experiment.workload.clone())
}

fn input(cell: &Cell, journal: &Journal, folder: &ExperimentFolder) -> Result<CellInput, RunError> {
    let id = cell.planned.id.as_str();
    let mut runs: Vec<RunInput> = vec![];
    let mut failures: Vec<CellFailure> = match &cell.run {
        Err(refusal) => {
            vec![CellFailure { repetition: 0, kind: refusal.kind, text: refusal.text.clone(), folder: None }]
        }
        Ok(_) => vec![],
    };
    for (place, event) in ends(journal.events()).into_iter().filter(|(place, _)| place.cell == id) {
        match event {
            Event::Counted { folder: run, verdict, effort, .. } => {
                runs.push(counted(place, *verdict, effort, folder, run, folder.record(run)?)?);
            }
            Event::Failed { kind, text, folder: run, effort, .. } => match but_for_times(*kind, folder, run)? {
                Some((run, record)) => runs.push(counted(place, VerdictStatus::Invalid, effort, folder, run, record)?),
                None => failures.push(CellFailure {
                    repetition: place.repetition,
                    kind: *kind,
                    text: text.clone(),
                    folder: run.clone(),
                }),
            },
            Event::Began(_) | Event::Stopped { .. } => failures.push(CellFailure {
                repetition: place.repetition,
                kind: FailureKind::Interrupted,
                text: "it was stopped before its end; a resumed experiment makes it again".to_owned(),
                folder: match event {
                    Event::Stopped { folder, .. } => folder.clone(),
                    _ => None,
                },
            }),
            Event::Planned(_) | Event::Extended(_) | Event::Started { .. } | Event::Skipped(_) => {}
        }
    }
    runs.sort_by_key(|run| run.run.repetition);
    failures.sort_by_key(|failure| failure.repetition);
    Ok(CellInput {
        id: id.to_owned(),
        label: cell.planned.label.clone(),
        settings: cell.planned.values.clone(),
        runs,
        failures,
    })
}

fn counted(
    place: &RunPosition,
    verdict: VerdictStatus,
    effort: &Effort,
    folder: &ExperimentFolder,
    run: &str,
    record: Record,
) -> Result<RunInput, RunError> {
    let run = CellRun {
        repetition: place.repetition,
        order: place.order,
        folder: run.to_owned(),
        verdict,
        waited_ms: effort.waited_ms,
        busy: effort.busy,
    };
    let (latency, latency_lower) = (folder.latency(&run.folder)?, folder.latency_lower(&run.folder)?);
    Ok(RunInput { latency, latency_lower, run, record })
}

/// The record and folder of a failed run of which everything except the times may be used.
fn but_for_times<'a>(
    kind: FailureKind,
    folder: &ExperimentFolder,
    run: &'a Option<String>,
) -> Result<Option<(&'a str, Record)>, RunError> {
    let is_ours = matches!(kind, FailureKind::GeneratorLimited | FailureKind::Invalid);
    let Some(run) = run.as_deref().filter(|_| is_ours) else { return Ok(None) };
    let record = folder.record(run)?;
    Ok((usable(&record) == Usable::AllButTimes).then_some((run, record)))
}

/// The last event of each run, with its position, in the order of the cells' ids and repetitions.
pub fn ends(events: &[Event]) -> Vec<(&RunPosition, &Event)> {
    let mut ends = BTreeMap::new();
    for event in events {
        match event {
            Event::Began(place)
            | Event::Skipped(place)
            | Event::Counted { place, .. }
            | Event::Failed { place, .. }
            | Event::Stopped { place, .. } => {
                ends.insert((&place.cell, place.repetition), (place, event));
            }
            Event::Planned(_) | Event::Extended(_) | Event::Started { .. } => {}
        }
    }
    ends.into_values().collect()
}

/// Total time of all runs and waits, seconds, over all calls.
fn took_s(events: &[Event]) -> f64 {
    events
        .iter()
        .map(|event| match event {
            Event::Counted { effort, .. } | Event::Failed { effort, .. } | Event::Stopped { effort, .. } => {
                effort.took_s
            }
            _ => 0.0,
        })
        .sum()
}

/// A note about repetitions that were left out, with the reason.
fn left_out(plan: &Plan, events: &[Event]) -> Vec<String> {
    plan.cells
        .iter()
        .filter_map(|cell| {
            let of_cell = |place: &RunPosition| place.cell == cell.planned.id;
            let left: Vec<String> = ends(events)
                .into_iter()
                .filter(|(place, event)| of_cell(place) && matches!(event, Event::Skipped(_)))
                .map(|(place, _)| place.repetition.to_string())
                .collect();
            let kind = events.iter().rev().find_map(|event| match event {
                Event::Failed { place, kind, .. } if of_cell(place) => Some(*kind),
                _ => None,
            })?;
            (!left.is_empty()).then(|| {
                let (label, left, words) = (&cell.planned.label, left.join(", "), kind.words());
                format!("{label}: repetition {left} left out after {LEFT_OUT_AFTER} failures ({words}).")
            })
        })
        .collect()
}

/// A note about cells that were added when others had runs: the blocks of these runs do not have them.
fn added(events: &[Event]) -> Vec<String> {
    let is_run = |event: &Event| matches!(event, Event::Counted { .. } | Event::Failed { .. });
    let note = |(position, event): (usize, &Event)| {
        let Event::Extended(Extended { at, added: added @ 1.., .. }) = event else { return None };
        let date = at.split('T').next().unwrap_or(at);
        let cells = number_of(*added as u64, "cell", "cells");
        events[..position].iter().any(is_run).then(|| {
            format!(
                "added on {date}, after runs of the others: {cells}. A change of the machine since then looks like a \
                 difference between these and the others."
            )
        })
    };
    events.iter().enumerate().filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_after_the_runs_is_not_recorded_as_that_before_them() {
        let read = environment::read();
        let found = after_runs(read.clone());
        assert_eq!((found.load_before, found.load_after), (None, read.load_before));
    }

    #[test]
    fn cells_that_were_added_after_runs_are_noted() {
        let place = RunPosition { order: 1, cell: "a".to_owned(), repetition: 1 };
        let (folder, effort) = (String::new(), Effort::default());
        let run = Event::Counted { place, folder, verdict: VerdictStatus::Valid, effort };
        let extended = |added: usize| {
            Event::Extended(Extended {
                at: "2026-03-01T09:05:07Z".to_owned(),
                cells: BTreeMap::new(),
                added,
                schedules: BTreeMap::new(),
                definition: BTreeMap::new(),
                text: String::new(),
            })
        };
        let note = added(&[run.clone(), extended(2)]);
        assert!(
            note.len() == 1 && note[0].starts_with("added on 2026-03-01, after runs of the others: 2 cells."),
            "{note:?}"
        );
        assert!(added(&[extended(2), run.clone()]).is_empty(), "all runs are of all cells");
        assert!(added(&[run, extended(0)]).is_empty(), "only printed figures changed");
    }
}
