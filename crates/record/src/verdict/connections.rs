//! Rule on connections: clients that should be connected are.

use super::{Finding, Measure, VerdictInput};
use crate::quantity::{count, percent};
use crate::record::{CheckLimits, CheckUnit, VerdictStatus};

/// Share of the clients that may be missing in a suspect run.
const MISSING_SHARE: f64 = 0.01;

/// Rule V31; `None` for a record without the count, and for a run without clients of its own.
pub(super) fn clients_connected(input: &VerdictInput) -> Option<Finding> {
    let missing = input.connections.never_connected?;
    let all: u64 = input.threads.iter().map(|thread| thread.sessions).sum();
    if all == 0 {
        return None;
    }
    let share = missing as f64 / all as f64;
    let limits = CheckLimits { valid: 0.0, suspect: Some(MISSING_SHARE * all as f64) };
    let measure = Measure { value: missing as f64, limits, unit: CheckUnit::Connections };
    if missing == 0 {
        return Some(Finding::valid(format!("{} clients, none without a connection", count(all))).of(measure));
    }
    let status = if share > MISSING_SHARE { VerdictStatus::Invalid } else { VerdictStatus::Suspect };
    let cause = input.connections.main_cause().map(|cause| format!(" (mostly: {cause})")).unwrap_or_default();
    let text = format!(
        "{} of {} clients ({}) never connected{cause}: the load is that of the others",
        count(missing),
        count(all),
        percent(share)
    );
    Some(Finding::new(status, text, "correct addresses, log-ins or limits, or run with fewer clients").of(measure))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::record::{CauseCount, VerdictStatus};
    use crate::verdict::{VerdictInput, judge};

    #[test]
    fn clients_that_never_connected_make_a_run_suspect_and_many_make_it_invalid() {
        let found = |missing: Option<u64>| {
            let mut record = crate::sample::record();
            record.cost.threads[0].sessions = 200;
            record.cost.threads.truncate(1);
            record.connections.never_connected = missing;
            record.connections.causes =
                vec![CauseCount { cause: "unreachable: connection refused".to_owned(), count: 9 }];
            judge(&VerdictInput::of(&record)).checks.into_iter().find(|check| check.code == "V31")
        };
        assert_eq!(found(None), None, "a record of an older version");
        assert_eq!(found(Some(0)).unwrap().status, VerdictStatus::Valid);
        assert_eq!(found(Some(2)).unwrap().status, VerdictStatus::Suspect);
        let check = found(Some(3)).unwrap();
        assert_eq!(check.status, VerdictStatus::Invalid);
        assert!(check.text.contains("3 of 200 clients") && check.text.contains("connection refused"), "{check:?}");
    }
}
