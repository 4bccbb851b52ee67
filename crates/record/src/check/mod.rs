//! Checks a run or an experiment against limits and a baseline: [`Subject`] is what is judged, [`judge`] judges it.

mod changes;
mod judging;
mod subject;
mod survivors;

use crate::objectives::Undecided;

pub use judging::{Demands, NotComparable, judge};
pub use subject::{CellFacts, Subject};

/// Kind of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The figures of the run can be trusted.
    Verdict,
    /// All repetitions were executed and have figures.
    Repetitions,
    /// A limit that must hold.
    Required,
    /// A condition on a value that must not be true.
    FailOn,
    /// A condition on a change from the baseline that must not be true.
    Regression,
}

impl Kind {
    /// Name in JSON and JUnit.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Verdict => "verdict",
            Kind::Repetitions => "repetitions",
            Kind::Required => "require",
            Kind::FailOn => "fail-on",
            Kind::Regression => "regression",
        }
    }
}

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The check passed.
    Passed,
    /// The check passed with a remark.
    Warned,
    /// The limit holds at one bound of the figure and not at the other, or the change from the baseline is one at the
    /// upper bounds and may be none at the others, or its outcome favours the side on which fewer messages arrived.
    Undecided,
    /// The check failed.
    Failed,
    /// The figure was not measured, so the check failed.
    NotMeasured,
}

impl Outcome {
    /// Name in JSON and JUnit.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Warned => "warned",
            Outcome::Undecided => "undecided",
            Outcome::Failed => "failed",
            Outcome::NotMeasured => "not-measured",
        }
    }

    /// Whether the check failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::NotMeasured)
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Label of the cell; empty for a single run.
    pub cell: String,
    /// What was checked: a limit as written, or a few words.
    pub name: String,
    /// Kind of the check.
    pub kind: Kind,
    /// Outcome of the check.
    pub outcome: Outcome,
    /// Lower bound of the deciding figure, in the figure's unit; the value itself where it is known exactly.
    pub lower: Option<f64>,
    /// Upper bound of the figure; for a change, the mean of what was measured.
    pub value: Option<f64>,
    /// Mean of the baseline, for a change.
    pub baseline: Option<f64>,
    /// Change from the baseline as a share of it.
    pub change: Option<f64>,
    /// p value after correction of the test that decided, where repetitions allow one.
    pub p: Option<f64>,
    /// Shares that arrived of the messages, or of the requests, whose times are compared, in the baseline and here, where they make
    /// a change undecided.
    pub survivors: Option<[f64; 2]>,
    /// One sentence with the figures.
    pub detail: String,
}

impl Row {
    /// A row without a figure.
    pub fn plain(cell: &str, name: &str, kind: Kind, outcome: Outcome, detail: String) -> Row {
        Row {
            cell: cell.to_owned(),
            name: name.to_owned(),
            kind,
            outcome,
            lower: None,
            value: None,
            baseline: None,
            change: None,
            p: None,
            survivors: None,
            detail,
        }
    }
}

/// All checks of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Name of the subject.
    pub subject: String,
    /// Name of the baseline.
    pub baseline: Option<String>,
    /// The checks, in order.
    pub rows: Vec<Row>,
    /// What else a reader should know, one sentence each.
    pub notes: Vec<String>,
}

/// Kinds in order of precedence: if figures cannot be trusted, limits and changes are meaningless.
const ORDER: [Kind; 5] = [Kind::Verdict, Kind::Repetitions, Kind::Required, Kind::FailOn, Kind::Regression];

impl Checked {
    /// The failed kind with the highest precedence; `None` if nothing failed.
    pub fn worst(&self) -> Option<Kind> {
        let has = |kind: &Kind| self.rows.iter().any(|row| row.outcome.is_failure() && row.kind == *kind);
        ORDER.into_iter().find(has)
    }

    /// Counts undecided checks as `choice` specifies.
    pub fn decide(&mut self, choice: Undecided) {
        for row in self.rows.iter_mut().filter(|row| row.outcome == Outcome::Undecided) {
            row.outcome = match choice {
                Undecided::Pass => Outcome::Warned,
                Undecided::Fail => Outcome::Failed,
            };
        }
    }

    /// Whether a check is undecided.
    pub fn is_undecided(&self) -> bool {
        self.rows.iter().any(|row| row.outcome == Outcome::Undecided)
    }

    /// Number of failed checks.
    pub fn failed(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome.is_failure()).count()
    }
}
