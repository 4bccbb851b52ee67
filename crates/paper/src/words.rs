//! Texts that all pages of a publication share.

use pubmark_model::experiment::axis_title;
use pubmark_record::comparison::Unit;
use pubmark_report::columns::{ColumnUnit, figure};
use pubmark_report::numbers::{counted, seconds, significant};
use pubmark_report::words::{UNUSABLE, command_line};

use crate::record::{
    Case, ExperimentPart, MeanFigure, Outcome, PaperRecord, RunsSummary, StatementResult, TableCell, TableResult,
};

impl Outcome {
    /// The outcome as text in a table cell.
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::DoesNotHold => "does not hold",
            Outcome::Undecided => "undecided",
            Outcome::NotMeasured => "not measured",
        }
    }
}

/// The layout of a table, with one unit for all its values.
pub(crate) struct TableLayout<'a> {
    /// The table.
    pub table: &'a TableResult,
    /// Unit of all values.
    pub unit: ColumnUnit,
    /// Rows, by the values of their axes.
    pub rows: Vec<&'a [String]>,
    /// Columns by the values of their axes.
    pub columns: Vec<&'a [String]>,
}

impl<'a> TableLayout<'a> {
    /// Computes the layout of a table.
    pub fn of(table: &'a TableResult) -> TableLayout<'a> {
        let mut rows: Vec<&[String]> = vec![];
        let mut columns: Vec<&[String]> = vec![];
        for cell in &table.cells {
            if !rows.contains(&cell.row.as_slice()) {
                rows.push(&cell.row);
            }
            if !columns.contains(&cell.column.as_slice()) {
                columns.push(&cell.column);
            }
        }
        let values =
            || table.cells.iter().flat_map(|cell| [cell.printed, cell.measured.as_ref().map(|here| here.mean)]);
        let largest = values().flatten().fold(0.0, f64::max);
        let smallest = values().flatten().fold(f64::INFINITY, f64::min);
        let unit = figure(&table.figure).map_or(Unit::Number, |figure| figure.unit);
        TableLayout { table, unit: ColumnUnit::between(unit, smallest, largest), rows, columns }
    }

    /// The cell in a row and a column.
    pub fn cell(&self, row: &[String], column: &[String]) -> Option<&'a TableCell> {
        self.table.cells.iter().find(|cell| cell.row == row && cell.column == column)
    }

    /// Name of the figure with its unit: `delivered rate, /s`.
    pub fn figure(&self) -> String {
        match self.unit.symbol {
            "" => self.table.figure.clone(),
            symbol => format!("{}, {symbol}", self.table.figure),
        }
    }

    /// Returns whether the publication prints any value of the table.
    pub fn has_printed(&self) -> bool {
        self.table.cells.iter().any(|cell| cell.printed.is_some())
    }

    /// The measured value without its unit; marked ([`UNUSABLE`]) if the verdicts forbid its use.
    pub fn here(&self, here: &MeanFigure) -> String {
        let mark = if here.shown_only { format!(" {UNUSABLE}") } else { String::new() };
        format!("{}{mark}", self.unit.bounds([here.lower, Some(here.mean)]))
    }

    /// Text to show beside the measured value: `printed 3.94, 0.0660–0.0680 ×`, `failed in 2 of 3 repetitions (refused)`.
    pub fn beside(&self, cell: &TableCell) -> Option<String> {
        let ratio = ratio(self.table, cell).map_or_else(String::new, |ratio| format!(", {}", times(ratio)));
        let printed = cell.printed.map(|printed| format!("printed {}{ratio}", self.unit.quoted(printed)));
        let failed = cell.reason.clone().filter(|_| cell.measured.is_some());
        let parts: Vec<String> = printed.into_iter().chain(failed).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The measured value divided by the printed one, for both bounds; `None` if one of them is missing, zero or in another
/// unit, if the verdicts forbid the use of the measured value, or if the system failed in a repetition.
fn ratio(table: &TableResult, cell: &TableCell) -> Option<(f64, f64)> {
    let (printed, measured) = (cell.printed?, cell.measured.as_ref()?);
    let lower = measured.lower.unwrap_or(measured.mean).min(measured.mean);
    let is_usable = table.comparable && !measured.shown_only && !cell.system_failed && printed > 0.0;
    is_usable.then(|| (lower / printed, measured.mean / printed))
}

/// A ratio by its bounds; a single number if both are equal in three digits.
pub(crate) fn times((least, most): (f64, f64)) -> String {
    let (least, most) = (significant(least), significant(most));
    if least == most { format!("{most} ×") } else { format!("{least}–{most} ×") }
}

/// Values of axes as the heading of a row or a column; numbers and booleans have the name of their axis.
pub(crate) fn head(axes: &[String], values: &[String]) -> String {
    let word = |(axis, value): (&String, &String)| match value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok() {
        true => format!("{} {value}", axis_title(axis)),
        false => value.clone(),
    };
    if values.is_empty() { "all".to_owned() } else { axes.iter().zip(values).map(word).collect::<Vec<_>>().join(", ") }
}

/// Names of axes as the head of a table.
pub(crate) fn axes(axes: &[String]) -> String {
    axes.iter().map(|axis| axis_title(axis)).collect::<Vec<_>>().join(", ")
}

/// How much of a table was measured, and how that compares with the printed values.
pub(crate) fn found(table: &TableResult) -> String {
    let measured = table.cells.iter().filter(|cell| cell.measured.is_some()).count();
    let mut text = format!("{measured} of {}", counted(table.cells.len() as u64, "cell", "cells"));
    text.push_str(" measured");
    let mut ratios: Vec<(f64, f64)> = table.cells.iter().filter_map(|cell| ratio(table, cell)).collect();
    let middle = |(least, most): &(f64, f64)| f64::midpoint(*least, *most);
    ratios.sort_by(|one, other| middle(one).total_cmp(&middle(other)));
    match ratios.as_slice() {
        [] => {}
        [only] => text.push_str(&format!("; {} what is printed", times(*only))),
        several => {
            let least = several.iter().map(|(least, _)| *least).fold(f64::INFINITY, f64::min);
            let most = several.iter().map(|(_, most)| *most).fold(0.0, f64::max);
            let median = f64::midpoint(middle(&ratios[(ratios.len() - 1) / 2]), middle(&ratios[ratios.len() / 2]));
            text.push_str(&format!(
                "; {} to {} × what is printed, median {} ×",
                significant(least),
                significant(most),
                significant(median)
            ));
        }
    }
    text
}

/// How an experiment of a record was run, in one sentence.
pub(crate) fn part(part: &ExperimentPart, record: &PaperRecord) -> String {
    match (&part.runs, &part.reason) {
        (Some(made), _) => match made.pubmark_version.as_ref().filter(|version| **version != record.pubmark_version) {
            Some(version) => format!("{}; pubmark {version}", runs_words(made)),
            None => runs_words(made),
        },
        (None, Some(why)) => why.clone(),
        (None, None) => "not run".to_owned(),
    }
}

fn runs_words(made: &RunsSummary) -> String {
    format!(
        "{}, {} after {} of warm-up each; {} of {} measured; {}",
        counted(made.repetitions.into(), "repetition", "repetitions"),
        seconds(made.duration_s),
        seconds(made.warmup_s),
        made.cells_measured,
        counted(made.cells.into(), "cell", "cells"),
        made.systems.join(", ")
    )
}

/// The machine of an experiment, its load, and the machines that joined.
pub(crate) fn machine(made: &RunsSummary) -> String {
    let machine = &made.environment;
    let load = match (machine.load_after, machine.load_before) {
        (Some(load), _) => format!(", load {load:.1} after the last run"),
        // The environment of an older experiment was read when its record was written.
        (None, Some(load)) => format!(", load {load:.1} when its record was written"),
        (None, None) => String::new(),
    };
    let nodes = made.nodes.as_ref().map_or_else(String::new, |nodes| format!("; {}", nodes.in_words()));
    format!(
        "{} on {} of {}{}{load}{nodes}; {}",
        machine.os,
        counted(machine.cores.into(), "core", "cores"),
        machine.cpu,
        machine.virtualization.as_ref().map_or_else(String::new, |kind| format!(" ({kind})")),
        made.started_at
    )
}

/// Number of cases of a conclusion by outcome: `holds in 3, undecided in 1, not measured in 2 of 6 cases`. With a reason:
/// `undecided in 1 of 3 cases, because …; not measured in 2`.
pub(crate) fn counts(statement: &StatementResult) -> String {
    let count = |outcome: Outcome| statement.cases.iter().filter(|case| case.outcome == outcome).count();
    let part = |outcome: Outcome| format!("{} in {}", outcome.words(), count(outcome));
    let total = counted(statement.cases.len() as u64, "case", "cases");
    // Every case that was measured is undecided for it.
    if let Some(why) = statement.reason.as_ref().filter(|_| count(Outcome::Undecided) > 0) {
        let undecided = format!("{} of {total}, because {why}", part(Outcome::Undecided));
        return match count(Outcome::NotMeasured) {
            0 => undecided,
            _ => format!("{undecided}; {}", part(Outcome::NotMeasured)),
        };
    }
    let all = [Outcome::Holds, Outcome::DoesNotHold, Outcome::Undecided, Outcome::NotMeasured];
    let parts: Vec<String> = all.into_iter().filter(|outcome| count(*outcome) > 0).map(part).collect();
    format!("{} of {total}", parts.join(", "))
}

/// The outcome of a case, with the experiment whose further runs it was judged without.
pub(crate) fn case_result(case: &Case) -> String {
    match &case.judged_before {
        Some(experiment) => format!("{}; judged before further runs of `{experiment}`", case.outcome.words()),
        None => case.outcome.words().to_owned(),
    }
}

/// Lowest and highest ratio of a case.
pub(crate) fn case_times(case: &Case) -> String {
    case.ratio.map_or_else(pubmark_report::numbers::missing, times)
}

/// The commands of all calls that made a record, in their order.
pub(crate) fn commands(record: &PaperRecord) -> impl Iterator<Item = String> {
    record.earlier_commands.iter().chain([&record.command]).map(|command| command_line(command))
}

/// Length of the runs: short, or as long as the publication's.
pub(crate) fn length(record: &PaperRecord) -> &'static str {
    if record.quick { "Short runs and few repetitions" } else { "Length and repetitions of the publication" }
}

#[cfg(test)]
mod tests {
    use pubmark_record::nodes::JoinedMachines;
    use pubmark_record::record::{Environment, Status};
    use pubmark_record::sample_experiment;

    use super::*;

    fn cell(row: &str, printed: Option<f64>, mean: Option<f64>) -> TableCell {
        let measured =
            mean.map(|mean| MeanFigure { mean, lower: Some(mean * 0.8), interval: None, runs: 1, shown_only: false });
        let reason = measured.is_none().then(|| "not installed".to_owned());
        let detail = measured.is_none().then(|| "`mqttd` is not here".to_owned());
        let (row, column) = (vec![row.to_owned()], vec![]);
        let (started_at, complete) = (None, None);
        TableCell { row, column, printed, measured, reason, system_failed: false, detail, started_at, complete }
    }

    #[test]
    fn the_load_of_a_machine_is_named_by_when_it_was_read() {
        let environment = sample_experiment::experiment().environment;
        let runs = |load_before: Option<f64>, load_after: Option<f64>| RunsSummary {
            status: Status::Complete,
            started_at: "2026-11-28T14:00:00Z".to_owned(),
            took_s: 60.0,
            cells: 1,
            cells_measured: 1,
            refused: vec![],
            repetitions: 3,
            duration_s: 5.0,
            warmup_s: 1.0,
            systems: vec![],
            pubmark_version: None,
            conditions: std::collections::BTreeMap::new(),
            compared: vec![],
            cautions: vec![],
            environment: Environment { load_before, load_after, ..environment.clone() },
            nodes: None,
        };
        let now = machine(&runs(None, Some(0.31)));
        assert!(now.ends_with(", load 0.3 after the last run; 2026-11-28T14:00:00Z"), "{now}");
        let older = machine(&runs(Some(0.31), None));
        assert!(older.ends_with(", load 0.3 when its record was written; 2026-11-28T14:00:00Z"), "{older}");
        assert!(!machine(&runs(None, None)).contains("load"));
        let joined = JoinedMachines::new(Some(2), None);
        let on_nodes = machine(&RunsSummary { nodes: joined, ..runs(None, None) });
        assert!(on_nodes.ends_with("; 2 nodes; 2026-11-28T14:00:00Z"), "{on_nodes}");
    }

    #[test]
    fn a_page_names_all_commands_and_a_version_that_is_not_its_writers() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/psmark");
        let mut record: PaperRecord = pubmark_record::store::load_as(&folder).expect("a record");
        let pages = |record: &PaperRecord| [crate::markdown::markdown(record), crate::html::html(record)];
        record.command = ["pubmark", "paper", "psmark"].map(str::to_owned).to_vec();
        assert!(pages(&record)[0].ends_with("\nCommand: `pubmark paper psmark`\n"));
        record.earlier_commands = vec![["pubmark", "paper", "psmark", "--only", "tuned"].map(str::to_owned).to_vec()];
        record.experiments[0].runs.as_mut().expect("runs").pubmark_version = Some("0.0.1".to_owned());
        let [markdown, html] = pages(&record);
        let commands =
            "\nCommands, one after the other:\n\n- `pubmark paper psmark --only tuned`\n- `pubmark paper psmark`\n";
        assert!(markdown.ends_with(commands), "{markdown}");
        assert!(html.contains("pubmark paper psmark --only tuned\npubmark paper psmark</code>"), "{html}");
        for page in [markdown, html] {
            assert_eq!(page.matches("; pubmark 0.0.1.").count(), 1, "{page}");
        }
    }

    #[test]
    fn a_reason_explains_the_undecided_cases_only() {
        use Outcome::{Holds, NotMeasured, Undecided};
        let case = |outcome| Case {
            label: String::new(),
            larger: String::new(),
            smaller: String::new(),
            outcome,
            ratio: None,
            judged_before: None,
        };
        let statement = |reason: Option<&str>, outcomes: &[Outcome]| StatementResult {
            conclusion: String::new(),
            source: String::new(),
            figure: String::new(),
            each: vec![],
            reason: reason.map(str::to_owned),
            cases: outcomes.iter().copied().map(case).collect(),
        };
        let why = Some("runs of `a` are of several machines");
        let text = counts(&statement(why, &[NotMeasured, Undecided, Undecided]));
        assert_eq!(text, "undecided in 2 of 3 cases, because runs of `a` are of several machines; not measured in 1");
        assert_eq!(counts(&statement(why, &[NotMeasured])), "not measured in 1 of 1 case", "an older record");
        let text = counts(&statement(None, &[Holds, Undecided, NotMeasured, NotMeasured]));
        assert_eq!(text, "holds in 1, undecided in 1, not measured in 2 of 4 cases");
    }

    #[test]
    fn the_summary_counts_measured_cells_and_compares_printed_ones() {
        let mut table = TableResult {
            title: "Table I".to_owned(),
            experiment: "one".to_owned(),
            figure: "latency p50".to_owned(),
            rows: vec!["system".to_owned()],
            columns: vec![],
            printed_of: String::new(),
            differs: String::new(),
            comparable: true,
            cells: vec![
                cell("a", Some(1_000.0), Some(500.0)),
                cell("b", Some(1_000.0), None),
                cell("c", None, Some(3.0)),
            ],
        };
        assert_eq!(found(&table), "2 of 3 cells measured; 0.400–0.500 × what is printed");
        table.cells.push(cell("d", Some(100.0), Some(400.0)));
        table.cells.push(cell("e", Some(100.0), Some(100.0)));
        assert_eq!(found(&table), "4 of 5 cells measured; 0.400 to 4.00 × what is printed, median 0.900 ×");
        // In the middle by its own middle, and with both ends of the range.
        let mut wide = cell("f", Some(100.0), Some(700.0));
        wide.measured.as_mut().expect("a figure").lower = Some(2.0);
        let widest = TableResult { cells: [table.cells.clone(), vec![wide]].concat(), ..table.clone() };
        let text = found(&widest);
        assert!(text.contains("; 0.0200 to 7.00 × what is printed"), "{text}");
        let other_unit = TableResult { comparable: false, ..table.clone() };
        assert_eq!(found(&other_unit), "4 of 5 cells measured");
        let layout = TableLayout::of(&table);
        assert_eq!(layout.figure(), "latency p50, ms");
        assert_eq!(layout.beside(&table.cells[0]).as_deref(), Some("printed 1.00, 0.400–0.500 ×"));
        assert_eq!(layout.beside(&table.cells[1]).as_deref(), Some("printed 1.00"));
        assert_eq!(layout.beside(&table.cells[2]), None);
        let failed = TableCell {
            reason: Some("failed in 1 of 3 repetitions (refused)".to_owned()),
            system_failed: true,
            ..table.cells[0].clone()
        };
        let beside = layout.beside(&failed);
        assert_eq!(beside.as_deref(), Some("printed 1.00; failed in 1 of 3 repetitions (refused)"), "and no ratio");
    }
}
