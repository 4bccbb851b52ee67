//! Executes the runs of an experiment in order, writes each to the journal, and writes the results after every block.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pubmark_model::experiment::{QuietMachine, Turn};
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::latency::upper;
use pubmark_record::time::UtcTime;
use pubmark_record::verdict::usable::{Usable, usable};
use pubmark_runner::{ErrorKind, JoinedNodes, PreparedRun, RunError, now};

use super::folder::ExperimentFolder;
use super::journal::{Effort, Event, Journal, JournalError, RunPosition};
use super::pace::{self, Pace};
use super::planning::{Cell, Plan};
use super::progress::{self, BLOCKS_WITHOUT_PROGRESS, Tally};
use super::quiet::{self, Quiet};
use super::result;
use crate::end::{self, End};
use crate::machines;
use crate::observer::{self, Observer, RunPlace};

/// An experiment that is being executed.
pub struct Runner<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its folder.
    pub folder: &'a ExperimentFolder,
    /// Its journal.
    pub journal: Journal,
    /// Receives events.
    pub observer: &'a mut dyn Observer,
    /// Set to stop the experiment.
    pub stop: &'a AtomicBool,
    /// Machines that all runs share.
    pub joined: Option<&'a JoinedNodes>,
    /// The machine did not become quiet within the limit. There is no further wait.
    pub has_waited: bool,
}

/// A completed or stopped experiment.
pub struct Finished {
    /// Its record as written.
    pub record: ExperimentRecord,
    /// All planned runs were executed.
    pub complete: bool,
    /// Why runs that are missing cannot be made on this machine, each reason once; empty if none is refused.
    pub refused: Vec<String>,
    /// The reason and a hint, if it stopped because the last blocks made no progress.
    pub no_progress: Option<NoProgress>,
    /// The error, if the record or a file generated from it could not be written.
    pub unwritten: Option<RunError>,
}

impl Finished {
    /// Why runs are missing, in words.
    pub fn unfinished(&self) -> String {
        match self.refused.as_slice() {
            [] => "stopped before its end".to_owned(),
            refused => format!("not complete; some of its runs cannot be made here: {}", refused.join("; ")),
        }
    }
}

/// The reason why an experiment stopped by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProgress {
    /// The reason why every run was invalid.
    pub reason: String,
    /// A hint; empty if there is none.
    pub help: String,
}

impl NoProgress {
    /// The reason in a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "every run of the last {BLOCKS_WITHOUT_PROGRESS} blocks was invalid for the same reason: {}",
            self.reason
        )
    }

    /// The hint, and the command that resumes the experiment if runs are missing.
    pub fn hint(&self, complete: bool, resume: &str) -> String {
        match (self.help.as_str(), complete) {
            ("", _) => format!("to go on all the same: `{resume}`"),
            (help, true) => help.to_owned(),
            (help, false) => format!("{help}; to go on all the same: `{resume}`"),
        }
    }

    /// The same for the record.
    fn caution(&self) -> String {
        let help = if self.help.is_empty() { String::new() } else { format!("; {}", self.help) };
        format!("{}{help}", self.sentence())
    }
}

impl Runner<'_> {
    /// Executes every run that is not done according to the journal.
    pub fn perform(mut self) -> Result<Finished, RunError> {
        let at = UtcTime::from_system_time(now()).rfc3339();
        let pubmark_version = env!("CARGO_PKG_VERSION").to_owned();
        self.note(Event::Started { at, pubmark_version })?;
        let mut pace = self.pace();
        let turns: Vec<Turn> = self.plan.runs().copied().collect();
        if self.run_turns(&turns, &mut pace)? {
            self.rerun_missing(&mut pace)?;
        }
        self.finish()
    }

    /// Executes the runs of these turns that are not done; false if it was stopped.
    fn run_turns(&mut self, turns: &[Turn], pace: &mut Pace) -> Result<bool, RunError> {
        let done = progress::done(self.journal.events());
        let mut block = None;
        for (position, turn) in turns.iter().enumerate() {
            let plan = self.plan;
            let cell = &plan.cells[turn.cell];
            let place = self.place(turn);
            if done.contains(&place.run()) {
                continue;
            }
            let Ok(run) = &cell.run else { continue };
            // The first runs of a block may be done.
            let block_begins = block.replace(turn.repetition) != Some(turn.repetition);
            if block_begins && self.no_progress()?.is_some() {
                return Ok(false);
            }
            let tallies = progress::tallies(self.journal.events());
            if tallies.get(place.cell.as_str()).is_some_and(Tally::is_given_up) {
                self.note(Event::Skipped(place))?;
                continue;
            }
            let left = pace.left(turns[position..].iter().map(|turn| turn.cell));
            let run_place = RunPlace {
                number: position + 1,
                of: turns.len(),
                cell: &cell.planned.label,
                workload: &run.workload.name,
                system: run.system_name(),
                protocol: run.protocol_pair.publish.capabilities.name,
                repetition: place.repetition,
                left,
            };
            // The report has all earlier results, whatever prevents this run.
            let took = self.make(run, &place, &run_place).inspect_err(|_| {
                // The error of the run is returned; the journal has what the report lacks.
                let _ = self.write_so_far();
            })?;
            let Some(took) = took else { return Ok(false) };
            pace.add(turn.cell, took);
            let block_ends = turns.get(position + 1).is_none_or(|next| next.repetition != turn.repetition);
            if block_ends && position + 1 < turns.len() {
                self.write_so_far()?;
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Repeats runs that the generator or the machine spoilt, in further blocks, at most as many as were planned.
    fn rerun_missing(&mut self, pace: &mut Pace) -> Result<(), RunError> {
        loop {
            let turns = self.missing();
            if turns.is_empty() {
                return Ok(());
            }
            self.write_so_far()?;
            self.observer.event(&observer::Event::Reruns(turns.len()));
            if !self.run_turns(&turns, pace)? {
                return Ok(());
            }
        }
    }

    /// The next block of repeated runs; empty if none is missing that can be executed. Every executed run is done, so each block is
    /// returned once.
    fn missing(&self) -> Vec<Turn> {
        let mut left = self.further();
        left.retain(|turn| self.plan.cells[turn.cell].run.is_ok());
        let block = left.iter().map(|turn| turn.repetition).min();
        left.into_iter().filter(|turn| Some(turn.repetition) == block).collect()
    }

    /// Further runs that are not done, of cells whose planned ones do not all count.
    fn further(&self) -> Vec<Turn> {
        let (events, planned) = (self.journal.events(), self.plan.experiment.repeat);
        let (done, tallies) = (progress::done(events), progress::tallies(events));
        let is_short = |cell: &Cell| tallies.get(cell.planned.id.as_str()).is_some_and(|tally| tally.is_short(planned));
        let short: Vec<bool> = self.plan.cells.iter().map(is_short).collect();
        let further = self.plan.turns.iter().filter(|turn| turn.repetition > planned && short[turn.cell]);
        further.filter(|turn| !done.contains(&self.place(turn).run())).copied().collect()
    }

    /// Whether no run is missing. Those of a cell that has runs, and whose system was removed before the experiment was resumed, are,
    /// unless they were left out before.
    fn is_complete(&self) -> bool {
        self.unmade().next().is_none() && self.further().is_empty()
    }

    /// The planned runs that are missing.
    fn unmade(&self) -> impl Iterator<Item = &Turn> {
        let events = self.journal.events();
        let (done, tallies) = (progress::done(events), progress::tallies(events));
        self.plan.turns.iter().filter(move |turn| {
            let cell = &self.plan.cells[turn.cell];
            let is_open = || tallies.get(cell.planned.id.as_str()).is_some_and(|tally| !tally.is_given_up());
            let is_planned = turn.repetition <= self.plan.experiment.repeat && (cell.run.is_ok() || is_open());
            is_planned && !done.contains(&self.place(turn).run())
        })
    }

    /// Why missing runs cannot be made, each reason once.
    fn refused(&self) -> Vec<String> {
        let turns = self.unmade().copied().chain(self.further());
        let refusals = turns.filter_map(|turn| self.plan.cells[turn.cell].run.as_ref().err());
        refusals.map(|refusal| refusal.text.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The reason why the last blocks made no progress, if so. A run of which only the times cannot be used is
    /// progress.
    fn no_progress(&self) -> Result<Option<NoProgress>, RunError> {
        let Some(stalled) = progress::stalled(self.journal.events()) else { return Ok(None) };
        let mut help = String::new();
        for folder in &stalled.folders {
            let record = self.folder.record(folder)?;
            if usable(&record) != Usable::Nothing {
                return Ok(None);
            }
            let reasons = record.verdict.reasons.into_iter();
            help =
                reasons.filter(|reason| reason.code == stalled.code).map(|reason| reason.hint).next().unwrap_or(help);
        }
        Ok(Some(NoProgress { reason: stalled.text, help }))
    }

    /// Writes the results, complete or not.
    fn finish(&self) -> Result<Finished, RunError> {
        let complete = self.is_complete();
        let mut record = result::record(self.plan, &self.journal, self.folder, complete)?;
        let no_progress = self.no_progress()?;
        record.cautions.splice(0..0, no_progress.as_ref().map(NoProgress::caution));
        let unwritten = result::write(&record, self.folder).err();
        Ok(Finished { record, complete, refused: self.refused(), no_progress, unwritten })
    }

    fn place(&self, turn: &Turn) -> RunPosition {
        let cell = self.plan.cells[turn.cell].planned.id.clone();
        RunPosition { order: turn.order, cell, repetition: turn.repetition }
    }

    fn write_so_far(&self) -> Result<(), RunError> {
        let record = result::record(self.plan, &self.journal, self.folder, false)?;
        result::write(&record, self.folder)
    }

    fn note(&mut self, event: Event) -> Result<(), RunError> {
        self.journal.add(event).map_err(unnoted)
    }

    fn pace(&self) -> Pace {
        let experiment = &self.plan.experiment;
        let mut pace = Pace::new(pace::of_a_run(experiment.warmup + experiment.duration));
        for event in self.journal.events() {
            let (Event::Counted { place, effort, .. } | Event::Failed { place, effort, .. }) = event else { continue };
            if let Some(cell) = self.plan.cells.iter().position(|cell| cell.planned.id == place.cell) {
                pace.add(cell, Duration::try_from_secs_f64(effort.took_s).unwrap_or_default());
            }
        }
        pace
    }

    /// Executes one run; `None` if it was stopped.
    fn make(
        &mut self,
        run: &PreparedRun,
        place: &RunPosition,
        run_place: &RunPlace<'_>,
    ) -> Result<Option<Duration>, RunError> {
        self.observer.event(&observer::Event::RunBegins(run_place));
        let began = Instant::now();
        if !self.gather()? {
            return Ok(None);
        }
        let quiet = self.wait_for_quiet();
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.note(Event::Began(place.clone()))?;
        let made = self.measure(run, place)?;
        let took = began.elapsed();
        let (end, p99_us, busy) = (&made.end, made.p99_us, quiet.busy);
        self.observer.event(&observer::Event::RunEnded { run: run_place, end, p99_us, took, busy });
        let stopped = made.end == End::Stopped;
        let effort =
            Effort { waited_ms: quiet.waited.as_millis() as u64, busy: quiet.busy, took_s: took.as_secs_f64() };
        self.note(made.event(place.clone(), effort))?;
        Ok((!stopped).then_some(took))
    }

    fn measure(&mut self, run: &PreparedRun, place: &RunPosition) -> Result<CompletedRun, RunError> {
        let name = ExperimentFolder::run_name(place);
        let run_name = name.rsplit('/').next().unwrap_or(&name);
        let begun = self.folder.begin(place)?;
        let outcome = run.repeat(place.repetition, run_name, &mut *self.observer.run());
        match outcome {
            Ok(measured) => Ok(CompletedRun {
                folder: Some(begun.save(&measured)?),
                p99_us: upper(&measured.record.latency.total).and_then(|latency| latency.p99),
                end: end::measured(&measured),
            }),
            Err(error) => {
                begun.give_up();
                Ok(CompletedRun { folder: None, p99_us: None, end: end::failed(error)? })
            }
        }
    }

    /// Waits for machines that an earlier run lost; false if it was stopped meanwhile.
    fn gather(&mut self) -> Result<bool, RunError> {
        let Some(joined) = self.joined else { return Ok(true) };
        match machines::gather(joined, self.stop, &mut *self.observer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error.hint(format!(
                "start the nodes again; `pubmark experiment --resume {}` with the same options goes on",
                self.folder.path.display()
            ))),
        }
    }

    /// Checks whether the machine is quiet, and waits if it is not. There is only one unsuccessful wait, otherwise
    /// every run on a busy machine would take the longest wait.
    fn wait_for_quiet(&mut self) -> Quiet {
        let asked = &self.plan.experiment.quiet_machine;
        let below = asked.below;
        let within = if self.has_waited { Duration::ZERO } else { asked.within };
        let observer = &mut *self.observer;
        let quiet = quiet::wait(&QuietMachine { below, within }, self.stop, &mut |share| {
            if !within.is_zero() {
                observer.event(&observer::Event::WaitsForQuiet { share, below });
            }
        });
        if quiet.busy && !self.has_waited && !self.stop.load(Ordering::Relaxed) {
            self.has_waited = true;
            self.observer.event(&observer::Event::StaysBusy { share: quiet.share, waited: quiet.waited });
        }
        quiet
    }
}

/// An executed run.
struct CompletedRun {
    end: End,
    folder: Option<String>,
    p99_us: Option<f64>,
}

impl CompletedRun {
    fn event(self, place: RunPosition, effort: Effort) -> Event {
        let folder = self.folder;
        match (self.end, folder) {
            (End::Counts(verdict), Some(folder)) => Event::Counted { place, folder, verdict, effort },
            (End::Fails { kind, code, text }, folder) => Event::Failed { place, kind, code, text, folder, effort },
            // A run that counts has a folder.
            (End::Counts(_) | End::Stopped, folder) => Event::Stopped { place, folder, effort },
        }
    }
}

/// The journal cannot be written.
fn unnoted(error: JournalError) -> RunError {
    RunError::from_error(ErrorKind::Input, &error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use pubmark_record::experiment::FailureKind;
    use pubmark_record::record::Status;
    use pubmark_runner::Host;

    use super::*;
    use crate::experiment::definition;
    use crate::experiment::journal::Planned;
    use crate::experiment::planning::Refusal;
    use crate::machines::Machines;

    /// An experiment of three repetitions of two cells, in a folder.
    fn planned(place: &Path) -> (Plan, Journal) {
        let text = "{name: t, workload: hello, repeat: 3, duration: 1s, warmup: 0s, \
                    axes: {system: builtin, qos: [0, 1]}}";
        let experiment = definition::parse(text, Path::new("")).unwrap();
        let (host, machines) = (Host::with_program("pubmark"), Machines::default());
        let plan = Plan::new(experiment, place, &host, &machines).unwrap();
        let planned = Planned::new("2026-03-01T09:05:07Z".to_owned(), vec![], plan.schedules(), None);
        let journal = Journal::create(place, planned).unwrap();
        (plan, journal)
    }

    fn position(cell: &Cell, repetition: u32) -> RunPosition {
        RunPosition { order: repetition, cell: cell.planned.id.clone(), repetition }
    }

    fn failed(cell: &Cell, repetition: u32, kind: FailureKind) -> Event {
        let (place, code, effort) = (position(cell, repetition), Some("V28".to_owned()), Effort::default());
        Event::Failed { place, kind, code, text: "V28: it failed".to_owned(), folder: None, effort }
    }

    fn started() -> Event {
        Event::Started { at: "2026-03-01T09:05:07Z".to_owned(), pubmark_version: "0.1.0".to_owned() }
    }

    /// Whether the experiment is complete if its first cell cannot be run any more, of which these kinds of failures are its runs,
    /// and this the last event of its third repetition. All runs of the other cell are done.
    fn is_complete(failures: &[FailureKind], third: Option<fn(RunPosition) -> Event>) -> bool {
        let place = tempfile::tempdir().unwrap();
        let (mut plan, mut journal) = planned(place.path());
        plan.cells[0].run = Err(Refusal::not_installed("it was removed"));
        let ends = [failures, &[FailureKind::OutOfMemory; 3][..]];
        for (cell, kinds) in plan.cells.iter().zip(ends) {
            for (kind, repetition) in kinds.iter().zip(1..) {
                journal.add(failed(cell, repetition, *kind)).unwrap();
            }
        }
        if let Some(event) = third {
            journal.add(event(position(&plan.cells[0], 3))).unwrap();
        }
        let (folder, stop) = (ExperimentFolder::at(place.path()), AtomicBool::new(false));
        let (plan, folder, observer) = (&plan, &folder, &mut ());
        let runner = Runner { plan, folder, journal, observer, stop: &stop, joined: None, has_waited: false };
        let finished = runner.perform().unwrap();
        assert_eq!(finished.record.status == Status::Complete, finished.complete);
        // Nothing was stopped: what is missing is refused.
        let refused: &[&str] = if finished.complete { &[] } else { &["it was removed"] };
        assert_eq!(finished.refused, refused);
        finished.complete
    }

    #[test]
    fn runs_of_a_system_that_was_removed_before_an_experiment_was_resumed_are_missing() {
        use FailureKind::{GeneratorLimited, Invalid, OutOfMemory};
        assert!(is_complete(&[OutOfMemory, OutOfMemory], Some(Event::Skipped)), "it was given up");
        assert!(!is_complete(&[OutOfMemory, OutOfMemory], None), "the experiment was stopped before it was given up");
        assert!(!is_complete(&[OutOfMemory], None), "its further repetitions");
        assert!(!is_complete(&[Invalid, GeneratorLimited], None), "those that replace what does not count");
        assert!(!is_complete(&[], Some(Event::Began)), "the experiment was stopped during its only run");
        assert!(is_complete(&[], None), "it was never run here");
    }

    #[test]
    fn cells_without_progress_are_run_again_when_the_experiment_is_resumed() {
        let place = tempfile::tempdir().unwrap();
        let (plan, mut journal) = planned(place.path());
        journal.add(started()).unwrap();
        for repetition in [1, 2] {
            for cell in &plan.cells {
                journal.add(failed(cell, repetition, FailureKind::GeneratorLimited)).unwrap();
            }
        }
        // The next run is stopped before it begins, so that nothing is started.
        let (folder, stop) = (ExperimentFolder::at(place.path()), AtomicBool::new(true));
        let (plan, folder, observer) = (&plan, &folder, &mut ());
        let runner = Runner { plan, folder, journal, observer, stop: &stop, joined: None, has_waited: false };
        let finished = runner.perform().unwrap();
        assert!(!finished.complete && finished.no_progress.is_none());
        let events = Journal::read(place.path());
        assert!(!events.iter().any(|event| matches!(event, Event::Skipped(_))), "{events:?}");
    }

    #[test]
    fn no_progress_is_noticed_in_a_block_whose_first_run_is_done() {
        let place = tempfile::tempdir().unwrap();
        let (plan, mut journal) = planned(place.path());
        for repetition in 1..=3 {
            journal.add(failed(&plan.cells[0], repetition, FailureKind::OutOfMemory)).unwrap();
        }
        journal.add(started()).unwrap();
        for repetition in 1..=2 {
            journal.add(failed(&plan.cells[1], repetition, FailureKind::GeneratorLimited)).unwrap();
        }
        let mut turns: Vec<Turn> = plan.runs().filter(|turn| turn.repetition == 3).copied().collect();
        turns.sort_by_key(|turn| turn.cell);
        let (folder, stop) = (ExperimentFolder::at(place.path()), AtomicBool::new(false));
        let (plan, folder, observer) = (&plan, &folder, &mut ());
        let mut runner = Runner { plan, folder, journal, observer, stop: &stop, joined: None, has_waited: false };
        let mut pace = runner.pace();
        assert!(!runner.run_turns(&turns, &mut pace).unwrap(), "it goes on");
        let events = runner.journal.events();
        assert!(!events.iter().any(|event| matches!(event, Event::Skipped(_))), "{events:?}");
    }
}
