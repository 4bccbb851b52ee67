//! The record of a search for the highest load that a system carries within given limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{LatencyBounds, Summary};
use crate::record::{Environment, Status, SystemInfo, VerdictStatus};

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
    /// The generator: at higher loads its figures cannot be trusted, so the system carries at least this load.
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
    /// The generator could not keep up, so the trial does not show whether the system could.
    GeneratorLimited,
    /// The system failed: it ended, refused clients, or did not start.
    Failed,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample_experiment::capacity;

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
}
