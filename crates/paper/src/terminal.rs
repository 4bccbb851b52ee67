//! A publication's repetition on a terminal: a line per table, a line per conclusion. The page has the tables themselves.

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
        let rest = match refused(record).next() {
            None => "not all runs were made; the same command makes the rest",
            Some(_) => "not all runs were made, and some cannot be made here; the same command makes the rest",
        };
        page.toned_field("", rest, 2, Tone::Caution);
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
    for (experiment, cells) in refused(record) {
        page.toned_field("refused", &format!("{experiment}: {cells}"), 4, Tone::Caution);
    }
    if let Some(folder) = options.folder {
        page.blank();
        page.path("report", &format!("{folder}/paper.html"), "(also paper.json, paper.md)");
    }
    page.text(options.colour)
}

/// Cells that could not be run here, each with its experiment; not those of experiments whose folder is gone.
fn refused(record: &PaperRecord) -> impl Iterator<Item = (&str, &str)> {
    let here = record.experiments.iter().filter(|part| part.folder.is_some());
    let runs = here.filter_map(|part| Some((part.name.as_str(), part.runs.as_ref()?)));
    runs.flat_map(|(name, runs)| runs.refused.iter().map(move |cells| (name, cells.as_str())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use pubmark_record::store;

    use super::*;

    #[test]
    fn cells_that_could_not_be_run_are_named_at_the_end_and_on_both_pages() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/psmark");
        let mut record: PaperRecord = store::load_as(&folder).unwrap();
        record.status = Status::Interrupted;
        let options = TerminalOptions { colour: false, folder: None, columns: None, verbose: false };
        let printed = |record: &PaperRecord| summary(record, &options).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed(&record).contains("not all runs were made; the same command makes the rest"));
        let part = record.experiments.iter_mut().find(|part| part.runs.is_some()).unwrap();
        part.folder = Some("folder".to_owned());
        part.runs.as_mut().unwrap().refused = vec!["EMQX: not installed: `emqx` is not here".to_owned()];
        let named = format!("refused {}: EMQX: not installed: `emqx` is not here", part.name);
        let text = printed(&record);
        assert!(text.contains(&named), "{text}");
        assert!(text.contains("not all runs were made, and some cannot be made here;"), "{text}");
        let markdown = crate::markdown(&record);
        assert!(markdown.contains("\n  - could not be run: EMQX: not installed: `emqx` is not here\n"), "{markdown}");
        let html = crate::html(&record);
        assert!(html.contains("Could not be run: EMQX: not installed: <code>emqx</code> is not here."), "{html}");
    }
}
