//! Merges the results of an earlier record into a new one, cell by cell where their runs can stand beside each other.

use std::collections::BTreeMap;

use pubmark_experiment::experiment::definition;
use pubmark_model::experiment::{PlannedCell, cells};
use pubmark_record::experiment::FailureKind;
use pubmark_record::record::Status;
use pubmark_report::numbers::{counted, seconds};

use crate::collect::{LEFT_OUT, NOT_RUN, Part};
use crate::definition::{Paper, Statement};
use crate::guidelines::machines::{Machine, is_of_one};
use crate::record::{Case, ExperimentPart, Outcome, PaperRecord, RunsSummary, StatementResult, TableCell, TableResult};
use crate::statement::is_meant;

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
    /// There are none any more.
    Gone,
    /// They are the same.
    AsBefore,
    /// Others were made in another folder, and both can stand beside each other.
    Beside,
    /// Others were made, and the earlier ones do not stand beside them: what these were of and why, if there were any.
    Other(Option<String>),
}

/// Adds results of an earlier record. Experiments that have no runs in `record`, for instance because their folders were
/// removed, stay as they were. Of an experiment that was run again in another folder, cells that are not there stay, if
/// machine, versions and lengths are equal; otherwise the new results replace the earlier ones. A conclusion that compares an
/// earlier result stays as judged before, unless one of its sides was run again.
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
    let is_kept = |part: &&ExperimentPart| {
        let is_current =
            |runs: &RunsSummary| runs_of(&record, &part.name).is_some_and(|now| now.started_at == runs.started_at);
        let is_shown = is_gone(&part.name) || has_earlier_cells.contains(&part.name.as_str());
        part.runs.as_ref().is_some_and(|runs| is_shown && !is_current(runs))
    };
    let kept = earlier.experiments.iter().filter(is_kept);
    let kept: Vec<ExperimentPart> = kept.map(|part| ExperimentPart { folder: None, ..part.clone() }).collect();
    if kept.iter().filter_map(|part| part.runs.as_ref()).any(|runs| runs.status != Status::Complete) {
        record.status = Status::Interrupted;
    }
    add_statements(&mut record.statements, parts, paper, earlier, &found);
    record.tables.retain(|table| !is_gone(&table.experiment));
    record.tables.extend(earlier.tables.iter().filter(|table| is_gone(&table.experiment)).cloned());
    record.experiments.retain(|part| !is_gone(&part.name));
    record.experiments.extend(kept);
    let replaced = found.iter().filter_map(|(name, since)| match since {
        Since::Other(Some(what)) => Some(((*name).to_owned(), what.clone())),
        _ => None,
    });
    Merged { replaced: replaced.collect(), record: in_order(record, paper) }
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
    let is_of_another = earlier.pubmark_version != record.pubmark_version;
    let replaced = others.iter().find_map(|runs| {
        let version = is_of_another.then(|| format!("with pubmark {}", earlier.pubmark_version));
        let how = version.or_else(|| difference(runs, now))?;
        let date = runs.started_at.split('T').next().unwrap_or_default();
        Some(format!("the runs of {date}, which were made {how}"))
    });
    replaced.map_or(Since::Beside, |what| Since::Other(Some(what)))
}

/// How earlier runs of an experiment were made, if in another way than those of now.
fn difference(earlier: &RunsSummary, now: &RunsSummary) -> Option<String> {
    let of_several = !is_of_one(&earlier.cautions) || !is_of_one(&now.cautions);
    if of_several || !Machine::of(&earlier.environment).is(&Machine::of(&now.environment)) {
        return Some("on another machine".to_owned());
    }
    let lengths = |runs: &RunsSummary| (runs.repetitions, runs.duration_s, runs.warmup_s);
    if lengths(earlier) != lengths(now) {
        let runs = counted(earlier.repetitions.into(), "repetition", "repetitions");
        return Some(format!("with {runs} of {} after {}", seconds(earlier.duration_s), seconds(earlier.warmup_s)));
    }
    let name = |words: &str| words.split(' ').next().unwrap_or_default().to_owned();
    let is_of_another_version =
        |words: &&String| now.systems.iter().any(|own| name(own) == name(words)) && !now.systems.contains(words);
    earlier.systems.iter().find(is_of_another_version).map(|words| format!("with {words}"))
}

/// Adds cells of an earlier table that this one does not have, or has without runs. Returns whether one of them has runs.
fn add_cells(table: &mut TableResult, earlier: &TableResult) -> bool {
    let not_installed = FailureKind::NotInstalled.words();
    let is_without_runs = |cell: &TableCell| {
        let is_reason = |why: &str| [NOT_RUN, LEFT_OUT, not_installed].contains(&why);
        cell.measured.is_none() && cell.reason.as_deref().is_some_and(is_reason)
    };
    let mut has_runs = false;
    for cell in &earlier.cells {
        match table.cells.iter().position(|own| own.row == cell.row && own.column == cell.column) {
            Some(own) if is_without_runs(&table.cells[own]) && !is_without_runs(cell) => {
                table.cells[own] = cell.clone();
            }
            Some(_) => continue,
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

/// Adds cases that a conclusion does not have, or has without figures.
fn add_cases(result: &mut StatementResult, mut cases: Vec<Case>, before: &StatementResult) {
    let is_measured = |own: &Case| own.outcome != Outcome::NotMeasured;
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
        assert_eq!(merged(&now, &both.record).record, both.record, "the same call again changes nothing");
        let again = record(&[&first], "2026-03-03T00:00:00Z");
        assert_eq!(merged(&again, &earlier).record, again, "all earlier cells were run again");
    }

    #[test]
    fn runs_that_were_made_in_another_way_are_replaced_and_named() {
        let [first, second] = workloads();
        let now = record(&[&second], "2026-03-02T00:00:00Z");
        type Change = fn(&mut PaperRecord, &mut RunsSummary);
        let changes: [(Change, &str); 4] = [
            (|_, runs| runs.environment.kernel.push('x'), "on another machine"),
            (|_, runs| runs.warmup_s = 7.0, "after 7 s"),
            (|record, _| record.pubmark_version = "0.0.1".to_owned(), "with pubmark 0.0.1"),
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
        let mut now = record(&[&first], "2026-03-02T00:00:00Z");
        for cell in now.tables.iter_mut().flat_map(|table| &mut table.cells) {
            (cell.measured, cell.reason) = (None, Some(FailureKind::NotInstalled.words().to_owned()));
        }
        assert_eq!(merged(&now, &earlier).record.tables, earlier.tables);
    }
}
