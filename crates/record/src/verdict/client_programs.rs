//! Rule on client programs: their reports must agree with what happened.

use super::{Finding, Measure, VerdictInput};
use crate::quantity::count;
use crate::record::{CheckLimits, CheckUnit, VerdictStatus};

/// Fewest offered messages per misreport; with fewer, the run is invalid.
const MESSAGES_A_MISREPORT: u64 = 1_000;

/// Rule V29.
pub(super) fn reported_correctly(input: &VerdictInput) -> Option<Finding> {
    let programs = input.connections.client_programs.as_ref()?;
    if let Some(ended) = &programs.ended {
        let hint = "run the program by hand: it must send its hello and read frames until its input ends";
        return Some(Finding::new(VerdictStatus::Invalid, ended.clone(), hint));
    }
    let total: u64 = programs.misreports.values().sum();
    let most = input.delivery.offered / MESSAGES_A_MISREPORT;
    let limits = CheckLimits { valid: 0.0, suspect: Some(most as f64) };
    let measure = Measure { value: total as f64, limits, unit: CheckUnit::Messages };
    if total == 0 {
        return Some(Finding::valid("the client program reported nothing that cannot be true".to_owned()).of(measure));
    }
    let status = if total > most { VerdictStatus::Invalid } else { VerdictStatus::Suspect };
    let named: Vec<String> =
        programs.misreports.iter().map(|(name, number)| format!("{} {name}", count(*number))).collect();
    let text = format!("the client program reported what cannot be true: {}", named.join(", "));
    Some(Finding::new(status, text, "docs/reference/client-protocol.md says what each name means").of(measure))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::connections::ClientPrograms;
    use crate::sample;
    use crate::verdict::VerdictInput;

    fn finding(change: impl FnOnce(&mut ClientPrograms)) -> Option<Finding> {
        let mut record = sample::record();
        let mut programs = ClientPrograms { library: "paho".to_owned(), ..ClientPrograms::default() };
        change(&mut programs);
        record.connections.client_programs = Some(programs);
        reported_correctly(&VerdictInput::of(&record))
    }

    fn found(change: impl FnOnce(&mut ClientPrograms)) -> Option<(VerdictStatus, String)> {
        finding(change).map(|finding| (finding.status, finding.text))
    }

    #[test]
    fn the_limits_of_the_check_are_those_that_decide() {
        let most = sample::record().delivery.messages.offered / MESSAGES_A_MISREPORT;
        for (total, status) in
            [(0, VerdictStatus::Valid), (most, VerdictStatus::Suspect), (most + 1, VerdictStatus::Invalid)]
        {
            let found = finding(|programs| programs.misreports = [("written-twice".to_owned(), total)].into()).unwrap();
            let Measure { value, limits, .. } = found.measure.unwrap();
            assert_eq!(found.status, status, "{total}");
            assert_eq!((value, limits.valid, limits.suspect), (total as f64, 0.0, Some(most as f64)), "{total}");
        }
    }

    #[test]
    fn a_program_is_judged_by_its_output_and_its_exit() {
        assert!(reported_correctly(&VerdictInput::of(&sample::record())).is_none(), "there is no program");
        assert_eq!(found(|_| {}).unwrap().0, VerdictStatus::Valid);
        let offered = sample::record().delivery.messages.offered;
        assert!(offered >= MESSAGES_A_MISREPORT);
        let said =
            |what: &str, times: u64| found(|programs| programs.misreports = [(what.to_owned(), times)].into()).unwrap();
        let few = said("written-twice", 1);
        assert_eq!((few.0, few.1.ends_with("1 written-twice")), (VerdictStatus::Suspect, true), "{}", few.1);
        let many = said("stamp-in-future", offered);
        assert_eq!(many.0, VerdictStatus::Invalid);
        let ended = found(|programs| programs.ended = Some("the client program `a` stalled".to_owned())).unwrap();
        assert_eq!(ended, (VerdictStatus::Invalid, "the client program `a` stalled".to_owned()));
    }
}
