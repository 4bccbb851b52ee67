//! Merges the results of an earlier record into a new one, cell by cell where their runs can stand beside each other.

mod cells;
mod conclusions;

use std::collections::{BTreeMap, BTreeSet};

use pubmark_record::record::{Environment, Status};
use pubmark_report::numbers::{counted, seconds};

use crate::collect::{BETWEEN_WAYS, OF_SYSTEM, Part};
use crate::definition::Paper;
use crate::guidelines::machines::{Machine, is_of_one};
use crate::record::{ExperimentPart, PaperRecord, RunsSummary, TableCell};
use cells::{add_cells, is_without_runs};
use conclusions::add_statements;

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
/// results replace the earlier ones. A case of a conclusion that compares an earlier result stays as judged before, unless one of its
/// sides was run again in another folder; where one got further runs in its own, the case says so.
pub(crate) fn with_earlier(mut record: PaperRecord, parts: &[Part], paper: &Paper, earlier: &PaperRecord) -> Merged {
    let names = paper.experiments().into_iter().chain(earlier.experiments.iter().map(|part| part.name.as_str()));
    let found: BTreeMap<&str, Since> = names.map(|name| (name, since(&record, earlier, name))).collect();
    let is = |name: &str, wanted: &Since| found.get(name) == Some(wanted);
    let is_gone = |name: &str| is(name, &Since::Gone);
    for table in &mut record.tables {
        let before = earlier.tables.iter().find(|one| one.title == table.title && one.experiment == table.experiment);
        let Some(before) = before.filter(|before| is(&before.experiment, &Since::Beside)) else { continue };
        let now = runs_of(&record.experiments, &table.experiment);
        let first = runs_of(&earlier.experiments, &table.experiment);
        add_cells(table, before, |cell: &TableCell| {
            let start = cell.started_at.as_ref().or(first.map(|runs| &runs.started_at))?;
            now.is_none_or(|now| now.started_at != *start).then(|| start.clone())
        });
    }
    let is_retained = |part: &&ExperimentPart| {
        let Some(runs) = &part.runs else { return false };
        let is_current = runs_of(&record.experiments, &part.name).is_some_and(|now| now.started_at == runs.started_at);
        let stands = is_gone(&part.name) || (is(&part.name, &Since::Beside) && has_cells(&record, earlier, part, runs));
        stands && !is_current
    };
    let retained = |part: &ExperimentPart| {
        let runs = part.runs.clone().map(|runs| retained_runs(runs, earlier, is(&part.name, &Since::Beside)));
        ExperimentPart { folder: None, runs, ..part.clone() }
    };
    let retained: Vec<ExperimentPart> = earlier.experiments.iter().filter(is_retained).map(retained).collect();
    record.earlier_commands = earlier_commands(&record, earlier, &retained);
    let resumed: Vec<&str> = found
        .iter()
        .filter(|(name, since)| **since == Since::AsBefore && has_further_runs(&record, earlier, name))
        .map(|(name, _)| *name)
        .collect();
    add_statements(&mut record.statements, parts, paper, earlier, &found, &resumed);
    record.tables.retain(|table| !is_gone(&table.experiment));
    record.tables.extend(earlier.tables.iter().filter(|table| is_gone(&table.experiment)).cloned());
    if lacks_runs(&record, &retained) {
        record.status = Status::Interrupted;
    }
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
    if is_beside {
        // The table has the reasons of the cells that are still without runs.
        runs.refused.clear();
    }
    if is_beside && !runs.cautions.iter().any(|caution| caution == BESIDE) {
        runs.cautions.push(BESIDE.to_owned());
    }
    runs
}

/// The command lines of earlier calls, unless none of their results is left.
fn earlier_commands(record: &PaperRecord, earlier: &PaperRecord, retained: &[ExperimentPart]) -> Vec<Vec<String>> {
    let start = |part: &ExperimentPart| part.runs.as_ref().map(|runs| (part.name.clone(), runs.started_at.clone()));
    let left: Vec<_> = record.experiments.iter().chain(retained).filter_map(start).collect();
    if !earlier.experiments.iter().filter_map(start).any(|start| left.contains(&start)) {
        return vec![];
    }
    let commands = earlier.earlier_commands.iter().chain([&earlier.command]);
    commands.filter(|command| **command != record.command).cloned().collect()
}

/// The first runs of an experiment in a record: those in its folder, if there are others beside them.
fn runs_of<'a>(experiments: &'a [ExperimentPart], name: &str) -> Option<&'a RunsSummary> {
    experiments.iter().filter(|part| part.name == name).find_map(|part| part.runs.as_ref())
}

/// Whether a cell of a record is still of these earlier runs. An older record does not say of which of several runs a cell is.
fn has_cells(record: &PaperRecord, earlier: &PaperRecord, part: &ExperimentPart, runs: &RunsSummary) -> bool {
    let starts = |record: &PaperRecord| -> Vec<String> {
        let tables = record.tables.iter().filter(|table| table.experiment == part.name);
        tables.flat_map(|table| &table.cells).filter_map(|cell| cell.started_at.clone()).collect()
    };
    let (now, before) = (starts(record), starts(earlier));
    let is_first = runs_of(&earlier.experiments, &part.name) == Some(runs);
    now.contains(&runs.started_at) || (!is_first && !before.contains(&runs.started_at) && !now.is_empty())
}

/// Whether an experiment got further runs in its folder since an earlier record.
fn has_further_runs(record: &PaperRecord, earlier: &PaperRecord, name: &str) -> bool {
    let [now, before] = [record, earlier].map(|record| runs_of(&record.experiments, name));
    now.zip(before).is_some_and(|(now, before)| now.took_s > before.took_s)
}

/// Whether planned runs of a cell are missing, whichever call planned them. An older record does not say it of cells: there, all runs of
/// an experiment were made, or some are missing.
fn lacks_runs(record: &PaperRecord, retained: &[ExperimentPart]) -> bool {
    let cells = |name: &str| -> Vec<&TableCell> {
        let tables = record.tables.iter().filter(|table| table.experiment == name);
        tables.flat_map(|table| &table.cells).collect()
    };
    let is_known = |name: &str| {
        let cells = cells(name);
        !cells.is_empty() && cells.iter().all(|cell| cell.complete.is_some())
    };
    let is_interrupted = |part: &ExperimentPart| {
        part.runs.as_ref().is_some_and(|runs| runs.status != Status::Complete) && !is_known(&part.name)
    };
    let mut all = record.tables.iter().flat_map(|table| &table.cells);
    all.any(|cell| cell.complete == Some(false)) || retained.iter().any(is_interrupted)
}

fn since(record: &PaperRecord, earlier: &PaperRecord, name: &str) -> Since {
    let before = earlier.experiments.iter().filter(|part| part.name == name).filter_map(|part| part.runs.as_ref());
    let before: Vec<&RunsSummary> = before.collect();
    let Some(now) = runs_of(&record.experiments, name) else {
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
    if earlier.nodes != now.nodes {
        let joined = earlier.nodes.as_ref().map(|nodes| format!("with {}", nodes.in_words()));
        return Some(joined.unwrap_or_else(|| "on one machine".to_owned()));
    }
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
            (Some(was), Some(is), Some(label)) => (!is_part(was, is)).then(|| format!("with {label} as {was}")),
            (_, _, Some(_)) => None,
            (_, _, None) => Some(format!("with another `{name}` in the definition")),
        }
    })
}

/// Whether all ways in which a system was run in some runs are among those of others: fewer cells may need fewer of them.
fn is_part(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|ways| ways.split(BETWEEN_WAYS).collect::<BTreeSet<_>>());
    one.is_subset(&other) || other.is_subset(&one)
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

    use pubmark_experiment::experiment::definition;
    use pubmark_record::experiment::FailureKind;
    use pubmark_record::nodes::JoinedMachines;
    use pubmark_record::store;

    use super::cells::{NOTHING_MADE, system_of};
    use super::*;
    use crate::collect::NOT_RUN;
    use crate::record::{Case, MeanFigure, Outcome, StatementResult, TableResult};

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

    /// The tables without the starts of the runs of their cells.
    fn unnamed(mut tables: Vec<TableResult>) -> Vec<TableResult> {
        tables.iter_mut().flat_map(|table| &mut table.cells).for_each(|cell| cell.started_at = None);
        tables
    }

    /// Starts of the runs that a record describes.
    fn starts(record: &PaperRecord) -> Vec<&str> {
        record.experiments.iter().map(|part| part.runs.as_ref().unwrap().started_at.as_str()).collect()
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
        assert_eq!(unnamed(both.record.tables.clone()), whole.tables, "in the order of the experiment");
        let folders: Vec<_> = both.record.experiments.iter().map(|part| part.folder.is_some()).collect();
        assert_eq!(folders, [true, false], "the runs of each are described");
        let cautions = |part: usize| both.record.experiments[part].runs.as_ref().unwrap().cautions.clone();
        assert_eq!((cautions(0), cautions(1)), (vec![], vec![BESIDE.to_owned()]));
        assert_eq!(merged(&now, &both.record).record, both.record, "the same call again changes nothing");
        let again = record(&[&first], "2026-03-03T00:00:00Z");
        assert_eq!(merged(&again, &earlier).record, again, "all earlier cells were run again");
    }

    #[test]
    fn runs_are_described_as_long_as_a_cell_is_of_them() {
        let [first, second] = workloads();
        let days = ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"];
        let of_two = merged(&record(&[&second], days[1]), &record(&[&first], days[0])).record;
        assert_eq!(starts(&of_two), [days[1], days[0]]);
        let first_again = merged(&record(&[&first], days[2]), &of_two).record;
        assert_eq!(starts(&first_again), [days[2], days[1]]);
        let second_again = merged(&record(&[&second], days[2]), &of_two).record;
        assert_eq!(starts(&second_again), [days[2], days[0]]);
        let both_again = record(&[&first, &second], days[2]);
        assert_eq!(merged(&both_again, &of_two).record, both_again);
        let older = PaperRecord { tables: unnamed(of_two.tables.clone()), ..of_two };
        let found = merged(&record(&[&first], days[2]), &older).record;
        assert_eq!(starts(&found), [days[2], days[1], days[0]], "an older record does not say of which runs a cell is");
    }

    #[test]
    fn a_record_is_complete_when_what_interrupted_runs_lacked_was_run_again() {
        let [first, second] = workloads();
        let complete = |mut record: PaperRecord, is_complete: &dyn Fn(&TableCell) -> Option<bool>| {
            let cells = record.tables.iter_mut().flat_map(|table| &mut table.cells);
            cells.for_each(|cell| cell.complete = is_complete(cell));
            record
        };
        let mut earlier = record(&[&first, &second], "2026-03-01T00:00:00Z");
        earlier.experiments[0].runs.as_mut().unwrap().status = Status::Interrupted;
        let older = complete(earlier.clone(), &|_| None);
        let earlier = complete(earlier, &|cell| Some(cell.row[0] == first));
        let now = complete(record(&[&second], "2026-03-02T00:00:00Z"), &|_| Some(true));
        let found = merged(&now, &earlier).record;
        assert_eq!((starts(&found).len(), found.status), (2, Status::Complete));
        assert_eq!(merged(&now, &found).record, found, "the same call again");
        assert_eq!(merged(&now, &older).record.status, Status::Interrupted, "it does not say what was missing");
        let first_again = complete(record(&[&first], "2026-03-02T00:00:00Z"), &|_| Some(true));
        assert_eq!(merged(&first_again, &earlier).record.status, Status::Interrupted);
        let nothing = PaperRecord { experiments: vec![], tables: vec![], ..now.clone() };
        let gone = merged(&nothing, &earlier).record;
        assert_eq!(gone.status, Status::Interrupted, "its folder was removed");
        assert_eq!(merged(&now, &gone).record.status, Status::Complete);
    }

    #[test]
    fn a_case_says_that_one_side_got_further_runs_after_the_other_was_removed() {
        let [first, second] = workloads();
        let paper = crate::definition::find("psmark").unwrap();
        let is_of_two = |one: &&crate::definition::Statement| one.larger.experiment != one.smaller.experiment;
        let statement = paper.statements.iter().find(is_of_two).unwrap();
        let sides = [&statement.larger, &statement.smaller].map(|side| side.experiment.as_str());
        assert!(sides.contains(&NAME), "{sides:?}");
        let removed = sides.into_iter().find(|side| *side != NAME).unwrap();
        let now = record(&[&first], "2026-03-01T00:00:00Z");
        let mut earlier = now.clone();
        let mut other = earlier.experiments[0].clone();
        other.name = removed.to_owned();
        earlier.experiments.push(other);
        let case = Case {
            label: String::new(),
            larger: "a".to_owned(),
            smaller: "b".to_owned(),
            outcome: Outcome::Holds,
            ratio: None,
            judged_before: None,
        };
        earlier.statements.push(StatementResult {
            conclusion: statement.conclusion.clone(),
            source: statement.source.clone(),
            figure: statement.figure.clone(),
            each: vec![],
            reason: None,
            cases: vec![case],
        });
        let condition = |record: &PaperRecord| record.statements[0].cases[0].judged_before.clone();
        assert_eq!(condition(&merged(&now, &earlier).record), None);
        let beside = merged(&record(&[&second], "2026-03-02T00:00:00Z"), &earlier).record;
        assert_eq!(beside.statements, earlier.statements, "none of its cells was run again in another folder");
        let side = [&statement.larger, &statement.smaller].into_iter().find(|side| side.experiment == NAME).unwrap();
        let experiment = definition::load(NAME).unwrap().experiment;
        let planned = pubmark_model::experiment::cells(&experiment);
        let cell = planned.iter().find(|cell| crate::statement::is_meant(side, cell)).unwrap();
        let key: Vec<&str> = statement.each.iter().map(|axis| cell.values[axis].as_str()).collect();
        let mut of_cell = earlier.clone();
        of_cell.statements[0].cases[0].label = key.join(", ");
        let mut made = pubmark_record::sample_experiment::experiment();
        made.cells[0].id.clone_from(&cell.id);
        let part = Part { experiment, folder: None, record: Ok(made), left_out: false };
        let again = with_earlier(record(&[&second], "2026-03-02T00:00:00Z"), &[part], &paper, &of_cell).record;
        assert!(again.statements.is_empty(), "a side was run again, and the other is no longer here");
        let mut further = now;
        further.experiments[0].runs.as_mut().unwrap().took_s += 60.0;
        let found = merged(&further, &earlier).record;
        assert_eq!(condition(&found).as_deref(), Some(NAME));
        assert_eq!(condition(&merged(&further, &found).record).as_deref(), Some(NAME), "the same call again");
        let page = crate::markdown(&found);
        assert!(page.contains("| holds; judged before further runs of `psmark-low` |"), "{page}");
        let page = crate::html(&found);
        assert!(page.contains("holds; judged before further runs of <code>psmark-low</code>"), "{page}");
    }

    #[test]
    fn runs_that_were_made_in_another_way_are_replaced_and_named() {
        let [first, second] = workloads();
        let now = record(&[&second], "2026-03-02T00:00:00Z");
        type Change = fn(&mut PaperRecord, &mut RunsSummary);
        let changes: [(Change, &str); 8] = [
            (|_, runs| runs.nodes = JoinedMachines::new(Some(2), None), "with 2 nodes"),
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
            assert_eq!(measured(&merged(&now, &earlier).record), measured(&earlier), "{kind:?}");
        }
        let failed = without_values(record(&[&first], "2026-03-02T00:00:00Z"), FailureKind::OutOfMemory.words());
        assert_eq!(merged(&failed, &earlier).record.tables, failed.tables, "a failure of the system is a result");
    }

    /// Cells and their values.
    fn measured(record: &PaperRecord) -> Vec<(&[String], &[String], Option<&MeanFigure>)> {
        let cells = record.tables.iter().flat_map(|table| &table.cells);
        cells.map(|cell| (cell.row.as_slice(), cell.column.as_slice(), cell.measured.as_ref())).collect()
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
        let several = of(&[("seed", "1"), ("system NATS", "container, nats; process, nats")]);
        assert_eq!(other_condition(&earlier, &several), None, "some cells are run in another way, in both alike");
        assert_eq!(other_condition(&several, &earlier), None);
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
        let again = with_command(record(&[&first], "2026-03-03T00:00:00Z"), "three");
        assert!(merged(&again, &earlier).record.earlier_commands.is_empty(), "all its cells were run again");
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
        for cell in earlier.tables.iter_mut().flat_map(|table| &mut table.cells) {
            (cell.detail, cell.complete) = (Some("why".to_owned()), Some(true));
        }
        let both = merged(&now, &earlier).record;
        let mut seen = [0, 0];
        for (table, own) in both.tables.iter().zip(&now.tables) {
            for cell in table.cells.iter().filter(|cell| cell.row[0] == first) {
                let was_run = measured(own, cell);
                let expected = match was_run {
                    true => (NOT_RUN, None, Some(false)),
                    false => ("not installed", Some("why"), Some(true)),
                };
                let found = (cell.reason.as_deref().unwrap(), cell.detail.as_deref(), cell.complete);
                assert_eq!(found, expected, "{cell:?}");
                seen[usize::from(was_run)] += 1;
            }
        }
        assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
        assert_eq!(both.status, Status::Interrupted, "what can be run by now was not");
    }
}
