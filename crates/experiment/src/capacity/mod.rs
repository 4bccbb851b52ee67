//! The highest load that a system carries within objectives: [`search`] chooses the loads to try, [`trial`] runs the
//! trials, and this module combines both into a record.

mod growth;
mod judgement;
pub mod planning;
pub mod search;
pub mod trial;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pubmark_record::capacity::{
    CAPACITY_FILE, CAPACITY_SCHEMA_VERSION, CapacityLimit, CapacityRecord, CapacityResult, Trial, TrialOutcome,
    limiting_trial,
};
use pubmark_record::record::{Environment, Record, Status, SystemInfo};
use pubmark_record::reserve::RESERVED_BYTES;
use pubmark_record::store::{self, RunFolder, StoreError};
use pubmark_record::threshold::Objectives;
use pubmark_record::time::UtcTime;
use pubmark_record::verdict::rules::Blame;
use pubmark_report::numbers;
use pubmark_runner::objectives::unread;
use pubmark_runner::{ErrorKind, JoinedNodes, RunError, command_line, now, save};
use pubmark_systems::environment;

use crate::end::one_line;
use crate::observer::{Event, Observer, TrialPlace};
use search::{Bounds, Search, SearchResult};
use trial::{TrialResult, Trials, is_doubtful};

/// Parses the limits of a search; `place` says where they were given.
///
/// # Errors
/// The limits cannot be parsed, or one is on a metric of the user's own, which is computed only after a trial was
/// judged.
pub fn objectives(place: &str, text: &str) -> Result<Objectives, RunError> {
    let objectives = Objectives::parse(text).map_err(|error| unread(place, &error))?;
    match objectives.clauses().iter().find(|clause| clause.metric.custom_name().is_some()) {
        None => Ok(objectives),
        Some(clause) => {
            Err(RunError::input(format!("`{}`: a search has no limits on metrics of your own", clause.text))
                .hint("`pubmark run --slo` and `pubmark check --require` have them"))
        }
    }
}

/// A search for capacity.
pub struct Capacity<'a> {
    /// The trials.
    pub trials: Trials<'a>,
    /// Bounds of the search.
    pub bounds: Bounds,
    /// Time after which no further trial is started.
    pub within: Duration,
    /// The objectives as the user wrote them.
    pub objectives: String,
    /// Folder of the search.
    pub folder: &'a RunFolder,
    /// Candidate of a choice whose headroom is searched, for whoever observes it.
    pub candidate: Option<&'a str>,
}

/// Description of the system after the first trial that reached it.
struct Seen {
    system: SystemInfo,
    protocol: String,
    environment: Environment,
}

/// What a search has so far.
struct Course {
    search: Search,
    trials: Vec<Trial>,
    seen: Option<Seen>,
}

/// Why no further trial is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The capacity is known, or no trial would find it.
    Found,
    /// The time for the search is over.
    OutOfTime,
    /// It was stopped, or an error ended it.
    Interrupted,
}

impl Capacity<'_> {
    /// Searches, and writes the record into the folder. If that fails, or something ends the search after its first trial, the error
    /// is returned with the record.
    ///
    /// # Errors
    /// No trial was made, because of an error or because the system did not start.
    pub fn perform(&self, observer: &mut dyn Observer) -> Result<(CapacityRecord, Option<RunError>), RunError> {
        self.perform_on(None, observer)
    }

    /// The same with machines that have already joined, if trials use some; without them the first trial waits for its own.
    ///
    /// # Errors
    /// Those of [`Capacity::perform`].
    pub fn perform_on(
        &self,
        mut joined: Option<Arc<JoinedNodes>>,
        observer: &mut dyn Observer,
    ) -> Result<(CapacityRecord, Option<RunError>), RunError> {
        let began = Instant::now();
        let started_at = UtcTime::from_system_time(now()).rfc3339();
        let mut course = Course { search: Search::new(self.bounds), trials: vec![], seen: None };
        let ended = self.make_trials(began, &mut course, &mut joined, observer);
        let (ended, failure) = match ended {
            Err(error) if course.trials.is_empty() => return Err(error),
            Err(error) => (Ended::Interrupted, Some(error)),
            Ok(ended) => (ended, None),
        };
        let mut record = self.record(course, ended, started_at, began.elapsed());
        record.cautions.splice(0..0, failure.as_ref().map(ended_by));
        let unwritten = self.write(&record).err();
        Ok((record, unwritten.or(failure)))
    }

    /// Makes trials until the capacity is known or something else ends the search.
    fn make_trials(
        &self,
        began: Instant,
        course: &mut Course,
        joined: &mut Option<Arc<JoinedNodes>>,
        observer: &mut dyn Observer,
    ) -> Result<Ended, RunError> {
        while let Some((factor, attempt)) = course.search.next() {
            if is_unmeasured_from_the_start(&course.trials) {
                break;
            }
            if began.elapsed() >= self.within {
                return Ok(Ended::OutOfTime);
            }
            let number = course.trials.len() + 1;
            let left = self.within.saturating_sub(began.elapsed());
            let place = TrialPlace { number, attempt, candidate: self.candidate, left };
            let Some(mut made) = self.trials.make(factor, &place, joined, observer)? else {
                return Ok(Ended::Interrupted);
            };
            if number == 1 && made.trial.outcome == TrialOutcome::Failed && made.measured.is_none() {
                // The system does not even start: there is nothing to search.
                return Err(RunError::new(
                    ErrorKind::System,
                    made.trial.reason.unwrap_or_else(|| "the system did not start".to_owned()),
                ));
            }
            let stored = self.store_trial(&mut made, number, &mut course.seen);
            observer.event(&Event::TrialEnded { number, trial: &made.trial });
            course.search.add_verdict(factor, made.verdict);
            course.trials.push(made.trial);
            stored?;
        }
        Ok(Ended::Found)
    }

    /// Stores a trial's record, and the description of the system from it.
    fn store_trial(&self, made: &mut TrialResult, number: usize, seen: &mut Option<Seen>) -> Result<(), RunError> {
        let Some(mut outcome) = made.measured.take() else { return Ok(()) };
        let name = format!("trials/{number:02}");
        let unwritten = |error: StoreError| save::unwritten(&error);
        let folder = RunFolder::at(&self.folder.path().join(&name)).map_err(unwritten)?;
        let reserve = folder.reserve(RESERVED_BYTES).map_err(unwritten)?;
        outcome.record.run.name.clone_from(&name);
        let record = outcome.save(&folder, reserve).whole()?;
        made.trial.folder = Some(name);
        match seen {
            Some(seen) => seen.environment.load_after = record.environment.load_after,
            None => {
                let protocol = record.protocol.to_string();
                let Record { system, environment, .. } = record;
                *seen = Some(Seen { system, protocol, environment });
            }
        }
        Ok(())
    }

    fn record(&self, course: Course, ended: Ended, started_at: String, took: Duration) -> CapacityRecord {
        let Course { search, trials, seen } = course;
        let found = search.found(ended != Ended::Found);
        let result = result(&found, &trials, &self.objectives);
        let status = if ended == Ended::Interrupted { Status::Interrupted } else { Status::Complete };
        let seen = seen.unwrap_or_else(|| Seen {
            system: SystemInfo::default(),
            protocol: String::new(),
            environment: environment::read(),
        });
        CapacityRecord {
            schema_version: CAPACITY_SCHEMA_VERSION,
            pubmark_version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.folder.name().to_owned(),
            command: command_line::shown(self.trials.host.command.clone(), &self.secret_parameters()),
            started_at,
            took_s: took.as_secs_f64(),
            status,
            workload: self.trials.spec.workload.name().to_owned(),
            seed: self.trials.spec.load.seed,
            knob: self.trials.knob,
            objectives: self.objectives.clone(),
            system: seen.system,
            protocol: seen.protocol,
            cautions: cautions(&found, &trials, self.bounds.precision),
            result,
            trials,
            environment: seen.environment,
        }
    }

    /// Parameters that the workload uses for passwords. Every trial has loaded the workload, so loading errors are
    /// already known.
    fn secret_parameters(&self) -> Vec<String> {
        self.trials.spec.load().map(|workload| workload.secret_parameters).unwrap_or_default()
    }

    fn write(&self, record: &CapacityRecord) -> Result<(), RunError> {
        let folder = self.folder.path();
        let json = store::to_json(record).map_err(|error| save::unwritten(&error))?;
        // The record first: the other files can be made from it.
        let exports = pubmark_report::exports::capacity(record);
        save::write(&folder.join(CAPACITY_FILE), &json)
            .and_then(|()| exports.iter().try_for_each(|(name, text)| save::write(&folder.join(name), text)))
            .map_err(|failure| RunError { kind: ErrorKind::NotWritten, ..failure })
    }
}

/// Whether neither trial of the first load measured an objective. A lower load has fewer messages and would not measure it
/// either, and a higher one may be too much for the system: what is missing is longer trials, or another objective.
fn is_unmeasured_from_the_start(trials: &[Trial]) -> bool {
    let [one, other] = trials else { return false };
    one.factor == other.factor && one.not_measured.is_some() && other.not_measured.is_some()
}

/// A caution that names the error that ended a search.
fn ended_by(error: &RunError) -> String {
    format!("an error ended the search before its answer was known: {}", one_line(&error.to_string()))
}

/// The result in a sentence.
fn result(found: &SearchResult, trials: &[Trial], objectives: &str) -> CapacityResult {
    let at = |factor: Option<f64>| factor.and_then(|factor| trials.iter().find(|trial| trial.factor == factor));
    let (holds, fails) = (at(found.holds), at(found.fails));
    let rate = |trial: &Trial| format!("{} msg/s", numbers::count(trial.offered_per_s.round() as u64));
    let last = fails.and_then(|trial| limiting_trial(trials, trial.factor, found.limit));
    let why = last.and_then(|trial| trial.reason.as_deref()).unwrap_or_default();
    let blame = last.map_or(Blame::Run, Trial::blame);
    let is_unmeasured = last.is_some_and(|trial| trial.not_measured.is_some());
    let is_without_run = last.is_some_and(|trial| trial.verdict.is_none());
    let text = match (holds, found.limit) {
        (Some(holds), CapacityLimit::System) => {
            let above = fails.map(rate).unwrap_or_default();
            format!("{objectives} holds up to {}; at {above} {why}", rate(holds))
        }
        (Some(holds), CapacityLimit::Generator) => {
            let above = fails.map(rate).unwrap_or_default();
            let limit = match blame {
                Blame::Generator => format!("at {above} pubmark itself was the limit ({why})"),
                Blame::Machine => format!("at {above} the machine was the limit ({why})"),
                Blame::Clients | Blame::System(_) | Blame::Run if is_unmeasured => {
                    format!("trials at {above} do not decide it ({why})")
                }
                // The machine is too small for the load, or a node was lost.
                Blame::Clients | Blame::System(_) | Blame::Run if is_without_run => {
                    format!("nothing was measured at {above} ({why})")
                }
                Blame::Clients | Blame::System(_) | Blame::Run => format!("runs at {above} were invalid ({why})"),
            };
            format!("{objectives} holds up to {} at least: {limit}", rate(holds))
        }
        (Some(holds), CapacityLimit::Range) => {
            format!("{objectives} holds up to {} at least, which is the end of the search", rate(holds))
        }
        (Some(holds), _) => format!("{objectives} holds up to {} at least: the search was not finished", rate(holds)),
        (None, CapacityLimit::Generator) => {
            let limit = match blame {
                Blame::Generator => "pubmark itself was the limit at every load",
                Blame::Machine => "the machine was the limit at every load",
                Blame::Clients | Blame::System(_) | Blame::Run if is_unmeasured => "no trial decides it",
                Blame::Clients | Blame::System(_) | Blame::Run => "runs at every load were invalid",
            };
            format!("nothing is known of the system: {limit} ({why})")
        }
        (None, CapacityLimit::Time) => {
            let unmeasured = trials.iter().rev().find_map(|trial| trial.not_measured.as_deref());
            let missing = unmeasured.map_or_else(String::new, |objective| format!(": {objective} was not measured"));
            format!("the search ended before any load was known to hold{missing}")
        }
        (None, _) => format!("{objectives} does not hold at any load tried: {why}"),
    };
    CapacityResult {
        holds_per_s: holds.map(|trial| trial.offered_per_s),
        holds_factor: found.holds,
        holds_devices: holds.map(|trial| trial.devices),
        fails_per_s: fails.map(|trial| trial.offered_per_s),
        limit: found.limit,
        text,
    }
}

fn cautions(found: &SearchResult, trials: &[Trial], precision: f64) -> Vec<String> {
    let mut cautions = vec![];
    let doubtful = trials.iter().filter(|trial| is_doubtful(trial)).count();
    if doubtful > 0 {
        cautions.push(format!(
            "in {doubtful} of the trials that held, pubmark's own share of the latency was large: the objectives were met all the \
             same, but latencies of the curve are upper bounds"
        ));
    }
    let moved = |factor: f64| {
        let tries: Vec<_> = trials.iter().filter(|trial| trial.factor == factor).map(|trial| trial.outcome).collect();
        tries.contains(&TrialOutcome::Held) && tries.iter().any(|outcome| *outcome != TrialOutcome::Held)
    };
    if let Some(factor) = [found.holds, found.fails].into_iter().flatten().find(|factor| moved(*factor)) {
        let rate = trials.iter().find(|trial| trial.factor == factor).map_or(0.0, |trial| trial.offered_per_s);
        cautions.push(format!(
            "trials at {} msg/s disagreed: results near the limit vary",
            numbers::count(rate.round() as u64)
        ));
    }
    if let (Some(holds), Some(fails)) = (found.holds, found.fails)
        && fails / holds > precision
        && found.limit == CapacityLimit::Time
    {
        cautions.push(format!(
            "the highest load may be up to {} % higher: the time limit was reached",
            ((fails / holds - 1.0) * 100.0).round()
        ));
    }
    cautions
}

#[cfg(test)]
mod tests {
    use pubmark_record::record::VerdictStatus;
    use pubmark_record::sample_experiment;

    use super::*;

    #[test]
    fn an_objective_that_was_not_measured_is_named_and_nobody_is_blamed() {
        let mut record = sample_experiment::generator_limited();
        let limiting = record.trials.iter_mut().find(|trial| trial.factor == 8.0).expect("the load that did not hold");
        (limiting.verdict, limiting.code) = (Some(VerdictStatus::Valid), None);
        limiting.not_measured = Some("backpressure_p99<1ms".to_owned());
        limiting.reason = Some("backpressure_p99 was not measured: longer trials".to_owned());
        let text = |holds: Option<f64>| {
            let found = SearchResult { holds, fails: Some(8.0), limit: CapacityLimit::Generator };
            result(&found, &record.trials, "backpressure_p99<1ms").text
        };
        let why = "(backpressure_p99 was not measured: longer trials)";
        let told = text(Some(4.0));
        assert!(told.ends_with(&format!("at least: trials at 8,000 msg/s do not decide it {why}")), "{told}");
        assert_eq!(text(None), format!("nothing is known of the system: no trial decides it {why}"));
        let found = SearchResult { holds: None, fails: None, limit: CapacityLimit::Time };
        let told = result(&found, &record.trials, "backpressure_p99<1ms").text;
        assert_eq!(told, "the search ended before any load was known to hold: backpressure_p99<1ms was not measured");
    }

    #[test]
    fn a_search_ends_if_the_first_load_does_not_measure_an_objective() {
        let mut trials = sample_experiment::capacity().trials;
        trials.truncate(2);
        for trial in &mut trials {
            (trial.factor, trial.outcome) = (1.0, TrialOutcome::GeneratorLimited);
        }
        trials[0].not_measured = Some("backpressure_p99<1ms".to_owned());
        assert!(!is_unmeasured_from_the_start(&trials) && !is_unmeasured_from_the_start(&trials[..1]));
        trials[1].not_measured = trials[0].not_measured.clone();
        assert!(is_unmeasured_from_the_start(&trials));
        let mut search = Search::new(Bounds { first: 1.0, least: 0.01, most: 8.0, precision: 1.03, whole: false });
        let unmeasured = search::Verdict { outcome: TrialOutcome::GeneratorLimited, is_clear: false };
        (0..2).for_each(|_| search.add_verdict(1.0, unmeasured));
        let found = SearchResult { holds: None, fails: Some(1.0), limit: CapacityLimit::Generator };
        assert_eq!(search.found(false), found);
        trials[1].factor = 2.0;
        assert!(!is_unmeasured_from_the_start(&trials), "the first load held");
    }

    #[test]
    fn a_load_whose_runs_are_invalid_is_not_said_to_be_the_limit_of_pubmark() {
        let mut record = sample_experiment::capacity();
        record.trials.truncate(2);
        let [held, failed] = &mut record.trials[..] else { panic!("two trials") };
        (held.factor, held.outcome) = (1.0, TrialOutcome::Held);
        (failed.factor, failed.outcome, failed.offered_per_s) = (2.0, TrialOutcome::GeneratorLimited, 2_000.0);
        let mut text = |holds: Option<f64>, verdict: Option<VerdictStatus>, code: Option<&str>, reason: &str| {
            (record.trials[1].verdict, record.trials[1].reason) = (verdict, Some(reason.to_owned()));
            record.trials[1].code = code.map(str::to_owned);
            let found = SearchResult { holds, fails: Some(2.0), limit: CapacityLimit::Generator };
            result(&found, &record.trials, "p99<1s").text
        };
        let invalid = Some(VerdictStatus::Invalid);
        let told = text(Some(1.0), invalid, Some("V24"), "V24: 3 pairs never met");
        assert!(told.ends_with("at least: runs at 2,000 msg/s were invalid (V24: 3 pairs never met)"), "{told}");
        let told = text(None, invalid, Some("V22"), "V22: no bound");
        assert_eq!(told, "nothing is known of the system: runs at every load were invalid (V22: no bound)");
        let told = text(Some(1.0), None, None, "node `b` was lost");
        assert!(told.ends_with("at least: nothing was measured at 2,000 msg/s (node `b` was lost)"), "{told}");
        for (verdict, code, reason) in
            [(invalid, Some("V01"), "V01: late"), (Some(VerdictStatus::Valid), None, "p99 is 0.9–1.2 s: undecided")]
        {
            let told = text(Some(1.0), verdict, code, reason);
            assert!(told.ends_with(&format!("at 2,000 msg/s pubmark itself was the limit ({reason})")), "{told}");
        }
        let told = text(Some(1.0), invalid, Some("V28"), "V28: waited");
        assert!(told.ends_with("at 2,000 msg/s the machine was the limit (V28: waited)"), "{told}");
        let told = text(None, invalid, Some("V28"), "V28: waited");
        assert!(told.ends_with("the machine was the limit at every load (V28: waited)"), "{told}");
    }
}
