//! What one run says of each objective. A run that does not count says nothing; one in which the system failed says that it did not stay
//! up.

use std::time::Duration;

use pubmark_experiment::End;
use pubmark_record::faults::FaultRow;
use pubmark_record::objectives::{Objective, ObjectiveOutcome};
use pubmark_record::record::Record;
use pubmark_record::threshold::{Judged, Objectives, beside};
use pubmark_runner::spec::text::Text as _;

use crate::standing::Phase;

/// The objective that nobody has to write: the system is there until the end of each run.
pub const STAYS_UP: &str = "stays up";

/// How a requirement on recovery is written in tables.
pub fn recovery_limit(limit: Duration) -> String {
    format!("recovery<={}", limit.write())
}

/// Names of the objectives that a run of the race judges, in order.
pub fn limits(objectives: &Objectives) -> Vec<String> {
    let written = objectives.clauses().iter().map(|clause| clause.text.trim().to_owned());
    std::iter::once(STAYS_UP.to_owned()).chain(written).collect()
}

/// Why a run decides nothing, or how the system failed in it.
pub fn failure(end: &End) -> Option<String> {
    match end {
        End::Counts(_) => None,
        End::Fails { text, .. } => Some(text.clone()),
        End::Stopped => Some("it was stopped".to_owned()),
    }
}

/// What a run says of each objective that its phase judges. Without a record nothing was measured.
pub fn of_run(
    phase: Phase,
    objectives: &Objectives,
    recovery: Option<Duration>,
    record: Option<&Record>,
    end: &End,
) -> Vec<Objective> {
    match (phase, recovery) {
        (Phase::Recovery, Some(limit)) => vec![of_recovery(limit, record, end)],
        (Phase::Recovery, None) => vec![],
        (Phase::Screening | Phase::Race, _) => of_load(objectives, record, end),
    }
}

fn of_load(objectives: &Objectives, record: Option<&Record>, end: &End) -> Vec<Objective> {
    let mut up = unmeasured(STAYS_UP, "up");
    match end {
        End::Counts(_) => up.outcome = ObjectiveOutcome::Passed,
        End::Fails { kind, text, .. } if kind.is_systems() => {
            (up.outcome, up.measured) = (ObjectiveOutcome::Missed, Some(text.clone()));
        }
        End::Fails { .. } | End::Stopped => {}
    }
    let judged: Vec<Objective> = match (end, record) {
        (End::Counts(_), Some(record)) => {
            objectives.judge(record).iter().map(|judged| of_limit(judged, record)).collect()
        }
        _ => objectives.clauses().iter().map(|clause| unmeasured(&clause.text, clause.metric.name())).collect(),
    };
    std::iter::once(up).chain(judged).collect()
}

/// What a run that counts says of a limit.
fn of_limit(judged: &Judged<'_>, record: &Record) -> Objective {
    let found = Objective::from(judged);
    match judged.missed_because(record) {
        Some(why) => Objective { outcome: ObjectiveOutcome::Missed, measured: Some(why.to_owned()), ..found },
        None => found,
    }
}

/// Time until all clients were connected and subscribed again, from the kill; their own pauses between two attempts are in it.
fn of_recovery(limit: Duration, record: Option<&Record>, end: &End) -> Objective {
    let mut found = unmeasured(&recovery_limit(limit), "recovery");
    match (end, record.and_then(|record| record.conditions.faults.as_ref()?.faults.first())) {
        (End::Fails { kind, text, .. }, _) if kind.is_systems() => {
            (found.outcome, found.measured) = (ObjectiveOutcome::Missed, Some(text.clone()));
        }
        (End::Counts(_), Some(fault)) => judge_recovery(&mut found, limit.as_secs_f64(), fault),
        _ => {}
    }
    found
}

fn judge_recovery(found: &mut Objective, limit_s: f64, fault: &FaultRow) {
    let (Some(done_at_s), true) = (fault.done_at_s, fault.connections.lost > 0) else { return };
    match fault.connections.all_reconnected_s {
        Some(took_s) => {
            (found.lower, found.upper) = (Some(took_s), Some(took_s));
            found.measured = Some(format!("{} s", beside(took_s, limit_s)));
            found.outcome = if took_s <= limit_s { ObjectiveOutcome::Passed } else { ObjectiveOutcome::Missed };
        }
        None => {
            let watched_s = fault.until_s - done_at_s;
            let back = fault.connections.reconnected + fault.connections.planned;
            found.lower = Some(watched_s);
            let lost = fault.connections.lost;
            found.measured = Some(format!("{back} of {lost} clients back after {} s", beside(watched_s, limit_s)));
            found.outcome = if watched_s > limit_s { ObjectiveOutcome::Missed } else { ObjectiveOutcome::Undecided };
        }
    }
}

fn unmeasured(limit: &str, metric: &str) -> Objective {
    Objective {
        limit: limit.trim().to_owned(),
        metric: metric.to_owned(),
        outcome: ObjectiveOutcome::NotMeasured,
        lower: None,
        upper: None,
        measured: None,
        remedy: None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_record::experiment::FailureKind;
    use pubmark_record::faults::{FaultConnections, FaultFigures};
    use pubmark_record::record::{Reason, VerdictStatus};
    use pubmark_record::sample;

    use super::*;

    const COUNTS: End = End::Counts(VerdictStatus::Valid);

    fn outcomes(phase: Phase, record: Option<&Record>, end: &End) -> Vec<ObjectiveOutcome> {
        let objectives = Objectives::parse("p50<1s, loss>1%").unwrap();
        let judged = of_run(phase, &objectives, Some(Duration::from_secs(10)), record, end);
        judged.iter().map(|one| one.outcome).collect()
    }

    fn fails(kind: FailureKind) -> End {
        End::Fails { kind, code: None, text: "why".to_owned() }
    }

    #[test]
    fn a_run_that_does_not_count_says_nothing_and_a_system_that_fails_did_not_stay_up() {
        use ObjectiveOutcome::{Missed, NotMeasured, Passed};
        let record = sample::record();
        assert_eq!(outcomes(Phase::Race, Some(&record), &COUNTS), [Passed, Passed, Missed]);
        for ours in [FailureKind::GeneratorLimited, FailureKind::Invalid] {
            assert_eq!(outcomes(Phase::Race, Some(&record), &fails(ours)), [NotMeasured; 3]);
        }
        for theirs in [FailureKind::Ended, FailureKind::OutOfMemory, FailureKind::DidNotStart, FailureKind::Refused] {
            assert_eq!(outcomes(Phase::Race, None, &fails(theirs)), [Missed, NotMeasured, NotMeasured]);
        }
        assert_eq!(limits(&Objectives::parse("p50<1s, loss>1%").unwrap()), ["stays up", "p50<1s", "loss>1%"]);
    }

    #[test]
    fn a_run_in_which_nothing_arrived_misses_limits_on_times_if_the_system_is_the_cause() {
        use ObjectiveOutcome::{Missed, NotMeasured, Passed};
        let mut record = sample::record();
        record.verdict.reasons.clear();
        record.latency.total = None;
        let objectives = Objectives::parse("p99<1s,round_trip_p99<1s").unwrap();
        let of = |record: &Record, end: &End| of_run(Phase::Race, &objectives, None, Some(record), end);
        let outcomes = |record: &Record, end: &End| of(record, end).iter().map(|one| one.outcome).collect::<Vec<_>>();
        record.requests = None;
        assert_eq!(outcomes(&record, &COUNTS), [Passed, NotMeasured, NotMeasured], "messages arrived without a time");
        let messages = &mut record.delivery.messages;
        (messages.lost, messages.delivered) = (messages.expected, 0);
        assert_eq!(outcomes(&record, &COUNTS), [Passed, Missed, NotMeasured], "nothing was requested");
        assert_eq!(of(&record, &COUNTS)[1].measured.as_deref(), Some("nothing arrived"));
        for ours in [FailureKind::GeneratorLimited, FailureKind::Invalid] {
            assert_eq!(outcomes(&record, &fails(ours)), [NotMeasured; 3]);
        }
        let mut starved = record.clone();
        let (text, hint) = (String::new(), String::new());
        let status = VerdictStatus::Suspect;
        starved.verdict.reasons = vec![Reason { code: "V28".to_owned(), status, text, hint }];
        assert_eq!(outcomes(&starved, &End::Counts(status)), [Passed, NotMeasured, NotMeasured]);
        let messages = &mut record.delivery.messages;
        (messages.lost, messages.expected) = (0, 0);
        assert_eq!(outcomes(&record, &COUNTS), [Passed, NotMeasured, NotMeasured], "nothing was expected");
    }

    #[test]
    fn recovery_is_the_time_until_all_clients_are_back() {
        use ObjectiveOutcome::{Missed, NotMeasured, Passed, Undecided};
        let of = |all_reconnected_s: Option<f64>, lost: u64, until_s: f64| {
            let mut record = sample::record();
            let connections = FaultConnections { lost, all_reconnected_s, ..FaultConnections::default() };
            let fault = FaultRow { done_at_s: Some(2.0), until_s, connections, ..FaultRow::default() };
            record.conditions.faults = Some(FaultFigures { faults: vec![fault], ..FaultFigures::default() });
            outcomes(Phase::Recovery, Some(&record), &COUNTS)
        };
        assert_eq!(of(Some(2.5), 42, 18.0), [Passed]);
        assert_eq!(of(Some(10.5), 42, 18.0), [Missed]);
        assert_eq!(of(None, 42, 18.0), [Missed]);
        assert_eq!(of(None, 42, 11.0), [Undecided], "it was not looked at for long enough");
        assert_eq!(of(None, 0, 18.0), [NotMeasured], "a kill that no client noticed was none");
        assert_eq!(outcomes(Phase::Recovery, None, &fails(FailureKind::Ended)), [Missed]);
        assert_eq!(outcomes(Phase::Recovery, None, &fails(FailureKind::Invalid)), [NotMeasured]);
    }

    #[test]
    fn a_recovery_near_its_limit_is_not_rounded_onto_it() {
        let measured = |all_reconnected_s: Option<f64>, until_s: f64| {
            let mut record = sample::record();
            let connections = FaultConnections { lost: 42, all_reconnected_s, ..FaultConnections::default() };
            let fault = FaultRow { done_at_s: Some(2.0), until_s, connections, ..FaultRow::default() };
            record.conditions.faults = Some(FaultFigures { faults: vec![fault], ..FaultFigures::default() });
            of_recovery(Duration::from_secs(10), Some(&record), &COUNTS).measured.unwrap()
        };
        assert_eq!(measured(Some(10.04), 18.0), "10.04 s");
        assert_eq!(measured(Some(2.504), 18.0), "2.5 s");
        assert!(measured(None, 12.04).ends_with(" after 10.04 s"), "{}", measured(None, 12.04));
    }
}
