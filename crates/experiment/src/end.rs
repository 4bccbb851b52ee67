//! Outcome of a run: it counts, or it failed for a reason.

use pubmark_record::experiment::FailureKind;
use pubmark_record::record::{BackEndKind, Reason, Record, VerdictStatus};
use pubmark_record::verdict::rules::{Blame, blame};
use pubmark_runner::{ErrorKind, RunError, RunOutcome};

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It counts: as far as is known, its figures are those of the system.
    Counts(VerdictStatus),
    /// It failed and has no figures.
    Fails {
        /// Kind of the failure.
        kind: FailureKind,
        /// Code of the verdict's rule that decided it; `None` for another cause.
        code: Option<String>,
        /// The reason in a sentence.
        text: String,
    },
    /// It was stopped.
    Stopped,
}

/// Judges a run that was measured.
pub fn measured(outcome: &RunOutcome) -> End {
    let record = &outcome.record;
    let fails = |kind, text: String| End::Fails { kind, code: None, text };
    let kills = record.cost.limits.and_then(|limits| limits.out_of_memory_kills).unwrap_or(0);
    if kills > 0 {
        let limit = record.system.limits.as_ref().map_or("", |limits| limits.requested.as_str());
        return fails(FailureKind::OutOfMemory, format!("OOM-killed ({limit})"));
    }
    if let Some(ended) = &outcome.system_ended {
        return fails(
            FailureKind::Ended,
            format!("`{}` ended during the run: {}", record.system.name, one_line(ended)),
        );
    }
    if record.was_stopped() {
        return End::Stopped;
    }
    if outcome.unreachable {
        return unconnected(record);
    }
    match record.verdict.status {
        VerdictStatus::Invalid => invalid(record),
        status => End::Counts(status),
    }
}

/// The failure of a run in which no client connected: the system's if it responded, or if nothing but the system can have caused the
/// silence. Otherwise the network or this machine may have, and the system is not judged.
fn unconnected(record: &Record) -> End {
    let has_responded = record.connections.has_responded();
    let kind = if has_responded || has_refused(record) { FailureKind::Refused } else { FailureKind::Invalid };
    let tried = if has_responded { "failed to connect to" } else { "no response from" };
    let cause = record.connections.main_cause().unwrap_or("no cause was given");
    let text = one_line(&format!("{tried} `{}`: {cause}", record.system.endpoint));
    End::Fails { kind, code: None, text }
}

/// The reason that made a run invalid, and whose failure it is.
fn invalid(record: &Record) -> End {
    let reasons = record.verdict.reasons.iter().filter(|reason| reason.status == VerdictStatus::Invalid);
    let blame_of = |reason: &Reason| match reason.code.as_str() {
        "V31" if !has_refused(record) => Blame::Run,
        code => blame(code),
    };
    let Some(reason) = reasons.min_by_key(|reason| blame_of(reason)) else {
        return End::Fails { kind: FailureKind::Invalid, code: None, text: String::new() };
    };
    let kind = match blame_of(reason) {
        // If the machine had no CPU time left for the system, the run found the limit of the machine, not of the system.
        Blame::Generator | Blame::Machine => FailureKind::GeneratorLimited,
        Blame::System(kind) => kind,
        Blame::Clients | Blame::Run => FailureKind::Invalid,
    };
    let text = format!("{}: {}", reason.code, without_times(&reason.text));
    End::Fails { kind, code: Some(reason.code.clone()), text }
}

/// Whether the system caused that clients never connected: it refused them, or it did not respond where no network could lose
/// their connects, which repetitions would hide for a system that is overloaded in some of them.
fn has_refused(record: &Record) -> bool {
    let system = &record.system;
    let is_on_this_machine =
        system.back_end != BackEndKind::External && system.node.is_none() && record.tables.nodes.is_empty();
    let is_reached_for_sure = is_on_this_machine && record.conditions.links.is_none();
    record.connections.is_refused() || is_reached_for_sure && record.connections.is_unanswered()
}

/// A reason's text without the part that the kind of the failure already states.
fn without_times(text: &str) -> &str {
    text.strip_prefix("generator-limited: ").unwrap_or(text)
}

/// Judges a run that could not be executed. An error of the user or of pubmark is not a failure of the system and is
/// returned.
pub fn failed(error: RunError) -> Result<End, RunError> {
    match error.kind {
        ErrorKind::Interrupted => Ok(End::Stopped),
        ErrorKind::System | ErrorKind::NotInstalled => {
            Ok(End::Fails { kind: FailureKind::DidNotStart, code: None, text: one_line(&error.to_string()) })
        }
        // Found only when the run began, such as a thread of pubmark that this machine did not run.
        ErrorKind::TooLarge => {
            Ok(End::Fails { kind: FailureKind::GeneratorLimited, code: None, text: one_line(&error.to_string()) })
        }
        // The node may have rejoined before the next run.
        ErrorKind::NodeLost => {
            Ok(End::Fails { kind: FailureKind::Invalid, code: None, text: one_line(&error.to_string()) })
        }
        _ => Err(error),
    }
}

/// Longest text of a failure, characters: it must fit into a table cell. The log is in the run's folder.
const LONGEST: usize = 300;

/// Joins several lines into one and truncates it.
pub(crate) fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", joined[..end].trim_end()),
        None => joined,
    }
}

#[cfg(test)]
mod tests {
    use pubmark_record::cost::LimitEffect;
    use pubmark_record::record::{CauseCount, Status};
    use pubmark_record::sample;

    use super::*;

    fn of(change: impl FnOnce(&mut RunOutcome)) -> End {
        let mut run = RunOutcome {
            message_log: None,
            custom: None,
            spec: String::new(),
            record: sample::record(),
            histograms: vec![],
            unreachable: false,
            system_ended: None,
        };
        run.record.verdict.status = VerdictStatus::Valid;
        run.record.verdict.reasons.clear();
        run.record.run.status = Status::Complete;
        change(&mut run);
        measured(&run)
    }

    fn reason(code: &str) -> Reason {
        Reason { code: code.to_owned(), status: VerdictStatus::Invalid, text: "why".to_owned(), hint: String::new() }
    }

    fn kind(end: End) -> FailureKind {
        match end {
            End::Fails { kind, text, .. } => {
                assert!(!text.is_empty() && !text.contains('\n'), "{text}");
                kind
            }
            other => panic!("no failure: {other:?}"),
        }
    }

    #[test]
    fn a_run_to_its_end_counts_with_its_verdict() {
        assert_eq!(of(|_| ()), End::Counts(VerdictStatus::Valid));
        assert_eq!(of(|run| run.record.verdict.status = VerdictStatus::Suspect), End::Counts(VerdictStatus::Suspect));
    }

    #[test]
    fn each_kind_of_failure_is_distinguished() {
        assert_eq!(kind(of(|run| run.system_ended = Some("signal 11\nlog".to_owned()))), FailureKind::Ended);
        assert_eq!(kind(of(|run| run.unreachable = true)), FailureKind::Invalid, "no cause was given");
        let killed = |run: &mut RunOutcome| {
            run.system_ended = Some("signal 9".to_owned());
            run.record.cost.limits = Some(LimitEffect { out_of_memory_kills: Some(1), ..LimitEffect::default() });
        };
        assert_eq!(kind(of(killed)), FailureKind::OutOfMemory);
        for (codes, expected) in [
            (&["V01"][..], FailureKind::GeneratorLimited),
            (&["V07"], FailureKind::Invalid),
            (&["V13", "V04"], FailureKind::GeneratorLimited),
            (&["V28"], FailureKind::GeneratorLimited),
            (&["V31"], FailureKind::Refused),
            (&["V13", "V23"], FailureKind::Refused),
            (&["V25"], FailureKind::Ended),
            (&["V31", "V01"], FailureKind::GeneratorLimited),
            (&["V31", "V29"], FailureKind::Invalid),
            (&["V24"], FailureKind::Invalid),
        ] {
            let invalid = |run: &mut RunOutcome| {
                run.record.connections.causes =
                    vec![CauseCount { cause: "refused: server unavailable (0x88)".to_owned(), count: 9 }];
                run.record.verdict.status = VerdictStatus::Invalid;
                run.record.verdict.reasons = codes.iter().map(|code| reason(code)).collect();
            };
            assert_eq!(kind(of(invalid)), expected, "{codes:?}");
        }
    }

    #[test]
    fn clients_without_a_connection_are_the_system_s_failure_only_if_it_refused_them() {
        for (cause, code, expected) in [
            ("unreachable: Connection refused (os error 111)", "V31", FailureKind::Refused),
            ("unreachable: Cannot assign requested address (os error 99)", "V31", FailureKind::Invalid),
            ("unreachable: no response within 10 s", "V31", FailureKind::Refused),
            ("subscription refused: not authorized", "V23", FailureKind::Refused),
        ] {
            let invalid = |run: &mut RunOutcome| {
                run.record.system.back_end = BackEndKind::Process;
                run.record.connections.causes = vec![CauseCount { cause: cause.to_owned(), count: 9 }];
                run.record.verdict.status = VerdictStatus::Invalid;
                run.record.verdict.reasons = vec![reason(code)];
            };
            assert_eq!(kind(of(invalid)), expected, "{code}: {cause}");
            let elsewhere = |run: &mut RunOutcome| {
                invalid(run);
                run.record.system.back_end = BackEndKind::External;
            };
            let lost = cause.contains("no response");
            assert_eq!(kind(of(elsewhere)), if lost { FailureKind::Invalid } else { expected }, "{code}: {cause}");
        }
    }

    #[test]
    fn a_run_without_any_client_is_the_system_s_failure_only_if_it_responded_or_nothing_else_can_be_silent() {
        let no_response = "unreachable: no response within 10 s";
        let (refused, invalid) = (FailureKind::Refused, FailureKind::Invalid);
        for (cause, back_end, expected, tried) in [
            ("unreachable: Connection refused (os error 111)", BackEndKind::External, refused, "failed to connect to"),
            ("refused: server unavailable (0x88)", BackEndKind::External, refused, "failed to connect to"),
            ("protocol error of the server: no CONNACK", BackEndKind::External, refused, "failed to connect to"),
            ("unreachable: No route to host (os error 113)", BackEndKind::External, invalid, "no response from"),
            ("unreachable: Too many open files (os error 24)", BackEndKind::Process, invalid, "no response from"),
            (no_response, BackEndKind::External, invalid, "no response from"),
            (no_response, BackEndKind::Process, refused, "no response from"),
        ] {
            let unreachable = |run: &mut RunOutcome| {
                run.unreachable = true;
                run.record.system.back_end = back_end;
                run.record.system.endpoint = "mqtt://10.0.0.9:1883".to_owned();
                run.record.connections.causes = vec![CauseCount { cause: cause.to_owned(), count: 9 }];
            };
            let text = format!("{tried} `mqtt://10.0.0.9:1883`: {cause}");
            assert_eq!(of(unreachable), End::Fails { kind: expected, code: None, text });
        }
    }

    #[test]
    fn a_stopped_run_has_not_failed() {
        assert_eq!(of(|run| run.record.run.status = Status::Interrupted), End::Stopped);
        assert_eq!(failed(RunError::new(ErrorKind::Interrupted, "x")).unwrap(), End::Stopped);
        assert_eq!(kind(failed(RunError::new(ErrorKind::System, "a\nb")).unwrap()), FailureKind::DidNotStart);
        assert_eq!(kind(failed(RunError::new(ErrorKind::TooLarge, "x")).unwrap()), FailureKind::GeneratorLimited);
        assert!(failed(RunError::input("x")).is_err());
    }

    #[test]
    fn a_run_that_lost_a_node_was_not_stopped() {
        let lost = |run: &mut RunOutcome| {
            run.record.run.status = Status::Interrupted;
            run.record.verdict.status = VerdictStatus::Invalid;
            run.record.verdict.reasons = vec![reason("V21")];
            run.record.tables.lost_workers = vec![Default::default()];
        };
        assert_eq!(kind(of(lost)), FailureKind::Invalid);
        assert_eq!(kind(failed(RunError::new(ErrorKind::NodeLost, "x")).unwrap()), FailureKind::Invalid);
    }
}
