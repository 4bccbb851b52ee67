//! Judges a subject: verdicts first, then limits, then changes from the baseline.

use crate::experiment::CellFailure;
use crate::record::VerdictStatus;
use crate::statistics::FEWEST_REPETITIONS;
use crate::threshold::{Bound, Clause, ClauseOutcome, Conditions, MeasuredFigure, Objectives, Operator};

use super::changes::{changes, other_settings};
use super::subject::{CellFacts, Subject};
use super::{Checked, Kind, Outcome, Row};

/// Why a subject cannot be compared with a baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// One is a run, the other an experiment with several cells.
    #[error("a run cannot be compared with an experiment of several cells (`{subject}` and `{baseline}`)")]
    Kinds {
        /// Name of the subject.
        subject: String,
        /// Name of the baseline.
        baseline: String,
    },
    /// The schedules differ.
    #[error("the baseline had another schedule ({baseline}, here {subject}): changes would be the load's")]
    Schedules {
        /// Hash of the baseline's schedule.
        baseline: String,
        /// Hash of the subject's schedule.
        subject: String,
    },
    /// Neither has a schedule that is fixed before the run (flood), and their loads differ.
    #[error("the baseline was a flood of another load ({differences}): changes would be the load's")]
    Loads {
        /// In what they differ, with both values.
        differences: String,
    },
}

impl NotComparable {
    /// What to do instead.
    pub fn hint(&self) -> &'static str {
        match self {
            NotComparable::Kinds { .. } => "give an experiment of the same cells, or a run on both sides",
            NotComparable::Schedules { .. } => "run both with the same workload, `--seed` and `--duration`",
            NotComparable::Loads { .. } => "run both with the same workload, settings and `--duration`",
        }
    }
}

/// Requirements for a subject.
#[derive(Default)]
pub struct Demands {
    /// Limits that must hold; if `None`, the limits that the runs were made with.
    pub require: Option<Objectives>,
    /// Conditions that must not be true.
    pub fail_on: Option<Conditions>,
    /// Whether suspect runs fail.
    pub strict: bool,
}

/// Judges a subject; changes are relative to `baseline`.
pub fn judge(subject: &Subject, demands: &Demands, baseline: Option<&Subject>) -> Result<Checked, NotComparable> {
    let mut rows: Vec<Row> = subject.cells.iter().flat_map(|cell| state(cell, demands.strict)).collect();
    if subject.is_interrupted {
        let detail = "it was stopped before its end".to_owned();
        rows.insert(0, Row::plain("", "came to its end", Kind::Verdict, Outcome::Failed, detail));
    }
    rows.extend(subject.cells.iter().flat_map(|cell| required(cell, demands.require.as_ref())));
    let conditions = || demands.fail_on.iter().flat_map(Conditions::clauses);
    for clause in conditions().filter(|clause| matches!(clause.bound, Bound::Value(_))) {
        rows.extend(subject.cells.iter().map(|cell| limit(cell, clause, Kind::FailOn)));
    }
    let mut notes = Vec::new();
    if demands.require.is_none() && !subject.has_own_limits {
        notes.push("limits of its runs are not checked: an older pubmark wrote the record without them".to_owned());
    }
    if let Some(baseline) = baseline {
        let clauses: Vec<&Clause> = conditions().filter(|clause| matches!(clause.bound, Bound::Change(_))).collect();
        rows.extend(changes(subject, baseline, &clauses)?);
        notes.extend(poor_baseline(baseline));
        notes.extend(few_repetitions(subject, baseline));
        notes.extend(other_settings(subject, baseline));
    }
    // Groups the checks by cell; the sort is stable and preserves their order.
    rows.sort_by_key(|row| subject.cells.iter().position(|cell| cell.label == row.cell));
    Ok(Checked { subject: subject.name.clone(), baseline: baseline.map(|other| other.name.clone()), rows, notes })
}

/// Checks a cell against the limits that are given, or else against those that its runs were made with.
fn required(cell: &CellFacts, given: Option<&Objectives>) -> Vec<Row> {
    let own = cell.own_limits.as_ref().filter(|_| given.is_none());
    if let Some(Err(error)) = own {
        let detail = format!("they cannot be read: {error}");
        return vec![Row::plain(&cell.label, "limits of the run", Kind::Required, Outcome::NotMeasured, detail)];
    }
    let limits = given.or(own.and_then(|limits| limits.as_ref().ok()));
    limits.into_iter().flat_map(Objectives::clauses).map(|clause| limit(cell, clause, Kind::Required)).collect()
}

/// Checks the verdicts of a cell's runs, and whether all repetitions were executed.
fn state(cell: &CellFacts, strict: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(worst) = cell.verdicts.iter().map(|(status, _)| *status).max() {
        let outcome = match worst {
            VerdictStatus::Valid => Outcome::Passed,
            VerdictStatus::Suspect if !strict => Outcome::Warned,
            VerdictStatus::Suspect | VerdictStatus::Invalid => Outcome::Failed,
        };
        rows.push(Row::plain(&cell.label, "run is valid", Kind::Verdict, outcome, verdict_text(cell, worst)));
    }
    rows.extend(repetitions(cell));
    rows
}

/// Checks whether all repetitions were executed and count; `None` if nothing is to be said of them. A run that the measurement spoilt
/// does not count and is made again, so it fails the check only where others do not replace it.
fn repetitions(cell: &CellFacts) -> Option<Row> {
    let row = |kind, outcome, detail| Some(Row::plain(&cell.label, "every repetition", kind, outcome, detail));
    let (spoilt, failed): (Vec<_>, Vec<_>) = cell.failures.iter().partition(|failure| failure.kind.may_pass());
    let made = cell.failures.len() + cell.verdicts.len();
    let text = |of: &[&CellFailure], first: &CellFailure, what: &str| {
        format!("{} of {made} {what}: {}: {}", of.len(), first.kind.words(), first.text)
    };
    if let Some(first) = failed.first() {
        return row(Kind::Repetitions, Outcome::Failed, text(&failed, first, "failed"));
    }
    let counted = cell.verdicts.iter().filter(|(status, _)| *status != VerdictStatus::Invalid).count();
    match spoilt.first() {
        Some(first) if counted < cell.repetitions as usize => {
            row(Kind::Verdict, Outcome::Failed, text(&spoilt, first, "spoilt and not replaced"))
        }
        Some(first) => row(Kind::Repetitions, Outcome::Warned, text(&spoilt, first, "spoilt and replaced")),
        None if cell.verdicts.is_empty() => row(Kind::Repetitions, Outcome::Failed, "nothing was run".to_owned()),
        None => None,
    }
}

fn verdict_text(cell: &CellFacts, worst: VerdictStatus) -> String {
    let word = match worst {
        VerdictStatus::Valid => "valid",
        VerdictStatus::Suspect => "suspect",
        VerdictStatus::Invalid => "invalid",
    };
    let found: Vec<&Option<String>> =
        cell.verdicts.iter().filter(|(status, _)| *status == worst).map(|(_, reason)| reason).collect();
    match (found.as_slice(), cell.verdicts.len()) {
        ([Some(reason)], 1) => format!("{word}: {reason}"),
        (_, 1) => word.to_owned(),
        (found, all) => format!("{} of {all} runs {word}", found.len()),
    }
}

/// Checks every run of a cell against a limit on values; the worst run decides.
fn limit(cell: &CellFacts, clause: &Clause, kind: Kind) -> Row {
    let runs = cell.measured(&clause.metric);
    let breaks = if kind == Kind::Required { ClauseOutcome::False } else { ClauseOutcome::True };
    let of = |answer: ClauseOutcome| -> Vec<MeasuredFigure> {
        runs.iter().filter(|run| clause.judge(**run) == answer).flatten().copied().collect()
    };
    let missing = runs.iter().filter(|run| run.is_none()).count();
    let (broken, undecided) = (of(breaks), of(ClauseOutcome::Undecided));
    let row = |outcome, figure: Option<MeasuredFigure>, detail| Row {
        lower: figure.map(|figure| figure.interval[0]),
        value: figure.map(|figure| figure.interval[1]),
        ..Row::plain(&cell.label, &clause.text, kind, outcome, detail)
    };
    let text = |figure: &MeasuredFigure| clause.shown(figure);
    let several = runs.len() - missing > 1;
    if let Some(worst) = decisive(clause, &broken, kind) {
        let among = if several { format!(" (the worst of {} runs)", runs.len() - missing) } else { String::new() };
        return row(Outcome::Failed, Some(worst), format!("{}{among}", text(&worst)));
    }
    let all: Vec<MeasuredFigure> = runs.iter().flatten().copied().collect();
    let Some(worst) = decisive(clause, &all, kind) else {
        return row(Outcome::NotMeasured, None, "not measured".to_owned());
    };
    if missing > 0 {
        let detail = format!("not measured in {missing} of {} runs", runs.len());
        return row(Outcome::NotMeasured, Some(worst), detail);
    }
    if let Some(open) = decisive(clause, &undecided, kind) {
        let among = if several { format!(" in {} of {} runs", undecided.len(), runs.len()) } else { String::new() };
        let detail = format!("{}, undecided{among}; to decide it, {}", text(&open), open.remedy());
        return row(Outcome::Undecided, Some(open), detail);
    }
    let among = if several { " at worst" } else { "" };
    row(Outcome::Passed, Some(worst), format!("{}{among}", text(&worst)))
}

/// The figure that is most likely to violate a requirement, or to make a condition true.
fn decisive(clause: &Clause, figures: &[MeasuredFigure], kind: Kind) -> Option<MeasuredFigure> {
    let Bound::Value(limit) = clause.bound else { return None };
    let is_required = kind == Kind::Required;
    let is_below = matches!(clause.operator, Operator::Below | Operator::AtMost);
    let farthest =
        |figure: &MeasuredFigure| figure.interval.map(|value| (value - limit).abs()).into_iter().fold(0.0, f64::max);
    // Larger means worse.
    let badness = |figure: &MeasuredFigure| match clause.operator {
        Operator::Equal if is_required => farthest(figure),
        Operator::Equal => -farthest(figure),
        _ if is_below == is_required => figure.interval[1],
        _ => -figure.interval[0],
    };
    figures.iter().copied().max_by(|one, other| badness(one).total_cmp(&badness(other)))
}

/// Names the verdicts and the failures of the baseline, which no check judges.
fn poor_baseline(baseline: &Subject) -> Option<String> {
    let verdicts = || baseline.cells.iter().flat_map(|cell| &cell.verdicts).map(|(status, _)| *status);
    let number = |wanted: VerdictStatus| verdicts().filter(|status| *status == wanted).count();
    if baseline.is_interrupted {
        return Some("the baseline was stopped before its end: a change may come from that".to_owned());
    }
    let (invalid, suspect) = (number(VerdictStatus::Invalid), number(VerdictStatus::Suspect));
    let failed: usize = baseline.cells.iter().map(|cell| cell.failures.len()).sum();
    let all = verdicts().count() + failed;
    let parts = [(suspect, "suspect"), (invalid, "invalid"), (failed, "failed")];
    let parts: Vec<String> =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    (!parts.is_empty())
        .then(|| format!("runs of the baseline: {} of {all}; a change may come from that", parts.join(", ")))
}

fn few_repetitions(subject: &Subject, baseline: &Subject) -> Option<String> {
    let fewest = |subject: &Subject| subject.cells.iter().map(|cell| cell.verdicts.len()).min().unwrap_or(0);
    let found = fewest(subject).min(fewest(baseline));
    (found < FEWEST_REPETITIONS).then(|| {
        let what = if found == 1 { "one run".to_owned() } else { format!("{found} runs") };
        format!(
            "{what} on a side cannot tell a change from noise: compare experiments of {FEWEST_REPETITIONS} repetitions \
             or more"
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::check::subject::of_experiment;
    use crate::conclusion::Conclusion;
    use crate::experiment::FailureKind;
    use crate::record::Status;
    use crate::sample_experiment;

    /// Checks an experiment of five planned repetitions: as many runs that count, and these failures.
    fn checked(counted: usize, failures: &[FailureKind]) -> Checked {
        let mut record = sample_experiment::experiment();
        (record.status, record.repetitions) = (Status::Complete, 5);
        record.cells.truncate(1);
        let cell = &mut record.cells[0];
        // Figures have a value of each run, and none of them is checked.
        (cell.objectives, cell.figures, cell.custom) = (None, vec![], vec![]);
        cell.runs.truncate(counted);
        cell.runs.iter_mut().for_each(|run| run.verdict = VerdictStatus::Valid);
        let failure = |kind: &FailureKind| {
            let text = "V01: late".to_owned();
            CellFailure { repetition: 3, kind: *kind, text, folder: None }
        };
        cell.failures = failures.iter().map(failure).collect();
        judge(&of_experiment(record), &Demands::default(), None).unwrap()
    }

    #[test]
    fn a_spoilt_run_fails_only_where_no_other_replaces_it() {
        let (late, invalid, ended) = (FailureKind::GeneratorLimited, FailureKind::Invalid, FailureKind::Ended);
        let found = checked(5, &[late]);
        assert_eq!((found.worst(), found.failed()), (None, 0));
        let row = found.rows.iter().find(|row| row.name == "every repetition").unwrap();
        assert_eq!(row.outcome, Outcome::Warned);
        assert_eq!(row.detail, "1 of 6 spoilt and replaced: generator-limited: V01: late");
        assert_eq!(checked(5, &[late, invalid]).worst(), None);
        for (counted, failures) in [(4, &[late][..]), (4, &[late, invalid]), (0, &[invalid, invalid])] {
            let found = checked(counted, failures);
            assert_eq!(found.worst(), Some(Kind::Verdict), "{counted} {failures:?}");
            assert_eq!(Conclusion::of_checks(&found), Conclusion::Invalid);
        }
        // A failure of the system is a result.
        for failures in [&[ended][..], &[late, ended]] {
            assert_eq!(checked(5, failures).worst(), Some(Kind::Repetitions), "{failures:?}");
        }
        assert_eq!(checked(0, &[]).worst(), Some(Kind::Repetitions), "nothing was run");
        assert!(checked(5, &[]).rows.iter().all(|row| row.name != "every repetition"));
    }
}
