//! Limits that a run was required to keep, and their outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::threshold::{ClauseOutcome, Judged, Objectives};

/// Outcome of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveOutcome {
    /// Kept: the figure keeps the limit at both bounds.
    Passed,
    /// Missed: the figure misses the limit at both bounds.
    Missed,
    /// The limit lies between both bounds of the figure.
    Undecided,
    /// The figure was not measured.
    NotMeasured,
}

impl ObjectiveOutcome {
    /// Word for reports.
    pub fn word(self) -> &'static str {
        match self {
            ObjectiveOutcome::Passed => "passed",
            ObjectiveOutcome::Missed => "missed",
            ObjectiveOutcome::Undecided => "undecided",
            ObjectiveOutcome::NotMeasured => "not measured",
        }
    }

    /// Whether the limit counts as missed. A figure that was not measured does.
    pub fn is_failure(self) -> bool {
        matches!(self, ObjectiveOutcome::Missed | ObjectiveOutcome::NotMeasured)
    }
}

/// How to count a limit that lies between both bounds of its figure, if the user specifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Counts as kept.
    Pass,
    /// Counts as missed.
    Fail,
}

/// A limit and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// The limit as written: `p99<50ms`.
    pub limit: String,
    /// Name of the limited figure: `p99`.
    pub metric: String,
    /// Outcome of the limit.
    pub outcome: ObjectiveOutcome,
    /// Lower bound of the figure, in µs, bytes, cores, a share of 1, or as a number; `null` where it was not measured.
    pub lower: Option<f64>,
    /// Upper bound of the figure; equal to the lower one where the figure is known exactly.
    pub upper: Option<f64>,
    /// Both bounds with their unit, as text.
    pub measured: Option<String>,
    /// What would decide the limit, if it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl From<&Judged<'_>> for Objective {
    fn from(judged: &Judged<'_>) -> Objective {
        let metric = &judged.clause.metric;
        let outcome = match judged.outcome {
            ClauseOutcome::True => ObjectiveOutcome::Passed,
            ClauseOutcome::False => ObjectiveOutcome::Missed,
            ClauseOutcome::Undecided => ObjectiveOutcome::Undecided,
            ClauseOutcome::NotMeasured => ObjectiveOutcome::NotMeasured,
        };
        let figure = judged.figure.filter(|_| outcome == ObjectiveOutcome::Undecided);
        Objective {
            limit: judged.clause.text.clone(),
            metric: metric.name().to_owned(),
            outcome,
            lower: judged.figure.map(|figure| figure.interval[0]),
            upper: judged.figure.map(|figure| figure.interval[1]),
            measured: judged.figure.map(|figure| judged.clause.shown(&figure)),
            remedy: figure.map(|figure| figure.remedy().to_owned()),
        }
    }
}

/// Checks a record against objectives, and stores the outcomes in it.
pub fn assess(record: &mut Record, objectives: &Objectives) {
    record.objectives = objectives.judge(record).iter().map(Objective::from).collect();
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_limit_is_noted_with_what_was_measured() {
        let mut record = sample::record();
        let objectives = Objectives::parse("p50<1s,p50<0.28ms,loss>1%,memory_per_connection<1MB").unwrap();
        assess(&mut record, &objectives);
        let outcomes: Vec<&str> = record.objectives.iter().map(|one| one.outcome.word()).collect();
        assert_eq!(outcomes, ["passed", "undecided", "missed", "not measured"]);
        let undecided = &record.objectives[1];
        assert_eq!(undecided.measured.as_deref(), Some("248–310 µs"));
        assert!(undecided.remedy.as_ref().unwrap().contains("--realtime"));
        assert_eq!(record.objectives[0].remedy, None);
    }

    #[test]
    fn a_metric_of_a_part_of_the_messages_decides_nothing() {
        let mut record = sample::record();
        record.custom = vec![sample::custom("jitter", "ms", [0.5, 1.5])];
        let objectives = Objectives::parse("custom.jitter<2ms,custom.jitter<1us").unwrap();
        let outcomes = |record: &mut Record| {
            assess(record, &objectives);
            record.objectives.iter().map(|one| one.outcome.word()).collect::<Vec<_>>()
        };
        assert_eq!(outcomes(&mut record), ["passed", "missed"]);
        record.custom[0].partial = true;
        assert_eq!(outcomes(&mut record), ["undecided", "undecided"]);
        let remedy = record.objectives[0].remedy.as_ref().unwrap();
        assert!(remedy.contains("whole message log"), "{remedy}");
        // The value does not count as a figure of the run.
        assert_eq!(crate::figures::Figure::custom("jitter", "ms").value(&record), None);
    }
}
