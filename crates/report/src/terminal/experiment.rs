//! An experiment on a terminal: one row per cell, then the winners in sentences, then cautions for quoting.

use pubmark_record::by_reason::{by_reason, named};
use pubmark_record::experiment::CellFigure;
use pubmark_record::record::Status;

use super::layout::{Page, Tone, cut, printable};
use super::{COLUMNS, TerminalOptions};
use crate::columns::{ColumnUnit, ExperimentColumn, figure};
use crate::experiment::{CustomTable, Member, View, headline, is_unusable};
use crate::numbers::duration;
use crate::words::{UNUSABLE, UNUSABLE_MEANS};

/// Width of a value and the mark of the winner, columns.
const VALUE: usize = 9;
/// Width of a latency with both bounds, columns.
const BOUNDS: usize = 13;
/// Largest width of a name, columns.
const MOST_NAME: usize = 28;
/// Width of the number of usable runs, columns.
const RUNS: usize = 6;
/// Most cells with suspect runs that get a line each.
const MOST_SUSPECTS: usize = 6;

/// The experiment as text, with a final newline.
pub fn experiment(record: &pubmark_record::experiment::ExperimentRecord, options: &TerminalOptions) -> String {
    let view = View::of(record);
    let mut page = Page::default();
    page.field("title", &record.title, 2);
    page.field("measured", &view.what_ran(), 3);
    let status = if record.status == Status::Interrupted { "interrupted after " } else { "took " };
    page.field("", &format!("{status}{}", duration(record.took_s)), 1);
    if let Some(nodes) = &record.nodes {
        page.field("nodes", &nodes.in_words(), 2);
    }
    page.blank();
    let columns: Vec<Column> = view
        .columns
        .iter()
        .filter_map(|(column, unit)| column.short_head.map(|head| Column { column, head, unit: *unit }))
        .collect();
    heads(&mut page, &view, &columns);
    for group in &view.groups {
        if !group.label.is_empty() {
            page.line(&format!("  {}", group.label), Tone::Plain);
        }
        let indent = if group.label.is_empty() { "  " } else { "    " };
        for member in &group.members {
            row(&mut page, &view, &columns, indent, member);
        }
    }
    if let Some(own) = CustomTable::of(record) {
        page.blank();
        for (label, values) in &own.rows {
            let parts = own.heads.iter().zip(values).map(|(head, value)| format!("{head}: {value}"));
            page.paragraph("  ", &format!("{label}  {}", parts.collect::<Vec<_>>().join("  ")), 2, Tone::Plain);
        }
    }
    page.blank();
    conclusions(&mut page, &view, &columns);
    if view.has_unusable() {
        page.paragraph(&format!("  {UNUSABLE} "), UNUSABLE_MEANS, 1, Tone::Caution);
    }
    for caution in &record.cautions {
        page.paragraph("  caution: ", caution, 3, Tone::Caution);
    }
    if let Some(folder) = options.folder {
        page.blank();
        page.path("report", &format!("{folder}/experiment.html"), "(also experiment.json, experiment.md, csv/)");
    }
    page.text(options.colour)
}

struct Column<'a> {
    column: &'a ExperimentColumn,
    head: &'static str,
    unit: ColumnUnit,
}

impl Column<'_> {
    fn width(&self) -> usize {
        if figure(self.column.figure).is_some_and(|figure| figure.is_latency) { BOUNDS } else { VALUE }
    }

    /// The mean, for a latency both bounds, with the mark of a winner, or of what must not be used.
    fn value(&self, view: &View, member: &Member) -> String {
        let figure = member.figure(self.column.figure);
        let mark = match figure {
            _ if view.wins(member.cell, self.column.figure) => "*",
            Some(figure) if is_unusable(figure) => UNUSABLE,
            _ => " ",
        };
        format!("{}{mark}", self.unit.bounds(figure.map_or([None; 2], CellFigure::mean_bounds)))
    }
}

fn name_width(columns: &[Column]) -> usize {
    // If no cell has figures, the reasons use their columns.
    (COLUMNS - 2 - RUNS - columns.iter().map(Column::width).sum::<usize>()).min(MOST_NAME)
}

fn heads(page: &mut Page, view: &View, columns: &[Column]) {
    let width = name_width(columns);
    let line = |first: &str, text: &dyn Fn(&Column) -> String, last: &str| {
        let mut line = format!("  {:<width$}", cut(first, width - 1));
        for column in columns {
            // One column of each value is reserved for the mark.
            line.push_str(&format!("{:>width$}", format!("{} ", text(column)), width = column.width()));
        }
        at_the_right(&line, last)
    };
    page.line(&line(view.compared, &|column| column.head.to_string(), "runs"), Tone::Plain);
    page.line(&line("", &|column| column.unit.symbol.to_string(), ""), Tone::Plain);
}

fn row(page: &mut Page, view: &View, columns: &[Column], indent: &str, member: &Member) {
    let width = name_width(columns) + 2;
    let name = format!("{indent}{}", printable(&member.name_with_version()));
    let mut line = format!("{:<width$}", cut(&name, width - 1));
    let runs = format!("{}/{}", member.whole_runs(), view.record.repetitions);
    if let Some(why) = why_failed(member) {
        let room = room_for_reason(columns);
        line.push_str(&format!("{:<room$}{runs:>RUNS$}", cut(&printable(&format!("  {why}")), room)));
        page.line(&line, Tone::Bad);
        return;
    }
    for column in columns {
        line.push_str(&format!("{:>width$}", column.value(view, member), width = column.width()));
    }
    let doubted = member.suspect_runs() + member.runs_without_times() + member.cell.failures.len();
    let line = at_the_right(&line, &runs);
    page.line(&line, if doubted > 0 { Tone::Caution } else { Tone::Plain });
}

/// A line with its last value right-aligned.
fn at_the_right(line: &str, last: &str) -> String {
    let rest = COLUMNS.saturating_sub(line.chars().count());
    format!("{line}{last:>rest$}")
}

/// Columns available for the reason of a cell without figures.
fn room_for_reason(columns: &[Column]) -> usize {
    COLUMNS - name_width(columns) - 2 - RUNS
}

/// Why a cell has no figures: kind and cause.
fn why_failed(member: &Member) -> Option<String> {
    let why = member.failed()?;
    let text = member.cell.failures.first().map_or_else(String::new, |failure| format!(": {}", failure.text));
    // Output of another program may have several lines.
    Some(format!("{why}{text}").replace('\n', " "))
}

fn conclusions(page: &mut Page, view: &View, columns: &[Column]) {
    let conclusions = view.conclusions();
    let has_winner = conclusions.iter().any(|conclusion| conclusion.has_winner);
    page.paragraph("  ", &headline(view), 3, if has_winner { Tone::Good } else { Tone::Caution });
    for conclusion in &conclusions {
        let start = if conclusion.has_winner { "  * " } else { "  - " };
        page.paragraph(start, &conclusion.text, 3, Tone::Plain);
    }
    suspects(page, view);
    // Reasons that were cut in the table are printed here in full.
    let is_cut = |why: &String| why.chars().count() + 2 > room_for_reason(columns);
    let failed = view.members().filter_map(|member| Some((member.cell.label.as_str(), why_failed(member)?)));
    for (why, labels) in by_reason(failed.filter(|(_, why)| is_cut(why))) {
        page.paragraph("  failed: ", &format!("{}: {why}", named(&labels)), 6, Tone::Bad);
    }
    for member in view.members().filter(|member| !member.cell.runs.is_empty()) {
        for (kind, count) in failures(member) {
            page.paragraph("  failed: ", &format!("{}: {count} × {kind}", member.cell.label), 1, Tone::Caution);
        }
    }
}

/// Cells with suspect runs: one line each, or one line for all if there are many.
fn suspects(page: &mut Page, view: &View) {
    let members: Vec<&Member> = view.members().filter(|member| member.suspect_runs() > 0).collect();
    if members.len() > MOST_SUSPECTS {
        let named =
            members[..MOST_SUSPECTS].iter().map(|member| member.cell.label.as_str()).collect::<Vec<_>>().join("; ");
        let text = format!("runs of {} cells: {named} and {} more", members.len(), members.len() - MOST_SUSPECTS);
        page.paragraph("  suspect: ", &text, 4, Tone::Caution);
        return;
    }
    for member in members {
        let text = format!(
            "{}: {} of {} runs that count suspect",
            member.cell.label,
            member.suspect_runs(),
            member.whole_runs()
        );
        page.paragraph("  suspect: ", &text, 1, Tone::Caution);
    }
}

/// Kinds of failures of a cell with their counts.
fn failures(member: &Member) -> Vec<(&'static str, usize)> {
    let mut kinds: Vec<(&'static str, usize)> = Vec::new();
    for failure in &member.cell.failures {
        match kinds.iter_mut().find(|(kind, _)| *kind == failure.kind.words()) {
            Some((_, count)) => *count += 1,
            None => kinds.push((failure.kind.words(), 1)),
        }
    }
    kinds
}
