//! Runs a publication's experiments one after the other in one folder. Runs that exist are not repeated, so that the same
//! call continues where the last one stopped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use pubmark_experiment::Machines;
use pubmark_experiment::experiment::{PreparedExperiment, definition, planning};
use pubmark_model::experiment::{Changes, Experiment, cells};
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::in_use::JOURNAL_FILE;
use pubmark_record::record::Status;
use pubmark_record::store;
use pubmark_runner::spec::text::Text as _;
use pubmark_runner::{ErrorKind, Host, RunError, command_line, save};

pub use crate::collect::Part;
use crate::collect::{NOT_RUN, record};
use crate::definition::Paper;
use crate::lock::lock;
use crate::merging::{Merged, with_earlier};
use crate::record::{PAPER_FILE, PaperRecord};
use crate::step::report_replaced;
pub use crate::step::{Progress, Step};
use crate::{Selection, files, notes};

/// A publication's experiments in a folder.
pub struct Repetition {
    paper: Paper,
    experiments: Vec<Experiment>,
    /// Experiments that need more nodes than join, and why.
    left_out: Vec<(Experiment, String)>,
    notes: Vec<String>,
    folder: PathBuf,
    machines: Machines,
    quick: bool,
}

impl Repetition {
    /// The selected experiments of a publication, in a folder that may contain some of them already. These have the values that
    /// they began with, too. Those with an axis of more nodes than `machines` has are left out.
    ///
    /// # Errors
    /// The selection names an unknown item, or selects nothing that can be run with these machines, or the folder cannot be read.
    pub fn new(
        paper: Paper,
        selection: &Selection,
        folder: &Path,
        host: &Host,
        machines: Machines,
    ) -> Result<Repetition, RunError> {
        machines.check(false)?;
        let changes = &selection.changes;
        let begun = if folder.is_dir() { begun(folder)? } else { vec![] };
        let (mut experiments, mut raised, mut left_out) = (vec![], vec![], vec![]);
        let all = selection.of(&paper)?;
        let number = all.len();
        for selected in all {
            if let Err(error) = planning::refuse_more_nodes(&selected, &machines) {
                if left_out.len() + 1 == number {
                    return Err(error);
                }
                raised.push((selected.name.clone(), notes::left_out(&error)));
                left_out.push((selected, error.to_string()));
                continue;
            }
            let found = begun.iter().find(|one| one.experiment.name == selected.name);
            let earlier = found.map(|one| &one.experiment);
            let whole = match found {
                Some(one) => {
                    let whole = with_earlier_values(&selected, &one.experiment, changes)?;
                    let earlier: Option<ExperimentRecord> = store::load_as(&folder.join(&one.folder)).ok();
                    let is_complete = earlier.is_some_and(|record| record.status == Status::Complete);
                    let made = is_complete.then_some(&one.experiment);
                    raised.extend(notes::further(&whole, &selected, made).map(|note| (whole.name.clone(), note)));
                    whole
                }
                None => selected,
            };
            let (whole, note) = match changes.warmup {
                Some(_) => (whole, None),
                None => warmed_up(whole, earlier, host, &machines)?,
            };
            raised.extend(note.map(|note| (whole.name.clone(), note)));
            experiments.push(whole);
        }
        let notes = notes::with_names(&raised);
        let (folder, quick) = (folder.to_owned(), changes.quick);
        Ok(Repetition { paper, experiments, left_out, notes, folder, machines, quick })
    }

    /// Machines that join.
    pub fn machines(&self) -> &Machines {
        &self.machines
    }

    /// Notes for the user about changes to the experiments.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The publication.
    pub fn paper(&self) -> &Paper {
        &self.paper
    }

    /// The selected experiments.
    pub fn experiments(&self) -> &[Experiment] {
        &self.experiments
    }

    /// Refuses a folder that contains one of the experiments with another definition, or of other machines.
    ///
    /// # Errors
    /// The folder contains such an experiment, or one of them twice, or cannot be read.
    pub fn check(&self) -> Result<(), RunError> {
        if self.folder.is_dir() { self.parts().map(drop) } else { Ok(()) }
    }

    /// Makes all missing runs, until none is missing or [`Host::stop`] is set, and writes the record and the pages after
    /// each experiment.
    ///
    /// # Errors
    /// The folder cannot be used, another call is at work in it, an experiment in it has another definition, machines did not
    /// join, or a run failed for a reason that is neither the system's nor the experiment's. Results up to the failure are written.
    pub fn perform(&self, host: &Host, progress: &mut dyn Progress) -> Result<PaperRecord, RunError> {
        fs::create_dir_all(&self.folder).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error).during(format!("failed to make `{}`", self.folder.display()))
        })?;
        let _lock = lock(&self.folder)?;
        let mut parts = self.parts()?;
        let earlier = self.earlier()?;
        let mut replaced: Vec<(String, String)> = vec![];
        let selected = |part: &Part| self.experiments.iter().position(|one| one.name == part.experiment.name);
        for place in 0..parts.len() {
            let Some(number) = selected(&parts[place]) else { continue };
            if host.stop.load(Ordering::Relaxed) {
                break;
            }
            // A complete experiment is planned again, too: a system that was not installed before may be installed now.
            let made = self.make(&mut parts[place], number + 1, host, progress);
            let merged = self.write(&parts, earlier.as_ref(), host)?;
            // Whatever ends the call afterwards, the results are gone from the record.
            report_replaced(merged.replaced, &mut replaced, progress);
            made?;
        }
        let merged = self.write(&parts, earlier.as_ref(), host)?;
        report_replaced(merged.replaced, &mut replaced, progress);
        Ok(merged.record)
    }

    /// The record of an earlier call, if there is one.
    fn earlier(&self) -> Result<Option<PaperRecord>, RunError> {
        let file = self.folder.join(PAPER_FILE);
        if !file.is_file() {
            return Ok(None);
        }
        let earlier: PaperRecord = store::load_as(&self.folder).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error).hint("move it away, or give another folder with `--out DIR`")
        })?;
        let refused = |why: &str| {
            Err(RunError::input(format!("`{}` is of {why}", file.display()))
                .hint("give another folder with `--out DIR`"))
        };
        match (earlier.quick, self.quick) {
            _ if earlier.paper != self.paper.name => refused(&format!("the publication `{}`", earlier.paper)),
            (true, false) => refused("a call with `--quick`, and this one is without"),
            (false, true) => refused("a call without `--quick`, and this one is with it"),
            _ => Ok(Some(earlier)),
        }
    }

    /// The state of the experiments in the folder: the selected ones, and others of the publication that were started there.
    fn parts(&self) -> Result<Vec<Part>, RunError> {
        let begun = begun(&self.folder)?;
        let mut parts = vec![];
        for name in self.paper.experiments() {
            let mut own = begun.iter().filter(|one| one.experiment.name == name);
            let (found, double) = (own.next(), own.next());
            if let (Some(one), Some(other)) = (found, double) {
                return Err(RunError::input(format!(
                    "`{}` and `{}` in `{}` are both of `{name}`",
                    one.folder,
                    other.folder,
                    self.folder.display()
                ))
                .hint("move one of them away, or give another folder with `--out DIR`"));
            }
            let lacking = self.left_out.iter().find(|(experiment, _)| experiment.name == name);
            let mut all = self.experiments.iter().chain(lacking.map(|(experiment, _)| experiment));
            let selected = all.find(|experiment| experiment.name == name);
            if let (Some(found), Some(selected)) = (found, selected) {
                self.refuse_other_definition(found, selected)?;
            }
            let Some(experiment) = found.map(|found| &found.experiment).or(selected) else { continue };
            let why = || lacking.map_or_else(|| NOT_RUN.to_owned(), |(_, why)| why.clone());
            let record = found.map_or_else(|| Err(why()), |found| self.read(&found.folder));
            let left_out = found.is_none() && lacking.is_some();
            // The ids of a record's cells are those of its own definition. That of the folder has further values if a call ended
            // between the two.
            let own = found.zip(record.as_ref().ok()).and_then(|(found, record)| {
                definition::parse(&record.definition, &self.folder.join(&found.folder)).ok()
            });
            let own = own.filter(|own| own.name == name);
            let experiment = own.unwrap_or_else(|| experiment.clone());
            let folder = found.map(|found| found.folder.clone());
            parts.push(Part { experiment, folder, record, left_out });
        }
        Ok(parts)
    }

    fn refuse_other_definition(&self, found: &Begun, selected: &Experiment) -> Result<(), RunError> {
        PreparedExperiment::check_machines(&self.folder.join(&found.folder), &self.machines).map_err(|error| {
            error.hint("call it with the `--nodes` and `--system-node` that it began with, or with another `--out DIR`")
        })?;
        // The length of the warm-up counts, and not who gave it.
        let found_experiment = Experiment { exact_warmup: selected.exact_warmup, ..found.experiment.clone() };
        // Further values of its axes can be added.
        let of_both = selected.clone().with_values_of(&[&found_experiment]);
        if found_experiment.to_yaml() == of_both.to_yaml() {
            return Ok(());
        }
        let warmup = found.experiment.warmup;
        let with = match warmup == selected.warmup {
            true => String::new(),
            false => format!(" with `--warmup {}` if it began with that (`warmup` in its definition),", warmup.write()),
        };
        Err(RunError::input(format!(
            "`{}` was begun with other repetitions, lengths or settings than those of this call",
            self.folder.join(&found.folder).display()
        ))
        .hint(format!("call it as before,{with} or give another folder with `--out DIR`")))
    }

    fn read(&self, folder: &str) -> Result<ExperimentRecord, String> {
        store::load_as(&self.folder.join(folder)).map_err(|error| error.to_string())
    }

    /// Makes the missing runs of an experiment.
    fn make(&self, part: &mut Part, number: usize, host: &Host, progress: &mut dyn Progress) -> Result<(), RunError> {
        let experiment = &self.experiments[number - 1];
        let name = experiment.name.clone();
        let (of, goes_on) = (self.experiments.len(), part.folder.is_some());
        progress.step(Step::Begins { name: &name, number, of, goes_on });
        // Nodes join once, for the first experiment that can be run.
        let (machines, observer) = (&self.machines, progress.observer());
        let prepared = match &part.folder {
            Some(folder) => PreparedExperiment::extend(&self.folder.join(folder), experiment, host, machines, observer),
            None => PreparedExperiment::begin(experiment.clone(), None, &self.folder, host, machines, observer),
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) if matches!(error.kind, ErrorKind::NotInstalled | ErrorKind::Unsupported) => {
                // The reasons of the cells are more precise than the statement that none can be run.
                let reasons = if error.chain.len() > 1 { &error.chain[1..] } else { &error.chain[..] };
                part.experiment = experiment.clone();
                part.record = Err(reasons.join("; "));
                part.left_out = true;
                progress.step(Step::LeftOut { name: &name, why: &reasons.join("; ") });
                return Ok(());
            }
            Err(error) => return Err(advised(error).during(format!("`{name}` cannot be run"))),
        };
        part.folder = prepared.folder().file_name().map(|name| name.to_string_lossy().into_owned());
        let finished = prepared.perform(progress.observer());
        part.experiment = experiment.clone();
        if let Some(folder) = &part.folder {
            part.record = self.read(folder);
        }
        let finished = finished.map_err(advised)?;
        if let Some(stopped) = &finished.no_progress {
            progress.step(Step::Stopped { name: &name, why: &stopped.reason });
        }
        finished.unwritten.map_or(Ok(()), Err)
    }

    fn write(&self, parts: &[Part], earlier: Option<&PaperRecord>, host: &Host) -> Result<Merged, RunError> {
        let command = command_line::shown(host.command.clone(), &[]);
        let mut record = record(&self.paper, parts, &self.folder, &command, self.quick);
        if self.experiments.iter().any(|experiment| lacks_values(parts, experiment)) {
            record.status = Status::Interrupted;
        }
        let mut merged = match earlier {
            Some(earlier) => with_earlier(record, parts, &self.paper, earlier),
            None => Merged { record, replaced: vec![] },
        };
        if let Some(earlier) = earlier.filter(|_| !merged.replaced.is_empty()) {
            let name = self.save_replaced(earlier)?;
            for (_, what) in &mut merged.replaced {
                what.push_str(&format!("; `{name}` still has them"));
            }
        }
        let json = store::to_json(&merged.record).map_err(|error| save::unwritten(&error))?;
        // The record is written first, because all other files can be generated from it.
        let texts = std::iter::once((PAPER_FILE.to_owned(), json)).chain(files(&merged.record));
        for (name, text) in texts {
            save::write(&self.folder.join(name), &text)
                .map_err(|failure| RunError { kind: ErrorKind::NotWritten, ..failure })?;
        }
        Ok(merged)
    }

    /// Saves a record with results that are not in that of this call, under a name that no other one has, and returns the name.
    fn save_replaced(&self, earlier: &PaperRecord) -> Result<String, RunError> {
        let text = store::to_json(earlier).map_err(|error| save::unwritten(&error))?;
        let is_own = |file: &Path| fs::read_to_string(file).is_ok_and(|found| found == text);
        let mut names = (1..).map(|number| format!("paper-before-{number}.json"));
        let free = names.find(|name| {
            let file = self.folder.join(name);
            // This call may have saved it after an experiment before.
            !file.exists() || is_own(&file)
        });
        let name = free.expect("the numbers do not end before the files");
        save::write(&self.folder.join(&name), &text)
            .map_err(|failure| RunError { kind: ErrorKind::NotWritten, ..failure })?;
        Ok(name)
    }
}

/// An experiment's folder.
struct Begun {
    folder: String,
    experiment: Experiment,
}

/// The experiments in a folder. A subfolder without a journal was not started; one that is not readable as an experiment is
/// ignored.
fn begun(folder: &Path) -> Result<Vec<Begun>, RunError> {
    let unreadable = |error: io::Error| {
        RunError::from_error(ErrorKind::Input, &error).during(format!("failed to read `{}`", folder.display()))
    };
    let mut found = vec![];
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // The link to the newest folder is skipped.
        let is_folder = entry.file_type().map_err(unreadable)?.is_dir();
        if !is_folder || !entry.path().join(JOURNAL_FILE).is_file() {
            continue;
        }
        if let Ok(experiment) = definition::in_experiment(&entry.path()) {
            found.push(Begun { folder: entry.file_name().to_string_lossy().into_owned(), experiment });
        }
    }
    Ok(found)
}

/// The experiment with the selected values, and those that it began with, in the form in which its folder stores it.
fn with_earlier_values(selected: &Experiment, earlier: &Experiment, changes: &Changes) -> Result<Experiment, RunError> {
    let whole = stored(definition::load(&selected.name)?.experiment.changed(changes));
    Ok(whole.with_values_of(&[&stored(selected.clone()), earlier]))
}

/// An error, with what to do about a node that is gone.
fn advised(error: RunError) -> RunError {
    match error.kind {
        ErrorKind::NodeLost => error.hint("start the nodes again; the same call goes on"),
        _ => error,
    }
}

/// Whether values of an experiment were not added to its folder yet.
fn lacks_values(parts: &[Part], experiment: &Experiment) -> bool {
    let part = parts.iter().find(|part| part.experiment.name == experiment.name);
    part.is_some_and(|part| cells(&part.experiment).len() < cells(experiment).len())
}

/// An experiment with the warm-up that it began with, if it began, so that it goes on where a system was installed since. Otherwise with
/// the one that its systems need which can be run here, and a note for the user if that is longer than its own. A system that is
/// added needs its own, too: with a longer one than that of the runs before, the experiment is another one.
fn warmed_up(
    experiment: Experiment,
    earlier: Option<&Experiment>,
    host: &Host,
    machines: &Machines,
) -> Result<(Experiment, Option<String>), RunError> {
    let from = planning::absolute(None)?;
    let raised = |experiment: Experiment| planning::warmed_up(experiment, &from, host, machines);
    let needed = definition::warm_ups(&experiment, Path::new(""))?;
    let Some(earlier) = earlier.filter(|earlier| is_possible(earlier.warmup, experiment.warmup, &needed)) else {
        return raised(experiment);
    };
    let mut added = experiment.clone();
    added.axes.system.retain(|system| !earlier.axes.system.contains(system));
    if added.axes.system.is_empty() {
        return Ok((Experiment { warmup: earlier.warmup, ..experiment }, None));
    }
    let (added, note) = raised(added)?;
    let note = note.filter(|_| added.warmup > earlier.warmup);
    Ok((Experiment { warmup: earlier.warmup.max(added.warmup), ..experiment }, note))
}

/// Whether an experiment can have begun with a warm-up that the user did not give: its own, or that of one of its systems.
fn is_possible(warmup: Duration, own: Duration, needed: &[Duration]) -> bool {
    warmup == own || (warmup > own && needed.contains(&warmup))
}

/// A definition in the form in which its folder stores it.
fn stored(experiment: Experiment) -> Experiment {
    definition::bundle(experiment, Path::new("")).experiment
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::experiment::EXPERIMENT_FILE;

    use super::*;

    /// A selection of one experiment, which is small.
    fn selection(warmup: Option<Duration>) -> Selection {
        let changes = Changes { quick: true, warmup, ..Changes::default() };
        Selection { changes, experiments: vec!["mq-bench-payload".to_owned()], ..Selection::default() }
    }

    fn repetition(folder: &Path, warmup: Option<u64>) -> Repetition {
        let paper = crate::definition::find("mq-bench").unwrap();
        let host = Host::with_program("pubmark");
        Repetition::new(paper, &selection(warmup.map(Duration::from_secs)), folder, &host, Machines::default()).unwrap()
    }

    /// A folder in which the experiment began with this warm-up.
    fn begun_with(warmup: Duration) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let experiment = repetition(folder.path(), None).experiments[0].clone();
        let own = folder.path().join("mq-bench-payload");
        fs::create_dir(&own).unwrap();
        fs::write(own.join(JOURNAL_FILE), "").unwrap();
        fs::write(own.join(definition::DEFINITION_FILE), stored(Experiment { warmup, ..experiment }).to_yaml())
            .unwrap();
        folder
    }

    #[test]
    fn an_experiment_goes_on_with_its_warm_up_whichever_systems_are_installed_by_now() {
        let own = selection(None).of(&crate::definition::find("mq-bench").unwrap()).unwrap().remove(0).warmup;
        let needed = Duration::from_secs(20);
        for warmup in [own, needed] {
            let folder = begun_with(warmup);
            let goes_on = repetition(folder.path(), None);
            assert_eq!(goes_on.experiments[0].warmup, warmup);
            assert!(goes_on.check().is_ok());
        }
        let folder = begun_with(Duration::from_secs(33));
        let error = repetition(folder.path(), None).check().unwrap_err();
        let hint = error.hint.unwrap();
        assert!(hint.starts_with("call it as before, with `--warmup 33s` if it began with that ("), "{hint}");
        assert!(repetition(folder.path(), Some(33)).check().is_ok());
        let hint = repetition(begun_with(own).path(), Some(3)).check().unwrap_err().hint.unwrap();
        assert!(hint.contains("with `--warmup "), "{hint}");
    }

    #[test]
    fn an_experiment_on_more_nodes_than_join_is_left_out_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let with = |names: &[&str]| {
            let mut machines = Machines::default();
            machines.nodes.nodes = Some(2);
            let experiments = names.iter().map(|name| (*name).to_owned()).collect();
            let selection = Selection { experiments, ..selection(Some(Duration::ZERO)) };
            let paper = crate::definition::find("psmark").unwrap();
            Repetition::new(paper, &selection, folder.path(), &Host::with_program("pubmark"), machines)
        };
        let found = with(&["psmark-conclusions", "psmark-nodes"]).unwrap();
        assert_eq!((found.experiments.len(), found.experiments[0].name.as_str()), (1, "psmark-conclusions"));
        assert!(found.notes[0].starts_with("not measured, the axis `nodes` asks for 8 machines"), "{:?}", found.notes);
        let parts = found.parts().unwrap();
        let lacking = parts.iter().find(|part| part.experiment.name == "psmark-nodes").unwrap();
        assert!(lacking.left_out && lacking.record.as_ref().unwrap_err().contains("asks for 8 machines"));
        let hint = with(&["psmark-nodes"]).err().unwrap().hint.unwrap();
        assert!(hint.contains("`--nodes 8`"), "nothing is left: {hint}");
    }

    #[test]
    fn a_note_about_several_experiments_names_them() {
        let note = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let raised = "warm-up raised from 1 s to 20 s for Slow";
        let found = notes::with_names(&[note("one", raised), note("other", "longer"), note("third", raised)]);
        assert_eq!(found, [format!("{raised}: one; third"), "longer: other".to_owned()]);
    }

    /// The experiment limited to these values, in a folder that may have it.
    fn with_values(folder: &Path, values: &[(&str, &str)], repeat: Option<u32>) -> Repetition {
        let mut selection = selection(Some(Duration::from_secs(1)));
        selection.changes.repeat = repeat;
        selection.values = values.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect();
        let paper = crate::definition::find("mq-bench").unwrap();
        Repetition::new(paper, &selection, folder, &Host::with_program("pubmark"), Machines::default()).unwrap()
    }

    #[test]
    fn further_values_are_added_to_those_with_which_an_experiment_began() {
        let folder = begun_with(Duration::from_secs(1));
        let file = folder.path().join("mq-bench-payload").join(definition::DEFINITION_FILE);
        let small = with_values(Path::new("no-folder"), &[("system", "NATS"), ("payload", "1024B")], None);
        fs::write(file, stored(small.experiments[0].clone()).to_yaml()).unwrap();
        let further = with_values(folder.path(), &[("system", "NATS"), ("payload", "16384B")], None);
        assert_eq!(further.experiments[0].axes.payload, ["1024B", "16384B"]);
        assert!(further.check().is_ok());
        assert!(further.notes[0].contains(" 1 cell that this call does not select"), "{:?}", further.notes);
        let parts = further.parts().unwrap();
        assert_eq!(cells(&parts[0].experiment).len(), 1, "until they are added, the folder has one cell");
        assert!(lacks_values(&parts, &further.experiments[0]));
        let same = with_values(folder.path(), &[("system", "NATS"), ("payload", "1024B")], None);
        assert!(same.check().is_ok() && !lacks_values(&same.parts().unwrap(), &same.experiments[0]));
        let other = with_values(folder.path(), &[("system", "NATS"), ("payload", "16384B")], Some(9));
        let error = other.check().unwrap_err().to_string();
        assert!(error.contains("was begun with other repetitions, lengths or settings"), "{error}");
    }

    #[test]
    fn cells_that_a_call_does_not_select_and_runs_are_noted() {
        let values = |values: &[(&str, &str)]| with_values(Path::new("no-folder"), values, None).experiments[0].clone();
        let small = values(&[("system", "NATS"), ("payload", "1024B")]);
        let large = values(&[("system", "Redis"), ("payload", "16384B")]);
        let both = values(&[("system", "NATS,Redis"), ("payload", "1024B,16384B")]);
        let note = notes::further(&both, &large, None).unwrap();
        assert!(note.starts_with("also runs what is missing of 3 cells that this call does not select"), "{note}");
        let note = notes::further(&both, &large, Some(&small)).unwrap();
        assert!(note.contains(" 2 cells "), "those of the folder have all their runs: {note}");
        assert_eq!(notes::further(&both, &both, None), None);
    }

    #[test]
    fn a_record_is_read_with_the_definition_that_names_its_cells() {
        let folder = begun_with(Duration::from_secs(1));
        let own = folder.path().join("mq-bench-payload");
        let of_one = with_values(Path::new("no-folder"), &[("system", "NATS"), ("payload", "1024B")], None);
        let mut record = pubmark_record::sample_experiment::experiment();
        record.definition = stored(of_one.experiments[0].clone()).to_yaml();
        fs::write(own.join(EXPERIMENT_FILE), store::to_json(&record).unwrap()).unwrap();
        let repetition = repetition(folder.path(), Some(1));
        let parts = repetition.parts().unwrap();
        assert_eq!(cells(&parts[0].experiment).len(), 1, "the folder's definition has further values already");
        assert!(lacks_values(&parts, &repetition.experiments[0]));
    }

    #[test]
    fn a_record_with_results_that_are_replaced_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let own = repetition(folder.path(), Some(1));
        let host = Host::with_program("pubmark");
        let write = |record: &ExperimentRecord, earlier: Option<&PaperRecord>| {
            let experiment = own.experiments[0].clone();
            own.write(&[Part { experiment, folder: None, record: Ok(record.clone()), left_out: false }], earlier, &host)
                .unwrap()
        };
        let record = pubmark_record::sample_experiment::experiment();
        let first = write(&record, None).record;
        let saved = |number: u32| fs::read_to_string(folder.path().join(format!("paper-before-{number}.json")));
        assert!(saved(1).is_err());
        let with_warm_up = |warmup_s: f64, day: u32| ExperimentRecord {
            warmup_s,
            started_at: format!("2027-01-{day:02}T00:00:00Z"),
            ..record.clone()
        };
        let longer = with_warm_up(record.warmup_s + 1.0, 1);
        // A record is written after each experiment.
        for _ in 0..2 {
            let replaced = write(&longer, Some(&first)).replaced;
            assert!(replaced.len() == 1 && replaced[0].1.ends_with("; `paper-before-1.json` still has them"));
        }
        assert_eq!(saved(1).unwrap(), store::to_json(&first).unwrap());
        assert!(saved(2).is_err());
        let second = write(&longer, None).record;
        write(&with_warm_up(record.warmup_s + 2.0, 2), Some(&second));
        assert_eq!(saved(2).unwrap(), store::to_json(&second).unwrap());
        assert_eq!(saved(1).unwrap(), store::to_json(&first).unwrap(), "that of another call");
    }
}
