//! Settings of a run, and deviations from what was requested.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Warm-up, which is excluded from the measurement, seconds.
    pub warmup_s: f64,
    /// Measured window, seconds.
    pub duration_s: f64,
    /// Longest drain, seconds.
    pub drain_limit_s: f64,
    /// Actual length of the drain, seconds.
    pub drain_s: f64,
    /// Publisher shards.
    pub publisher_shards: u32,
    /// Subscriber shards.
    pub subscriber_shards: u32,
    /// SCHED_FIFO was requested and obtained.
    pub realtime: bool,
    /// How exactly devices sent at their due times (`--pace`): `exact`, `auto` or a time. The resulting value for each
    /// thread is `cost.threads[].quantum_us`.
    #[serde(default = "exact")]
    pub pace: String,
    /// CPU idle states of the machine were prevented (`--awake`): they were disabled, or, with the deviation
    /// `idle-loops`, a loop at idle priority ran on each.
    #[serde(default)]
    pub cpu_idle_disabled: bool,
    /// TLS was used.
    pub tls: bool,
    /// Congestion control that was set for our sockets; `null` where they used the machine's default
    /// ([`crate::environment::Environment`]).
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// Clients presented a certificate.
    #[serde(default)]
    pub client_certificate: bool,
    /// Number of local source addresses that connections used in turn; 0 if the kernel chose.
    #[serde(default)]
    pub source_addresses: u32,
    /// Flood mode: messages are due when they are ready, and latency is not judged.
    pub flood: bool,
    /// Start of the measured window, ns of `CLOCK_MONOTONIC` of the machine that executed it; 0 if the window never
    /// began.
    pub window_start_ns: u64,
    /// End of the measured window (exclusive), ns of the same clock.
    pub window_end_ns: u64,
    /// Most connects started per second.
    pub connects_per_s: f64,
    /// Everything that differs from what was requested or from a default, by name.
    pub deviations: Vec<Deviation>,
}

/// Value of records that are older than this setting.
fn exact() -> String {
    "exact".to_owned()
}

/// A difference from what was requested or from a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deviation {
    /// Short stable name.
    pub name: String,
    /// One sentence.
    pub detail: String,
}
