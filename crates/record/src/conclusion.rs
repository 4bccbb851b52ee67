//! Overall result of a command, computed from its records: success, or the reason why its figures must not be quoted.
//! Front ends turn it into exit codes and states.

use crate::capacity::{CapacityLimit, CapacityRecord, Trial, TrialOutcome};
use crate::check::{Checked, Kind};
use crate::experiment::ExperimentRecord;
use crate::objectives::{ObjectiveOutcome, Undecided};
use crate::record::{Record, Status, VerdictStatus};

/// Overall result of a command. Variants are ordered: the greater of two takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conclusion {
    /// The command did what was requested.
    Done,
    /// What was measured does not decide: a threshold between both bounds of its figure, a change that the measurement may have
    /// made, a choice, or a search whose time was over or whose trials did not measure an objective.
    Undecided,
    /// A threshold was missed, or its figure was not measured.
    ThresholdMissed,
    /// A comparison found a regression.
    Regression,
    /// The figures do not describe the system.
    Invalid,
    /// The system could not be started, reached, or kept running.
    SystemFailed,
    /// The command was stopped before its end.
    Interrupted,
    /// Results were not written, or not completely.
    NotWritten,
}

impl Conclusion {
    /// Short text for people.
    pub fn words(self) -> &'static str {
        match self {
            Conclusion::Done => "done",
            Conclusion::Undecided => "the result is undecided",
            Conclusion::ThresholdMissed => "a threshold was missed",
            Conclusion::Regression => "a regression was found",
            Conclusion::Invalid => "the run is invalid",
            Conclusion::SystemFailed => "the system under test failed",
            Conclusion::Interrupted => "interrupted",
            Conclusion::NotWritten => "the results were not, or not all, written",
        }
    }

    /// Result when a limit is undecided and none was missed.
    pub fn of_undecided(choice: Option<Undecided>) -> Conclusion {
        match choice {
            None => Conclusion::Undecided,
            Some(Undecided::Pass) => Conclusion::Done,
            Some(Undecided::Fail) => Conclusion::ThresholdMissed,
        }
    }

    /// Result of a run with limits.
    pub fn of_limits(record: &Record, undecided: Option<Undecided>) -> Conclusion {
        let outcomes = || record.objectives.iter().map(|objective| objective.outcome);
        if outcomes().any(ObjectiveOutcome::is_failure) {
            Conclusion::ThresholdMissed
        } else if outcomes().any(|outcome| outcome == ObjectiveOutcome::Undecided) {
            Conclusion::of_undecided(undecided)
        } else {
            Conclusion::Done
        }
    }

    /// Result of `pubmark check`.
    pub fn of_checks(checked: &Checked) -> Conclusion {
        match checked.worst() {
            None if checked.is_undecided() => Conclusion::Undecided,
            None => Conclusion::Done,
            Some(Kind::Verdict) => Conclusion::Invalid,
            Some(Kind::Repetitions) => Conclusion::SystemFailed,
            Some(Kind::Required | Kind::FailOn) => Conclusion::ThresholdMissed,
            Some(Kind::Regression) => Conclusion::Regression,
        }
    }

    /// Result of an experiment: it failed only if none of its runs is fully usable.
    pub fn of_experiment(record: &ExperimentRecord) -> Conclusion {
        if record.status == Status::Interrupted {
            return Conclusion::Interrupted;
        }
        let verdicts = || record.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.verdict);
        if verdicts().any(|verdict| verdict != VerdictStatus::Invalid) {
            return Conclusion::Done;
        }
        let was_late = verdicts().next().is_some();
        match was_late || record.cells.iter().flat_map(|cell| &cell.failures).any(|failure| failure.kind.may_pass()) {
            true => Conclusion::Invalid,
            false => Conclusion::SystemFailed,
        }
    }

    /// Result of a capacity search. If its time was over before a load held, or its trials did not measure an objective, nothing is
    /// known of the system; if the generator limited every trial until then, the reason is known.
    pub fn of_search(record: &CapacityRecord) -> Conclusion {
        let is_unmeasured = |trial: &Trial| trial.not_measured.is_some();
        let is_ours = |trial: &Trial| trial.outcome == TrialOutcome::GeneratorLimited && !is_unmeasured(trial);
        let was_always_ours = !record.trials.is_empty() && record.trials.iter().all(is_ours);
        match (record.status, record.result.holds_per_s, record.result.limit) {
            (Status::Interrupted, ..) => Conclusion::Interrupted,
            (_, Some(_), _) => Conclusion::Done,
            (_, None, CapacityLimit::Generator) if record.limiting_trial().is_some_and(is_unmeasured) => {
                Conclusion::Undecided
            }
            (_, None, CapacityLimit::Generator) => Conclusion::Invalid,
            (_, None, CapacityLimit::Time) if was_always_ours => Conclusion::Invalid,
            (_, None, CapacityLimit::Time) => Conclusion::Undecided,
            (_, None, _) => Conclusion::ThresholdMissed,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::FailureKind;
    use crate::threshold::Objectives;
    use crate::{objectives, sample, sample_experiment};

    #[test]
    fn limits_are_missed_before_they_are_undecided() {
        let of = |limits: &str, undecided| {
            let mut record = sample::record();
            objectives::assess(&mut record, &Objectives::parse(limits).unwrap());
            Conclusion::of_limits(&record, undecided)
        };
        assert_eq!(of("p50<1s", None), Conclusion::Done);
        assert_eq!(of("p50<1s,p50<0.28ms", None), Conclusion::Undecided);
        assert_eq!(of("p50<0.28ms", Some(Undecided::Pass)), Conclusion::Done);
        assert_eq!(of("p50<0.28ms", Some(Undecided::Fail)), Conclusion::ThresholdMissed);
        assert_eq!(of("p50<0.28ms,loss>1%", Some(Undecided::Pass)), Conclusion::ThresholdMissed);
    }

    #[test]
    fn an_experiment_fails_only_where_no_run_counts() {
        let mut record = sample_experiment::experiment();
        record.status = Status::Complete;
        assert_eq!(Conclusion::of_experiment(&record), Conclusion::Done);
        for cell in &mut record.cells {
            cell.runs.iter_mut().for_each(|run| run.verdict = VerdictStatus::Invalid);
        }
        assert_eq!(Conclusion::of_experiment(&record), Conclusion::Invalid);
        for cell in &mut record.cells {
            cell.runs.clear();
            cell.failures.iter_mut().for_each(|failure| failure.kind = FailureKind::DidNotStart);
        }
        assert_eq!(Conclusion::of_experiment(&record), Conclusion::SystemFailed);
        record.status = Status::Interrupted;
        assert_eq!(Conclusion::of_experiment(&record), Conclusion::Interrupted);
    }

    #[test]
    fn a_search_whose_time_was_over_before_a_load_held_missed_nothing() {
        let of = |holds_per_s, limit, outcomes: &[TrialOutcome]| {
            let mut record = sample_experiment::capacity();
            (record.result.holds_per_s, record.result.limit) = (holds_per_s, limit);
            record.trials.truncate(outcomes.len());
            record.trials.iter_mut().zip(outcomes).for_each(|(trial, outcome)| trial.outcome = *outcome);
            Conclusion::of_search(&record)
        };
        let (ours, missed) = (TrialOutcome::GeneratorLimited, TrialOutcome::Missed);
        assert_eq!(of(None, CapacityLimit::Time, &[ours, ours]), Conclusion::Invalid);
        assert_eq!(of(None, CapacityLimit::Time, &[missed, ours]), Conclusion::Undecided);
        assert_eq!(of(None, CapacityLimit::Time, &[missed]), Conclusion::Undecided);
        assert_eq!(of(None, CapacityLimit::Time, &[]), Conclusion::Undecided, "no trial was made");
        assert_eq!(of(Some(1_000.0), CapacityLimit::Time, &[ours]), Conclusion::Done);
        assert_eq!(of(None, CapacityLimit::Generator, &[missed, ours]), Conclusion::Invalid);
        assert_eq!(of(None, CapacityLimit::NothingHeld, &[missed, missed]), Conclusion::ThresholdMissed);
    }

    #[test]
    fn a_search_that_did_not_measure_an_objective_is_undecided() {
        let mut record = sample_experiment::generator_limited();
        (record.result.holds_per_s, record.result.holds_factor) = (None, None);
        assert_eq!(Conclusion::of_search(&record), Conclusion::Invalid);
        let limiting = record.trials.iter_mut().find(|trial| trial.factor == 8.0).unwrap();
        (limiting.not_measured, limiting.code) = (Some("backpressure_p99<1ms".to_owned()), None);
        assert_eq!(Conclusion::of_search(&record), Conclusion::Undecided);
        record.trials.retain(|trial| trial.factor == 8.0);
        record.result.limit = CapacityLimit::Time;
        assert_eq!(Conclusion::of_search(&record), Conclusion::Undecided);
    }

    #[test]
    fn what_was_not_written_says_most() {
        let all = [Conclusion::Interrupted, Conclusion::NotWritten, Conclusion::Invalid, Conclusion::SystemFailed];
        assert_eq!(all.into_iter().max(), Some(Conclusion::NotWritten));
        assert_eq!(Conclusion::Undecided.max(Conclusion::ThresholdMissed), Conclusion::ThresholdMissed);
    }
}
