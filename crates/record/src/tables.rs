//! The tables of a record: rows by device type, by node, by pair of nodes, over time, and points of curves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::ResourceRow;
use crate::delivery::Delivery;
use crate::latency::{LatencyBounds, Summary};
use crate::latency_bin::LatencyBin;
use crate::nodes::{LostWorker, NodeRow};

/// Tables of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tables {
    /// By device type, first 256 and `other`.
    pub by_type: Vec<TypeRow>,
    /// Nodes of the run; empty where all ran in one process.
    #[serde(default)]
    pub nodes: Vec<NodeRow>,
    /// Worker processes that were lost, of a run whose clients were dealt out over processes but not over nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_workers: Vec<LostWorker>,
    /// By publishers' node and subscribers' node.
    pub by_pair: Vec<PairRow>,
    /// From site to site: by the values of the labels that the placement of groups looks at. Empty in a run without such a placement,
    /// and on more than 64 nodes, as `by_pair`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_label: Vec<LabelRow>,
    /// Messages and latency over time.
    pub series: Vec<SeriesRow>,
    /// Distribution of the latencies in each bin of `series`; bins without a message are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_bins: Vec<LatencyBin>,
    /// CPU and memory over time.
    pub resource_series: Vec<ResourceRow>,
    /// Points of the percentile curves.
    pub curves: Vec<Curve>,
}

/// Message accounting and latencies of one device type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeRow {
    /// `domain/type`, or `other` for all beyond the first 256.
    pub name: String,
    /// Devices of this type.
    pub devices: u64,
    /// Its messages.
    pub delivery: Delivery,
    /// Delivery − due.
    pub latency: Option<LatencyBounds>,
    /// Delivery − write start.
    pub service_latency: Option<LatencyBounds>,
    /// Written − ready.
    pub backpressure: Option<Summary>,
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
    /// Writer–reader pairs between them of which nothing arrived, warm-up included; `null` in records of older versions.
    #[serde(default)]
    pub silent_pairs: Option<u64>,
    /// Delivery − due.
    pub latency: Option<LatencyBounds>,
    /// Error bound of the clocks, µs; 0 on one host, where there is one clock; `null` if nothing bounds a clock.
    pub clock_bound_us: Option<f64>,
}

/// From the publishers of one site to the subscribers of one site: all nodes with a value of a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelRow {
    /// Key of the label, such as `site`.
    pub label: String,
    /// Its value on the publishers' nodes; `null` for those without this label.
    pub publisher_site: Option<String>,
    /// Its value on the subscribers' nodes; `null` for those without this label.
    pub subscriber_site: Option<String>,
    /// Expected from there to here.
    pub expected: u64,
    /// Of these, arrived.
    pub delivered: u64,
    /// Of these, did not arrive.
    pub lost: u64,
    /// Delivery − due.
    pub latency: Option<LatencyBounds>,
    /// Largest error bound of the clocks of these nodes, µs; 0 where there is one clock; `null` if nothing bounds one.
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
    /// Latency of messages *due* in it.
    pub latency: SeriesLatency,
    /// Largest scheduler lag of messages due in it, µs.
    pub max_scheduler_lag_us: Option<f64>,
}

/// Bounds of the latency in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesLatency {
    /// What was measured: our own delays are in it.
    pub upper: SeriesQuantiles,
    /// The same without our own delays; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<SeriesQuantiles>,
}

/// Quantiles of the latency in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesQuantiles {
    /// Median, µs; where a bin holds too few samples the value is of a wider window that ends with it (`p50_width_s`).
    pub p50_us: Option<f64>,
    /// Width of the window behind `p50_us`.
    pub p50_width_s: Option<f64>,
    /// 99th percentile, µs, likewise.
    pub p99_us: Option<f64>,
    /// Width of the window behind `p99_us`.
    pub p99_width_s: Option<f64>,
    /// Largest, µs.
    pub max_us: Option<f64>,
}

/// A percentile curve: value at each fraction, down-sampled to what a chart can show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Which distribution: `latency`, `service_latency`, …
    pub name: String,
    /// (fraction of samples at or below, value in µs), ascending; ends at the largest sample.
    pub points: Vec<(f64, f64)>,
    /// Samples.
    pub count: u64,
}
