//! Rule on subscriptions: they must be granted.

use super::{Finding, Measure, VerdictInput};
use crate::quantity::count;
use crate::record::{CheckUnit, VerdictStatus};

/// Prefix of the cause of a refused subscription in [`crate::record::Connections::causes`].
pub const REFUSED: &str = "subscription refused: ";

/// Rule V23.
pub(super) fn granted(input: &VerdictInput) -> Option<Finding> {
    let refused = input.connections.subscriptions_refused;
    if input.workload.subscribers == 0 {
        return None;
    }
    let measure = Measure::suspect_above(refused as f64, 0.0, CheckUnit::Subscriptions);
    if refused == 0 {
        return Some(Finding::valid("no subscription was refused".to_string()).of(measure));
    }
    let reason = input.connections.causes.iter().find_map(|cause| cause.cause.strip_prefix(REFUSED));
    let reason = reason.map(|reason| format!(" (the system says: {reason})")).unwrap_or_default();
    let hint = "check the system's access rules and the subscribers' credentials";
    let (status, consequence) = match input.delivery.expected {
        0 => (VerdictStatus::Invalid, "no subscription was held when messages were sent"),
        _ => (VerdictStatus::Suspect, "nothing is expected of those"),
    };
    let were = if refused == 1 { "subscription was" } else { "subscriptions were" };
    let text = format!("{} {were} refused{reason}: {consequence}", count(refused));
    Some(Finding::new(status, text, hint).of(measure))
}
