//! Merges the results of an earlier record into a new one, cell by cell where their runs can stand beside each other.

use std::collections::BTreeMap;

use pubmark_experiment::experiment::definition;
use pubmark_model::experiment::{PlannedCell, cells};
use pubmark_record::experiment::FailureKind;
use pubmark_record::record::{Environment, Status};
use pubmark_report::numbers::{counted, seconds};

use crate::collect::{LEFT_OUT, NOT_RUN, OF_SYSTEM, Part, SYSTEM};
use crate::definition::{Paper, Statement};
use crate::guidelines::machines::{Machine, is_of_one};
use crate::record::{Case, ExperimentPart, Outcome, PaperRecord, RunsSummary, StatementResult, TableCell, TableResult};
use crate::statement::is_meant;

/// Failures of cells in which nothing was run, or not to its end. A value of an earlier record says more.
const NOTHING_MADE: [FailureKind; 4] =
    [FailureKind::NotInstalled, FailureKind::Unsupported, FailureKind::NoRoom, FailureKind::Interrupted];
/// Caution of runs whose cells stand beside those of others.
const BESIDE: &str = "cells of these runs stand beside those of later runs in another folder. A change of the machine \
                      since then looks like a difference between them.";

/// A record with the results of an earlier one.
pub(crate) struct Merged {
    /// The record.
    pub record: PaperRecord,
    /// Results of the earlier record that are not in it: names of experiments, each with what they were of and why.
    pub replaced: Vec<(String, String)>,
}

/// What an experiment's runs in a record are to those in the earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Since {
    /// There are none any more, or those that there are have no result that would replace others.
    Gone,
    /// They are the same.
    AsBefore,
    /// Others were made in another folder, and both can stand beside each other.
    Beside,
    /// Others were made, and the earlier ones do not stand beside them: what these were of and why, if there were any.
    Other(Option<String>),
}

/// Adds results of an earlier record. Experiments that have no runs in `record`, for instance because their folders were
/// removed, stay as they were; so do those of which it has no result yet that would replace others. Of an experiment that was run
/// again in another folder, cells that are not there stay, if machine, versions, lengths and settings are equal; otherwise the new
/// results replace the earlier ones. A conclusion that compares an earlier result stays as judged before, unless one of its sides
/// was run again.
pub(crate) fn with_earlier(mut record: PaperRecord, parts: &[Part], paper: &Paper, earlier: &PaperRecord) -> Merged {
    let names = paper.experiments().into_iter().chain(earlier.experiments.iter().map(|part| part.name.as_str()));
    let found: BTreeMap<&str, Since> = names.map(|name| (name, since(&record, earlier, name))).collect();
    let is = |name: &str, wanted: &Since| found.get(name) == Some(wanted);
    let is_gone = |name: &str| is(name, &Since::Gone);
    let mut has_earlier_cells: Vec<&str> = vec![];
    for table in &mut record.tables {
        let before = earlier.tables.iter().find(|one| one.title == table.title && one.experiment == table.experiment);
        let Some(before) = before.filter(|before| is(&before.experiment, &Since::Beside)) else { continue };
        if add_cells(table, before) {
            has_earlier_cells.push(&before.experiment);
        }
    }
    let is_retained = |part: &&ExperimentPart| {
        let is_current =
            |runs: &RunsSummary| runs_of(&record, &part.name).is_some_and(|now| now.started_at == runs.started_at);
        let is_beside = has_earlier_cells.contains(&part.name.as_str());
        part.runs.as_ref().is_some_and(|runs| (is_gone(&part.name) || is_beside) && !is_current(runs))
    };
    let retained = |part: &ExperimentPart| {
        let runs = part.runs.clone().map(|runs| retained_runs(runs, earlier, has_earlier_cells.contains(&&*part.name)));
        ExperimentPart { folder: None, runs, ..part.clone() }
    };
    let retained: Vec<ExperimentPart> = earlier.experiments.iter().filter(is_retained).map(retained).collect();
    if retained.iter().filter_map(|part| part.runs.as_ref()).any(|runs| runs.status != Status::Complete) {
        record.status = Status::Interrupted;
    }
    record.earlier_commands = earlier_commands(&record, earlier, &found);
    add_statements(&mut record.statements, parts, paper, earlier, &found);
    record.tables.retain(|table| !is_gone(&table.experiment));
    record.tables.extend(earlier.tables.iter().filter(|table| is_gone(&table.experiment)).cloned());
    record.experiments.retain(|part| !is_gone(&part.name));
    record.experiments.extend(retained);
    let replaced = found.iter().filter_map(|(name, since)| match since {
        Since::Other(Some(what)) => Some(((*name).to_owned(), what.clone())),
        _ => None,
    });
    Merged { replaced: replaced.collect(), record: in_order(record, paper) }
}

/// Earlier runs that stay in the record; `is_beside`: with cells beside those of others.
fn retained_runs(mut runs: RunsSummary, earlier: &PaperRecord, is_beside: bool) -> RunsSummary {
    // The record gets the version of its next writer.
    runs.pubmark_version.get_or_insert_with(|| earlier.pubmark_version.clone());
    if is_beside && !runs.cautions.iter().any(|caution| caution == BESIDE) {
        runs.cautions.push(BESIDE.to_owned());
    }
    runs
}

/// The command lines of earlier calls, unless none of their results is left.
fn earlier_commands(record: &PaperRecord, earlier: &PaperRecord, found: &BTreeMap<&str, Since>) -> Vec<Vec<String>> {
    let is_replaced = |name: &str| matches!(found.get(name), Some(Since::Other(Some(_))));
    if earlier.experiments.iter().all(|part| part.runs.is_none() || is_replaced(&part.name)) {
        return vec![];
    }
    let commands = earlier.earlier_commands.iter().chain([&earlier.command]);
    commands.filter(|command| **command != record.command).cloned().collect()
}

/// The runs of an experiment in a record: those in its folder, if there are others beside them.
fn runs_of<'a>(record: &'a PaperRecord, name: &str) -> Option<&'a RunsSummary> {
    record.experiments.iter().find(|part| part.name == name)?.runs.as_ref()
}

fn since(record: &PaperRecord, earlier: &PaperRecord, name: &str) -> Since {
    let before = earlier.experiments.iter().filter(|part| part.name == name).filter_map(|part| part.runs.as_ref());
    let before: Vec<&RunsSummary> = before.collect();
    let Some(now) = runs_of(record, name) else {
        return if before.is_empty() { Since::AsBefore } else { Since::Gone };
    };
    let others: Vec<&&RunsSummary> = before.iter().filter(|runs| runs.started_at != now.started_at).collect();
    if others.is_empty() {
        return if before.is_empty() { Since::Other(None) } else { Since::AsBefore };
    }
    let version_of = |runs: &RunsSummary, record: &PaperRecord| {
        runs.pubmark_version.clone().unwrap_or_else(|| record.pubmark_version.clone())
    };
    let replaced = others.iter().find_map(|runs| {
        let version = version_of(runs, earlier);
        let version = (version != version_of(now, record)).then(|| format!("with pubmark {version}"));
        let how = version.or_else(|| difference(runs, now))?;
        let date = runs.started_at.split('T').next().unwrap_or_default();
        Some(format!("the runs of {date}, which were made {how}"))
    });
    match replaced {
        None => Since::Beside,
        // What has no result yet replaces none.
        Some(_) if !has_results(record, name, now) => Since::Gone,
        Some(what) => Since::Other(Some(what)),
    }
}

/// Whether an experiment has a cell with a value, or with a failure of its own.
fn has_results(record: &PaperRecord, name: &str, runs: &RunsSummary) -> bool {
    let mut cells = record.tables.iter().filter(|table| table.experiment == name).flat_map(|table| &table.cells);
    runs.cells_measured > 0 || cells.any(|cell| !is_without_runs(cell))
}

/// How earlier runs of an experiment were made, if in another way than those of now.
fn difference(earlier: &RunsSummary, now: &RunsSummary) -> Option<String> {
    let of_several = !is_of_one(&earlier.cautions) || !is_of_one(&now.cautions);
    if of_several || !Machine::of(&earlier.environment).is(&Machine::of(&now.environment)) {
        return Some("on another machine".to_owned());
    }
    let state = |Environment { cpu_quota_cores, governor, congestion_control, .. }: &Environment| {
        (*cpu_quota_cores, governor.clone(), congestion_control.clone())
    };
    if state(&earlier.environment) != state(&now.environment) {
        return Some("with another CPU quota, frequency governor or TCP congestion control".to_owned());
    }
    let lengths = |runs: &RunsSummary| (runs.repetitions, runs.duration_s, runs.warmup_s);
    if lengths(earlier) != lengths(now) {
        let runs = counted(earlier.repetitions.into(), "repetition", "repetitions");
        return Some(format!("with {runs} of {} after {}", seconds(earlier.duration_s), seconds(earlier.warmup_s)));
    }
    let name = |words: &str| words.split(' ').next().unwrap_or_default().to_owned();
    let is_of_another_version =
        |words: &&String| now.systems.iter().any(|own| name(own) == name(words)) && !now.systems.contains(words);
    let version = earlier.systems.iter().find(is_of_another_version).map(|words| format!("with {words}"));
    version.or_else(|| other_condition(&earlier.conditions, &now.conditions))
}

/// The first condition of earlier runs that is not that of now. A system may be in one of both only.
fn other_condition(earlier: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Option<String> {
    match (earlier.is_empty(), now.is_empty()) {
        (true, true) => return None,
        (true, false) => return Some("by a pubmark that did not record their settings".to_owned()),
        _ => {}
    }
    earlier.keys().chain(now.keys()).find_map(|name| {
        match (earlier.get(name), now.get(name), name.strip_prefix(OF_SYSTEM)) {
            (was, is, _) if was == is => None,
            (Some(was), Some(_), Some(label)) => Some(format!("with {label} as {was}")),
            (_, _, Some(_)) => None,
            (_, _, None) => Some(format!("with another `{name}` in the definition")),
        }
    })
}

/// Whether nothing was run in a cell, or not to its end.
fn is_without_runs(cell: &TableCell) -> bool {
    let is_reason =
        |why: &str| [NOT_RUN, LEFT_OUT].contains(&why) || NOTHING_MADE.iter().any(|kind| kind.words() == why);
    cell.measured.is_none() && cell.reason.as_deref().is_some_and(is_reason)
}

/// Value of the axis of systems in a cell.
fn system_of<'a>(table: &TableResult, cell: &'a TableCell) -> Option<&'a str> {
    let mut at = table.rows.iter().zip(&cell.row).chain(table.columns.iter().zip(&cell.column));
    at.find(|(axis, _)| *axis == SYSTEM).map(|(_, value)| value.as_str())
}

/// Adds cells of an earlier table that this one does not have, or has without runs. Returns whether one of them has runs.
fn add_cells(table: &mut TableResult, earlier: &TableResult) -> bool {
    let measured: Vec<String> = table
        .cells
        .iter()
        .filter(|cell| cell.measured.is_some())
        .filter_map(|cell| system_of(table, cell).map(str::to_owned))
        .collect();
    // A system that was run now is installed by now.
    let is_outdated = |cell: &TableCell| {
        let is_of_run = |system: &str| measured.iter().any(|own| own == system);
        is_without_runs(cell) && system_of(earlier, cell).is_some_and(is_of_run)
    };
    let mut has_runs = false;
    for cell in &earlier.cells {
        match table.cells.iter().position(|own| own.row == cell.row && own.column == cell.column) {
            Some(own) if is_without_runs(&table.cells[own]) && !is_without_runs(cell) => {
                table.cells[own] = cell.clone();
            }
            Some(_) => continue,
            None if is_outdated(cell) => {
                let reason = Some(NOT_RUN.to_owned());
                table.cells.push(TableCell { reason, detail: None, ..cell.clone() });
            }
            None => table.cells.push(cell.clone()),
        }
        has_runs |= !is_without_runs(cell);
    }
    for (text, before) in [(&mut table.printed_of, &earlier.printed_of), (&mut table.differs, &earlier.differs)] {
        if text.is_empty() {
            text.clone_from(before);
        }
    }
    sort_cells(table);
    has_runs
}

/// Sorts cells in the order of the experiment with all its values.
fn sort_cells(table: &mut TableResult) {
    let Ok(whole) = definition::load(&table.experiment) else { return };
    let planned = cells(&whole.experiment);
    let (rows, columns) = (&table.rows, &table.columns);
    let place = |cell: &TableCell| {
        let is_there = |one: &PlannedCell| {
            // The rows of a figure over time are no axis.
            let mut at = rows.iter().zip(&cell.row).chain(columns.iter().zip(&cell.column));
            at.all(|(axis, value)| one.values.get(axis).is_none_or(|own| own == value))
        };
        planned.iter().position(is_there)
    };
    table.cells.sort_by_cached_key(place);
}

/// Adds conclusions of the earlier record, or cases of them.
fn add_statements(
    statements: &mut Vec<StatementResult>,
    parts: &[Part],
    paper: &Paper,
    earlier: &PaperRecord,
    found: &BTreeMap<&str, Since>,
) {
    for statement in &paper.statements {
        let sides = [&statement.larger, &statement.smaller].map(|side| found.get(side.experiment.as_str()));
        let any = |wanted: &Since| sides.contains(&Some(wanted));
        let before = earlier.statements.iter().find(|result| result.conclusion == statement.conclusion);
        let own = statements.iter().position(|result| result.conclusion == statement.conclusion);
        let stands = !sides.iter().any(|since| matches!(since, None | Some(Since::Other(_))));
        if any(&Since::Gone) {
            if let Some(own) = own {
                statements.remove(own);
            }
            // Beside other runs than before, it is not known what would be concluded.
            statements.extend(before.filter(|_| stands && !any(&Since::Beside)).cloned());
            continue;
        }
        let Some(before) = before.filter(|_| stands && any(&Since::Beside)) else { continue };
        let is_left =
            |case: &&Case| case.outcome != Outcome::NotMeasured && !was_run_again(statement, &case.label, parts, found);
        let left = before.cases.iter().filter(is_left);
        match own {
            Some(own) => add_cases(&mut statements[own], left.cloned().collect(), before),
            None => {
                let cases: Vec<Case> = left.cloned().collect();
                let has_cases = !cases.is_empty();
                statements.extend(has_cases.then(|| StatementResult { cases, ..before.clone() }));
            }
        }
    }
}

/// Adds cases that a conclusion does not have, or has without figures. A reason is that of all its measured cases: those of another
/// one are not added.
fn add_cases(result: &mut StatementResult, mut cases: Vec<Case>, before: &StatementResult) {
    let is_measured = |own: &Case| own.outcome != Outcome::NotMeasured;
    if result.reason != before.reason && result.cases.iter().any(is_measured) {
        return;
    }
    cases.retain(|case| !result.cases.iter().any(|own| own.label == case.label && is_measured(own)));
    result.cases.retain(|own| cases.iter().all(|case| case.label != own.label));
    if cases.iter().any(|case| case.outcome == Outcome::Undecided) && result.reason.is_none() {
        result.reason.clone_from(&before.reason);
    }
    result.cases.extend(cases);
}

/// Whether a cell on one of the sides of a case has runs now that it did not have before.
fn was_run_again(statement: &Statement, label: &str, parts: &[Part], found: &BTreeMap<&str, Since>) -> bool {
    let mut others = [&statement.larger, &statement.smaller]
        .into_iter()
        .filter(|side| found.get(side.experiment.as_str()) == Some(&Since::Beside));
    others.any(|side| {
        let part = parts.iter().find(|part| part.experiment.name == side.experiment);
        let is_of_case = |cell: &PlannedCell| {
            let key = statement.each.iter().filter_map(|axis| cell.values.get(axis).map(String::as_str));
            is_meant(side, cell) && key.collect::<Vec<_>>().join(", ") == label
        };
        let has_runs = |part: &Part, cell: &PlannedCell| part.cell(&cell.id).is_ok_and(|found| !found.runs.is_empty());
        part.is_some_and(|part| cells(&part.experiment).iter().any(|cell| is_of_case(cell) && has_runs(part, cell)))
    })
}

/// Sorts the parts of a record in the order of the publication.
fn in_order(mut record: PaperRecord, paper: &Paper) -> PaperRecord {
    let place = |names: &[&str], name: &str| names.iter().position(|other| *other == name);
    let titles: Vec<&str> = paper.titles().collect();
    record.tables.sort_by_key(|table| place(&titles, &table.title));
    let conclusions: Vec<&str> = paper.statements.iter().map(|statement| statement.conclusion.as_str()).collect();
    record.statements.sort_by_key(|statement| place(&conclusions, &statement.conclusion));
    record.experiments.sort_by_key(|part| place(&paper.experiments(), &part.name));
    record
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use pubmark_record::store;

    use super::*;

    const NAME: &str = "psmark-low";

    /// The committed record of PSMark with the rows of some workloads of one experiment, and without conclusions.
    fn record(workloads: &[&String], started_at: &str) -> PaperRecord {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/psmark");
        let mut record: PaperRecord = store::load_as(&folder).unwrap();
        record.tables.retain(|table| table.experiment == NAME);
        record.experiments.retain(|part| part.name == NAME);
        record.statements.clear();
        record.status = Status::Complete;
        let part = &mut record.experiments[0];
        part.folder = Some(started_at.to_owned());
        let runs = part.runs.as_mut().unwrap();
        runs.cautions.clear();
        (runs.status, runs.started_at) = (Status::Complete, started_at.to_owned());
        record.tables.iter_mut().for_each(|table| table.cells.retain(|cell| workloads.contains(&&cell.row[0])));
        in_order(record, &crate::definition::find("psmark").unwrap())
    }

    fn merged(now: &PaperRecord, earlier: &PaperRecord) -> Merged {
        with_earlier(now.clone(), &[], &crate::definition::find("psmark").unwrap(), earlier)
    }

    /// Two workloads of which the record has measured values, in the order of the experiment.
    fn workloads() -> [String; 2] {
        let whole = definition::load(NAME).unwrap().experiment;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/psmark");
        let record: PaperRecord = store::load_as(&folder).unwrap();
        let table = record.tables.iter().find(|table| table.experiment == NAME).unwrap();
        let is_measured =
            |name: &&String| table.cells.iter().any(|cell| cell.row[0] == **name && cell.measured.is_some());
        let mut measured = whole.axes.workload.iter().filter(is_measured).cloned();
        [measured.next().unwrap(), measured.next().unwrap()]
    }

    #[test]
    fn runs_of_another_folder_stand_beside_earlier_ones_that_were_made_in_the_same_way() {
        let [first, second] = workloads();
        let earlier = record(&[&first], "2026-03-01T00:00:00Z");
        let now = record(&[&second], "2026-03-02T00:00:00Z");
        let both = merged(&now, &earlier);
        assert!(both.replaced.is_empty(), "{:?}", both.replaced);
        let whole = record(&[&first, &second], "2026-03-02T00:00:00Z");
        assert_eq!(both.record.tables, whole.tables, "in the order of the experiment");
        let folders: Vec<_> = both.record.experiments.iter().map(|part| part.folder.is_some()).collect();
        assert_eq!(folders, [true, false], "the runs of each are described");
        let cautions = |part: usize| both.record.experiments[part].runs.as_ref().unwrap().cautions.clone();
        assert_eq!((cautions(0), cautions(1)), (vec![], vec![BESIDE.to_owned()]));
        assert_eq!(merged(&now, &both.record).record, both.record, "the same call again changes nothing");
        let again = record(&[&first], "2026-03-03T00:00:00Z");
        assert_eq!(merged(&again, &earlier).record, again, "all earlier cells were run again");
    }

    #[test]
    fn runs_that_were_made_in_another_way_are_replaced_and_named() {
        let [first, second] = workloads();
        let now = record(&[&second], "2026-03-02T00:00:00Z");
        type Change = fn(&mut PaperRecord, &mut RunsSummary);
        let changes: [(Change, &str); 7] = [
            (|_, runs| runs.environment.kernel.push('x'), "on another machine"),
            (|_, runs| runs.warmup_s = 7.0, "after 7 s"),
            (|record, _| record.pubmark_version = "0.0.1".to_owned(), "with pubmark 0.0.1"),
            (|_, runs| runs.pubmark_version = Some("0.0.2".to_owned()), "with pubmark 0.0.2"),
            (|_, runs| runs.environment.cpu_quota_cores = Some(1.5), "congestion control"),
            (
                |_, runs| drop(runs.conditions.insert("generator".to_owned(), "0f".to_owned())),
                "with another `generator` in the definition",
            ),
            (|_, runs| runs.systems[0].push_str("-other"), "-other"),
        ];
        for (change, why) in changes {
            let mut earlier = record(&[&first], "2026-03-01T00:00:00Z");
            let mut runs = earlier.experiments[0].runs.take().unwrap();
            change(&mut earlier, &mut runs);
            earlier.experiments[0].runs = Some(runs);
            let found = merged(&now, &earlier);
            assert_eq!(found.record, now);
            let [(name, what)] = found.replaced.as_slice() else { panic!("{:?}", found.replaced) };
            assert!(name == NAME && what.starts_with("the runs of 2026-03-01, ") && what.ends_with(why), "{what}");
        }
    }

    #[test]
    fn a_cell_that_could_not_be_run_now_keeps_its_value() {
        let [first, _] = workloads();
        let earlier = record(&[&first], "2026-03-01T00:00:00Z");
        for kind in NOTHING_MADE {
            let now = without_values(record(&[&first], "2026-03-02T00:00:00Z"), kind.words());
            assert_eq!(merged(&now, &earlier).record.tables, earlier.tables, "{kind:?}");
        }
        let failed = without_values(record(&[&first], "2026-03-02T00:00:00Z"), FailureKind::OutOfMemory.words());
        assert_eq!(merged(&failed, &earlier).record.tables, failed.tables, "a failure of the system is a result");
    }

    /// The record with this reason in place of all values.
    fn without_values(mut record: PaperRecord, reason: &str) -> PaperRecord {
        for cell in record.tables.iter_mut().flat_map(|table| &mut table.cells) {
            (cell.measured, cell.reason) = (None, Some(reason.to_owned()));
        }
        record.experiments[0].runs.as_mut().unwrap().cells_measured = 0;
        record
    }

    #[test]
    fn an_experiment_without_a_result_replaces_none() {
        let [first, second] = workloads();
        let mut earlier = record(&[&first], "2026-03-01T00:00:00Z");
        earlier.experiments[0].runs.as_mut().unwrap().environment.kernel.push('x');
        let now = without_values(record(&[&second], "2026-03-02T00:00:00Z"), FailureKind::Interrupted.words());
        let found = merged(&now, &earlier);
        assert!(found.replaced.is_empty(), "{:?}", found.replaced);
        assert_eq!(found.record.tables, earlier.tables);
        let kernels: Vec<&str> = found
            .record
            .experiments
            .iter()
            .map(|part| part.runs.as_ref().unwrap().environment.kernel.as_str())
            .collect();
        assert!(matches!(kernels.as_slice(), [kernel] if kernel.ends_with('x')), "{kernels:?}");
    }

    #[test]
    fn runs_have_the_version_that_made_them_whichever_wrote_the_record() {
        let [first, second] = workloads();
        let mut earlier = record(&[&first], "2026-03-01T00:00:00Z");
        earlier.pubmark_version = "0.0.1".to_owned();
        let nothing = PaperRecord { experiments: vec![], tables: vec![], ..record(&[], "2026-03-02T00:00:00Z") };
        // Another experiment is run by a later version.
        let later = merged(&nothing, &earlier).record;
        let runs = later.experiments[0].runs.clone().unwrap();
        assert_eq!(runs.pubmark_version.as_deref(), Some("0.0.1"));
        let now = record(&[&second], "2026-03-03T00:00:00Z");
        assert_eq!(merged(&now, &later).replaced.len(), 1);
        let mut of_it = now;
        of_it.experiments[0].runs.as_mut().unwrap().pubmark_version = Some("0.0.1".to_owned());
        assert!(merged(&of_it, &later).replaced.is_empty(), "a folder of the earlier version");
    }

    #[test]
    fn a_condition_is_compared_where_both_have_it_and_a_key_of_the_definition_always() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let earlier = of(&[("seed", "1"), ("system NATS", "process, nats"), ("system EMQX", "container")]);
        let words = |now: &[(&str, &str)]| other_condition(&earlier, &of(now));
        assert_eq!(words(&[("seed", "1"), ("system NATS", "process, nats"), ("system Redis", "process")]), None);
        let other = words(&[("seed", "1"), ("system NATS", "process, mqtt311")]);
        assert_eq!(other.as_deref(), Some("with NATS as process, nats"));
        let other = words(&[("seed", "1"), ("pin", "2")]);
        assert_eq!(other.as_deref(), Some("with another `pin` in the definition"));
        assert!(other_condition(&BTreeMap::new(), &earlier).is_some() && words(&[]).is_some());
        assert_eq!(other_condition(&BTreeMap::new(), &BTreeMap::new()), None, "two older records");
    }

    #[test]
    fn the_commands_of_all_calls_whose_results_are_left_stay() {
        let [first, second] = workloads();
        let with_command = |mut record: PaperRecord, command: &str| {
            record.command = vec![command.to_owned()];
            record
        };
        let earlier = with_command(record(&[&first], "2026-03-01T00:00:00Z"), "one");
        let now = with_command(record(&[&second], "2026-03-02T00:00:00Z"), "two");
        let both = merged(&now, &earlier).record;
        assert_eq!((&both.earlier_commands[..], &both.command[..]), (&[vec!["one".to_owned()]][..], &now.command[..]));
        assert_eq!(merged(&now, &both).record, both, "the same call again");
        let again = merged(&with_command(now.clone(), "one"), &both).record;
        assert_eq!(again.earlier_commands, [["two".to_owned()]]);
        let mut other = earlier;
        other.experiments[0].runs.as_mut().unwrap().warmup_s = 7.0;
        assert!(merged(&now, &other).record.earlier_commands.is_empty(), "nothing of it is left");
    }

    #[test]
    fn a_reason_why_nothing_was_run_does_not_outlast_a_run_of_the_system() {
        let [first, second] = workloads();
        let now = record(&[&second], "2026-03-02T00:00:00Z");
        let measured = |table: &TableResult, cell: &TableCell| {
            let system = system_of(table, cell);
            table.cells.iter().any(|own| own.measured.is_some() && system_of(table, own) == system)
        };
        let mut earlier = without_values(record(&[&first], "2026-03-01T00:00:00Z"), FailureKind::NotInstalled.words());
        earlier
            .tables
            .iter_mut()
            .flat_map(|table| &mut table.cells)
            .for_each(|cell| cell.detail = Some("why".to_owned()));
        let both = merged(&now, &earlier).record;
        let mut seen = [0, 0];
        for (table, own) in both.tables.iter().zip(&now.tables) {
            for cell in table.cells.iter().filter(|cell| cell.row[0] == first) {
                let was_run = measured(own, cell);
                let expected = if was_run { (NOT_RUN, None) } else { ("not installed", Some("why")) };
                assert_eq!((cell.reason.as_deref().unwrap(), cell.detail.as_deref()), expected, "{cell:?}");
                seen[usize::from(was_run)] += 1;
            }
        }
        assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    }

    #[test]
    fn the_reason_of_one_judgement_is_not_given_for_the_cases_of_another() {
        let case = |label: &str, outcome: Outcome| Case {
            label: label.to_owned(),
            larger: String::new(),
            smaller: String::new(),
            outcome,
            ratio: None,
        };
        let result = |reason: Option<&str>, cases: &[Case]| StatementResult {
            conclusion: String::new(),
            source: String::new(),
            figure: String::new(),
            each: vec![],
            reason: reason.map(str::to_owned),
            cases: cases.to_vec(),
        };
        let undecided = case("a", Outcome::Undecided);
        let before = result(Some("several machines"), std::slice::from_ref(&undecided));
        let mut own = result(None, &[case("b", Outcome::Holds)]);
        add_cases(&mut own, vec![undecided.clone()], &before);
        assert_eq!((own.cases.len(), own.reason), (1, None));
        let mut own = result(None, &[case("a", Outcome::NotMeasured), case("b", Outcome::NotMeasured)]);
        add_cases(&mut own, vec![undecided], &before);
        assert_eq!((own.cases.len(), own.reason.as_deref()), (2, Some("several machines")));
    }
}
