//! Adds values to the axes of an experiment that began. The runs that were made remain; the cells' ids and the order of the
//! runs change with the axes.

use std::collections::BTreeMap;
use std::path::Path;

use pubmark_model::experiment::{Experiment, Turn};
use pubmark_record::time::UtcTime;
use pubmark_runner::{ErrorKind, Host, RunError, now, save};

use super::definition::{self, DEFINITION_FILE};
use super::folder::ExperimentFolder;
use super::journal::{Event, Extended, Journal, RunPosition};
use super::planning::{self, Plan};
use crate::machines::Machines;

/// Extends an experiment to a definition that has all its values, and further ones. The journal is written first, and the
/// definition's file after it.
///
/// # Errors
/// A cell of the experiment would be run with other settings than before, or the folder cannot be written.
pub fn extend(
    journal: &mut Journal,
    began: &Plan,
    extended: Experiment,
    folder: &Path,
    host: &Host,
    machines: &Machines,
) -> Result<Plan, RunError> {
    let plan = Plan::new(extended, &planning::absolute(Some(folder))?, host, machines)?;
    let cells = present_ids(began, &plan, folder)?;
    refuse_folder_of_another(journal.events(), &cells, &plan, folder)?;
    let mut schedules = plan.schedules();
    // A system may have been removed since.
    let earlier = journal.planned().schedules.iter();
    schedules.extend(earlier.filter_map(|(id, hash)| Some((cells.get(id)?.clone(), hash.clone()))));
    let text = plan.experiment.to_yaml();
    let event = Extended {
        at: UtcTime::from_system_time(now()).rfc3339(),
        added: plan.cells.len() - cells.len(),
        cells,
        schedules,
        definition: definition::hashes_of(&plan.experiment, folder)?,
        text,
    };
    journal.add(Event::Extended(event)).map_err(|error| RunError::from_error(ErrorKind::Input, &error))?;
    finish(journal, folder)?;
    Ok(plan)
}

/// Writes the definition of an extension after which nothing was done: the process may have ended before it was written.
/// Returns whether there was one.
///
/// # Errors
/// The file cannot be written.
pub fn finish(journal: &Journal, folder: &Path) -> Result<bool, RunError> {
    let Some(Event::Extended(extended)) = journal.events().last() else { return Ok(false) };
    save::write(&folder.join(DEFINITION_FILE), &extended.text).map(|()| true)
}

/// The ids of the earlier cells, with those of the same cells in the extended plan.
fn present_ids(began: &Plan, plan: &Plan, folder: &Path) -> Result<BTreeMap<String, String>, RunError> {
    let mut ids = BTreeMap::new();
    for earlier in &began.cells {
        // The values contain the protocol, which may depend on all systems.
        let is_same = |cell: &&planning::Cell| {
            cell.planned.values == earlier.planned.values && cell.planned.settings == earlier.planned.settings
        };
        let Some(present) = plan.cells.iter().find(is_same) else {
            return Err(RunError::input(format!(
                "with the further values, `{}` in `{}` would be run with other settings than before",
                earlier.planned.label,
                folder.display()
            ))
            .hint("run the further values in a new folder, with `--out DIR`"));
        };
        ids.insert(earlier.planned.id.clone(), present.planned.id.clone());
    }
    Ok(ids)
}

/// Refuses an extension in which a run would be written over an earlier one: folders have the ids of the time of their runs.
fn refuse_folder_of_another(
    events: &[Event],
    cells: &BTreeMap<String, String>,
    plan: &Plan,
    folder: &Path,
) -> Result<(), RunError> {
    let present = |place: &RunPosition| {
        let (cell, repetition) = place.run();
        (cells.get(&cell).cloned().unwrap_or(cell), repetition)
    };
    let used: BTreeMap<&str, (String, u32)> = events
        .iter()
        .filter_map(|event| match event {
            Event::Counted { place, folder, .. } => Some((folder.as_str(), present(place))),
            Event::Failed { place, folder, .. } | Event::Stopped { place, folder, .. } => {
                Some((folder.as_deref()?, present(place)))
            }
            Event::Planned(_) | Event::Extended(_) | Event::Started { .. } | Event::Began(_) | Event::Skipped(_) => {
                None
            }
        })
        .collect();
    let name = |turn: &Turn| {
        let cell = plan.cells[turn.cell].planned.id.clone();
        let place = RunPosition { order: turn.order, cell, repetition: turn.repetition };
        let name = ExperimentFolder::run_name(&place);
        used.get(name.as_str()).is_some_and(|owner| *owner != place.run()).then_some(name)
    };
    match plan.turns.iter().find_map(name) {
        Some(name) => Err(RunError::input(format!(
            "with the further values, a run would be written to `{}`, which holds another one",
            folder.join(name).display()
        ))
        .hint("run the further values in a new folder, with `--out DIR`")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pubmark_record::experiment::{EXPERIMENT_FILE, FailureKind};

    use super::super::PreparedExperiment;
    use super::super::journal::{self, Effort};
    use super::super::progress;
    use super::*;

    fn host() -> Host {
        Host::with_program("pubmark")
    }

    fn experiment(axes: &str) -> Experiment {
        let text = format!("{{name: t, workload: hello, repeat: 1, duration: 1s, warmup: 0s, axes: {{{axes}}}}}");
        definition::parse(&text, Path::new("")).unwrap()
    }

    /// A folder of an experiment in which the system failed in one run of each cell.
    fn begun(place: &Path, axes: &str) -> std::path::PathBuf {
        let machines = Machines::default();
        let begun = PreparedExperiment::begin(experiment(axes), None, place, &host(), &machines, &mut ()).unwrap();
        let folder = begun.folder().to_owned();
        drop(begun);
        let mut journal = Journal::open(&folder).unwrap();
        for (cell, order) in pubmark_model::experiment::cells(&experiment(axes)).into_iter().zip(1..) {
            let place = RunPosition { order, cell: cell.id, repetition: 1 };
            let name = ExperimentFolder::run_name(&place);
            journal.add(Event::Began(place.clone())).unwrap();
            let (kind, code, text, effort) =
                (FailureKind::OutOfMemory, None, "OOM-killed".to_owned(), Effort::default());
            journal.add(Event::Failed { place, kind, code, text, folder: Some(name), effort }).unwrap();
        }
        folder
    }

    fn extended(folder: &Path, axes: &str) -> Result<PreparedExperiment, RunError> {
        PreparedExperiment::extend(folder, &experiment(axes), &host(), &Machines::default(), &mut ())
    }

    #[test]
    fn what_was_run_remains_and_only_the_further_cells_are_missing() {
        let place = tempfile::tempdir().unwrap();
        let folder = begun(place.path(), "system: builtin, qos: [1]");
        drop(extended(&folder, "system: builtin, qos: [0, 1]").unwrap());
        let axes = definition::in_experiment(&folder).unwrap().axes;
        assert_eq!(axes.qos, [0, 1]);
        let journal = Journal::open(&folder).unwrap();
        assert_eq!(progress::done(journal.events()), [("builtin_qos-1".to_owned(), 1)].into());
        let of_run = journal.events().iter().find_map(|event| match event {
            Event::Failed { folder, .. } => folder.as_deref(),
            _ => None,
        });
        assert_eq!(of_run, Some("runs/builtin-1"), "the run's folder has its earlier name");
        let record = fs::read_to_string(folder.join(EXPERIMENT_FILE)).unwrap();
        assert!(
            record.contains("\"builtin_qos-1\"") && record.contains("after runs of the others: 1 cell."),
            "{record}"
        );
        assert_eq!((journal.planned().schedules.len(), journal.last_order_before_extension()), (2, 1));
        drop(journal);
        assert!(PreparedExperiment::resume(&folder, &host(), &Machines::default(), &mut ()).is_ok());
        drop(extended(&folder, "system: builtin, qos: [0, 1]").unwrap());
        let added = |event: &&Event| matches!(event, Event::Extended(_));
        assert_eq!(Journal::read(&folder).iter().filter(added).count(), 1, "nothing was added again");
    }

    #[test]
    fn a_definition_that_was_not_written_is_written_when_the_experiment_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let folder = begun(place.path(), "system: builtin, qos: [1]");
        let before = fs::read_to_string(folder.join(DEFINITION_FILE)).unwrap();
        drop(extended(&folder, "system: builtin, qos: [0, 1]").unwrap());
        fs::write(folder.join(DEFINITION_FILE), before).unwrap();
        assert!(PreparedExperiment::resume(&folder, &host(), &Machines::default(), &mut ()).is_ok());
        let written = fs::read_to_string(folder.join(DEFINITION_FILE)).unwrap();
        assert_eq!(definition::parse(&written, &folder).unwrap().axes.qos, [0, 1]);
    }

    #[test]
    fn a_definition_that_was_not_written_is_read_from_the_journal() {
        let place = tempfile::tempdir().unwrap();
        let folder = begun(place.path(), "system: builtin, qos: [1]");
        let before = fs::read_to_string(folder.join(DEFINITION_FILE)).unwrap();
        drop(extended(&folder, "system: builtin, qos: [0, 1]").unwrap());
        fs::write(folder.join(DEFINITION_FILE), before).unwrap();
        // A further value is added to all that the experiment has.
        assert_eq!(definition::in_experiment(&folder).unwrap().axes.qos, [0, 1]);
        drop(extended(&folder, "system: builtin, qos: [0, 1, 2]").unwrap());
        assert_eq!(definition::in_experiment(&folder).unwrap().axes.qos, [0, 1, 2]);
        let mut journal = Journal::open(&folder).unwrap();
        let run = RunPosition { order: 2, cell: "builtin_qos-0".to_owned(), repetition: 1 };
        journal.add(Event::Began(run)).unwrap();
        assert_eq!(journal::last_definition(&folder), None, "its file has it by now");
    }

    #[test]
    fn a_run_is_not_written_over_that_of_another_cell() {
        let place = tempfile::tempdir().unwrap();
        // The folder of the second system's run has the name of a further cell of the first one.
        let systems = "system: [{system: builtin, label: a}, {system: builtin, label: a_qos-1}]";
        let folder = begun(place.path(), &format!("{systems}, qos: [1]"));
        let error = extended(&folder, &format!("{systems}, qos: [0, 1]")).err().unwrap().to_string();
        assert!(error.contains("runs/a_qos-1-1`, which holds another one"), "{error}");
        assert_eq!(definition::in_experiment(&folder).unwrap().axes.qos, [1], "nothing was changed");
    }

    #[test]
    fn a_cell_that_would_be_run_in_another_way_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = begun(place.path(), "system: builtin, qos: [1]");
        let error = extended(&folder, "system: builtin, qos: [0]").err().unwrap().to_string();
        assert!(error.contains("would be run with other settings than before"), "{error}");
    }
}
