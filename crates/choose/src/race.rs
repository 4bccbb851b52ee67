//! [`Race`]: makes runs until each candidate is decided or the time is over, saves each, and puts the record together.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pubmark_experiment::experiment::journal::{self, Effort, RunPosition};
use pubmark_experiment::experiment::pace::{self, Pace};
use pubmark_experiment::{End, Event, Observer, RunPlace, end, gather};
use pubmark_model::random::Stream;
use pubmark_record::latency::upper;
use pubmark_record::nodes;
use pubmark_record::record::{Environment, Record, Status};
use pubmark_record::reserve::RESERVED_BYTES;
use pubmark_record::store;
use pubmark_record::threshold::Objectives;
use pubmark_runner::{ErrorKind, Host, JoinedNodes, PreparedRun, RunError, RunOutcome, save};
use pubmark_systems::environment;

use crate::candidate::Candidate;
use crate::cleared::cleared;
use crate::entry::Entry;
use crate::evidence;
use crate::folder::ChoiceFolder;
use crate::headroom::{Earlier, Headroom, HeadroomSearch, least_time};
use crate::record::{CHOICE_FILE, Choice};
use crate::requirements::Requirements;
use crate::result;
use crate::rule::Rule;
use crate::standing::Phase;

/// Which random stream the order of runs draws from.
const PURPOSE: u64 = 0x6368_6f6f_7365;

/// The phases of a race, in order.
const PHASES: [Phase; 3] = [Phase::Screening, Phase::Race, Phase::Recovery];

/// A race to be made.
pub struct Race<'a> {
    /// What is required.
    pub requirements: &'a Requirements,
    /// The objectives of every run.
    pub objectives: &'a Objectives,
    /// Who takes part.
    pub candidates: &'a [Candidate],
    /// This machine, and what ends the race.
    pub host: &'a Host,
    /// Machines that all runs use; `None` if everything is on this one.
    pub joined: Option<&'a Arc<JoinedNodes>>,
}

/// A race under way.
struct Course<'a> {
    race: &'a Race<'a>,
    folder: ChoiceFolder,
    entries: Vec<Entry<'a>>,
    began: Instant,
    /// Time of the runs and searches that were made before an interruption.
    spent: Duration,
    paces: [Pace; 3],
    environment: Environment,
    /// Machines of the nodes of all runs so far.
    machines: Option<String>,
    made: usize,
    is_out_of_time: bool,
}

impl Race<'_> {
    /// The rule for these requirements.
    pub fn rule(&self) -> Rule {
        Rule::for_objectives(self.limits().len() + usize::from(self.requirements.recovery.is_some()))
    }

    /// Objectives that a run of the race judges.
    pub(crate) fn limits(&self) -> Vec<String> {
        evidence::limits(self.objectives)
    }

    /// Runs the race in a folder, or continues it, and writes its record there; returns the reason beside it if that failed.
    /// [`Host::stop`] ends it in order, with what is known then.
    ///
    /// # Errors
    /// A run could not be saved or read again, or failed for a reason that is not the system's.
    pub fn perform(
        &self,
        folder: ChoiceFolder,
        observer: &mut dyn Observer,
    ) -> Result<(Choice, Option<RunError>), RunError> {
        let mut course = Course::new(self, folder);
        course.go_on()?;
        for phase in PHASES {
            let made = course.go_through(phase, observer);
            // What is known so far survives a power failure, and an error.
            let written = course.write(&course.choice(Status::Interrupted));
            made.and(written)?;
        }
        course.search_headroom(observer)?;
        course.environment.load_after = environment::load();
        let status = if self.is_stopped() { Status::Interrupted } else { Status::Complete };
        let choice = course.choice(status);
        let unwritten = course.write(&choice).err();
        Ok((choice, unwritten))
    }

    fn is_stopped(&self) -> bool {
        self.host.stop.load(Ordering::Relaxed)
    }
}

impl<'a> Course<'a> {
    fn new(race: &'a Race<'a>, folder: ChoiceFolder) -> Course<'a> {
        let (limits, rule) = (race.limits(), race.rule());
        let entry = |candidate| Entry::new(candidate, rule, &limits, race.requirements);
        let nominal = |phase: Phase| {
            let runs = race.candidates.iter().filter_map(|candidate| candidate.runs.as_ref().ok());
            let window = runs.map(|runs| match (phase, &runs.recovery) {
                (Phase::Screening, _) => &runs.screening.spec.window,
                (Phase::Recovery, Some(Ok(run))) => &run.spec.window,
                _ => &runs.race.spec.window,
            });
            Pace::new(pace::of_a_run(window.map(|window| window.warmup + window.duration).max().unwrap_or_default()))
        };
        Course {
            race,
            entries: race.candidates.iter().map(entry).collect(),
            folder,
            began: Instant::now(),
            spent: Duration::ZERO,
            paces: PHASES.map(nominal),
            environment: environment::read(),
            machines: None,
            made: 0,
            is_out_of_time: false,
        }
    }

    fn time_left(&self) -> Duration {
        self.race.requirements.within.saturating_sub(self.took())
    }

    /// Time of this sitting, and of what is kept of those before.
    fn took(&self) -> Duration {
        self.spent + self.began.elapsed()
    }

    /// Counts the runs and searches that were made before an interruption, in their order.
    fn go_on(&mut self) -> Result<(), RunError> {
        for event in self.folder.journal.events().to_vec() {
            let (place, end, folder, effort) = match event {
                journal::Event::Counted { place, folder, verdict, effort } => {
                    (place, End::Counts(verdict), Some(folder), effort)
                }
                journal::Event::Failed { place, kind, code, text, folder, effort } => {
                    (place, End::Fails { kind, code, text }, folder, effort)
                }
                _ => continue,
            };
            let Some((index, phase)) = self.of_cell(&place.cell) else { continue };
            let record = folder.as_ref().map(|name| self.read(name)).transpose()?;
            record.as_ref().map_or(Ok(()), |record| self.check_same_nodes(record))?;
            let took = Duration::try_from_secs_f64(effort.took_s).unwrap_or_default();
            self.spent += took;
            self.count(index, phase, record.as_ref(), &end, folder, took);
        }
        for entry in &mut self.entries {
            let Some(earlier) = Earlier::of(self.folder.folder.path(), &entry.candidate.id) else { continue };
            self.spent += earlier.took;
            entry.add_headroom(earlier.result)?;
        }
        self.folder.note_sitting()
    }

    fn read(&self, run: &str) -> Result<Record, RunError> {
        store::load(&self.folder.folder.path().join(run)).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error).hint("`--fresh` begins the choice anew in another folder")
        })
    }

    /// The candidate and the phase of a cell of the journal, where the candidate can still be run.
    fn of_cell(&self, cell: &str) -> Option<(usize, Phase)> {
        let is_it = |index: usize, phase: Phase| {
            let entry = &self.entries[index];
            entry.run(phase).is_some() && cell_of(entry.candidate, phase) == cell
        };
        let all = (0..self.entries.len()).flat_map(|index| PHASES.map(|phase| (index, phase)));
        all.into_iter().find(|(index, phase)| is_it(*index, *phase))
    }

    /// Writes the record, and what is made of it.
    fn write(&self, choice: &Choice) -> Result<(), RunError> {
        let folder = self.folder.folder.path();
        // The record first: the rest can be made from it.
        let json = store::to_json(choice).map_err(|error| save::unwritten(&error))?;
        std::iter::once((CHOICE_FILE.to_owned(), json))
            .chain(crate::files(choice))
            .try_for_each(|(name, text)| save::write(&folder.join(name), &text))
            .map_err(|failure| RunError { kind: ErrorKind::NotWritten, ..failure })
    }

    /// Makes blocks of runs of a phase, in each every candidate that needs one, in a random order.
    fn go_through(&mut self, phase: Phase, observer: &mut dyn Observer) -> Result<(), RunError> {
        loop {
            let block = self.next_block(phase);
            if block.is_empty() {
                return Ok(());
            }
            for index in block {
                if self.race.is_stopped() {
                    return Ok(());
                }
                if self.paces[phase as usize].left([index].into_iter()) > self.time_left() {
                    self.is_out_of_time = true;
                    return Ok(());
                }
                self.make(index, phase, observer)?;
            }
        }
    }

    /// The candidates that need a run of this phase and have fewest: after an interruption the others have theirs of this block.
    fn next_block(&self, phase: Phase) -> Vec<usize> {
        let made = |index: &usize| self.entries[*index].standing.made(phase);
        let mut block: Vec<usize> = (0..self.entries.len()).filter(|index| self.entries[*index].wants(phase)).collect();
        let Some(fewest) = block.iter().map(made).min() else { return block };
        block.retain(|index| made(index) == fewest);
        let number = (phase as u64) << 32 | u64::from(fewest);
        let draws = Stream::new(self.race.requirements.load.seed ^ number, PURPOSE);
        block.sort_by_key(|index| draws.bits(*index as u64));
        block
    }

    /// Makes a run and counts what it says.
    fn make(&mut self, index: usize, phase: Phase, observer: &mut dyn Observer) -> Result<(), RunError> {
        let Some(run) = self.entries[index].run(phase) else { return Ok(()) };
        let candidate = self.entries[index].candidate;
        let number = self.entries[index].standing.made(phase) + 1;
        let cell = format!("{}, {}", candidate.label, phase.word());
        let (left_runs, left) = self.left();
        let place = RunPlace {
            number: self.made + 1,
            of: self.made + left_runs.max(1),
            cell: &cell,
            workload: &run.workload.name,
            system: run.system_name(),
            protocol: run.protocol_pair.publish.capabilities.name,
            repetition: number,
            left: left.min(self.time_left()),
        };
        observer.event(&Event::RunBegins(&place));
        if !self.gather(observer)? {
            return Ok(());
        }
        let order = u32::try_from(self.made + 1).unwrap_or(u32::MAX);
        let position = RunPosition { order, cell: cell_of(candidate, phase), repetition: number };
        self.folder.note(journal::Event::Began(position.clone()))?;
        let began = Instant::now();
        let name = format!("runs/{}-{number}", position.cell);
        let (record, end) = self.measure(run, number, &name, observer)?;
        let took = began.elapsed();
        let p99_us = record.as_ref().and_then(|record| upper(&record.latency.total)?.p99);
        observer.event(&Event::RunEnded { run: &place, end: &end, p99_us, took, busy: false });
        if let Some(record) = &record {
            self.entries[index].check_same_system(&record.system)?;
            self.check_same_nodes(record)?;
        }
        let folder = record.is_some().then_some(name);
        self.folder.note(noted(position, &end, folder.clone(), took))?;
        if end != End::Stopped {
            self.count(index, phase, record.as_ref(), &end, folder, took);
        }
        Ok(())
    }

    /// Waits for machines that an earlier run lost; false if it was stopped meanwhile.
    fn gather(&mut self, observer: &mut dyn Observer) -> Result<bool, RunError> {
        let Some(joined) = self.race.joined else { return Ok(true) };
        match gather(joined, &self.race.host.stop, observer) {
            Ok(()) => self.check_same_machines(joined.machines_in_words()).map(|()| true),
            Err(error) if error.kind == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error.hint("start the nodes again; the same call goes on")),
        }
    }

    /// Refuses nodes of other machines than those of earlier runs: both would be counted together.
    fn check_same_machines(&mut self, found: String) -> Result<(), RunError> {
        if self.race.requirements.nodes.is_none() {
            return Ok(());
        }
        match &self.machines {
            Some(known) if *known != found => {
                Err(RunError::input(format!("the nodes were {known} in the first runs and are {found} now"))
                    .hint("`--fresh` begins a choice anew"))
            }
            _ => {
                self.machines = Some(found);
                Ok(())
            }
        }
    }

    /// The same for the machines that a record names; one without nodes names none.
    fn check_same_nodes(&mut self, record: &Record) -> Result<(), RunError> {
        let rows = &record.tables.nodes;
        if rows.is_empty() { Ok(()) } else { self.check_same_machines(nodes::machines(rows)) }
    }

    /// Counts what a run says.
    fn count(
        &mut self,
        index: usize,
        phase: Phase,
        record: Option<&Record>,
        end: &End,
        folder: Option<String>,
        took: Duration,
    ) {
        self.made += 1;
        self.paces[phase as usize].add(index, took);
        let (objectives, recovery) = (self.race.objectives, self.race.requirements.recovery);
        let judged = evidence::of_run(phase, objectives, recovery, record, end);
        self.entries[index].add(phase, record, end, judged, folder);
    }

    fn measure(
        &self,
        run: &PreparedRun,
        number: u32,
        name: &str,
        observer: &mut dyn Observer,
    ) -> Result<(Option<Record>, End), RunError> {
        match run.repeat(number, name, &mut *observer.run()) {
            Ok(measured) => {
                let end = end::measured(&measured);
                Ok((Some(self.save(name, measured)?), end))
            }
            Err(error) => Ok((None, end::failed(error)?)),
        }
    }

    fn save(&self, name: &str, measured: RunOutcome) -> Result<Record, RunError> {
        let folder = cleared(&self.folder.folder.path().join(name))?;
        let reserve = folder.reserve(RESERVED_BYTES).map_err(|error| save::unwritten(&error))?;
        measured.save(&folder, reserve).whole()
    }

    /// Fewest runs that are left, and the time that they take; the search for headroom takes what is left after them.
    fn left(&self) -> (usize, Duration) {
        let of = |phase: Phase| {
            let runs = self.entries.iter().enumerate();
            let left = runs.flat_map(move |(index, entry)| std::iter::repeat_n(index, entry.runs_left(phase) as usize));
            let left: Vec<usize> = left.collect();
            (left.len(), self.paces[phase as usize].left(left.into_iter()))
        };
        let parts = PHASES.map(of);
        (parts.iter().map(|(runs, _)| runs).sum(), parts.iter().map(|(_, time)| *time).sum())
    }

    /// Searches the headroom of those that meet all objectives, each with an equal part of the time that is left.
    fn search_headroom(&mut self, observer: &mut dyn Observer) -> Result<(), RunError> {
        let waits = |entry: &Entry<'_>| entry.holds() && entry.headroom.limit.is_none();
        let mut waiting: Vec<usize> = (0..self.entries.len()).filter(|index| waits(&self.entries[*index])).collect();
        waiting.reverse();
        while let Some(index) = waiting.pop() {
            let within = self.time_left() / (waiting.len() as u32 + 1);
            let entry = &mut self.entries[index];
            if !self.race.requirements.headroom {
                entry.headroom = Headroom::not_searched("`--no-headroom`");
                continue;
            }
            if self.race.is_stopped() {
                entry.headroom = Headroom::not_searched("it was interrupted");
                continue;
            }
            let candidate = entry.candidate;
            let Ok(runs) = &candidate.runs else { continue };
            let warmup = runs.warm_up_of_trials();
            if within < least_time(self.race.requirements.growth, warmup) {
                entry.headroom = Headroom::not_searched("the time limit was reached (`--within`)");
                continue;
            }
            if !self.gather(observer)? {
                self.entries[index].headroom = Headroom::not_searched("it was interrupted");
                continue;
            }
            let words = format!("{}: headroom, for at most {}", candidate.label, pace::about(within));
            observer.event(&Event::Caution(&words));
            let written: Vec<&str> = self.race.objectives.clauses().iter().map(|clause| clause.text.trim()).collect();
            let search = HeadroomSearch {
                spec: runs.spec(),
                objectives: self.race.objectives,
                written: written.join(","),
                growth: self.race.requirements.growth,
                warmup,
                within,
                host: self.race.host,
                folder: &self.folder.folder,
                label: &candidate.label,
                id: &candidate.id,
                joined: self.race.joined,
            };
            let found = search.perform(observer)?;
            self.entries[index].add_headroom(found)?;
        }
        Ok(())
    }

    fn choice(&self, status: Status) -> Choice {
        let stopped = match (status, self.is_out_of_time) {
            (Status::Interrupted, _) => "it was interrupted",
            (Status::Complete, true) => "the time limit was reached (`--within`)",
            (Status::Complete, false) => "enough runs were made",
        };
        let (took, environment) = (self.took(), self.environment.clone());
        let mut choice = result::choice(self.race, &self.folder, &self.entries, stopped, status, took, environment);
        if let Some(nodes) = &mut choice.nodes {
            nodes.machines.clone_from(&self.machines);
        }
        choice
    }
}

/// A candidate's runs of a phase, in the journal and in names of folders.
fn cell_of(candidate: &Candidate, phase: Phase) -> String {
    format!("{}-{}", candidate.id, phase.word())
}

/// What became of a run, for the journal.
fn noted(place: RunPosition, end: &End, folder: Option<String>, took: Duration) -> journal::Event {
    let effort = Effort { took_s: took.as_secs_f64(), ..Effort::default() };
    match (end, folder) {
        (End::Counts(verdict), Some(folder)) => journal::Event::Counted { place, folder, verdict: *verdict, effort },
        (End::Fails { kind, code, text }, folder) => {
            journal::Event::Failed { place, kind: *kind, code: code.clone(), text: text.clone(), folder, effort }
        }
        (End::Stopped | End::Counts(_), folder) => journal::Event::Stopped { place, folder, effort },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::capacity::CAPACITY_FILE;
    use pubmark_record::nodes::{NodeMachine, NodeRow};
    use pubmark_record::record::VerdictStatus;
    use pubmark_record::{sample, sample_experiment};

    use super::*;
    use crate::candidate;
    use crate::requirements::CandidateSpec;

    fn race<'a>(
        requirements: &'a Requirements,
        objectives: &'a Objectives,
        candidates: &'a [Candidate],
        host: &'a Host,
    ) -> Race<'a> {
        Race { requirements, objectives, candidates, host, joined: None }
    }

    #[test]
    fn runs_on_nodes_of_other_machines_are_not_counted_together() {
        let out = tempfile::tempdir().unwrap();
        let requirements = Requirements { nodes: Some(2), ..Requirements::new("hello") };
        let (host, objectives) = (Host::with_program("pubmark"), Objectives::parse("p50<1s").unwrap());
        let folder = ChoiceFolder::create(out.path(), "hello", &requirements, &[], &host).unwrap();
        let race = race(&requirements, &objectives, &[], &host);
        let mut course = Course::new(&race, folder);
        let on = |cores: u32| {
            let machine = Some(NodeMachine { cores, ..NodeMachine::default() });
            let mut record = sample::record();
            record.tables.nodes = vec![NodeRow { machine, ..NodeRow::default() }];
            record
        };
        course.check_same_nodes(&sample::record()).unwrap();
        course.check_same_nodes(&on(4)).unwrap();
        course.check_same_nodes(&on(4)).unwrap();
        course.check_same_machines("1 × (4 cores, kernel )".to_owned()).unwrap();
        let joined = course.choice(Status::Interrupted).nodes.unwrap();
        assert_eq!(joined.in_words(), "2 nodes on 1 × (4 cores, kernel )");
        let error = course.check_same_nodes(&on(8)).unwrap_err().to_string();
        assert!(error.contains("(4 cores, kernel ) in the first runs and are 1 × (8 cores"), "{error}");
    }

    /// Goes on with a choice of one candidate that has a run of the race and a finished search, of these versions.
    fn goes_on(run: &str, search: &str) -> Result<Option<f64>, RunError> {
        let out = tempfile::tempdir().unwrap();
        let mut requirements = Requirements::new("hello");
        requirements.candidates = vec![CandidateSpec::Name("builtin".to_owned())];
        let host = Host::with_program("pubmark");
        let candidates = candidate::all(&requirements, &host).unwrap();
        let mut folder = ChoiceFolder::create(out.path(), "hello", &requirements, &candidates, &host).unwrap();
        let path = folder.folder.path().to_owned();
        let write = |name: &str, file: &str, text: String| {
            std::fs::create_dir_all(path.join(name)).unwrap();
            std::fs::write(path.join(name).join(file), text).unwrap();
        };
        let mut record = sample::record();
        record.system.version = Some(run.to_owned());
        write("runs/1", store::RECORD_FILE, store::to_json(&record).unwrap());
        let mut capacity = sample_experiment::capacity();
        capacity.system.version = Some(search.to_owned());
        let id = &candidates[0].id;
        write(&format!("headroom/{id}"), CAPACITY_FILE, store::to_json(&capacity).unwrap());
        let place = RunPosition { order: 1, cell: cell_of(&candidates[0], Phase::Race), repetition: 1 };
        let end = End::Counts(VerdictStatus::Valid);
        folder.note(noted(place, &end, Some("runs/1".to_owned()), Duration::from_secs(1))).unwrap();
        let objectives = Objectives::parse("p50<1s").unwrap();
        let race = race(&requirements, &objectives, &candidates, &host);
        let mut course = Course::new(&race, folder);
        course.go_on()?;
        Ok(course.entries[0].headroom.holds_factor)
    }

    #[test]
    fn a_choice_does_not_go_on_with_the_headroom_of_another_version() {
        assert_eq!(goes_on("1.0", "1.0").unwrap(), Some(11.5));
        let error = goes_on("1.0", "2.0").unwrap_err();
        assert_eq!(error.to_string(), "`builtin` was version 1.0 in its first runs and is 2.0 now");
    }
}
