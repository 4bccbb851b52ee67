//! A conclusion of a publication, judged case by case with the intervals of our measurements.

use pubmark_model::experiment::{PlannedCell, cells};

use crate::collect::Part;
use crate::definition::{Side, Statement};
use crate::guidelines::machines::{Machine, is_of_one};
use crate::record::{Case, MeanFigure, Outcome, StatementResult};
use crate::table::{failed, measured};

/// Judges a statement. An experiment that is not among the parts counts as not measured.
pub(crate) fn judge(statement: &Statement, parts: &[Part]) -> StatementResult {
    let larger = side(&statement.larger, statement, parts);
    let smaller = side(&statement.smaller, statement, parts);
    let reason = several_machines(statement, parts);
    let cases = larger.iter().filter_map(|(key, high)| {
        let (_, low) = smaller.iter().find(|(other, _)| other == key)?;
        let (outcome, ratio) = match (compare(high.measured.as_ref(), low.measured.as_ref()), &reason) {
            ((Outcome::NotMeasured, _), _) => (Outcome::NotMeasured, None),
            (_, Some(_)) => (Outcome::Undecided, None),
            (compared, None) => compared,
        };
        Some(Case { label: key.join(", "), larger: high.label.clone(), smaller: low.label.clone(), outcome, ratio })
    });
    let cases = cases.collect();
    StatementResult {
        conclusion: statement.conclusion.clone(),
        source: statement.source.clone(),
        figure: statement.figure.clone(),
        each: statement.each.clone(),
        reason,
        cases,
    }
}

/// Why the two sides cannot be compared: their runs are of several machines. `None` if they are of one, or were not made.
fn several_machines(statement: &Statement, parts: &[Part]) -> Option<String> {
    let of = |side: &Side| parts.iter().find(|part| part.experiment.name == side.experiment)?.record.as_ref().ok();
    let sides = [&statement.larger, &statement.smaller];
    let [Some(larger), Some(smaller)] = sides.map(of) else { return None };
    if let Some((side, _)) = sides.into_iter().zip([larger, smaller]).find(|(_, record)| !is_of_one(&record.cautions)) {
        return Some(format!("runs of `{}` are of several machines", side.experiment));
    }
    let [one, other] = [larger, smaller].map(|record| Machine::of(&record.environment));
    (one != other).then(|| {
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

/// A cell on one side of a statement.
struct Compared {
    label: String,
    measured: Option<MeanFigure>,
}

/// The cells of a side, by the values that distinguish the cases.
fn side(side: &Side, statement: &Statement, parts: &[Part]) -> Vec<(Vec<String>, Compared)> {
    let Some(part) = parts.iter().find(|part| part.experiment.name == side.experiment) else { return vec![] };
    let is_meant = |cell: &PlannedCell| side.at.iter().all(|(axis, value)| cell.values.get(axis) == Some(value));
    let place = |cell: PlannedCell| {
        let key = statement.each.iter().map(|axis| cell.values.get(axis).cloned()).collect::<Option<Vec<_>>>()?;
        // The repetitions that a system completed do not represent those in which it failed.
        let whole = part.cell(&cell.id).ok().filter(|cell| failed(cell).is_none());
        let found = whole.and_then(|cell| measured(cell, &statement.figure));
        Some((key, Compared { label: cell.label, measured: found.filter(|found| !found.shown_only) }))
    };
    cells(&part.experiment).into_iter().filter(is_meant).filter_map(place).collect()
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
    use pubmark_model::experiment::parse;
    use pubmark_record::experiment::{CellFailure, FailureKind};
    use pubmark_record::sample_experiment;

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
        assert_eq!(judge(&statement, std::slice::from_ref(&part)).cases[0].outcome, Outcome::Holds);
        let of_each = Statement { each: vec!["workload".to_owned()], ..statement.clone() };
        assert_eq!(judge(&of_each, std::slice::from_ref(&part)).each, ["workload"]);
        let text = "`betamq` ended during the run: signal: 11".to_owned();
        record.cells[1].failures = vec![CellFailure { repetition: 6, kind: FailureKind::Ended, text, folder: None }];
        part.record = Ok(record);
        assert_eq!(judge(&statement, &[part]).cases[0].outcome, Outcome::NotMeasured);
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
        let mut parts = [part("one"), part("other")];
        let judged = judge(&statement, &parts);
        assert_eq!((judged.cases[0].outcome, judged.reason), (Outcome::Holds, None));
        parts[1].record.as_mut().expect("a record").environment.kernel = "7.1".to_owned();
        let judged = judge(&statement, &parts);
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
        let judged = judge(&statement, &parts);
        assert_eq!(judged.cases[0].outcome, Outcome::Undecided);
        assert_eq!(judged.reason.as_deref(), Some("runs of `one` are of several machines"));
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
