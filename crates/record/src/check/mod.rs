//! Holds a run or an experiment against limits and a baseline: [`Subject`] is what is judged, [`judge`] judges it.

mod judging;
mod subject;

use crate::objectives::Undecided;

pub use judging::{Demands, NotComparable, judge};
pub use subject::{CellFacts, Subject};

/// What a check was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The run may be believed.
    Verdict,
    /// Every repetition was made and gave figures.
    Repetitions,
    /// A limit that must hold.
    Required,
    /// A condition on a value that must not come true.
    FailOn,
    /// A condition on a change from the baseline that must not come true.
    Regression,
}

impl Kind {
    /// In JSON and JUnit.
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

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// It passed, and there is something to know about it.
    Warned,
    /// It holds at one bound of the figure and not at the other.
    Undecided,
    /// It failed.
    Failed,
    /// The figure was not measured, so it failed.
    NotMeasured,
}

impl Outcome {
    /// In JSON and JUnit.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Warned => "warned",
            Outcome::Undecided => "undecided",
            Outcome::Failed => "failed",
            Outcome::NotMeasured => "not-measured",
        }
    }

    /// Did it fail?
    pub fn is_failure(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::NotMeasured)
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Label of the cell; empty for a single run.
    pub cell: String,
    /// What was checked: a limit as it was written, or a few words.
    pub name: String,
    /// What it was about.
    pub kind: Kind,
    /// How it came out.
    pub outcome: Outcome,
    /// Lower bound of the figure that decided, in its own unit; the value itself where it is known exactly.
    pub lower: Option<f64>,
    /// Its upper bound.
    pub value: Option<f64>,
    /// Mean of the baseline, for a change.
    pub baseline: Option<f64>,
    /// Change from the baseline as a share of it.
    pub change: Option<f64>,
    /// p value after correction, where repetitions allow a test.
    pub p: Option<f64>,
    /// One sentence with the figures.
    pub detail: String,
}

impl Row {
    /// A row about something else than a figure.
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
            detail,
        }
    }
}

/// Every check of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Name of what was judged.
    pub subject: String,
    /// Name of the baseline.
    pub baseline: Option<String>,
    /// The checks, in order.
    pub rows: Vec<Row>,
    /// What a reader should know besides, one sentence each.
    pub notes: Vec<String>,
}

/// Kinds by how much a failure of theirs says: figures that cannot be believed make limits and changes meaningless.
const ORDER: [Kind; 5] = [Kind::Verdict, Kind::Repetitions, Kind::Required, Kind::FailOn, Kind::Regression];

impl Checked {
    /// The kind of the failure that says most; `None` if nothing failed.
    pub fn worst(&self) -> Option<Kind> {
        let has = |kind: &Kind| self.rows.iter().any(|row| row.outcome.is_failure() && row.kind == *kind);
        ORDER.into_iter().find(has)
    }

    /// Turns what is undecided into what was asked for.
    pub fn decide(&mut self, choice: Undecided) {
        for row in self.rows.iter_mut().filter(|row| row.outcome == Outcome::Undecided) {
            row.outcome = match choice {
                Undecided::Pass => Outcome::Warned,
                Undecided::Fail => Outcome::Failed,
            };
        }
    }

    /// Is a check undecided?
    pub fn is_undecided(&self) -> bool {
        self.rows.iter().any(|row| row.outcome == Outcome::Undecided)
    }

    /// Checks that failed.
    pub fn failed(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome.is_failure()).count()
    }
}
