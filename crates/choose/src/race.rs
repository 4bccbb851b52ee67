//! [`Race`]: makes runs until each candidate is decided or the time is over, saves each, and puts the record together.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pubmark_experiment::experiment::pace::{self, Pace};
use pubmark_experiment::{End, Event, Observer, RunPlace, end};
use pubmark_model::random::Stream;
use pubmark_record::latency::upper;
use pubmark_record::record::{Environment, Record, Status};
use pubmark_record::reserve::RESERVED_BYTES;
use pubmark_record::store::{self, RunFolder};
use pubmark_record::threshold::Objectives;
use pubmark_record::time::UtcTime;
use pubmark_runner::{ErrorKind, Host, PreparedRun, RunError, RunOutcome, now, save};
use pubmark_systems::environment;

use crate::candidate::Candidate;
use crate::entry::Entry;
use crate::evidence;
use crate::headroom::{Headroom, HeadroomSearch, LEAST_TIME};
use crate::record::{CHOICE_FILE, Choice};
use crate::requirements::{REQUIREMENTS_FILE, Requirements};
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
    /// Its folder.
    pub folder: &'a RunFolder,
}

/// A race under way.
struct Course<'a> {
    race: &'a Race<'a>,
    entries: Vec<Entry<'a>>,
    began: Instant,
    started_at: String,
    paces: [Pace; 3],
    environment: Environment,
    made: usize,
    block: u64,
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

    /// Makes the race, and writes its record into the folder; why that could not be done stands beside it. [`Host::stop`] ends it in
    /// order, with what is known then.
    ///
    /// # Errors
    /// A run could not be saved, or failed for a reason that is not the system's.
    pub fn perform(&self, observer: &mut dyn Observer) -> Result<(Choice, Option<RunError>), RunError> {
        let mut course = Course::new(self);
        self.write_requirements()?;
        for phase in PHASES {
            course.go_through(phase, observer)?;
            // What is known so far survives a power failure.
            self.write(&course.choice(Status::Interrupted))?;
        }
        course.search_headroom(observer)?;
        course.environment.load_after = environment::load();
        let status = if self.is_stopped() { Status::Interrupted } else { Status::Complete };
        let choice = course.choice(status);
        let unwritten = self.write(&choice).err();
        Ok((choice, unwritten))
    }

    fn is_stopped(&self) -> bool {
        self.host.stop.load(Ordering::Relaxed)
    }

    fn write_requirements(&self) -> Result<(), RunError> {
        let text = self.requirements.to_yaml(&result::secret_parameters(self.candidates))?;
        save::write(&self.folder.path().join(REQUIREMENTS_FILE), &text)
    }

    /// Writes the record, and what is made of it.
    fn write(&self, choice: &Choice) -> Result<(), RunError> {
        let folder = self.folder.path();
        let json = store::to_json(choice).map_err(|error| save::unwritten(&error))?;
        let texts = [(CHOICE_FILE, json), ("choice.html", crate::html(choice)), ("choice.md", crate::markdown(choice))];
        texts
            .iter()
            .try_for_each(|(name, text)| save::write(&folder.join(name), text))
            .map_err(|failure| RunError { kind: ErrorKind::NotWritten, ..failure })
    }
}

impl<'a> Course<'a> {
    fn new(race: &'a Race<'a>) -> Course<'a> {
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
            began: Instant::now(),
            started_at: UtcTime::from_system_time(now()).rfc3339(),
            paces: PHASES.map(nominal),
            environment: environment::read(),
            made: 0,
            block: 0,
            is_out_of_time: false,
        }
    }

    fn time_left(&self) -> Duration {
        self.race.requirements.within.saturating_sub(self.began.elapsed())
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

    fn next_block(&mut self, phase: Phase) -> Vec<usize> {
        self.block += 1;
        let draws = Stream::new(self.race.requirements.load.seed ^ self.block, PURPOSE);
        let mut block: Vec<usize> = (0..self.entries.len()).filter(|index| self.entries[*index].wants(phase)).collect();
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
            protocol: run.spoken.publish.capabilities.name,
            repetition: number,
            left: left.min(self.time_left()),
        };
        observer.event(&Event::RunBegins(&place));
        let began = Instant::now();
        let name = format!("runs/{}-{}-{number}", candidate.id, phase.word());
        let (record, end) = self.measure(run, number, &name, observer)?;
        let took = began.elapsed();
        let p99_us = record.as_ref().and_then(|record| upper(&record.latency.total)?.p99);
        observer.event(&Event::RunEnded { run: &place, end: &end, p99_us, took, busy: false });
        if end == End::Stopped {
            return Ok(());
        }
        self.made += 1;
        self.paces[phase as usize].add(index, took);
        let (objectives, recovery) = (self.race.objectives, self.race.requirements.recovery);
        let judged = evidence::of_run(phase, objectives, recovery, record.as_ref(), &end);
        let folder = record.is_some().then_some(name);
        self.entries[index].add(phase, record.as_ref(), &end, judged, folder);
        Ok(())
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
        let unwritten = |error| save::unwritten(&error);
        let folder = RunFolder::at(&self.race.folder.path().join(name)).map_err(unwritten)?;
        let reserve = folder.reserve(RESERVED_BYTES).map_err(unwritten)?;
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
        let mut waiting: Vec<usize> = (0..self.entries.len()).filter(|index| self.entries[*index].holds()).collect();
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
            if within < LEAST_TIME {
                entry.headroom = Headroom::not_searched("the time limit was reached (`--within`)");
                continue;
            }
            let Ok(runs) = &entry.candidate.runs else { continue };
            observer.event(&Event::Caution(&format!(
                "{}: headroom, for at most {}",
                entry.candidate.label,
                pace::about(within)
            )));
            let written: Vec<&str> = self.race.objectives.clauses().iter().map(|clause| clause.text.trim()).collect();
            let search = HeadroomSearch {
                spec: runs.spec(),
                objectives: self.race.objectives,
                written: written.join(","),
                growth: self.race.requirements.growth,
                within,
                host: self.race.host,
                folder: self.race.folder,
                id: &entry.candidate.id,
            };
            let (headroom, carried) = search.perform(observer)?;
            (entry.headroom, entry.carried) = (headroom, carried);
        }
        Ok(())
    }

    fn choice(&self, status: Status) -> Choice {
        let stopped = match (status, self.is_out_of_time) {
            (Status::Interrupted, _) => "it was interrupted",
            (Status::Complete, true) => "the time limit was reached (`--within`)",
            (Status::Complete, false) => "enough runs were made",
        };
        let took = self.began.elapsed();
        result::choice(self.race, &self.entries, stopped, status, &self.started_at, took, self.environment.clone())
    }
}
