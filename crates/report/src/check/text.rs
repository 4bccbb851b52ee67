//! Checks as text for people, one line each.

use pubmark_record::check::{Checked, Kind, Outcome, Row};
use pubmark_record::conclusion::Conclusion;

use crate::terminal::layout::printable;
use crate::wrapping::wrap;

/// Smallest width of the name of a check, columns, so that the details of short names are aligned.
const NAME: usize = 18;

/// All checks as text, with a final line end. A name or reason of a record cannot add a line, such as one of a passed check.
pub fn text(checked: &Checked, with_colour: bool) -> String {
    let mut text = match &checked.baseline {
        Some(baseline) => wrap("", 2, &printable(&format!("{} against {baseline}", checked.subject))),
        None => format!("{}\n", printable(&checked.subject)),
    };
    text.push('\n');
    let mut cell = "";
    let name_width = checked.rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0).clamp(NAME, 32);
    for row in &checked.rows {
        if row.cell != cell && !row.cell.is_empty() {
            text.push_str(&format!("{}{}\n", if cell.is_empty() { "" } else { "\n" }, printable(&row.cell)));
            cell = &row.cell;
        }
        let head = format!("{} {:<name_width$} ", mark(row.outcome, with_colour), name(row));
        text.push_str(&wrap(&head, name_width + 3, &printable(&row.detail)));
    }
    text.push('\n');
    for note in &checked.notes {
        text.push_str(&wrap("note: ", 6, &printable(note)));
    }
    text.push_str(&format!("{}\n", summary(checked)));
    text
}

fn name(row: &Row) -> String {
    match row.kind {
        Kind::FailOn | Kind::Regression => format!("not {}", printable(&row.name)),
        Kind::Verdict | Kind::Repetitions | Kind::Required => printable(&row.name),
    }
}

fn mark(outcome: Outcome, with_colour: bool) -> String {
    let (mark, colour) = match outcome {
        Outcome::Passed => ("✓", "32"),
        Outcome::Warned => ("!", "33"),
        Outcome::Undecided => ("?", "33"),
        Outcome::Failed | Outcome::NotMeasured => ("✗", "31"),
    };
    if with_colour { format!("\u{1b}[{colour}m{mark}\u{1b}[0m") } else { mark.to_owned() }
}

fn summary(checked: &Checked) -> String {
    let all = checked.rows.len();
    let checks = if all == 1 { "1 check".to_owned() } else { format!("{all} checks") };
    let undecided = checked.rows.iter().filter(|row| row.outcome == Outcome::Undecided).count();
    match checked.failed() {
        0 if undecided > 0 => format!("{undecided} of {checks} undecided, the others passed"),
        0 => format!("{checks} passed"),
        failed => format!("{failed} of {checks} failed: {}", Conclusion::of_checks(checked).words()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_record_adds_a_line() {
        let hostile = || "a\n\u{1b}[2J\u{2713} forged".to_owned();
        let row = Row {
            cell: hostile(),
            name: hostile(),
            kind: Kind::Required,
            outcome: Outcome::Failed,
            lower: None,
            value: None,
            baseline: None,
            change: None,
            p: None,
            survivors: None,
            detail: hostile(),
        };
        let checked =
            Checked { subject: hostile(), baseline: Some(hostile()), rows: vec![row], notes: vec![hostile()] };
        let shown = text(&checked, false);
        assert!(shown.lines().all(|line| !line.starts_with('\u{2713}') && !line.contains('\u{1b}')), "{shown}");
        let alone = text(&Checked { baseline: None, ..checked }, false);
        assert!(alone.starts_with("a??[2J\u{2713} forged\n"), "{alone}");
    }
}
