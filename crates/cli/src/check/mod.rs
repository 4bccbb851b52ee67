//! Holds a run or an experiment against limits and a baseline: [`subject`] reads what is judged, [`judging`] judges it,
//! [`text`], [`json`] and [`junit`] show the outcome.

pub mod json;
pub mod judging;
pub mod junit;
pub mod subject;
pub mod text;

use crate::exit_code::ExitCode;

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

    /// What the call ends with if such a check fails.
    pub fn exit(self) -> ExitCode {
        match self {
            Kind::Verdict => ExitCode::InvalidRun,
            Kind::Repetitions => ExitCode::SystemFailed,
            Kind::Required | Kind::FailOn => ExitCode::ThresholdMissed,
            Kind::Regression => ExitCode::Regression,
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
    /// The figure that decided, in its own unit.
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

/// Codes by how much they say: figures that cannot be believed make limits and changes meaningless.
const ORDER: [ExitCode; 4] =
    [ExitCode::InvalidRun, ExitCode::SystemFailed, ExitCode::ThresholdMissed, ExitCode::Regression];

impl Checked {
    /// What the call ends with.
    pub fn exit(&self) -> ExitCode {
        let has = |code: &ExitCode| self.rows.iter().any(|row| row.outcome.is_failure() && row.kind.exit() == *code);
        ORDER.into_iter().find(has).unwrap_or(ExitCode::Ok)
    }

    /// Checks that failed.
    pub fn failed(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome.is_failure()).count()
    }
}
