//! Rule on faults: they must be done as requested. Their effects on the system are results, never reasons.

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
    let wrong: Vec<String> = faults.iter().filter_map(|fault| wrong(fault).map(|why| named(fault, &why))).collect();
    let measure = Measure::none_allowed(wrong.len() as u64, CheckUnit::Faults);
    if wrong.is_empty() && figures.incomplete {
        return Some(Finding::new(
            VerdictStatus::Suspect,
            "more connection events than are recorded: counts and times of lost and restored connections are too low"
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
    Some(
        Finding::new(
            VerdictStatus::Invalid,
            wrong.join("; "),
            "run again; the system's log has the reason why it did not start. Faults of connections that come late need fewer \
             clients, or a machine with free cores",
        )
        .of(measure),
    )
}

fn named(fault: &FaultRow, why: &str) -> String {
    format!("`{}` of {} at {:.1} s {why}", fault.kind.as_str(), fault.target, fault.requested_at_s)
}

fn wrong(fault: &FaultRow) -> Option<String> {
    if let Some(failure) = &fault.failure {
        return Some(format!("failed: {failure}"));
    }
    let Some(done_at_s) = fault.done_at_s else { return Some("was not done".to_owned()) };
    if done_at_s - fault.requested_at_s > LATEST_S {
        return Some(format!("was injected {:.1} s late", done_at_s - fault.requested_at_s));
    }
    (fault.requested_for_s.is_some() && fault.ended_at_s.is_none()).then(|| "did not end".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::fault::FaultKind;

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
    }

    #[test]
    fn figures_that_are_too_low_make_a_run_suspect() {
        let mut record = sample::record();
        record.conditions.faults = Some(FaultFigures { incomplete: true, ..FaultFigures::default() });
        let finding = done_as_requested(&VerdictInput::of(&record)).unwrap();
        assert_eq!(finding.status, VerdictStatus::Suspect);
    }
}
