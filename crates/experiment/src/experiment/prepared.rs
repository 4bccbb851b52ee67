//! An experiment that is ready to be executed, from its definition or resumed from its folder.

use std::path::Path;
use std::sync::Arc;

use pubmark_model::experiment::Experiment;
use pubmark_model::workload::Workload;
use pubmark_record::by_reason::{by_reason, named};
use pubmark_record::store::RunFolder;
use pubmark_record::time::UtcTime;
use pubmark_runner::{ErrorKind, Host, JoinedNodes, RunError, command_line, now, save};

use super::definition;
use super::extension;
use super::fetching;
use super::folder::ExperimentFolder;
use super::journal::{self, Journal, JournalError, Planned};
use super::planning::{self, Cell, Plan, Refusal};
use super::result;
use super::runner::{Finished, Runner};
use crate::machines::Machines;
use crate::observer::{Event, Observer};

/// An experiment whose folder exists and whose runs can begin.
pub struct PreparedExperiment {
    plan: Plan,
    folder: ExperimentFolder,
    journal: Journal,
    host: Host,
    /// Machines that all runs share.
    joined: Option<Arc<JoinedNodes>>,
}

impl PreparedExperiment {
    /// Waits for machines that join, and creates a new folder below `out`; paths of the definition are relative to
    /// `folder`. From then on only the content of the new folder matters.
    ///
    /// # Errors
    /// A cell cannot be planned, nothing can be run here, a password would be saved, machines did not join, or the
    /// folder cannot be written.
    pub fn begin(
        experiment: Experiment,
        folder: Option<&Path>,
        out: &Path,
        host: &Host,
        machines: &Machines,
        observer: &mut dyn Observer,
    ) -> Result<PreparedExperiment, RunError> {
        let from = planning::absolute(folder)?;
        let mut plan = Plan::new(experiment.clone(), &from, host, machines)?;
        refuse_if_nothing_runs(&plan.cells)?;
        let bundle = definition::bundle(experiment, &from);
        let secrets = secrets(&plan.cells, |run| &run.workload);
        bundle.refuse_passwords(&secrets)?;
        let joined = join(&plan, machines, host, observer)?;
        // What the machines refuse leaves no folder.
        share(&mut plan, joined.as_ref())?;
        let made = RunFolder::create(out, &bundle.experiment.name, now()).map_err(|error| save::no_folder(&error))?;
        bundle.write(made.path())?;
        let mut plan = Plan::new(bundle.experiment, &planning::absolute(Some(made.path()))?, host, machines)?;
        share(&mut plan, joined.as_ref())?;
        let at = UtcTime::from_system_time(now()).rfc3339();
        let planned =
            Planned::new(at, command_line::shown(host.command.clone(), &[]), plan.schedules(), machines.count());
        let (system_node, observers) = (machines.system_node.clone(), machines.nodes.observers);
        let planned = Planned { system_node, observers, definition: definition::hashes(made.path())?, ..planned };
        let journal = Journal::create(made.path(), planned).map_err(unusable)?;
        made.mark_latest().map_err(|error| save::no_folder(&error))?;
        Ok(PreparedExperiment { plan, folder: ExperimentFolder::at(made.path()), journal, host: host.clone(), joined })
    }

    /// Checks whether [`PreparedExperiment::begin`] would succeed, without the schedules and before machines join.
    /// Writes nothing.
    ///
    /// # Errors
    /// Those of [`PreparedExperiment::begin`].
    pub fn check(
        experiment: Experiment,
        folder: Option<&Path>,
        host: &Host,
        machines: &Machines,
    ) -> Result<(), RunError> {
        let from = planning::absolute(folder)?;
        let cells = planning::check(&experiment, &from, host, machines)?;
        refuse_if_nothing_runs(&cells)?;
        definition::bundle(experiment, &from).refuse_passwords(&secrets(&cells, |run| &run.workload))
    }

    /// Resumes the experiment in a folder, on as many machines as before and with the same version of pubmark. That these
    /// are the same machines is not checked; the record has a caution where this machine, or those of nodes with clients, are not.
    /// Of a node that starts the systems only the name is compared.
    ///
    /// # Errors
    /// The folder has no experiment, another process executes it, its definition, its workload, the number of its machines or
    /// the version of pubmark has changed since, or machines did not join.
    pub fn resume(
        folder: &Path,
        host: &Host,
        machines: &Machines,
        observer: &mut dyn Observer,
    ) -> Result<PreparedExperiment, RunError> {
        PreparedExperiment::go_on(folder, None, host, machines, observer)
    }

    /// Resumes the experiment in a folder with further values of its axes: those of `wanted`, which has all that the
    /// experiment has, and names no files that are not in the folder. Runs that were made remain. All else of `wanted` but the
    /// axes, and the publications' figures, is ignored.
    ///
    /// # Errors
    /// Those of [`PreparedExperiment::resume`]; a cell would be run in another way than before.
    pub fn extend(
        folder: &Path,
        wanted: &Experiment,
        host: &Host,
        machines: &Machines,
        observer: &mut dyn Observer,
    ) -> Result<PreparedExperiment, RunError> {
        PreparedExperiment::go_on(folder, Some(wanted), host, machines, observer)
    }

    fn go_on(
        folder: &Path,
        wanted: Option<&Experiment>,
        host: &Host,
        machines: &Machines,
        observer: &mut dyn Observer,
    ) -> Result<PreparedExperiment, RunError> {
        let mut experiment = definition::in_experiment(folder)?;
        let mut journal = Journal::open(folder).map_err(unusable)?;
        let mut is_extended = extension::finish(&journal, folder)?;
        if is_extended {
            experiment = definition::in_experiment(folder)?;
        }
        refuse_other_version(journal.events(), folder)?;
        refuse_other_machines(journal.planned(), machines, folder)?;
        refuse_if_edited(journal.planned(), folder)?;
        let mut plan = Plan::new(experiment, &planning::absolute(Some(folder))?, host, machines)?;
        refuse_if_changed(&plan, journal.planned(), folder)?;
        if let Some(Experiment { axes, papers, .. }) = wanted {
            let extended = Experiment { axes: axes.clone(), papers: papers.clone(), ..plan.experiment.clone() };
            if extended != plan.experiment {
                plan = extension::extend(&mut journal, &plan, extended, folder, host, machines)?;
                is_extended = true;
            }
        }
        if is_extended {
            // The record has the ids of before.
            let folder = ExperimentFolder::at(folder);
            result::write(&result::record(&plan, &journal, &folder, false)?, &folder)?;
        }
        let earlier = journal.last_order_before_extension();
        plan.turns.iter_mut().for_each(|turn| turn.order += earlier);
        let joined = join(&plan, machines, host, observer)?;
        share(&mut plan, joined.as_ref())?;
        Ok(PreparedExperiment { plan, folder: ExperimentFolder::at(folder), journal, host: host.clone(), joined })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Refuses other machines than those with which the experiment in a folder began. Its journal may be in use.
    ///
    /// # Errors
    /// Their number, the node that starts the systems, or the number of observers differs.
    pub fn check_machines(folder: &Path, machines: &Machines) -> Result<(), RunError> {
        journal::plan_of(folder).map_or(Ok(()), |began| refuse_other_machines(&began, machines, folder))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.plan.experiment.name
    }

    /// Executes every run that is not done, until all are done or [`Host::stop`] is set.
    ///
    /// # Errors
    /// The journal cannot be written, or a run failed for a reason that is not due to the system or the cell.
    pub fn perform(self, observer: &mut dyn Observer) -> Result<Finished, RunError> {
        let PreparedExperiment { mut plan, folder, journal, host, joined } = self;
        fetching::images(&mut plan, &folder.path, observer);
        for (refusal, cells) in refused(&plan.cells) {
            observer.event(&Event::CellsRefused { cells: &cells, refusal });
        }
        plan.cautions.iter().for_each(|caution| observer.event(&Event::Caution(caution)));
        let (plan, folder, stop, joined) = (&plan, &folder, &host.stop, joined.as_deref());
        Runner { plan, folder, journal, observer, stop, joined, has_waited: false }.perform()
    }
}

/// Waits for the machines that all runs share; `None` if everything is on this one.
fn join(
    plan: &Plan,
    machines: &Machines,
    host: &Host,
    observer: &mut dyn Observer,
) -> Result<Option<Arc<JoinedNodes>>, RunError> {
    let runs = plan.cells.iter().filter_map(|cell| cell.run.as_ref().ok());
    machines.join(runs.map(|run| &run.spec), &host.stop, observer)
}

/// Makes every run use the machines.
fn share(plan: &mut Plan, joined: Option<&Arc<JoinedNodes>>) -> Result<(), RunError> {
    let Some(joined) = joined else { return Ok(()) };
    for cell in &mut plan.cells {
        if let Ok(run) = &mut cell.run {
            run.use_nodes(joined)
                .map_err(|error| error.during(format!("cell `{}` cannot be run", cell.planned.label)))?;
        }
    }
    Ok(())
}

/// Refuses an experiment that another version of pubmark was at, because its runs would be averaged with those of this one.
fn refuse_other_version(events: &[journal::Event], folder: &Path) -> Result<(), RunError> {
    const THIS: &str = env!("CARGO_PKG_VERSION");
    let other = events.iter().find_map(|event| match event {
        journal::Event::Started { pubmark_version, .. } if pubmark_version != THIS => Some(pubmark_version),
        _ => None,
    });
    let Some(other) = other else { return Ok(()) };
    Err(RunError::input(format!(
        "the experiment in `{}` was made with pubmark {other}, and this is {THIS}",
        folder.display()
    ))
    .hint(format!("resume it with pubmark {other}, or run it again in a new folder")))
}

/// Refuses other machines, because their runs would be averaged with the earlier ones.
fn refuse_other_machines(began: &Planned, machines: &Machines, folder: &Path) -> Result<(), RunError> {
    let before = began.nodes;
    let node = |node: &Option<String>| match node {
        Some(node) => format!("its systems on node `{node}`"),
        None => "its systems on this machine".to_owned(),
    };
    let observers = |count: Option<u16>| match count {
        None => "no observer".to_owned(),
        Some(1) => "1 observer".to_owned(),
        Some(count) => format!("{count} observers"),
    };
    let both = [
        ("--system-node", node(&began.system_node), node(&machines.system_node)),
        ("--observers", observers(began.observers), observers(machines.nodes.observers)),
    ];
    if let Some((option, was, is)) = both.into_iter().find(|(_, was, is)| was != is) {
        return Err(RunError::input(format!("the experiment in `{}` began with {was}, not {is}", folder.display()))
            .hint(format!("`pubmark experiment --resume` with the `{option}` that it began with, or without")));
    }
    if before == machines.count() {
        return Ok(());
    }
    let words = |count: Option<u16>| match count {
        None => "on this machine alone".to_owned(),
        Some(1) => "on 1 machine that joined".to_owned(),
        Some(count) => format!("on {count} machines that joined"),
    };
    let option = before.map_or_else(String::new, |count| format!(" --nodes {count}"));
    Err(RunError::input(format!(
        "the experiment in `{}` began {}, not {}",
        folder.display(),
        words(before),
        words(machines.count())
    ))
    .hint(format!("`pubmark experiment --resume {}{option}`", folder.display())))
}

/// Reasons for which cells cannot be run, with their cells.
fn refused<Run>(cells: &[Cell<Run>]) -> Vec<(&Refusal, Vec<&str>)> {
    by_reason(cells.iter().filter_map(|cell| Some((cell.planned.label.as_str(), cell.run.as_ref().err()?))))
}

/// Refuses an experiment without a cell that can be run.
fn refuse_if_nothing_runs<Run>(cells: &[Cell<Run>]) -> Result<(), RunError> {
    if cells.iter().any(|cell| cell.run.is_ok()) {
        return Ok(());
    }
    let mut error = RunError::new(ErrorKind::NotInstalled, "nothing of this experiment can be run here");
    error.chain.extend(refused(cells).iter().map(|(refusal, cells)| format!("{}: {}", named(cells), refusal.text)));
    Err(error.hint("`pubmark list systems NAME` shows what a system offers and whether it is installed"))
}

/// Parameters whose values are passwords in the cells' workloads.
fn secrets<Run>(cells: &[Cell<Run>], workload: impl Fn(&Run) -> &Workload) -> Vec<String> {
    let runs = cells.iter().filter_map(|cell| cell.run.as_ref().ok());
    runs.flat_map(|run| workload(run).secret_parameters.iter().cloned()).collect()
}

/// Refuses an edited definition: a cell with the same name would mean something else.
fn refuse_if_edited(planned: &Planned, folder: &Path) -> Result<(), RunError> {
    let was = &planned.definition;
    if was.is_empty() {
        return Ok(());
    }
    let is = definition::hashes(folder)?;
    let Some(name) = was.keys().chain(is.keys()).find(|name| was.get(*name) != is.get(*name)) else { return Ok(()) };
    Err(RunError::input(format!("`{name}` in `{}` is not what it was when the experiment began", folder.display()))
        .hint(format!(
            "undo the change, or run what is written there now in a new folder: `pubmark experiment {}`",
            folder.join(definition::DEFINITION_FILE).display()
        )))
}

/// Refuses a changed experiment, because runs before and after the change would be averaged.
fn refuse_if_changed(plan: &Plan, planned: &Planned, folder: &Path) -> Result<(), RunError> {
    let now = plan.schedules();
    let mut both = planned.schedules.iter().filter_map(|(cell, was)| Some((cell, was, now.get(cell)?)));
    match both.find(|(_, was, is)| was != is) {
        Some((cell, was, is)) => Err(RunError::input(format!(
            "the schedule of `{cell}` in `{}` was {was} when the experiment began and is {is} now",
            folder.display()
        ))
        .hint("its workload, or pubmark, has changed: run the experiment again in a new folder")),
        None => Ok(()),
    }
}

fn unusable(error: JournalError) -> RunError {
    let found = RunError::from_error(ErrorKind::Input, &error);
    match error {
        JournalError::NotFound { .. } => found.hint("give the folder of an experiment; `pubmark experiment` makes one"),
        JournalError::InUse { .. } => found.hint("wait for its end, or stop it with Ctrl-C"),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Begins an experiment with one system in this folder, and returns its own folder.
    fn begun(place: &Path, system: &str) -> PathBuf {
        let (host, machines) = (Host::with_program("pubmark"), Machines::default());
        let text =
            format!("{{name: t, workload: hello, repeat: 1, duration: 1s, warmup: 0s, axes: {{system: {system}}}}}");
        let experiment = definition::parse(&text, place).unwrap();
        let begun = PreparedExperiment::begin(experiment, Some(place), place, &host, &machines, &mut ()).unwrap();
        begun.folder().to_owned()
    }

    #[test]
    fn an_experiment_whose_definition_was_edited_is_not_resumed() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("mine.yaml"), include_str!("../../../../systems/builtin.yaml")).unwrap();
        let folder = begun(place.path(), "./mine.yaml");
        let (host, machines) = (Host::with_program("pubmark"), Machines::default());
        let resumed = || PreparedExperiment::resume(&folder, &host, &machines, &mut ()).err();
        let edited = |file: &str, old: &str, new: &str| {
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(old), "{text}");
            std::fs::write(&path, text.replacen(old, new, 1)).unwrap();
            let error = resumed();
            std::fs::write(&path, text).unwrap();
            error
        };
        assert!(resumed().is_none());
        assert!(edited("experiment.yaml", "repeat: 1\n", "repeat: 1 # one\n").is_none(), "it means the same");
        let error = edited("experiment.yaml", "repeat: 1\n", "repeat: 2\n").unwrap();
        let text = error.to_string();
        assert!(error.kind == ErrorKind::Input && text.starts_with("`experiment.yaml: repeat` in `"), "{text}");
        assert!(error.hint.unwrap().ends_with("/experiment.yaml`"));
        let error = edited("systems/mine.yaml", "title: ", "title: Another ").unwrap().to_string();
        assert!(error.starts_with("`systems/mine.yaml` in `"), "{error}");
    }

    #[test]
    fn other_machines_than_those_of_the_first_runs_are_refused_while_the_journal_is_in_use() {
        let place = tempfile::tempdir().unwrap();
        let folder = begun(place.path(), "builtin");
        let _in_use = Journal::open(&folder).unwrap();
        let mut machines = Machines::default();
        PreparedExperiment::check_machines(&folder, &machines).unwrap();
        machines.nodes.nodes = Some(2);
        let error = PreparedExperiment::check_machines(&folder, &machines).unwrap_err().to_string();
        assert!(error.ends_with("began on this machine alone, not on 2 machines that joined"), "{error}");
        PreparedExperiment::check_machines(place.path(), &machines).unwrap();
    }

    #[test]
    fn an_experiment_that_another_version_was_at_is_not_resumed() {
        let place = tempfile::tempdir().unwrap();
        let (host, machines) = (Host::with_program("pubmark"), Machines::default());
        let folder = begun(place.path(), "builtin");
        let note = |version: &str| {
            let (at, pubmark_version) = ("2026-01-01T00:00:00Z".to_owned(), version.to_owned());
            Journal::open(&folder).unwrap().add(journal::Event::Started { at, pubmark_version }).unwrap();
        };
        let resumed = || PreparedExperiment::resume(&folder, &host, &machines, &mut ());
        note(env!("CARGO_PKG_VERSION"));
        assert!(resumed().is_ok());
        note("0.0.1");
        let error = resumed().err().unwrap();
        let text = error.to_string();
        assert!(error.kind == ErrorKind::Input && text.contains("was made with pubmark 0.0.1"), "{text}");
        assert!(error.hint.unwrap().contains("new folder"));
    }
}
