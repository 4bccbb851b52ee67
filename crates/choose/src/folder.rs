//! The folder of a choice: its requirements, and a journal of its runs, with which the same call continues an interrupted choice.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use pubmark_experiment::experiment::journal::{Event, Journal, JournalError, Planned};
use pubmark_record::past_runs;
use pubmark_record::record::Status;
use pubmark_record::store::{self, RunFolder};
use pubmark_record::time::UtcTime;
use pubmark_runner::save::{self, no_folder};
use pubmark_runner::{ErrorKind, Host, RunError, command_line, now, target};
use pubmark_systems::environment;

use crate::candidate::{Candidate, Runs, secret_parameters};
use crate::record::Choice;
use crate::requirements::{REQUIREMENTS_FILE, Requirements};

/// The folder of a choice, open to make its runs.
pub struct ChoiceFolder {
    /// The folder.
    pub folder: RunFolder,
    /// Journal of the finished runs. It is locked, so that no other process continues the choice at the same time.
    pub journal: Journal,
}

impl ChoiceFolder {
    /// Makes a new one in `out`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(
        out: &Path,
        workload: &str,
        requirements: &Requirements,
        candidates: &[Candidate],
        host: &Host,
    ) -> Result<ChoiceFolder, RunError> {
        let folder = RunFolder::create(out, &format!("choose-{workload}"), now()).map_err(|error| no_folder(&error))?;
        let secrets = secret_parameters(candidates);
        // Before the journal: a folder with a journal has both.
        save::write(&folder.path().join(REQUIREMENTS_FILE), &requirements.to_yaml(&secrets)?)?;
        let at = UtcTime::from_system_time(now()).rfc3339();
        let command = command_line::shown(host.command.clone(), &secrets);
        let planned = Planned::new(at, command, fingerprints(candidates, &machine()), requirements.nodes);
        let journal = Journal::create(folder.path(), planned).map_err(unusable)?;
        Ok(ChoiceFolder { folder, journal })
    }

    /// The newest one in `out` with these requirements, if it was interrupted and the same can go on: the same version of pubmark, the same
    /// schedules, the same definitions, the same machine.
    ///
    /// # Errors
    /// The requirements cannot be written, to be compared.
    pub fn interrupted(
        out: &Path,
        requirements: &Requirements,
        candidates: &[Candidate],
    ) -> Result<Option<ChoiceFolder>, RunError> {
        let required = requirements.to_yaml(&secret_parameters(candidates))?;
        // If `out` cannot be listed, there is no choice to continue; creating a folder in it reports the reason.
        let names = past_runs::newest_first(out).unwrap_or_default();
        let is_same = |path: &Path| fs::read_to_string(path.join(REQUIREMENTS_FILE)).is_ok_and(|text| text == required);
        let newest = names.iter().map(|name| out.join(name)).find(|path| is_same(path));
        Ok(newest.and_then(|path| goes_on(&path, candidates, &machine())))
    }

    /// Runs that came to their end.
    pub fn runs(&self) -> usize {
        self.journal
            .events()
            .iter()
            .filter(|event| matches!(event, Event::Counted { .. } | Event::Failed { .. }))
            .count()
    }

    /// When it began, RFC 3339, UTC.
    pub fn started_at(&self) -> &str {
        &self.journal.planned().at
    }

    /// Notes what happened, on the disk.
    pub(crate) fn note(&mut self, event: Event) -> Result<(), RunError> {
        self.journal.add(event).map_err(unusable)
    }

    /// Notes that pubmark was started on it.
    pub(crate) fn note_sitting(&mut self) -> Result<(), RunError> {
        let at = UtcTime::from_system_time(now()).rfc3339();
        self.note(Event::Started { at, pubmark_version: env!("CARGO_PKG_VERSION").to_owned() })
    }
}

/// Opens an unfinished choice of this version of pubmark, of these candidates and of this machine; `None` if another process has it
/// open.
fn goes_on(path: &Path, candidates: &[Candidate], machine: &str) -> Option<ChoiceFolder> {
    if store::load_as::<Choice>(path).is_ok_and(|choice| choice.status == Status::Complete) {
        return None;
    }
    let journal = Journal::open(path).ok()?;
    let is_ours = |event: &Event| match event {
        Event::Started { pubmark_version, .. } => pubmark_version == env!("CARGO_PKG_VERSION"),
        _ => true,
    };
    let is_same =
        journal.events().iter().all(is_ours) && journal.planned().schedules == fingerprints(candidates, machine);
    let folder = RunFolder::at(path).ok().filter(|_| is_same)?;
    Some(ChoiceFolder { folder, journal })
}

/// This machine. Objectives and costs are those of one: runs of two would be counted and averaged together.
fn machine() -> String {
    environment::read().machine()
}

/// What makes runs of a candidate comparable, by its id: the hash of its schedule, and one of its workload, its system's definition and
/// the machine.
fn fingerprints(candidates: &[Candidate], machine: &str) -> BTreeMap<String, String> {
    let of =
        |candidate: &Candidate| Some((candidate.id.clone(), fingerprint(candidate.runs.as_deref().ok()?, machine)));
    candidates.iter().filter_map(of).collect()
}

fn fingerprint(runs: &Runs, machine: &str) -> String {
    let definition = runs.spec().target.system.as_deref().and_then(|system| target::definition(system).ok());
    // One process's and the next's agree, as both are of one version of pubmark.
    let mut hasher = DefaultHasher::new();
    definition.map(|definition| format!("{definition:?}")).hash(&mut hasher);
    // The schedule has no QoS level, session or subscription.
    format!("{:?}", runs.race.workload).hash(&mut hasher);
    machine.hash(&mut hasher);
    format!("{} {:016x}", runs.race.schedule.hash, hasher.finish())
}

fn unusable(error: JournalError) -> RunError {
    RunError::from_error(ErrorKind::NotWritten, &error).hint("free space, or choose another disk with `--out`")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::candidate;
    use crate::record::CHOICE_FILE;
    use crate::requirements::CandidateSpec;
    use crate::sample;

    fn required(system: &str) -> (Requirements, Vec<Candidate>) {
        let mut requirements = Requirements::new("hello");
        requirements.candidates = vec![CandidateSpec::Name(system.to_owned())];
        let candidates = candidate::all(&requirements, &Host::with_program("pubmark")).unwrap();
        (requirements, candidates)
    }

    fn begin(out: &Path, (requirements, candidates): &(Requirements, Vec<Candidate>)) -> ChoiceFolder {
        let host = Host::with_program("pubmark");
        let mut folder = ChoiceFolder::create(out, "hello", requirements, candidates, &host).unwrap();
        folder.note_sitting().unwrap();
        folder
    }

    fn found(out: &Path, (requirements, candidates): &(Requirements, Vec<Candidate>)) -> Option<String> {
        let found = ChoiceFolder::interrupted(out, requirements, candidates).unwrap();
        found.map(|one| one.folder.name().to_owned())
    }

    #[test]
    fn the_newest_choice_with_the_same_requirements_goes_on_unless_it_came_to_its_end() {
        let out = tempfile::tempdir().unwrap();
        let required = required("builtin");
        assert_eq!(found(out.path(), &required), None);
        let folder = begin(out.path(), &required);
        assert_eq!(found(out.path(), &required), None, "somebody is at it");
        let (path, name) = (folder.folder.path().to_owned(), folder.folder.name().to_owned());
        drop(folder);
        assert_eq!(found(out.path(), &required).as_ref(), Some(&name));
        let mut more = required.0.clone();
        more.growth = 2.0;
        assert_eq!(found(out.path(), &(more, vec![])), None, "something else is required");
        let mut choice = sample::choice(1);
        for (status, goes_on) in [(Status::Interrupted, true), (Status::Complete, false)] {
            choice.status = status;
            std::fs::write(path.join(CHOICE_FILE), store::to_json(&choice).unwrap()).unwrap();
            assert_eq!(found(out.path(), &required).is_some(), goes_on);
        }
    }

    #[test]
    fn runs_of_another_workload_with_the_same_schedule_are_not_gone_on_with() {
        let out = tempfile::tempdir().unwrap();
        let workload = out.path().join("mine.yaml");
        let text = "name: mine\ndevices:\n  - {name: sensor, count: 2, every: 100ms, payload: 100B, topic: 'a/{index}', qos: 1}\n\
                    subscribers:\n  - {name: reader, filters: ['a/#'], qos: 1}\n";
        let required = |text: &str| {
            std::fs::write(&workload, text).unwrap();
            let mut requirements = Requirements::new(workload.to_str().unwrap());
            requirements.candidates = vec![CandidateSpec::Name("builtin".to_owned())];
            let candidates = candidate::all(&requirements, &Host::with_program("pubmark")).unwrap();
            (requirements, candidates)
        };
        let hash = |(_, candidates): &(Requirements, Vec<Candidate>)| {
            candidates[0].runs.as_ref().ok().unwrap().race.schedule.hash.clone()
        };
        let before = required(text);
        drop(begin(out.path(), &before));
        assert!(found(out.path(), &before).is_some());
        let after = required(&text.replace("filters: ['a/#'], qos: 1", "filters: ['a/#'], qos: 0"));
        assert_eq!(hash(&after), hash(&before), "the test is of something else");
        assert_eq!(found(out.path(), &after), None);
    }

    #[test]
    fn runs_of_another_machine_are_not_gone_on_with() {
        let out = tempfile::tempdir().unwrap();
        let required = required("builtin");
        let folder = begin(out.path(), &required);
        let path = folder.folder.path().to_owned();
        drop(folder);
        let mut other = environment::read();
        other.kernel.push_str("-updated");
        assert!(goes_on(&path, &required.1, &other.machine()).is_none());
        assert!(goes_on(&path, &required.1, &machine()).is_some());
    }

    #[test]
    fn runs_of_another_version_or_definition_are_not_gone_on_with() {
        let out = tempfile::tempdir().unwrap();
        let definition = out.path().join("mine.yaml");
        let text = include_str!("../../../systems/builtin.yaml");
        std::fs::write(&definition, text).unwrap();
        let name = definition.to_str().unwrap();
        let mut folder = begin(out.path(), &required(name));
        drop(folder);
        std::fs::write(&definition, text.replacen("title: ", "title: Another ", 1)).unwrap();
        assert_eq!(found(out.path(), &required(name)), None, "its definition was changed");
        std::fs::write(&definition, text).unwrap();
        folder = ChoiceFolder::interrupted(out.path(), &required(name).0, &required(name).1).unwrap().unwrap();
        let at = folder.started_at().to_owned();
        folder.note(Event::Started { at, pubmark_version: "0.0.1".to_owned() }).unwrap();
        drop(folder);
        assert_eq!(found(out.path(), &required(name)), None, "another pubmark was at it");
    }
}
