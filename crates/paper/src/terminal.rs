//! The terminal summary of a publication's repetition: one line for each table and conclusion. The tables themselves
//! are in the page.

use pubmark_record::record::Status;
use pubmark_report::terminal::layout::{Page, Tone};
use pubmark_report::terminal::{COLUMNS, TerminalOptions};

use crate::record::{Outcome, PaperRecord};
use crate::words;

/// The record as text, with a final newline.
pub fn summary(record: &PaperRecord, options: &TerminalOptions<'_>) -> String {
    let mut page = Page::new(Some(options.columns.unwrap_or(COLUMNS)));
    page.field("paper", &record.title, 2);
    if record.status == Status::Interrupted {
        page.toned_field("", "not all runs were made; the same command makes the rest", 1, Tone::Caution);
    }
    page.blank();
    for table in &record.tables {
        let tone = if table.cells.iter().any(|cell| cell.measured.is_some()) { Tone::Plain } else { Tone::Caution };
        page.toned_field("table", &format!("{}: {}", table.title, words::found(table)), 2, tone);
    }
    for statement in &record.statements {
        let any = |outcome: Outcome| statement.cases.iter().any(|case| case.outcome == outcome);
        let tone = match () {
            () if any(Outcome::DoesNotHold) => Tone::Caution,
            () if any(Outcome::Holds) => Tone::Good,
            () => Tone::Plain,
        };
        page.toned_field("concludes", &format!("{}: {}", statement.conclusion, words::counts(statement)), 2, tone);
    }
    for part in record.experiments.iter().filter(|part| part.runs.is_none()) {
        let why = part.reason.as_deref().unwrap_or("not run");
        page.toned_field("left out", &format!("{}: {why}", part.name), 2, Tone::Caution);
    }
    if let Some(folder) = options.folder {
        page.blank();
        page.path("report", &format!("{folder}/paper.html"), "(also paper.json, paper.md)");
    }
    page.text(options.colour)
}
