//! Carrying an experiment out, from its definition to its results; or going on with one that was stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pubmark_model::experiment::Experiment;
use pubmark_record::experiment::{CellFailure, ExperimentRecord, FailureKind};
use pubmark_record::record::VerdictStatus;
use pubmark_record::store::RunFolder;
use pubmark_record::time::UtcTime;
use pubmark_report::terminal::{self, TerminalOptions};
use pubmark_runner::{Host, command_line, now, save};

use super::definition;
use super::dry_run;
use super::fetching;
use super::folder::ExperimentFolder;
use super::journal::{Journal, JournalError, Planned};
use super::planning::{self, Plan};
use super::runner::{Finished, Runner};
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::{host, signals};

/// How an experiment is carried out, and what is printed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder in which its folder is made.
    pub out: PathBuf,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
    /// Print the record as JSON.
    pub json: bool,
}

/// Carries an experiment out. Its paths count from `folder`.
pub fn conduct(experiment: Experiment, folder: Option<&Path>, options: &Options, printer: &Printer) -> Outcome {
    let host = Host { stop: signals::watch()?, ..host::this() };
    let from = planning::absolute(folder)?;
    let plan = Plan::new(experiment.clone(), &from, &host)?;
    if options.dry_run {
        printer.result(&dry_run::text(&plan)?)?;
        return Ok(ExitCode::Ok);
    }
    refuse_if_nothing_runs(&plan)?;
    let kept = definition::kept(experiment, &from);
    let workloads = plan.cells.iter().filter_map(|cell| cell.run.as_ref().ok());
    let secrets: Vec<String> = workloads.flat_map(|run| run.workload.secret_parameters.iter().cloned()).collect();
    kept.refuse_passwords(&secrets)?;
    let made =
        RunFolder::create(&options.out, &kept.experiment.name, now()).map_err(|error| save::no_folder(&error))?;
    kept.write(made.path())?;
    // From here on everything rests on what is in the folder.
    let mut plan = Plan::new(kept.experiment, &planning::absolute(Some(made.path()))?, &host)?;
    let planned = Planned::new(
        UtcTime::from_system_time(now()).rfc3339(),
        command_line::shown(host::command(), &[]),
        plan.schedules(),
    );
    let journal = Journal::create(made.path(), planned).map_err(unusable)?;
    made.mark_latest().map_err(|error| save::no_folder(&error))?;
    perform(&mut plan, &ExperimentFolder::at(made.path()), journal, options.json, printer, &host.stop)
}

/// Goes on with the experiment in a folder.
pub fn resume(folder: &Path, json: bool, printer: &Printer) -> Outcome {
    let host = Host { stop: signals::watch()?, ..host::this() };
    let experiment = definition::in_experiment(folder)?;
    let journal = Journal::open(folder).map_err(unusable)?;
    let mut plan = Plan::new(experiment, &planning::absolute(Some(folder))?, &host)?;
    refuse_if_changed(&plan, journal.planned(), folder)?;
    perform(&mut plan, &ExperimentFolder::at(folder), journal, json, printer, &host.stop)
}

fn perform(
    plan: &mut Plan,
    folder: &ExperimentFolder,
    journal: Journal,
    json: bool,
    printer: &Printer,
    stop: &AtomicBool,
) -> Outcome {
    fetching::images(plan, &folder.path, printer);
    for cell in &plan.cells {
        if let Err(refusal) = &cell.run {
            printer.note(&format!("{}: {}: {}", cell.planned.label, refusal.kind.words(), refusal.text));
        }
    }
    plan.cautions.iter().for_each(|caution| printer.note(caution));
    let Finished { record, complete, unwritten } = Runner { plan, folder, journal, printer, stop }.perform()?;
    if json {
        let text =
            serde_json::to_string_pretty(&record).map_err(|error| Failure::from_error(ExitCode::Internal, &error))?;
        printer.result(&text)?;
    } else {
        let shown = folder.path.display().to_string();
        let options = TerminalOptions { colour: printer.colours_result(), folder: Some(&shown) };
        printer.result(&terminal::experiment(&record, &options))?;
    }
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    if !complete {
        let path = folder.path.display();
        printer.note(&format!("stopped before its end; to go on: pubmark experiment --resume {path}"));
        return Ok(ExitCode::Interrupted);
    }
    Ok(exit_of(&record))
}

/// Without a cell that can be run there is nothing to do.
fn refuse_if_nothing_runs(plan: &Plan) -> Result<(), Failure> {
    if plan.runs().next().is_some() {
        return Ok(());
    }
    let mut failure = Failure::new(ExitCode::SystemFailed, "nothing of this experiment can be run here");
    let refusals = plan.cells.iter().filter_map(|cell| Some((&cell.planned.label, cell.run.as_ref().err()?)));
    failure.chain.extend(refusals.map(|(label, refusal)| format!("{label}: {}", refusal.text)));
    Err(failure.hint("`pubmark list systems` shows what each system offers and whether it is installed"))
}

/// Runs made before and after a change would be averaged.
fn refuse_if_changed(plan: &Plan, planned: &Planned, folder: &Path) -> Result<(), Failure> {
    let now = plan.schedules();
    let mut both = planned.schedules.iter().filter_map(|(cell, was)| Some((cell, was, now.get(cell)?)));
    match both.find(|(_, was, is)| was != is) {
        Some((cell, was, is)) => Err(Failure::usage(format!(
            "the schedule of `{cell}` in `{}` was {was} when the experiment began and is {is} now",
            folder.display()
        ))
        .hint("its workload, or pubmark, has changed: run the experiment again in a new folder")),
        None => Ok(()),
    }
}

fn unusable(error: JournalError) -> Failure {
    let failure = Failure::from_error(ExitCode::Usage, &error);
    match error {
        JournalError::NotFound { .. } => {
            failure.hint("give the folder of an experiment; `pubmark experiment` makes one")
        }
        JournalError::InUse { .. } => failure.hint("wait for its end, or stop it with Ctrl-C"),
        _ => failure,
    }
}

/// The code of an experiment that came to its end: it failed only if no run of it counts wholly.
fn exit_of(record: &ExperimentRecord) -> ExitCode {
    let verdicts = || record.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.verdict);
    if verdicts().any(|verdict| verdict != VerdictStatus::Invalid) {
        return ExitCode::Ok;
    }
    let is_ours = |failure: &CellFailure| matches!(failure.kind, FailureKind::GeneratorLimited | FailureKind::Invalid);
    let was_late = verdicts().next().is_some();
    match was_late || record.cells.iter().flat_map(|cell| &cell.failures).any(is_ours) {
        true => ExitCode::InvalidRun,
        false => ExitCode::SystemFailed,
    }
}
