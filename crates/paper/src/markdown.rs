//! A publication's repetition as Markdown.

use pubmark_record::record::Status;
use pubmark_report::markdown::{escaped, table};
use pubmark_report::numbers::MISSING;
use pubmark_report::words::{UNUSABLE, capitalised, sentence};

use crate::missing;
use crate::record::{PaperRecord, StatementResult, TableCell, TableResult};
use crate::words::{self, TableLayout};

/// The page as Markdown.
pub fn markdown(record: &PaperRecord) -> String {
    let mut text = format!("# {}\n\n{}\n\n", escaped(&record.title), sentence(&escaped(&record.citation)));
    text.push_str(&format!("{}. pubmark {}.", words::length(record), record.pubmark_version));
    if record.status == Status::Interrupted {
        text.push_str(" **Not all runs were made: what stands here was measured until then.**");
    }
    text.push('\n');
    statements(&mut text, record);
    for position in 0..record.tables.len() {
        table_section(&mut text, &record.tables, position);
    }
    experiments(&mut text, record);
    if !record.not_repeated.is_empty() {
        text.push_str("\n## What is not repeated\n\n");
        for one in &record.not_repeated {
            text.push_str(&format!("- **{}**: {}\n", escaped(&one.what), sentence(&escaped(&one.why))));
        }
    }
    let commands: Vec<String> =
        words::commands(record).map(|command| format!("`{}`", command.replace('`', "'"))).collect();
    match commands.as_slice() {
        [only] => text.push_str(&format!("\nCommand: {only}\n")),
        several => text.push_str(&format!("\nCommands, one after the other:\n\n- {}\n", several.join("\n- "))),
    }
    text
}

fn statements(text: &mut String, record: &PaperRecord) {
    if record.statements.is_empty() {
        return;
    }
    text.push_str(
        "\n## Its conclusions\n\nA conclusion holds in a case where the intervals measured here are apart.\n",
    );
    for statement in &record.statements {
        text.push_str(&format!(
            "\n### {}\n\n{}: {} (by {}).\n\n",
            escaped(&statement.conclusion),
            capitalised(&escaped(&statement.source)),
            words::counts(statement),
            statement.figure
        ));
        cases(text, statement);
    }
}

fn cases(text: &mut String, statement: &StatementResult) {
    let header = ["should be larger", "should be smaller", "times", "result"].map(String::from);
    let rows: Vec<Vec<String>> = statement
        .cases
        .iter()
        .map(|case| {
            let (larger, smaller) = (escaped(&case.larger), escaped(&case.smaller));
            vec![larger, smaller, words::case_times(case), words::case_result(case)]
        })
        .collect();
    table(text, &header, &rows);
}

fn table_section(text: &mut String, tables: &[TableResult], position: usize) {
    let one = &tables[position];
    let layout = TableLayout::of(one);
    text.push_str(&format!(
        "\n## {}\n\n`{}`, {}: {}.\n\n",
        escaped(&one.title),
        one.experiment,
        layout.figure(),
        words::found(one)
    ));
    let header: Vec<String> = std::iter::once(escaped(&words::axes(&one.rows)))
        .chain(layout.columns.iter().map(|column| escaped(&words::head(&one.columns, column))))
        .collect();
    let rows: Vec<Vec<String>> = layout
        .rows
        .iter()
        .map(|row| {
            let cells = layout.columns.iter().map(|column| layout.cell(row, column));
            let cells = cells.map(|cell| cell.map_or_else(String::new, |cell| value(&layout, cell)));
            std::iter::once(escaped(&row.join(", "))).chain(cells).collect()
        })
        .collect();
    table(text, &header, &rows);
    notes(text, &layout, &missing::reasons(tables, position));
}

/// `0.24–0.26 (printed 3.94, 0.07 ×)`, or the reason why there is no value.
fn value(layout: &TableLayout<'_>, cell: &TableCell) -> String {
    let here = match (&cell.measured, &cell.reason) {
        (Some(here), _) => escaped(&layout.here(here)),
        (None, Some(why)) => why.clone(),
        (None, None) => MISSING.to_string(),
    };
    layout.beside(cell).map_or(here.clone(), |beside| format!("{here} ({beside})"))
}

fn notes(text: &mut String, layout: &TableLayout<'_>, missing: &[(String, String)]) {
    let one = layout.table;
    let mut notes = vec![];
    if one.cells.iter().filter_map(|cell| cell.measured.as_ref()).any(|here| here.shown_only) {
        notes.push(format!("{UNUSABLE}: its runs are invalid for times; the value is shown and not judged."));
    }
    for (reason, cells) in missing {
        notes.push(format!("{}: {}", escaped(cells), sentence(&escaped(reason))));
    }
    if !one.printed_of.is_empty() {
        notes.push(format!("Measured there: {}.", escaped(&one.printed_of)));
    }
    if !one.differs.is_empty() && layout.has_printed() {
        notes.push(format!("Why ours differ: {}", sentence(&escaped(&one.differs))));
    }
    for (position, note) in notes.iter().enumerate() {
        text.push_str(&format!("{}- {note}\n", if position == 0 { "\n" } else { "" }));
    }
}

fn experiments(text: &mut String, record: &PaperRecord) {
    text.push_str("\n## How it was measured\n\n");
    for part in &record.experiments {
        text.push_str(&format!("- `{}`: {}\n", part.name, sentence(&escaped(&words::part(part, record)))));
        if let Some(made) = &part.runs {
            text.push_str(&format!("  - {}\n", sentence(&escaped(&words::machine(made)))));
            for cells in &made.refused {
                text.push_str(&format!("  - could not be run: {}\n", escaped(cells)));
            }
            for caution in &made.cautions {
                text.push_str(&format!("  - caution: {}\n", escaped(caution)));
            }
        }
    }
}
