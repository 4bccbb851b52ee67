//! `capacity --dry-run`: what a search would try, and whether this machine can give its first load; nothing is started.

use pubmark_experiment::capacity::planning::Outline;
use pubmark_report::wrapping::wrap;
use pubmark_runner::RunError;

use super::run;

/// The plan as text; judging the first load takes a second.
pub fn text(outline: &Outline<'_>) -> Result<String, RunError> {
    let rows = outline.rows();
    let mut text: String = rows.iter().map(|(head, words)| wrap(&format!("  {head:<12}"), 14, words)).collect();
    text.push_str("\nThe first trial:\n\n");
    text.push_str(&run::text(outline.first, true)?);
    Ok(text)
}
