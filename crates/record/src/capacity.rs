//! The record of a search for the highest load that a system carries within limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Environment, Status, SystemInfo, VerdictStatus};

/// Version of this schema: changes only when a field changes its meaning or goes away.
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
    /// Name of its folder.
    pub name: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// Time it took, seconds.
    pub took_s: f64,
    /// Whether the search came to its end.
    pub status: Status,
    /// The workload's name.
    pub workload: String,
    /// Seed of the schedules.
    pub seed: u64,
    /// What was searched over: `rate` or `scale`.
    pub knob: Knob,
    /// The limits, as written: `p99<50ms,loss=0`.
    pub objectives: String,
    /// What was measured.
    pub system: SystemInfo,
    /// Protocol.
    pub protocol: String,
    /// The answer.
    pub answer: Answer,
    /// Every trial, in the order in which they were made.
    pub trials: Vec<Trial>,
    /// What a reader should know before quoting. One sentence each.
    pub cautions: Vec<String>,
    /// The machine.
    pub environment: Environment,
}

/// What the search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Knob {
    /// Messages per second, at the same number of devices.
    Rate,
    /// Number of devices, at the same rate each.
    Scale,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Highest load that held, messages offered per second; `null` if none did.
    pub holds_per_s: Option<f64>,
    /// The knob's factor there.
    pub holds_factor: Option<f64>,
    /// Devices there.
    pub holds_devices: Option<u64>,
    /// Lowest load that did not hold, messages offered per second; `null` if every one did.
    pub fails_per_s: Option<f64>,
    /// What set the limit.
    pub limit: CapacityLimit,
    /// One sentence: the answer, and why not more.
    pub text: String,
}

/// What set the limit of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityLimit {
    /// The system: above, the objectives are missed.
    System,
    /// The generator: above, its figures cannot be believed, so the system carries at least this much.
    Generator,
    /// The search's own end (`--most`, or the workload's), where the system still held.
    Range,
    /// Not even the smallest load held.
    NothingHeld,
    /// The time for the search was over.
    Time,
}

/// One load that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The knob's factor: 1 is the workload as written.
    pub factor: f64,
    /// Messages offered per second.
    pub offered_per_s: f64,
    /// Devices.
    pub devices: u64,
    /// Length of the measured window, seconds.
    pub duration_s: f64,
    /// Which try at this load, from 1: a miss is tried again before it is believed.
    pub attempt: u32,
    /// How it came out.
    pub outcome: TrialOutcome,
    /// Why, in one sentence, where it did not hold.
    pub reason: Option<String>,
    /// Messages delivered per second of the window.
    pub delivered_per_s: Option<f64>,
    /// Share of expected messages that were lost or unknown.
    pub loss: Option<f64>,
    /// Its latency.
    pub latency: TrialLatency,
    /// Growth of latency over the window, µs per second (Theil–Sen over its bins): a queue that grows.
    pub latency_growth_us_per_s: Option<f64>,
    /// Cores used by the system.
    pub system_cores: Option<f64>,
    /// Cores used by pubmark.
    pub generator_cores: Option<f64>,
    /// Largest resident set of the system, bytes.
    pub system_rss_bytes: Option<u64>,
    /// Verdict of its run; `null` where it gave no record.
    pub verdict: Option<VerdictStatus>,
    /// Folder of its run, relative to the search's, where it was kept.
    pub folder: Option<String>,
}

/// Bounds of the latency of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialLatency {
    /// What was measured: our own delays are in it.
    pub upper: TrialQuantiles,
    /// The same without our own delays; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<TrialQuantiles>,
}

impl TrialLatency {
    /// Both bounds of a quantile, the lower one first; `None` for one that was not measured.
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

/// How a trial came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// All objectives were met.
    Held,
    /// An objective was missed.
    Missed,
    /// The generator could not keep up, so nothing is known of the system.
    GeneratorLimited,
    /// The system failed: it ended, refused, or did not start.
    Failed,
}
