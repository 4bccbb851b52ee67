//! The record of a search for the highest load that a system carries within given limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{LatencyBounds, Summary};
use crate::record::{Environment, Status, SystemInfo, VerdictStatus};
use crate::verdict::rules::{self, Blame};

/// Version of this schema. It changes only when a field changes its meaning or is removed.
pub const CAPACITY_SCHEMA_VERSION: u32 = 2;
/// Name of the file in the folder of a search.
pub const CAPACITY_FILE: &str = "capacity.json";

/// A search for capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityRecord {
    /// [`CAPACITY_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of pubmark that wrote it.
    pub pubmark_version: String,
    /// Name of the folder.
    pub name: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Duration of the search, seconds.
    pub took_s: f64,
    /// Whether the search was completed.
    pub status: Status,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the schedules.
    pub seed: u64,
    /// What the search varied: `rate` or `scale`.
    pub knob: Knob,
    /// The limits, as written: `p99<50ms,loss=0`.
    pub objectives: String,
    /// The system under test.
    pub system: SystemInfo,
    /// Protocol of the clients.
    pub protocol: String,
    /// Result of the search.
    #[serde(alias = "answer")]
    pub result: CapacityResult,
    /// All trials, in order of execution.
    pub trials: Vec<Trial>,
    /// What a reader should know before quoting the result, one sentence each.
    pub cautions: Vec<String>,
    /// The machine that the search was executed on.
    pub environment: Environment,
}

impl CapacityRecord {
    /// The last trial that held at the result's load; `None` without a result. A trial at a higher load that held by chance is
    /// never the one.
    pub fn trial_at_the_result(&self) -> Option<&Trial> {
        self.result.holds_per_s?;
        let is_there = |trial: &&Trial| match self.result.holds_factor {
            Some(factor) => trial.factor == factor,
            None => Some(trial.offered_per_s) == self.result.holds_per_s,
        };
        self.trials.iter().filter(|trial| trial.outcome == TrialOutcome::Held).rfind(is_there)
    }

    /// The trial that set the limit of the search ([`limiting_trial`]); `None` if every load held.
    pub fn limiting_trial(&self) -> Option<&Trial> {
        let fails_per_s = self.result.fails_per_s?;
        let factor = self.trials.iter().find(|trial| trial.offered_per_s == fails_per_s)?.factor;
        limiting_trial(&self.trials, factor, self.result.limit)
    }
}

/// The last trial of a load that did not hold, of those that set the limit: the generator's or the system's.
pub fn limiting_trial(trials: &[Trial], factor: f64, limit: CapacityLimit) -> Option<&Trial> {
    let is_generators = limit == CapacityLimit::Generator;
    let is_meant = |trial: &&Trial| (trial.outcome == TrialOutcome::GeneratorLimited) == is_generators;
    trials.iter().rev().filter(|trial| trial.factor == factor && trial.reason.is_some()).find(is_meant)
}

/// What a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Knob {
    /// Messages per second, with the same number of devices.
    Rate,
    /// Number of devices, with the same rate for each.
    Scale,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityResult {
    /// Highest load that held, messages offered per second; `null` if none held.
    pub holds_per_s: Option<f64>,
    /// Factor of the knob at that load.
    pub holds_factor: Option<f64>,
    /// Number of devices at that load.
    pub holds_devices: Option<u64>,
    /// Lowest load that did not hold, messages offered per second; `null` if all held.
    pub fails_per_s: Option<f64>,
    /// What limited the search.
    pub limit: CapacityLimit,
    /// One sentence: the result, and what prevented a higher load.
    pub text: String,
}

/// What limited a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityLimit {
    /// The system: at higher loads it misses the objectives.
    System,
    /// The generator, the machine, or what else made the runs at higher loads invalid (the code of their trials says which), or an
    /// objective that they did not measure (`not_measured` of their trials): they do not show whether the system could, so it carries
    /// at least this load.
    Generator,
    /// The upper end of the search (`--most`, or the workload's), at which the system still held.
    Range,
    /// Not even the smallest load held.
    NothingHeld,
    /// The time for the search ran out.
    Time,
}

/// One load that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Factor of the knob: 1 is the workload as written.
    pub factor: f64,
    /// Messages offered per second.
    pub offered_per_s: f64,
    /// Number of devices.
    pub devices: u64,
    /// Length of the measured window, seconds.
    pub duration_s: f64,
    /// Attempt at this load, from 1: a miss is repeated to confirm it.
    pub attempt: u32,
    /// Outcome of the trial.
    pub outcome: TrialOutcome,
    /// Why it did not hold, in one sentence.
    pub reason: Option<String>,
    /// Code of the verdict's rule because of which it did not hold, such as `V01`; absent for another cause, and in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Objective, as written, that the trial did not measure, because of which it shows nothing; absent for another cause, and in
    /// records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    /// The load is too large for the machine: no run was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_too_large: bool,
    /// Messages delivered per second of the window.
    pub delivered_per_s: Option<f64>,
    /// Share of the wanted deliveries that did not arrive: 1 less the share `delivered` by which runs are compared.
    pub loss: Option<f64>,
    /// Latency of the trial.
    pub latency: TrialLatency,
    /// Growth of latency over the window, µs per second (Theil–Sen over its bins); it shows a growing queue.
    pub latency_growth_us_per_s: Option<f64>,
    /// Cores used by the system.
    pub system_cores: Option<f64>,
    /// Cores used by pubmark.
    pub generator_cores: Option<f64>,
    /// Largest resident set of the system, bytes.
    pub system_rss_bytes: Option<u64>,
    /// Verdict of its run; `null` without a record.
    pub verdict: Option<VerdictStatus>,
    /// Folder of its run, relative to the folder of the search, if it was saved.
    pub folder: Option<String>,
}

impl Trial {
    /// What prevented a generator-limited trial from showing whether the system could. [`Blame::Run`] if it did not measure an
    /// objective, or if the record does not tell: the trial lost a node and has no verdict, or an older version wrote no code.
    pub fn blame(&self) -> Blame {
        match (self.verdict, &self.code) {
            _ if self.not_measured.is_some() => Blame::Run,
            _ if self.is_too_large => Blame::Machine,
            // The run is suspect because the system was held up, which leaves the objective open.
            (Some(VerdictStatus::Suspect | VerdictStatus::Invalid), Some(code)) => rules::blame(code),
            // The run counts, and the objective lies between both bounds of its latency: pubmark's own delays are between them.
            (Some(VerdictStatus::Valid | VerdictStatus::Suspect), _) => Blame::Generator,
            (Some(VerdictStatus::Invalid), None) | (None, _) => Blame::Run,
        }
    }
}

/// Bounds of the latency of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialLatency {
    /// As measured, including the delays that pubmark caused.
    pub upper: TrialQuantiles,
    /// The same without pubmark's delays; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<TrialQuantiles>,
}

impl TrialLatency {
    /// The quantiles of both bounds of a latency.
    pub fn of(bounds: &LatencyBounds) -> TrialLatency {
        let quantiles =
            |summary: &Summary| TrialQuantiles { p50_us: summary.p50, p99_us: summary.p99, max_us: Some(summary.max) };
        TrialLatency { upper: quantiles(&bounds.upper), lower: bounds.lower.as_ref().map(quantiles) }
    }

    /// Both bounds of a quantile, the lower one first; `None` for a bound that was not measured.
    pub fn bounds(&self, quantile: fn(&TrialQuantiles) -> Option<f64>) -> [Option<f64>; 2] {
        [self.lower.as_ref().and_then(quantile), quantile(&self.upper)]
    }
}

/// Quantiles of the latency of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialQuantiles {
    /// Median, µs.
    pub p50_us: Option<f64>,
    /// 99th percentile, µs.
    pub p99_us: Option<f64>,
    /// Largest, µs.
    pub max_us: Option<f64>,
}

/// Outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// All objectives were met.
    Held,
    /// An objective was missed.
    Missed,
    /// The generator could not keep up, the run was invalid for a reason that is not the system's, or an objective was not measured:
    /// the trial does not show whether the system could.
    GeneratorLimited,
    /// The system failed: it ended, refused clients, or did not start.
    Failed,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample_experiment::{capacity, generator_limited};

    #[test]
    fn the_figures_of_a_result_are_not_those_of_a_higher_load_that_held_by_chance() {
        let mut record = capacity();
        let at_result = record.trial_at_the_result().unwrap();
        assert_eq!((at_result.factor, at_result.outcome), (11.5, TrialOutcome::Held));
        let lucky = Trial { factor: 12.0, offered_per_s: 12_000.0, attempt: 3, ..at_result.clone() };
        record.trials.push(lucky);
        assert_eq!(record.trial_at_the_result().unwrap().factor, 11.5);
        let lower = record.trials.iter().find(|trial| trial.factor < 11.5 && trial.outcome == TrialOutcome::Held);
        let lower = lower.unwrap().clone();
        (record.result.holds_factor, record.result.holds_per_s) = (Some(lower.factor), Some(lower.offered_per_s));
        assert_eq!(record.trial_at_the_result().unwrap().factor, lower.factor, "higher ones held, too");
        record.result.holds_factor = None;
        assert_eq!(record.trial_at_the_result().unwrap().factor, lower.factor, "the load is enough");
        record.result.holds_per_s = None;
        assert_eq!(record.trial_at_the_result(), None);
    }

    #[test]
    fn the_limit_is_set_by_the_last_trial_of_the_load_that_did_not_hold() {
        let mut record = capacity();
        let limiting = record.limiting_trial().unwrap();
        assert_eq!((limiting.factor, limiting.attempt, limiting.outcome), (12.0, 2, TrialOutcome::Missed));
        record.result.limit = CapacityLimit::Generator;
        assert_eq!(record.limiting_trial(), None, "no trial was generator-limited");
        record.trials.iter_mut().find(|trial| trial.factor == 12.0).unwrap().outcome = TrialOutcome::GeneratorLimited;
        assert_eq!(record.limiting_trial().unwrap().attempt, 1);
        record.result.fails_per_s = None;
        assert_eq!(record.limiting_trial(), None);
    }

    #[test]
    fn a_trial_blames_by_its_code_and_never_by_its_text() {
        let mut trial = generator_limited().limiting_trial().unwrap().clone();
        let mut blame = |verdict: Option<VerdictStatus>, code: Option<&str>| {
            (trial.verdict, trial.code) = (verdict, code.map(str::to_owned));
            trial.blame()
        };
        let invalid = Some(VerdictStatus::Invalid);
        assert_eq!(blame(invalid, Some("V01")), Blame::Generator);
        assert_eq!(blame(invalid, Some("V28")), Blame::Machine);
        assert_eq!(blame(invalid, Some("V24")), Blame::Run);
        assert_eq!(blame(invalid, None), Blame::Run, "the reason begins with V01, and is text");
        assert_eq!(blame(None, None), Blame::Run, "it lost a node");
        assert_eq!(blame(Some(VerdictStatus::Suspect), None), Blame::Generator, "the objective was undecided");
        assert_eq!(blame(Some(VerdictStatus::Suspect), Some("V28")), Blame::Machine, "the system was held up");
        trial.not_measured = Some("backpressure_p99<1ms".to_owned());
        trial.verdict = Some(VerdictStatus::Valid);
        assert_eq!(trial.blame(), Blame::Run, "nobody was late");
    }

    #[test]
    fn a_trial_of_an_older_version_has_no_code() {
        let mut json = serde_json::to_value(generator_limited()).unwrap();
        let trial = &mut json["trials"][3];
        assert_eq!(trial["code"], "V01");
        trial.as_object_mut().unwrap().remove("code");
        let record: CapacityRecord = serde_json::from_value(json).unwrap();
        assert_eq!(record.trials[3].code, None);
        assert!(!serde_json::to_string(&record.trials[0]).unwrap().contains("code"), "absent where there is none");
    }
}
