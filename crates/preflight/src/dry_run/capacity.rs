//! `capacity --dry-run`: the plan of a search, and whether this machine can generate its first load; nothing is started.

use pubmark_report::wrapping::wrap;
use pubmark_runner::{CheckedRun, RunError};

use super::run;

/// The plan as text: `rows` of heading and text, and the first trial. With `on_machine`, the trial is compared with this
/// machine, which takes two seconds.
///
/// # Errors
/// As [`run::text`].
pub fn text(rows: &[(&str, String)], first: &CheckedRun, on_machine: bool) -> Result<String, RunError> {
    let rows: String = rows.iter().map(|(head, words)| wrap(&format!("  {head:<12}"), 14, words)).collect();
    Ok(rows + "\nThe first trial:\n\n" + &run::text(first, on_machine)?)
}
