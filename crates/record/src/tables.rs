//! The record's larger tables: per type, per pair of nodes, over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Delivery, Summary};

/// Books and latencies of one device type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Breakdown {
    /// `domain/type`, or `other` for all beyond the first 256.
    pub name: String,
    /// Devices of this type.
    pub devices: u64,
    /// Its books.
    pub delivery: Delivery,
    /// Delivery − due.
    pub latency_us: Option<Summary>,
    /// Delivery − write start.
    pub service_latency_us: Option<Summary>,
    /// Written − ready.
    pub backpressure_us: Option<Summary>,
    /// Share of dues at which its devices were planned online; `null` without churn.
    pub availability: Option<f64>,
}

/// From one node's publishers to one node's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairRow {
    /// Publishers' node.
    pub publisher_node: String,
    /// Subscribers' node.
    pub subscriber_node: String,
    /// Expected from there to here.
    pub expected: u64,
    /// Of these, arrived.
    pub delivered: u64,
    /// Of these, did not arrive.
    pub lost: u64,
    /// Delivery − due.
    pub latency_us: Option<Summary>,
    /// Error bound of the clocks, µs; 0 on one host, where there is one clock; `null` if nothing bounds a clock.
    pub clock_bound_us: Option<f64>,
}

/// One bin of the time series. Widths grow with the run (1 s, 2 s, 4 s, …) so that rows stay below 600.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRow {
    /// Start of the bin, seconds since the start of the measured window (negative in the warm-up).
    pub t_s: f64,
    /// Its width in seconds.
    pub width_s: f64,
    /// Due in it.
    pub offered: u64,
    /// Written in it.
    pub sent: u64,
    /// Delivered in it.
    pub delivered: u64,
    /// Payload bytes delivered in it.
    pub delivered_bytes: u64,
    /// Median latency of messages *due* in it, µs; where a bin holds too few samples the value is of a wider window that ends with it (`p50_width_s`).
    pub p50_us: Option<f64>,
    /// Width of the window behind `p50_us`.
    pub p50_width_s: Option<f64>,
    /// 99th percentile of the latency of messages due in it, µs, likewise.
    pub p99_us: Option<f64>,
    /// Width of the window behind `p99_us`.
    pub p99_width_s: Option<f64>,
    /// Largest latency of messages due in it, µs.
    pub max_us: Option<f64>,
    /// Largest scheduler lag of messages due in it, µs.
    pub max_lag_us: Option<f64>,
}
