//! A candidate in the race: its runs so far, and what follows from them.

use pubmark_experiment::End;
use pubmark_record::experiment::FailureKind;
use pubmark_record::objectives::{Objective, ObjectiveOutcome};
use pubmark_record::record::{Record, SystemInfo};
use pubmark_runner::{PreparedRun, RunError};

use crate::candidate::Candidate;
use crate::cost::{Cost, LoadCost, RunCost};
use crate::evidence::{failure, recovery_limit};
use crate::headroom::{Headroom, HeadroomResult};
use crate::record::{CandidateResult, ChoiceRun, State};
use crate::requirements::Requirements;
use crate::rule::Rule;
use crate::standing::{ObjectiveStanding, Phase, Standing};

/// Failed starts after which a candidate that never started is given up: each may cost its whole time limit.
const MOST_FAILED_STARTS: u32 = 2;
/// Figures of runs that a sentence shows.
const SHOWN: usize = 4;

/// A candidate in the race.
pub struct Entry<'a> {
    /// Who it is.
    pub candidate: &'a Candidate,
    /// Where it stands.
    pub standing: Standing,
    /// Its runs.
    pub runs: Vec<ChoiceRun>,
    /// What its runs of the race cost.
    pub costs: Vec<RunCost>,
    /// Higher loads that it carried, and what they cost.
    pub carried: Vec<LoadCost>,
    /// How much more it carries.
    pub headroom: Headroom,
    system: Option<SystemInfo>,
    failed_starts: u32,
}

impl<'a> Entry<'a> {
    /// A candidate without runs.
    pub fn new(candidate: &'a Candidate, rule: Rule, limits: &[String], requirements: &Requirements) -> Entry<'a> {
        let recovery = requirements.recovery.map(recovery_limit);
        Entry {
            candidate,
            standing: Standing::new(rule, limits, recovery.as_deref()),
            runs: vec![],
            costs: vec![],
            carried: vec![],
            headroom: Headroom::not_searched("only candidates that meet all objectives are searched"),
            system: None,
            failed_starts: 0,
        }
    }

    /// Its run of a phase, if it has one.
    pub fn run(&self, phase: Phase) -> Option<&'a PreparedRun> {
        let runs = self.candidate.runs.as_ref().ok()?;
        match phase {
            Phase::Screening => Some(&runs.screening),
            Phase::Race => Some(&runs.race),
            Phase::Recovery => runs.recovery.as_ref()?.as_ref().ok(),
        }
    }

    /// Is a further run of this phase needed?
    pub fn wants(&self, phase: Phase) -> bool {
        self.run(phase).is_some() && !self.is_broken() && self.standing.wants(phase)
    }

    /// Fewest runs of this phase after which all of it may be known.
    pub fn runs_left(&self, phase: Phase) -> u32 {
        if self.run(phase).is_none() || self.is_broken() { 0 } else { self.standing.runs_left(phase) }
    }

    /// May it be ranked? So far as is known.
    pub fn is_ranked(&self) -> bool {
        self.system.as_ref().is_some_and(|system| system.ranked)
    }

    /// Refuses a run of another version of the system than those before it: they would be counted together.
    ///
    /// # Errors
    /// The versions differ.
    pub fn check_same_system(&self, found: &SystemInfo) -> Result<(), RunError> {
        let version = |system: &SystemInfo| system.version.clone().unwrap_or_else(|| "unknown".to_owned());
        match &self.system {
            Some(known) if known.version != found.version => Err(RunError::input(format!(
                "`{}` was version {} in its first runs and is {} now",
                self.candidate.label,
                version(known),
                version(found)
            ))
            .hint("`--fresh` begins a choice anew")),
            _ => Ok(()),
        }
    }

    /// Counts a search for its headroom.
    ///
    /// # Errors
    /// As [`Entry::check_same_system`].
    pub fn add_headroom(&mut self, found: HeadroomResult) -> Result<(), RunError> {
        if let Some(system) = &found.system {
            self.check_same_system(system)?;
        }
        (self.headroom, self.carried) = (found.headroom, found.carried);
        Ok(())
    }

    fn is_broken(&self) -> bool {
        self.system.is_none() && self.failed_starts >= MOST_FAILED_STARTS
    }

    /// Counts a run.
    pub fn add(
        &mut self,
        phase: Phase,
        record: Option<&Record>,
        end: &End,
        objectives: Vec<Objective>,
        folder: Option<String>,
    ) {
        let outcomes: Vec<ObjectiveOutcome> = objectives.iter().map(|objective| objective.outcome).collect();
        self.standing.add(phase, &outcomes);
        if matches!(end, End::Fails { kind: FailureKind::DidNotStart, .. }) {
            self.failed_starts += 1;
        }
        if let Some(record) = record {
            self.system.get_or_insert_with(|| record.system.clone());
            if phase == Phase::Race && matches!(end, End::Counts(_)) {
                self.costs.push(RunCost::of(record));
            }
        }
        self.runs.push(ChoiceRun {
            phase,
            number: self.standing.made(phase),
            folder,
            verdict: record.map(|record| record.verdict.status),
            failure: failure(end),
            objectives,
        });
    }

    /// What follows. `stopped` says why no more runs were made, where some were wanted.
    pub fn state(&self, growth: f64, stopped: &str) -> State {
        if let Err(state) = &self.candidate.runs {
            return state.clone();
        }
        if self.is_broken() {
            let reason = self.runs.last().and_then(|run| run.failure.clone()).unwrap_or_default();
            return State::Broken { reason };
        }
        if let Some(missed) = self.standing.missed() {
            return State::Fails { objective: missed.limit.clone(), evidence: self.evidence(missed) };
        }
        match self.standing.open() {
            Some(open) => State::Undecided { would_decide: self.would_decide(open, stopped) },
            None => self.headroom.judge_growth(growth),
        }
    }

    /// Do the objectives hold at this load?
    pub fn holds(&self) -> bool {
        self.candidate.runs.is_ok() && self.standing.holds()
    }

    /// What the runs with this outcome measured of an objective, in order.
    fn measured(&self, limit: &str, outcome: ObjectiveOutcome) -> Vec<String> {
        let judged = self.runs.iter().flat_map(|run| &run.objectives);
        let found = judged.filter(|one| one.limit == limit && one.outcome == outcome);
        found.filter_map(|one| one.measured.clone()).collect()
    }

    fn evidence(&self, missed: &ObjectiveStanding) -> String {
        let in_screening = missed.missed == 0;
        let (misses, runs) = match in_screening {
            true => (missed.screening_missed, missed.screening_missed),
            false => (missed.missed, missed.missed + missed.held + missed.undecided),
        };
        let kind = if in_screening { "short runs" } else { "runs" };
        let values = self.measured(&missed.limit, ObjectiveOutcome::Missed);
        format!("{} missed in {misses} of {runs} {kind}{}", missed.limit, in_brackets(&values))
    }

    /// What would decide an objective of which nothing is known.
    fn would_decide(&self, open: &ObjectiveStanding, stopped: &str) -> String {
        let limit = &open.limit;
        if let (Phase::Recovery, Ok(runs)) = (open.judged_in, &self.candidate.runs)
            && let Some(Err(reason)) = &runs.recovery
        {
            return format!("{limit} cannot be tested here: {reason}");
        }
        let judged: Vec<&ChoiceRun> = self.runs.iter().filter(|run| run.phase == open.judged_in).collect();
        if judged.is_empty() {
            return format!("{limit}: no run was made, because {stopped}");
        }
        let counted = format!(
            "{limit} held in {}, was missed in {} and undecided in {} runs",
            open.held, open.missed, open.undecided
        );
        if open.undecided > open.held.max(open.missed) {
            let remedy = self
                .runs
                .iter()
                .rev()
                .flat_map(|run| &run.objectives)
                .find_map(|one| one.remedy.as_ref().filter(|_| one.limit == *limit));
            let failed = judged.iter().rev().find_map(|run| run.failure.as_ref());
            let values = self.measured(limit, ObjectiveOutcome::Undecided);
            return match (remedy, failed) {
                (Some(remedy), _) => format!("{counted}{}: {remedy}", in_brackets(&values)),
                (None, Some(failed)) => format!("{counted}: runs that count ({failed})"),
                (None, None) => format!("{counted}: a measurement of it, which these runs lack"),
            };
        }
        match self.standing.wants(open.judged_in) {
            true => format!("{counted}: more runs, which were not made because {stopped}"),
            false => format!("{counted}: it is close to the limit, and more runs would not tell; require more or less"),
        }
    }

    /// For the record.
    pub fn result(&self, growth: f64, stopped: &str) -> CandidateResult {
        CandidateResult {
            label: self.candidate.label.clone(),
            system: self.system.clone(),
            protocol: self.candidate.runs.as_ref().ok().map(|runs| runs.protocol().to_owned()),
            state: self.state(growth, stopped),
            objectives: self.standing.objectives.clone(),
            runs: self.runs.clone(),
            cost: Cost::new(&self.costs, &self.carried, growth),
            growth: (growth > 1.0 && self.holds()).then(|| self.headroom.coverage(growth)),
            headroom: self.headroom.clone(),
        }
    }
}

/// Values behind a sentence: ` (61 ms, 60 ms)`; nothing where there are none.
fn in_brackets(values: &[String]) -> String {
    match values {
        [] => String::new(),
        values => {
            let more = if values.len() > SHOWN { ", …" } else { "" };
            format!(" ({}{more})", values[..values.len().min(SHOWN)].join(", "))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::record::VerdictStatus;
    use pubmark_record::sample;
    use pubmark_record::threshold::Objectives;
    use pubmark_runner::Host;

    use super::*;
    use crate::candidate;
    use crate::evidence::{limits, of_run};
    use crate::requirements::CandidateSpec;

    const COUNTS: End = End::Counts(VerdictStatus::Valid);
    const STOPPED: &str = "the time limit was reached";

    fn candidate(requirements: &mut Requirements, name: &str) -> Candidate {
        requirements.candidates = vec![CandidateSpec::Name(name.to_owned())];
        candidate::all(requirements, &Host::with_program("pubmark")).unwrap().remove(0)
    }

    /// The state after runs of the race that end so, of a candidate with this objective.
    fn state(objective: &str, ends: &[End], with_record: bool) -> State {
        let record = sample::record();
        state_of(objective, ends, with_record.then_some(&record))
    }

    /// The same, with the record of each run.
    fn state_of(objective: &str, ends: &[End], record: Option<&Record>) -> State {
        let mut requirements = Requirements::new("hello");
        let candidate = candidate(&mut requirements, "builtin");
        let objectives = Objectives::parse(objective).unwrap();
        let mut entry = Entry::new(&candidate, Rule { lead: 3 }, &limits(&objectives), &requirements);
        for end in ends {
            let judged = of_run(Phase::Race, &objectives, None, record, end);
            entry.add(Phase::Race, record, end, judged, None);
        }
        entry.state(1.0, STOPPED)
    }

    fn fails(kind: FailureKind) -> End {
        End::Fails { kind, code: Some("V28".to_owned()), text: "V28: it had no CPU".to_owned() }
    }

    #[test]
    fn each_state_says_what_it_rests_on() {
        let counts = vec![COUNTS; 3];
        assert_eq!(state("p50<1s", &counts, true), State::Qualifies);
        let State::Fails { objective, evidence } = state("p50<0.2ms", &counts, true) else { panic!("it fails") };
        assert_eq!(objective, "p50<0.2ms");
        assert_eq!(evidence, "p50<0.2ms missed in 3 of 3 runs (248–310 µs, 248–310 µs, 248–310 µs)");
        let undecided = |state: State| match state {
            State::Undecided { would_decide } => would_decide,
            other => panic!("{other:?}"),
        };
        let text = undecided(state("p50<0.28ms", &counts, true));
        assert!(text.starts_with("p50<0.28ms held in 0, was missed in 0 and undecided in 3 runs (248"), "{text}");
        assert!(text.contains("--realtime"), "{text}");
        let text = undecided(state("p50<1s", &counts[..2], true));
        assert_eq!(
            text,
            "stays up held in 2, was missed in 0 and undecided in 0 runs: more runs, which were not made because the time limit was reached"
        );
        let text = undecided(state("p50<1s", &vec![fails(FailureKind::Invalid); 12], true));
        assert!(text.contains("runs that count (V28: it had no CPU)"), "{text}");
        assert_eq!(
            undecided(state("p50<1s", &[], true)),
            "stays up: no run was made, because the time limit was reached"
        );
    }

    #[test]
    fn a_candidate_that_delivers_nothing_fails_by_its_latency_and_one_without_a_measurement_is_undecided() {
        let mut record = sample::record();
        record.verdict.reasons.clear();
        record.latency.total = None;
        let counts = vec![COUNTS; 3];
        assert!(matches!(state_of("p99<1s", &counts, Some(&record)), State::Undecided { .. }));
        let messages = &mut record.delivery.messages;
        (messages.lost, messages.delivered) = (messages.expected, 0);
        let evidence = "p99<1s missed in 3 of 3 runs (nothing arrived, nothing arrived, nothing arrived)".to_owned();
        let fails_by_it = State::Fails { objective: "p99<1s".to_owned(), evidence };
        assert_eq!(state_of("p99<1s", &counts, Some(&record)), fails_by_it);
        let invalid = vec![fails(FailureKind::GeneratorLimited); 3];
        assert!(matches!(state_of("p99<1s", &invalid, Some(&record)), State::Undecided { .. }));
    }

    #[test]
    fn the_headroom_of_another_version_is_not_counted_with_the_runs() {
        let mut requirements = Requirements::new("hello");
        let candidate = candidate(&mut requirements, "builtin");
        let objectives = Objectives::parse("p50<1s").unwrap();
        let mut entry = Entry::new(&candidate, Rule { lead: 3 }, &limits(&objectives), &requirements);
        let record = sample::record();
        let judged = of_run(Phase::Race, &objectives, None, Some(&record), &COUNTS);
        entry.add(Phase::Race, Some(&record), &COUNTS, judged, None);
        let found = |version: Option<&str>| {
            let headroom = Headroom { holds_factor: Some(4.0), ..Headroom::default() };
            let version = version.map(str::to_owned);
            HeadroomResult { headroom, carried: vec![], system: Some(SystemInfo { version, ..record.system.clone() }) }
        };
        let error = entry.add_headroom(found(Some("9.9.9"))).unwrap_err();
        assert!(error.to_string().contains("and is 9.9.9 now"), "{error}");
        assert_eq!(entry.headroom.holds_factor, None, "it was not counted");
        entry.add_headroom(found(record.system.version.as_deref())).unwrap();
        assert_eq!(entry.headroom.holds_factor, Some(4.0));
        let unreached = HeadroomResult { system: None, ..found(None) };
        assert!(entry.add_headroom(unreached).is_ok(), "no trial reached it");
    }

    #[test]
    fn a_system_that_never_starts_is_broken_and_one_that_ends_in_each_run_fails() {
        let starts = vec![fails(FailureKind::DidNotStart); 2];
        assert_eq!(state("loss=0", &starts, false), State::Broken { reason: "V28: it had no CPU".to_owned() });
        let ends = vec![fails(FailureKind::Ended); 3];
        assert!(matches!(state("loss=0", &ends, true), State::Fails { objective, .. } if objective == "stays up"));
        assert!(matches!(state("loss=0", &ends[..2], true), State::Undecided { .. }), "two decide nothing");
    }

    #[test]
    fn recovery_that_cannot_be_tested_is_undecided_with_the_reason() {
        let mut requirements = Requirements::new("hello");
        requirements.recovery = Some(std::time::Duration::from_secs(10));
        let candidate = candidate(&mut requirements, "mqtt://127.0.0.1:1");
        let objectives = Objectives::parse("p50<1s").unwrap();
        let mut entry = Entry::new(&candidate, Rule { lead: 3 }, &limits(&objectives), &requirements);
        let record = sample::record();
        for _ in 0..3 {
            let judged = of_run(Phase::Race, &objectives, None, Some(&record), &COUNTS);
            entry.add(Phase::Race, Some(&record), &COUNTS, judged, None);
        }
        assert!(!entry.wants(Phase::Recovery));
        let State::Undecided { would_decide } = entry.state(1.0, STOPPED) else { panic!("it is undecided") };
        assert!(would_decide.starts_with("recovery<=10s cannot be tested here: "), "{would_decide}");
    }
}
