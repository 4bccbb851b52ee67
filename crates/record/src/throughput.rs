//! Rates over the measured window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rates over the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Messages offered per second.
    pub offered_per_s: f64,
    /// Messages sent per second of the window, those that the system refused afterwards included; only messages written
    /// within the window count.
    pub sent_per_s: f64,
    /// Messages delivered per second of the window; only arrivals within the window count.
    pub delivered_per_s: f64,
    /// Payload bytes delivered per second of the window.
    pub payload_bytes_per_s: f64,
    /// Deliveries in each full second; `null` if the window is shorter than one second.
    pub windows_1s: Option<Windows>,
}

/// Deliveries per full second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Windows {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}
