//! Rule on faults: they must be done as requested. Their effects on the system are results, never reasons.

use pubmark_model::fault::FaultKind;

use super::{Finding, Measure, VerdictInput};
use crate::faults::{FaultRow, LATEST_S};
use crate::record::{CheckUnit, Status, VerdictStatus};

/// Rule V20.
pub(super) fn done_as_requested(input: &VerdictInput) -> Option<Finding> {
    let figures = input.faults?;
    let faults = &figures.faults;
    // Another rule reports that the run was interrupted.
    if input.status == Status::Interrupted {
        return None;
    }
    let wrong: Vec<(VerdictStatus, String)> =
        faults.iter().filter_map(|fault| wrong(fault).map(|(status, why)| (status, named(fault, &why)))).collect();
    let ended_late_only = !wrong.is_empty() && wrong.iter().all(|(status, _)| *status == VerdictStatus::Suspect);
    let measure = if ended_late_only {
        Measure::suspect_above(wrong.len() as f64, 0.0, CheckUnit::Faults)
    } else {
        Measure::none_allowed(wrong.len() as u64, CheckUnit::Faults)
    };
    if wrong.is_empty() && figures.incomplete {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            "more connection events or ends of sessions than are recorded: counts and times of lost and restored connections may be \
             too low, and losses with a session too high"
                .to_owned(),
            "fewer clients, fewer faults, or a shorter window",
        ));
    }
    if wrong.is_empty() {
        let late_s =
            faults.iter().filter_map(|fault| Some(fault.done_at_s? - fault.requested_at_s)).fold(0.0, f64::max);
        let text = format!("{} injected as configured, at most {:.0} ms late", faults.len(), late_s * 1e3);
        return Some(Finding::valid(text).of(measure));
    }
    let texts: Vec<String> = wrong.into_iter().map(|(_, text)| text).collect();
    Some(
        Finding::new(
            if ended_late_only { VerdictStatus::Suspect } else { VerdictStatus::Invalid },
            texts.join("; "),
            "run again; the system's log has the reason why it did not start. Faults of connections that come late need fewer \
             clients, or a machine with free cores, and a container's engine may need seconds where a program needs none",
        )
        .of(measure),
    )
}

fn named(fault: &FaultRow, why: &str) -> String {
    format!("`{}` of {} at {:.1} s {why}", fault.kind.as_str(), fault.target, fault.requested_at_s)
}

fn wrong(fault: &FaultRow) -> Option<(VerdictStatus, String)> {
    let invalid = |why: String| Some((VerdictStatus::Invalid, why));
    if let Some(failure) = &fault.failure {
        return invalid(format!("failed: {failure}"));
    }
    let Some(done_at_s) = fault.done_at_s else { return invalid("was not done".to_owned()) };
    if done_at_s - fault.requested_at_s > LATEST_S {
        return invalid(format!("was injected {:.1} s late", done_at_s - fault.requested_at_s));
    }
    let suspect = |why: String| Some((VerdictStatus::Suspect, why));
    if let Some(requested_for_s) = fault.requested_for_s {
        let Some(ended_at_s) = fault.ended_at_s else { return invalid("did not end".to_owned()) };
        let late_s = ended_at_s - (fault.requested_at_s + requested_for_s);
        // How long a system needs to end when it is asked to is its own. A fault that lasts longer, as where an engine starts a
        // container again, is another one than requested, and the record has its length.
        if fault.kind != FaultKind::Restart && late_s > LATEST_S {
            return suspect(format!("ended {late_s:.1} s late"));
        }
    }
    match fault.done_by_s.map(|by_s| by_s - fault.requested_at_s) {
        Some(late_s) if late_s > LATEST_S => suspect(format!("may have taken effect {late_s:.1} s late")),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::faults::FaultFigures;
    use crate::sample;
    use crate::verdict::judge;

    fn status(change: impl FnOnce(&mut FaultRow)) -> (VerdictStatus, String) {
        let mut fault = FaultRow {
            kind: FaultKind::Kill,
            target: "the system".to_owned(),
            requested_at_s: 30.0,
            requested_for_s: Some(5.0),
            done_at_s: Some(30.01),
            ended_at_s: Some(35.0),
            ..FaultRow::default()
        };
        change(&mut fault);
        let mut record = sample::record();
        record.conditions.faults = Some(FaultFigures { faults: vec![fault], ..FaultFigures::default() });
        let found = judge(&VerdictInput::of(&record));
        let check = found.checks.into_iter().find(|check| check.code == "V20").unwrap();
        (check.status, check.text)
    }

    #[test]
    fn only_a_fault_that_differs_from_the_request_makes_a_run_invalid() {
        assert_eq!(status(|_| {}), (VerdictStatus::Valid, "1 injected as configured, at most 10 ms late".to_owned()));
        for (change, expected) in [
            ((|fault| fault.failure = Some("no".to_owned())) as fn(&mut FaultRow), "at 30.0 s failed: no"),
            (|fault| fault.done_at_s = None, "was not done"),
            (|fault| fault.done_at_s = Some(31.0), "was injected 1.0 s late"),
            (|fault| fault.ended_at_s = None, "did not end"),
        ] {
            let (found, words) = status(change);
            assert_eq!(found, VerdictStatus::Invalid, "{words}");
            assert!(words.contains(expected), "{words}");
        }
        assert_eq!(status(|fault| (fault.requested_for_s, fault.ended_at_s) = (None, None)).0, VerdictStatus::Valid);
        assert_eq!(status(|fault| fault.ended_at_s = Some(35.4)).0, VerdictStatus::Valid);
        let (found, words) = status(|fault| fault.ended_at_s = Some(39.0));
        assert_eq!(found, VerdictStatus::Suspect);
        assert!(words.contains("ended 4.0 s late"), "{words}");
        assert_eq!(status(|fault| fault.done_by_s = Some(30.4)).0, VerdictStatus::Valid);
        for requested_for_s in [Some(5.0), None] {
            let (found, words) =
                status(|fault| (fault.done_by_s, fault.requested_for_s) = (Some(31.3), requested_for_s));
            assert_eq!(found, VerdictStatus::Suspect);
            assert!(words.contains("may have taken effect 1.3 s late"), "{words}");
        }
        let restart = |fault: &mut FaultRow| (fault.kind, fault.ended_at_s) = (FaultKind::Restart, Some(39.0));
        assert_eq!(status(restart).0, VerdictStatus::Valid, "the system took its time to end");
    }

    #[test]
    fn figures_that_are_too_low_make_a_run_suspect() {
        let mut record = sample::record();
        record.conditions.faults = Some(FaultFigures { incomplete: true, ..FaultFigures::default() });
        let finding = done_as_requested(&VerdictInput::of(&record)).unwrap();
        assert_eq!(finding.status, VerdictStatus::Suspect);
    }
}
