//! Limits that a run was asked to keep, and what became of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::threshold::{ClauseOutcome, Judged, Objectives};

/// What became of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveOutcome {
    /// Kept: the upper bound of the figure keeps it, too.
    Passed,
    /// Not kept: even the lower bound breaks it.
    Missed,
    /// It lies between both bounds.
    Undecided,
    /// The figure was not measured.
    NotMeasured,
}

impl ObjectiveOutcome {
    /// In reports.
    pub fn word(self) -> &'static str {
        match self {
            ObjectiveOutcome::Passed => "passed",
            ObjectiveOutcome::Missed => "missed",
            ObjectiveOutcome::Undecided => "undecided",
            ObjectiveOutcome::NotMeasured => "not measured",
        }
    }

    /// Does it break the promise? What was not measured was not kept.
    pub fn is_failure(self) -> bool {
        matches!(self, ObjectiveOutcome::Missed | ObjectiveOutcome::NotMeasured)
    }
}

/// What a limit counts as that lies between both bounds of its figure, where somebody decides that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Kept.
    Pass,
    /// Missed.
    Fail,
}

/// A limit, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// As it was written: `p99<50ms`.
    pub limit: String,
    /// Name of the figure that is limited: `p99`.
    pub metric: String,
    /// What became of it.
    pub outcome: ObjectiveOutcome,
    /// Lower bound of the figure, in µs, bytes, cores, a share of 1, or as a number; `null` where it was not measured.
    pub lower: Option<f64>,
    /// Its upper bound; the same where it is known exactly.
    pub upper: Option<f64>,
    /// Both with their unit.
    pub measured: Option<String>,
    /// What would decide it, where it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl From<&Judged<'_>> for Objective {
    fn from(judged: &Judged<'_>) -> Objective {
        let metric = &judged.clause.metric;
        let outcome = match judged.answer {
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
            measured: judged.figure.map(|figure| metric.interval(figure.interval)),
            remedy: figure.map(|figure| figure.remedy().to_owned()),
        }
    }
}

/// Holds a record against objectives, and notes in it what became of them.
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
        // Nothing takes it for a figure of the run.
        assert_eq!(crate::figures::Figure::custom("jitter", "ms").value(&record), None);
    }
}
