//! Latencies of a run, and the distributions beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency_breakdown::LatencyBreakdown;

/// Latencies of all messages, and related distributions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyFigures {
    /// Delivery − due.
    pub total: Option<LatencyBounds>,
    /// Delivery − write start.
    pub service: Option<LatencyBounds>,
    /// Messages without a service latency, because their header is too small for a write start.
    pub without_write_start: u64,
    /// Ready − due; caused by pubmark.
    pub scheduler_lag: Option<Summary>,
    /// Written − ready; the system's wait, and pubmark's delay in noticing its end.
    pub backpressure: Option<Summary>,
    /// The same without pubmark's delays; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backpressure_lower: Option<Summary>,
    /// Upper bound of the time between arrival at our socket and our read.
    pub receive_lateness: Option<Summary>,
    /// Our read − the kernel's receive timestamp, where there is one.
    pub kernel_receive_lateness: Option<Summary>,
    /// Latency divided into device, network, system, network and subscriber; `null` if no message crossed a link.
    #[serde(default)]
    pub breakdown: Option<LatencyBreakdown>,
}

/// Bounds of a latency. Each message has its own bounds, so they hold for every quantile
/// (docs/explanation/latency-intervals.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBounds {
    /// As measured, including the delays that pubmark caused.
    pub upper: Summary,
    /// The same without pubmark's delays; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<Summary>,
}

impl LatencyBounds {
    /// Bounds for a latency of which only the upper bound was measured.
    pub fn measured(upper: Summary) -> LatencyBounds {
        LatencyBounds { upper, lower: None }
    }
}

/// The upper bound of a latency that was measured.
pub fn upper(bounds: &Option<LatencyBounds>) -> Option<&Summary> {
    bounds.as_ref().map(|bounds| &bounds.upper)
}

/// The lower bound of a latency, if it was measured.
pub fn lower(bounds: &Option<LatencyBounds>) -> Option<&Summary> {
    bounds.as_ref().and_then(|bounds| bounds.lower.as_ref())
}

/// One figure from both bounds of a latency, the lower bound first.
pub fn both(bounds: &Option<LatencyBounds>, figure: fn(&Summary) -> Option<f64>) -> [Option<f64>; 2] {
    [lower(bounds).and_then(figure), upper(bounds).and_then(figure)]
}

/// A distribution of times. Percentiles are `null` where fewer than 10 samples lie beyond them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of samples.
    pub count: u64,
    /// Mean.
    #[serde(rename = "mean_us")]
    pub mean: f64,
    /// Standard deviation.
    #[serde(rename = "stddev_us")]
    pub stddev: f64,
    /// Smallest.
    #[serde(rename = "min_us")]
    pub min: f64,
    /// 25th percentile.
    #[serde(rename = "p25_us")]
    pub p25: Option<f64>,
    /// Median.
    #[serde(rename = "p50_us")]
    pub p50: Option<f64>,
    /// 75th percentile.
    #[serde(rename = "p75_us")]
    pub p75: Option<f64>,
    /// 90th percentile.
    #[serde(rename = "p90_us")]
    pub p90: Option<f64>,
    /// 95th percentile.
    #[serde(rename = "p95_us")]
    pub p95: Option<f64>,
    /// 99th percentile.
    #[serde(rename = "p99_us")]
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(rename = "p999_us")]
    pub p999: Option<f64>,
    /// Largest.
    #[serde(rename = "max_us")]
    pub max: f64,
    /// Samples below zero, counted as 0 here.
    pub negative: u64,
    /// Samples above the histogram's range, counted as its largest value here.
    pub clipped: u64,
}
