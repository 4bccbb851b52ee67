//! Settings of a run, and what differs from what was asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Cut from the front, seconds.
    pub warmup_s: f64,
    /// Measured window, seconds.
    pub duration_s: f64,
    /// Longest drain, seconds.
    pub drain_limit_s: f64,
    /// Drain as it was, seconds.
    pub drain_s: f64,
    /// Publisher shards.
    pub publisher_shards: u32,
    /// Subscriber shards.
    pub subscriber_shards: u32,
    /// SCHED_FIFO asked for and obtained.
    pub realtime: bool,
    /// How exactly devices sent at their due times (`--pace`): `exact`, `auto` or a time. What came of it for each thread:
    /// `cost.threads[].quantum_us`.
    #[serde(default = "exact")]
    pub pace: String,
    /// CPU idle states of the machine were disabled (`--awake`).
    #[serde(default)]
    pub cpu_idle_disabled: bool,
    /// TLS.
    pub tls: bool,
    /// Congestion control that our sockets were given; `null` where they had the machine's ([`crate::environment::Environment`]).
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// Clients had a certificate of their own to show.
    #[serde(default)]
    pub client_certificate: bool,
    /// Addresses of ours that connections came from in turn; 0 for the kernel's choice.
    #[serde(default)]
    pub source_addresses: u32,
    /// Due = ready, no latency verdict.
    pub flood: bool,
    /// First instant of the measured window, ns of `CLOCK_MONOTONIC` of the machine that ran it; 0 if it never began.
    pub window_start_ns: u64,
    /// First instant after it.
    pub window_end_ns: u64,
    /// Connects started per second at most.
    pub connects_per_s: f64,
    /// Everything that differs from what was asked or from a default, by name.
    pub deviations: Vec<Deviation>,
}

/// Of records from before there was another.
fn exact() -> String {
    "exact".to_owned()
}

/// A difference from what was asked or from a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deviation {
    /// Short stable name.
    pub name: String,
    /// One sentence.
    pub detail: String,
}
