//! A conclusion of a publication, judged case by case with the intervals of our measurements.

use std::path::Path;

use pubmark_model::experiment::{PlannedCell, cells};
use pubmark_record::experiment::ExperimentRecord;
use pubmark_record::record::Record;
use pubmark_record::store;

use crate::collect::Part;
use crate::definition::{Side, Statement};
use crate::guidelines::machines::{Machine, is_of_one};
use crate::record::{Case, MeanFigure, Outcome, StatementResult};
use crate::table::{failed, measured};

/// Judges a statement. An experiment that is not among the parts counts as not measured. Folders of the parts are relative to `base`.
pub(crate) fn judge(statement: &Statement, parts: &[Part], base: &Path) -> StatementResult {
    let larger = side(&statement.larger, statement, parts);
    let smaller = side(&statement.smaller, statement, parts);
    let reason = several_machines(statement, parts, base);
    let cases = larger.iter().filter_map(|(key, high)| {
        let (_, low) = smaller.iter().find(|(other, _)| other == key)?;
        let (outcome, ratio) = match (compare(high.measured.as_ref(), low.measured.as_ref()), &reason) {
            ((Outcome::NotMeasured, _), _) => (Outcome::NotMeasured, None),
            (_, Some(_)) => (Outcome::Undecided, None),
            (compared, None) => compared,
        };
        let (label, larger, smaller) = (key.join(", "), high.label.clone(), low.label.clone());
        Some(Case { label, larger, smaller, outcome, ratio, judged_before: None })
    });
    let cases: Vec<Case> = cases.collect();
    StatementResult {
        conclusion: statement.conclusion.clone(),
        source: statement.source.clone(),
        figure: statement.figure.clone(),
        each: statement.each.clone(),
        reason: reason.filter(|_| cases.iter().any(|case| case.outcome == Outcome::Undecided)),
        cases,
    }
}

/// Why the two sides cannot be compared: the runs of their cells are of several machines. `None` if they are of one, or were not made.
fn several_machines(statement: &Statement, parts: &[Part], base: &Path) -> Option<String> {
    let of = |side: &Side| {
        let part = parts.iter().find(|part| part.experiment.name == side.experiment)?;
        Some((part, part.record.as_ref().ok()?))
    };
    let sides = [&statement.larger, &statement.smaller];
    let [Some(larger), Some(smaller)] = sides.map(of) else { return None };
    let machines = [machine(sides[0], larger, base), machine(sides[1], smaller, base)];
    let [Some(one), Some(other)] = &machines else {
        let several = if machines[0].is_none() { sides[0] } else { sides[1] };
        return Some(format!("runs of `{}` are of several machines", several.experiment));
    };
    (!one.is(other)).then(|| {
        format!(
            "`{}` and `{}` are of different machines: {}, {}; and {}, {}",
            statement.larger.experiment,
            statement.smaller.experiment,
            one.kind,
            one.details(),
            other.kind,
            other.details()
        )
    })
}

/// The machine of the runs of a side's cells; `None` if they are of several, or if their records are gone and the experiment's are.
fn machine(side: &Side, (part, record): (&Part, &ExperimentRecord), base: &Path) -> Option<Machine> {
    if is_of_one(&record.cautions) {
        return Some(Machine::with_nodes(&record.environment, record.nodes.as_ref()));
    }
    let (folder, joined) = (base.join(part.folder.as_ref()?), record.nodes.as_ref());
    let planned = cells(&part.experiment).into_iter().filter(|cell| is_meant(side, cell));
    let runs = planned.filter_map(|cell| part.cell(&cell.id).ok()).flat_map(|cell| &cell.runs);
    let machines: Option<Vec<Machine>> = runs
        .map(|run| {
            let record: Record = store::load(&folder.join(&run.folder)).ok()?;
            // Which machines the nodes were is compared for the whole experiment only.
            record.tables.nodes.is_empty().then(|| Machine::with_nodes(&record.environment, joined))
        })
        .collect();
    let machines = machines?;
    let first = machines.first()?;
    machines.iter().all(|machine| machine.is(first)).then(|| first.clone())
}

/// Whether a cell is of a side.
pub(crate) fn is_meant(side: &Side, cell: &PlannedCell) -> bool {
    side.at.iter().all(|(axis, value)| cell.values.get(axis) == Some(value))
}

/// A cell on one side of a statement.
struct Compared {
    label: String,
    measured: Option<MeanFigure>,
}

/// The cells of a side, by the values that distinguish the cases.
fn side(side: &Side, statement: &Statement, parts: &[Part]) -> Vec<(Vec<String>, Compared)> {
    let Some(part) = parts.iter().find(|part| part.experiment.name == side.experiment) else { return vec![] };
    let place = |cell: PlannedCell| {
        let key = statement.each.iter().map(|axis| cell.values.get(axis).cloned()).collect::<Option<Vec<_>>>()?;
        // The repetitions that a system completed do not represent those in which it failed.
        let whole = part.cell(&cell.id).ok().filter(|cell| failed(cell).is_none());
        let found = whole.and_then(|cell| measured(cell, &statement.figure));
        Some((key, Compared { label: cell.label, measured: found.filter(|found| !found.shown_only) }))
    };
    cells(&part.experiment).into_iter().filter(|cell| is_meant(side, cell)).filter_map(place).collect()
}

/// Decides by the intervals of the means, from bounds and noise: without repetitions on both sides the outcome is undecided.
fn compare(larger: Option<&MeanFigure>, smaller: Option<&MeanFigure>) -> (Outcome, Option<(f64, f64)>) {
    let (Some(larger), Some(smaller)) = (larger, smaller) else { return (Outcome::NotMeasured, None) };
    let outcome = match (larger.interval, smaller.interval) {
        (Some((low, _)), Some((_, other_high))) if low > other_high => Outcome::Holds,
        (Some((_, high)), Some((other_low, _))) if high < other_low => Outcome::DoesNotHold,
        _ => Outcome::Undecided,
    };
    let ((low, high), (other_low, other_high)) = (ends(larger), ends(smaller));
    let ratio = (low > 0.0 && other_low > 0.0).then(|| (low / other_high, high / other_low));
    (outcome, ratio)
}

/// The range of the mean: with noise if there are repetitions, otherwise its bounds only.
pub(crate) fn ends(measured: &MeanFigure) -> (f64, f64) {
    measured.interval.unwrap_or((measured.lower.unwrap_or(measured.mean).min(measured.mean), measured.mean))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pubmark_model::experiment::parse;
    use pubmark_record::experiment::{CellFailure, FailureKind};
    use pubmark_record::{sample, sample_experiment};

    use super::*;
    use crate::words::counts;

    fn measured(lower: f64, mean: f64, interval: Option<(f64, f64)>) -> MeanFigure {
        MeanFigure { mean, lower: Some(lower), interval, runs: 3, shown_only: false }
    }

    #[test]
    fn a_conclusion_does_not_rest_on_the_repetitions_that_a_failing_system_completed() {
        let text = "{name: t, workload: hello, axes: {system: [alphamq, betamq]}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).expect("an experiment");
        let mut record = sample_experiment::experiment();
        for (cell, planned) in record.cells.iter_mut().zip(cells(&experiment)) {
            cell.id = planned.id;
        }
        let side =
            |system: &str| Side { experiment: "t".to_owned(), at: [("system".to_owned(), system.to_owned())].into() };
        let statement = Statement {
            conclusion: "betamq is slower".to_owned(),
            source: "Section 1".to_owned(),
            figure: "latency p50".to_owned(),
            each: vec![],
            larger: side("betamq"),
            smaller: side("alphamq"),
        };
        let mut part = Part { experiment, folder: None, record: Ok(record.clone()), left_out: false };
        assert_eq!(judge(&statement, std::slice::from_ref(&part), Path::new("")).cases[0].outcome, Outcome::Holds);
        let of_each = Statement { each: vec!["workload".to_owned()], ..statement.clone() };
        assert_eq!(judge(&of_each, std::slice::from_ref(&part), Path::new("")).each, ["workload"]);
        let text = "`betamq` ended during the run: signal: 11".to_owned();
        record.cells[1].failures = vec![CellFailure { repetition: 6, kind: FailureKind::Ended, text, folder: None }];
        part.record = Ok(record);
        assert_eq!(judge(&statement, &[part], Path::new("")).cases[0].outcome, Outcome::NotMeasured);
    }

    #[test]
    fn a_conclusion_from_several_machines_is_undecided_with_the_reason() {
        let part = |name: &str| {
            let text = format!("{{name: {name}, workload: hello, axes: {{system: [alphamq, betamq]}}}}");
            let experiment = parse("t.yaml", &text, &|_, _| Ok(())).expect("an experiment");
            let mut record = sample_experiment::experiment();
            for (cell, planned) in record.cells.iter_mut().zip(cells(&experiment)) {
                cell.id = planned.id;
            }
            Part { experiment, folder: None, record: Ok(record), left_out: false }
        };
        let side = |experiment: &str, system: &str| Side {
            experiment: experiment.to_owned(),
            at: [("system".to_owned(), system.to_owned())].into(),
        };
        let statement = Statement {
            conclusion: "betamq is slower".to_owned(),
            source: "Section 1".to_owned(),
            figure: "latency p50".to_owned(),
            each: vec![],
            larger: side("one", "betamq"),
            smaller: side("other", "alphamq"),
        };
        let base = tempfile::tempdir().expect("a folder");
        let mut parts = [part("one"), part("other")];
        let judged = judge(&statement, &parts, base.path());
        assert_eq!((judged.cases[0].outcome, judged.reason), (Outcome::Holds, None));
        parts[1].record.as_mut().expect("a record").environment.kernel = "7.1".to_owned();
        let judged = judge(&statement, &parts, base.path());
        assert_eq!((judged.cases[0].outcome, judged.cases[0].ratio), (Outcome::Undecided, None));
        let why = judged.reason.clone().expect("a reason");
        assert!(
            why.starts_with("`one` and `other` are of different machines: ") && why.contains("kernel 7.1"),
            "{why}"
        );
        assert!(counts(&judged).starts_with("undecided in 1 of 1 case, because `one` and"), "{}", counts(&judged));
        parts[1] = part("other");
        let caution = format!("{}: 2 × a, kernel 1; 2 × a, kernel 2", pubmark_record::evaluation::MACHINE_CHANGED);
        parts[0].record.as_mut().expect("a record").cautions.push(caution);
        let judged = judge(&statement, &parts, base.path());
        assert_eq!(judged.cases[0].outcome, Outcome::Undecided);
        assert_eq!(judged.reason.as_deref(), Some("runs of `one` are of several machines"));
        // Those of the cells that are compared are of one.
        parts[0].folder = Some("one".to_owned());
        let write = |kernel: Option<&str>| {
            let mut run = sample::record();
            if let Some(kernel) = kernel {
                run.environment.kernel = kernel.to_owned();
            }
            store::to_json(&run).expect("a record")
        };
        let slow = parts[0].record.as_ref().expect("a record").cells[1].clone();
        for run in &slow.runs {
            let folder = base.path().join("one").join(&run.folder);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(store::RECORD_FILE), write(None)).expect("a file");
        }
        let judged = judge(&statement, &parts, base.path());
        assert_eq!((judged.cases[0].outcome, judged.reason), (Outcome::Holds, None));
        let last = base.path().join("one").join(&slow.runs[4].folder).join(store::RECORD_FILE);
        fs::write(last, write(Some("7.1"))).expect("a file");
        let judged = judge(&statement, &parts, base.path());
        assert_eq!(judged.reason.as_deref(), Some("runs of `one` are of several machines"));
        // Nothing is undecided that was not measured.
        let text = "`betamq` ended during the run: signal: 11".to_owned();
        let failure = CellFailure { repetition: 6, kind: FailureKind::Ended, text, folder: None };
        parts[0].record.as_mut().expect("a record").cells[1].failures = vec![failure];
        let judged = judge(&statement, &parts, base.path());
        assert_eq!((judged.cases[0].outcome, judged.reason), (Outcome::NotMeasured, None));
    }

    #[test]
    fn a_conclusion_holds_only_where_the_intervals_are_apart() {
        let (fast, slow) = (measured(0.9, 1.0, Some((0.8, 1.0))), measured(1.9, 2.0, Some((1.6, 2.0))));
        assert_eq!(compare(Some(&slow), Some(&fast)), (Outcome::Holds, Some((1.6, 2.5))));
        assert_eq!(compare(Some(&fast), Some(&slow)).0, Outcome::DoesNotHold);
        // The noise of few repetitions is wider than the bounds.
        let noisy = measured(0.9, 1.0, Some((0.5, 2.5)));
        assert_eq!(compare(Some(&slow), Some(&noisy)).0, Outcome::Undecided);
        // One run says nothing about the noise.
        let once = measured(0.9, 1.0, None);
        assert_eq!(compare(Some(&slow), Some(&once)), (Outcome::Undecided, Some((1.6, 2.0 / 0.9))));
        assert_eq!(compare(Some(&slow), None), (Outcome::NotMeasured, None));
        // A ratio with a zero is undefined.
        let none = measured(0.0, 0.0, Some((0.0, 0.0)));
        assert_eq!(compare(Some(&slow), Some(&none)), (Outcome::Holds, None));
    }
}
