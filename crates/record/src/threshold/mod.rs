//! Limits on figures, as users write them: `p99<50ms,loss=0`.
//!
//! [`Objectives`] must be true (`--require`, `--slo`). [`Conditions`] must not be true (`--fail-on`), and may refer to
//! the change from a baseline: `p99>+10%`. Both are lists of [`Clause`]s; the metrics that can be limited are in one
//! table, [`metrics::METRICS`].

pub mod limited;
pub mod metrics;
mod parse;
#[cfg(test)]
mod tests;

pub use parse::ThresholdError;

use crate::figures::{Better, Figure, Unit};
use crate::record::Record;
pub use limited::{Limited, beside, shares_apart};
use parse::Origin;

/// How a figure is compared with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`.
    Below,
    /// `<=`, `≤`.
    AtMost,
    /// `=`, `==`.
    Equal,
    /// `>=`, `≥`.
    AtLeast,
    /// `>`.
    Above,
}

impl Operator {
    /// Whether the comparison of a value with a limit is true. Numbers that differ only by rounding (10⁻¹² of the
    /// limit) are equal.
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

/// Right-hand side of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A value in the unit of the figure.
    Value(f64),
    /// A change from the baseline, as a share of the baseline's value: 0.1 is 10 % more.
    Change(f64),
}

/// One limit.
#[derive(Clone, Debug)]
pub struct Clause {
    /// Text of the limit, as written.
    pub text: String,
    /// The metric.
    pub metric: Limited,
    /// The operator.
    pub operator: Operator,
    /// The value or change that the metric is compared with.
    pub bound: Bound,
}

/// What would decide a figure of a system that was held up.
pub(crate) const GIVE_CPU_TIME: &str =
    "run where the system and pubmark get the CPU time that they need (see the verdict)";

/// Both bounds of a figure, the lower one first; two equal values where the figure is known exactly.
pub type Interval = [f64; 2];

/// A figure prepared for comparison with limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// Bounds of the figure.
    pub interval: Interval,
    /// A percentile of too few samples; the bounds come from neighbouring percentiles.
    pub few_samples: bool,
    /// A time, a share that depends on times, the rate of a flood, or a loss, in a run whose verdict reports that the system was
    /// prevented from running, that the load differed from the schedule, or that pubmark read late: the system alone could have been
    /// faster, or lost less.
    pub held_up: bool,
    /// Computed from a message log that lacks rows, so the value for all messages may be different.
    pub partial: bool,
    /// The verdict of its run excludes it ([`crate::verdict::usable`]): it is no base for comparisons with other runs.
    pub excluded: bool,
}

impl MeasuredFigure {
    /// A value that is known exactly.
    pub fn exactly(value: f64) -> MeasuredFigure {
        MeasuredFigure::within([value, value])
    }

    /// A value that lies between these bounds.
    pub fn within(interval: Interval) -> MeasuredFigure {
        MeasuredFigure { interval, few_samples: false, held_up: false, partial: false, excluded: false }
    }

    /// Bounds of what the system alone may have reached in a figure: a time as short as 0, or a share of requests as large as 1, where
    /// it was held up. What it may have delivered or lost at best is in the interval: what it refused is not excused.
    pub fn reach(&self, figure: &Figure<'_>) -> Interval {
        let [lower, upper] = self.interval;
        let is_open = self.held_up && (figure.is_of_times() || figure.is_custom());
        match (is_open, figure.better) {
            (false, _) => [lower, upper],
            (true, Better::Higher) => [lower, upper.max(1.0)],
            (true, Better::Lower | Better::Neither) => [lower.min(0.0), upper],
        }
    }

    /// What would make the interval narrower.
    pub fn remedy(&self) -> &'static str {
        if self.partial {
            "run again with a whole message log: this one lacks rows (see the warnings)"
        } else if self.held_up {
            GIVE_CPU_TIME
        } else if self.few_samples {
            "run longer (`--duration`): the percentile rests on too few messages"
        } else {
            "make pubmark more punctual (`--realtime`, `--shards`, free cores), or set another limit"
        }
    }
}

/// Result of a clause for one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClauseOutcome {
    /// True at both bounds of the figure.
    True,
    /// False at both bounds of the figure.
    False,
    /// True at one bound and false at the other.
    Undecided,
    /// The figure was not measured.
    NotMeasured,
}

impl Clause {
    /// Whether the clause is true for a figure. For a change, use [`Clause::is_change`].
    pub fn judge(&self, figure: Option<MeasuredFigure>) -> ClauseOutcome {
        let (Bound::Value(limit), Some(figure)) = (self.bound, figure) else { return ClauseOutcome::NotMeasured };
        if figure.partial {
            return ClauseOutcome::Undecided;
        }
        let judged = self.metric.figure();
        let [lower, upper] = match (figure.held_up, judged.unit) {
            // A share ends at 1, and the rate that the system alone would reach has no end.
            (true, Unit::PerSecond) => [figure.interval[0], f64::INFINITY],
            _ => figure.reach(&judged),
        };
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

    /// The bounds of a figure with their unit, in as many digits as show how it is judged.
    pub fn shown(&self, figure: &MeasuredFigure) -> String {
        match self.bound {
            Bound::Value(limit) => self.metric.interval_beside(figure.interval, limit),
            Bound::Change(_) => self.metric.interval(figure.interval),
        }
    }

    /// Whether the clause is true for the change from `baseline` to a value.
    pub fn is_change(&self, baseline: f64, value: f64) -> bool {
        matches!(self.bound, Bound::Change(limit) if self.operator.is_true(change(baseline, value), limit))
    }
}

/// Change from `baseline` to `value` as a share of the baseline; infinite if only the baseline is 0.
pub fn change(baseline: f64, value: f64) -> f64 {
    if value == baseline { 0.0 } else { (value - baseline) / baseline.abs() }
}

/// A clause with its result for one record.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The clause.
    pub clause: &'a Clause,
    /// The figure; `None` where it was not measured.
    pub figure: Option<MeasuredFigure>,
    /// Result of the clause.
    pub outcome: ClauseOutcome,
}

impl Judged<'_> {
    /// The problem in one sentence: `p99 is 61.2 ms, missing p99<50ms`, `p99 was not measured`; `None` where the clause
    /// is true.
    pub fn complaint(&self) -> Option<String> {
        let (name, limit) = (self.clause.metric.name(), &self.clause.text);
        let text = |figure: MeasuredFigure| self.clause.shown(&figure);
        match (self.outcome, self.figure) {
            (ClauseOutcome::True, _) => None,
            (ClauseOutcome::False, Some(figure)) => Some(format!("{name} is {}, missing {limit}", text(figure))),
            (ClauseOutcome::Undecided, Some(figure)) => {
                Some(format!("{name} is {}: {limit} is undecided", text(figure)))
            }
            _ => Some(format!("{name} was not measured")),
        }
    }

    /// Why the limit is missed although its figure was not measured: the system is the reason that a time is missing, so it is longer
    /// than the limit. `None` for another outcome or cause. If the system was prevented from running, it alone may have delivered.
    pub fn missed_because(&self, record: &Record) -> Option<&'static str> {
        let is_largest = matches!(self.clause.operator, Operator::Below | Operator::AtMost | Operator::Equal);
        let Bound::Value(limit_us) = self.clause.bound else { return None };
        if self.outcome != ClauseOutcome::NotMeasured || !is_largest || metrics::is_held_up(record) {
            return None;
        }
        let (longer_than_us, why) = self.clause.metric.exceeded(record)?;
        (limit_us <= longer_than_us).then_some(why)
    }
}

/// Limits that must be true: `p99<50ms,loss=0`. At least one.
#[derive(Clone, Debug)]
pub struct Objectives {
    clauses: Vec<Clause>,
}

impl Objectives {
    /// Parses a list of limits, separated by commas. A change from a baseline is refused, because an objective has no
    /// baseline.
    pub fn parse(text: &str) -> Result<Objectives, ThresholdError> {
        parse::list(text, Origin::Objectives).map(|clauses| Objectives { clauses })
    }

    /// Parses the limits of a record, which an older version may have made: a share of `1` is everything, and a size
    /// without a unit is in bytes.
    pub(crate) fn recorded(text: &str) -> Result<Objectives, ThresholdError> {
        parse::list(text, Origin::Record).map(|clauses| Objectives { clauses })
    }

    /// The limits, in the order written.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The shortest limit on a time, µs, which determines the precision that a run needs.
    pub fn shortest_time_us(&self) -> Option<f64> {
        let limit_us = |clause: &Clause| match clause.bound {
            Bound::Value(limit) if clause.metric.unit() == Unit::Microseconds => Some(limit),
            _ => None,
        };
        self.clauses.iter().filter_map(limit_us).reduce(f64::min)
    }

    /// Checks a record against all limits. A limit whose figure was not measured is not kept.
    pub fn judge(&self, record: &Record) -> Vec<Judged<'_>> {
        self.clauses
            .iter()
            .map(|clause| {
                let figure = clause.metric.measured(record);
                Judged { clause, figure, outcome: clause.judge(figure) }
            })
            .collect()
    }

    /// Whether every limit is met.
    pub fn hold(&self, record: &Record) -> bool {
        self.judge(record).iter().all(|judged| judged.outcome == ClauseOutcome::True)
    }
}

/// Conditions that must not be true: `p99>+10%,loss>0.1%`. At least one.
#[derive(Clone, Debug)]
pub struct Conditions {
    clauses: Vec<Clause>,
}

impl Conditions {
    /// Parses a list of conditions, separated by commas. A bound with a sign (`+10%`, `-5%`) is a change from the
    /// baseline.
    pub fn parse(text: &str) -> Result<Conditions, ThresholdError> {
        parse::list(text, Origin::Conditions).map(|clauses| Conditions { clauses })
    }

    /// The conditions, in the order written.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Whether a condition needs a baseline.
    pub fn need_baseline(&self) -> bool {
        self.clauses.iter().any(|clause| matches!(clause.bound, Bound::Change(_)))
    }
}
