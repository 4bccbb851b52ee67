//! Limits on figures, as people write them: `p99<50ms,loss=0`.
//!
//! [`Objectives`] must hold (`--require`, `--slo`). [`Conditions`] must not (`--fail-on`), and may be about the change from a
//! baseline: `p99>+10%`. Both are lists of [`Clause`]s; what can be limited stands in one table, [`metrics::METRICS`].

pub mod limited;
pub mod metrics;
mod parse;
#[cfg(test)]
mod tests;

pub use parse::ThresholdError;

use crate::figures::Unit;
use crate::record::Record;
pub use limited::Limited;

/// How a figure is held against a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Below,
    /// `<=`, `≤`
    AtMost,
    /// `=`, `==`
    Equal,
    /// `>=`, `≥`
    AtLeast,
    /// `>`
    Above,
}

impl Operator {
    /// Is it true of a value and a limit? Numbers that differ by rounding alone (10⁻¹² of the limit) are equal.
    pub fn is_true(self, value: f64, limit: f64) -> bool {
        let is_equal = (value - limit).abs() <= 1e-12 * limit.abs().max(1e-3);
        match self {
            Operator::Below => value < limit && !is_equal,
            Operator::AtMost => value <= limit || is_equal,
            Operator::Equal => is_equal,
            Operator::AtLeast => value >= limit || is_equal,
            Operator::Above => value > limit && !is_equal,
        }
    }
}

/// What a figure is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A value in the figure's own unit.
    Value(f64),
    /// A change from the baseline, as a share of the baseline's value: 0.1 is 10 % more.
    Change(f64),
}

/// One limit.
#[derive(Clone, Debug)]
pub struct Clause {
    /// As it was written.
    pub text: String,
    /// What is limited.
    pub metric: Limited,
    /// How.
    pub operator: Operator,
    /// By what.
    pub bound: Bound,
}

/// Both bounds of a figure, the lower one first; the same twice where it is known exactly.
pub type Interval = [f64; 2];

/// A figure as limits are held against it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// Where it lies.
    pub interval: Interval,
    /// It is a percentile of too few samples, known by those around it.
    pub few_samples: bool,
    /// It is a time of a run whose verdict says that the system was kept from running, or that the load was not what was scheduled:
    /// the system alone could have been faster.
    pub held_up: bool,
    /// It was computed from a message log that lacks rows: of all messages it may be anything.
    pub partial: bool,
}

impl MeasuredFigure {
    /// Of a value that is known exactly.
    pub fn exactly(value: f64) -> MeasuredFigure {
        MeasuredFigure::within([value, value])
    }

    /// Of a value that lies between these bounds.
    pub fn within(interval: Interval) -> MeasuredFigure {
        MeasuredFigure { interval, few_samples: false, held_up: false, partial: false }
    }

    /// What would make its interval narrower.
    pub fn remedy(&self) -> &'static str {
        if self.partial {
            "run again with a whole message log: this one lacks rows (see the warnings)"
        } else if self.held_up {
            "run where the system has the CPU it wants: others held it up (see the verdict)"
        } else if self.few_samples {
            "run longer (`--duration`): the percentile rests on too few messages"
        } else {
            "make pubmark more punctual (`--realtime`, `--shards`, free cores), or set another limit"
        }
    }
}

/// What a clause came to on one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClauseOutcome {
    /// It is true, wherever in its interval the figure lies.
    True,
    /// It is not, wherever it lies.
    False,
    /// It is true of one bound and not of the other.
    Undecided,
    /// The figure was not measured.
    NotMeasured,
}

impl Clause {
    /// Is it true of a figure? A change is not: see [`Clause::is_change`].
    pub fn answer(&self, figure: Option<MeasuredFigure>) -> ClauseOutcome {
        let (Bound::Value(limit), Some(figure)) = (self.bound, figure) else { return ClauseOutcome::NotMeasured };
        if figure.partial {
            return ClauseOutcome::Undecided;
        }
        let [lower, upper] = figure.interval;
        let lower = if figure.held_up { 0.0 } else { lower };
        let is_between = lower <= limit && limit <= upper;
        match [lower, upper].map(|value| self.operator.is_true(value, limit)) {
            [true, true] => ClauseOutcome::True,
            [false, false] if self.operator == Operator::Equal && is_between && lower < upper => {
                ClauseOutcome::Undecided
            }
            [false, false] => ClauseOutcome::False,
            _ => ClauseOutcome::Undecided,
        }
    }

    /// Is it true of the change from `baseline` to a value?
    pub fn is_change(&self, baseline: f64, value: f64) -> bool {
        matches!(self.bound, Bound::Change(limit) if self.operator.is_true(change(baseline, value), limit))
    }
}

/// Change from `baseline` to `value` as a share of the baseline; infinite from 0 to anything else.
pub fn change(baseline: f64, value: f64) -> f64 {
    if value == baseline { 0.0 } else { (value - baseline) / baseline.abs() }
}

/// A clause with what it came to on one record.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The clause.
    pub clause: &'a Clause,
    /// The figure; `None` where it was not measured.
    pub figure: Option<MeasuredFigure>,
    /// Is the clause true?
    pub answer: ClauseOutcome,
}

impl Judged<'_> {
    /// What is wrong, in one sentence: `p99 is 61.2 ms, missing p99<50ms`, `p99 was not measured`; `None` where the clause is
    /// true.
    pub fn complaint(&self) -> Option<String> {
        let (name, limit) = (self.clause.metric.name(), &self.clause.text);
        let text = |figure: MeasuredFigure| self.clause.metric.interval(figure.interval);
        match (self.answer, self.figure) {
            (ClauseOutcome::True, _) => None,
            (ClauseOutcome::False, Some(figure)) => Some(format!("{name} is {}, missing {limit}", text(figure))),
            (ClauseOutcome::Undecided, Some(figure)) => {
                Some(format!("{name} is {}: {limit} is undecided", text(figure)))
            }
            _ => Some(format!("{name} was not measured")),
        }
    }
}

/// Limits that must hold: `p99<50ms,loss=0`. At least one.
#[derive(Clone, Debug)]
pub struct Objectives {
    clauses: Vec<Clause>,
}

impl Objectives {
    /// Reads a list of limits, separated by commas. A change from a baseline is refused: it is no limit by itself.
    pub fn parse(text: &str) -> Result<Objectives, ThresholdError> {
        parse::list(text, false).map(|clauses| Objectives { clauses })
    }

    /// The limits, in the order written.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The smallest limit of a time, µs: how exact a run has to be.
    pub fn shortest_time_us(&self) -> Option<f64> {
        let limit_us = |clause: &Clause| match clause.bound {
            Bound::Value(limit) if clause.metric.unit() == Unit::Microseconds => Some(limit),
            _ => None,
        };
        self.clauses.iter().filter_map(limit_us).reduce(f64::min)
    }

    /// Holds a record against every limit. One whose figure was not measured is not kept.
    pub fn judge(&self, record: &Record) -> Vec<Judged<'_>> {
        self.clauses
            .iter()
            .map(|clause| {
                let figure = clause.metric.measured(record);
                Judged { clause, figure, answer: clause.answer(figure) }
            })
            .collect()
    }

    /// Are all limits kept?
    pub fn hold(&self, record: &Record) -> bool {
        self.judge(record).iter().all(|judged| judged.answer == ClauseOutcome::True)
    }
}

/// Conditions that must not come true: `p99>+10%,loss>0.1%`. At least one.
#[derive(Clone, Debug)]
pub struct Conditions {
    clauses: Vec<Clause>,
}

impl Conditions {
    /// Reads a list of conditions, separated by commas. A bound with a sign (`+10%`, `-5%`) is a change from the baseline.
    pub fn parse(text: &str) -> Result<Conditions, ThresholdError> {
        parse::list(text, true).map(|clauses| Conditions { clauses })
    }

    /// The conditions, in the order written.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Does one of them need a baseline?
    pub fn need_baseline(&self) -> bool {
        self.clauses.iter().any(|clause| matches!(clause.bound, Bound::Change(_)))
    }
}
