//! Rule on subscriptions: they must be granted, and stay so.

use super::{Finding, Measure, VerdictInput};
use crate::quantity::count;
use crate::record::{CheckUnit, VerdictStatus};

/// Prefix of the cause of a refused subscription in [`crate::record::Connections::causes`].
pub const REFUSED: &str = "subscription refused: ";
/// The same of one that the system granted, and ended while its connection lasted.
pub const REVOKED: &str = "subscription revoked: ";
/// The same of something else that the system does not permit a client whose connection goes on.
pub const NOT_PERMITTED: &str = "not permitted: ";

/// Rule V23.
pub(super) fn granted(input: &VerdictInput) -> Option<Finding> {
    let connections = input.connections;
    let not_held = connections.subscriptions_not_held();
    if input.workload.subscribers == 0 {
        return None;
    }
    let measure = Measure::suspect_above(not_held as f64, 0.0, CheckUnit::Subscriptions);
    if not_held == 0 {
        return Some(Finding::valid("no subscription was refused or revoked".to_string()).of(measure));
    }
    let reason_behind =
        |prefix: &str| connections.causes.iter().find_map(|cause| cause.cause.strip_prefix(prefix).map(str::to_owned));
    let of_kind = |number: u64, what: &str, prefix: &str| {
        let were = if number == 1 { "subscription was" } else { "subscriptions were" };
        let reason = reason_behind(prefix).map(|reason| format!(" (the system says: {reason})")).unwrap_or_default();
        (number > 0).then(|| format!("{} {were} {what}{reason}", count(number)))
    };
    let kinds = [
        of_kind(connections.subscriptions_refused, "refused", REFUSED),
        of_kind(connections.subscriptions_revoked, "revoked by the system during the run", REVOKED),
    ];
    let hint =
        "check the system's access rules and the subscribers' credentials, and who deletes its queues or streams";
    let (status, consequence) = match input.delivery.expected {
        0 if input.delivery.sent > 0 => (VerdictStatus::Invalid, "no subscription was held when messages were sent"),
        _ => (VerdictStatus::Suspect, "nothing is expected of those"),
    };
    let text = format!("{}: {consequence}", kinds.into_iter().flatten().collect::<Vec<_>>().join(", "));
    Some(Finding::new(status, text, hint).of(measure))
}
