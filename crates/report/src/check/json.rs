//! Checks as JSON for programs.

use serde_json::{Value, json};

use pubmark_record::check::{Checked, Row};

/// Version of the layout. It changes only when a field changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// All checks as one JSON object, with the exit code of the command.
pub fn value(checked: &Checked, exit_code: u8) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "subject": checked.subject,
        "baseline": checked.baseline,
        "passed": checked.failed() == 0 && !checked.is_undecided(),
        "exit_code": exit_code,
        "checks": checked.rows.iter().map(row).collect::<Vec<Value>>(),
        "notes": checked.notes,
    })
}

fn row(row: &Row) -> Value {
    json!({
        "cell": if row.cell.is_empty() { None } else { Some(&row.cell) },
        "name": row.name,
        "kind": row.kind.name(),
        "outcome": row.outcome.name(),
        "lower": row.lower,
        "value": row.value,
        "baseline": row.baseline,
        // A change from 0 is infinite, which JSON cannot represent.
        "change": row.change.filter(|change| change.is_finite()),
        "p": row.p,
        "survivors": row.survivors,
        "detail": row.detail,
    })
}
