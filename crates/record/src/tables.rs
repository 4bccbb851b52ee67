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
    /// Rows by device type: the first 256, and `other`.
    pub by_type: Vec<TypeRow>,
    /// Nodes of the run; empty if it was executed in one process.
    #[serde(default)]
    pub nodes: Vec<NodeRow>,
    /// Worker processes that were lost, in a run whose clients were distributed over processes but not over nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_workers: Vec<LostWorker>,
    /// Rows by pair of publishers' node and subscribers' node.
    pub by_pair: Vec<PairRow>,
    /// Rows by pair of sites: by the values of the labels that the placement of groups uses. Empty in a run without
    /// such a placement, and with more than 64 nodes, as `by_pair`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_label: Vec<LabelRow>,
    /// Messages and latency over time.
    pub series: Vec<SeriesRow>,
    /// Distribution of the latencies in each bin of `series`; bins without messages are left out.
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
    /// `domain/type`, or `other` for all types beyond the first 256.
    pub name: String,
    /// Devices of this type.
    pub devices: u64,
    /// Message accounting of the type.
    pub delivery: Delivery,
    /// Delivery − due.
    pub latency: Option<LatencyBounds>,
    /// Delivery − write start.
    pub service_latency: Option<LatencyBounds>,
    /// Written − ready.
    pub backpressure: Option<Summary>,
    /// Share of due times at which its devices were planned to be online; `null` without churn, and for a flood, which has no
    /// due times.
    pub availability: Option<f64>,
}

/// Messages from the publishers of one node to the subscribers of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairRow {
    /// Node of the publishers.
    pub publisher_node: String,
    /// Node of the subscribers.
    pub subscriber_node: String,
    /// Messages expected between these nodes.
    pub expected: u64,
    /// Of these, messages that arrived.
    pub delivered: u64,
    /// Of these, messages that did not arrive.
    pub lost: u64,
    /// Writer–reader pairs between the nodes over which no message arrived, warm-up included; `null` in records of
    /// older versions.
    #[serde(default)]
    pub silent_pairs: Option<u64>,
    /// Delivery − due.
    pub latency: Option<LatencyBounds>,
    /// Error bound of the clocks, µs; 0 on one host, which has one clock; `null` if a clock error has no bound.
    pub clock_bound_us: Option<f64>,
}

/// Messages from the publishers of one site to the subscribers of one site; a site is all nodes with the same value of
/// a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelRow {
    /// Key of the label, such as `site`.
    pub label: String,
    /// Value on the publishers' nodes; `null` for nodes without this label.
    pub publisher_site: Option<String>,
    /// Value on the subscribers' nodes; `null` for nodes without this label.
    pub subscriber_site: Option<String>,
    /// Messages expected between these sites.
    pub expected: u64,
    /// Of these, messages that arrived.
    pub delivered: u64,
    /// Of these, messages that did not arrive.
    pub lost: u64,
    /// Delivery − due.
    pub latency: Option<LatencyBounds>,
    /// Largest error bound of the clocks of these nodes, µs; 0 with one clock; `null` if a clock error has no bound.
    pub clock_bound_us: Option<f64>,
}

/// One bin of the time series. Bins are wider in longer runs (1 s, 2 s, 4 s, …), so that there are fewer than 600 rows. A bin
/// lies in the warm-up, in the measured window or in the drain; the first one of the warm-up and the last one of the window may
/// be shorter. A run that ended early has a shorter window. In records of older versions all bins are equally wide, from the start of the warm-up on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRow {
    /// Start of the bin, seconds since the start of the measured window (negative in the warm-up).
    pub t_s: f64,
    /// Width of the bin, seconds.
    pub width_s: f64,
    /// Messages due in the bin.
    pub offered: u64,
    /// Messages written in the bin.
    pub sent: u64,
    /// Messages delivered in the bin.
    pub delivered: u64,
    /// Payload bytes delivered in the bin.
    pub delivered_bytes: u64,
    /// Latency of the messages *due* in the bin.
    pub latency: SeriesLatency,
    /// Largest scheduler lag of messages due in the bin, µs.
    pub max_scheduler_lag_us: Option<f64>,
}

/// The bins of a series except those narrower than half of the widest one in their phase (warm-up, window of `window_s`
/// ([`Record::window_s`](crate::record::Record::window_s)), drain). Such a bin is what remains of a phase, and has too few messages for a rate or a percentile.
pub fn wide_bins(series: &[SeriesRow], window_s: f64) -> impl Iterator<Item = &SeriesRow> {
    let phase = move |row: &SeriesRow| usize::from(row.t_s >= 0.0) + usize::from(row.t_s >= window_s - 1e-9);
    let mut widest_s = [0.0_f64; 3];
    series.iter().for_each(|row| widest_s[phase(row)] = widest_s[phase(row)].max(row.width_s));
    series.iter().filter(move |row| row.width_s >= widest_s[phase(row)] / 2.0)
}

/// Bounds of the latency in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesLatency {
    /// As measured, including the delays that pubmark caused.
    pub upper: SeriesQuantiles,
    /// The same without pubmark's delays; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<SeriesQuantiles>,
}

/// Quantiles of the latency in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesQuantiles {
    /// Median, µs; if the bin holds too few samples, the median of a wider window that ends with the bin
    /// (`p50_width_s`).
    pub p50_us: Option<f64>,
    /// Width of the window of `p50_us`, seconds.
    pub p50_width_s: Option<f64>,
    /// 99th percentile, µs, likewise.
    pub p99_us: Option<f64>,
    /// Width of the window of `p99_us`, seconds.
    pub p99_width_s: Option<f64>,
    /// Largest, µs.
    pub max_us: Option<f64>,
}

/// A percentile curve: value at each fraction, with no more points than a chart can show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Name of the distribution: `latency`, `service_latency`, …
    pub name: String,
    /// Pairs of (fraction of samples at or below, value in µs), ascending, up to the largest sample.
    pub points: Vec<(f64, f64)>,
    /// Number of samples.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_of_a_phase_is_no_wide_bin() {
        let row = crate::sample::record().tables.series[0];
        let wide = |window_s: f64, bins: &[(f64, f64)]| -> Vec<f64> {
            let rows: Vec<SeriesRow> = bins.iter().map(|&(t_s, width_s)| SeriesRow { t_s, width_s, ..row }).collect();
            wide_bins(&rows, window_s).map(|row| row.t_s).collect()
        };
        let bins = [(-1.25, 0.25), (-1.0, 1.0), (0.0, 1.0), (1.0, 1.0), (2.0, 0.001), (2.001, 1.0)];
        assert_eq!(wide(2.001, &bins), [-1.0, 0.0, 1.0, 2.001]);
        assert_eq!(wide(1.5, &[(0.0, 1.0), (1.0, 0.5), (1.5, 1.0)]), [0.0, 1.0, 1.5]);
        assert_eq!(wide(0.3, &[(0.0, 0.3), (0.3, 1.0)]), [0.0, 0.3], "a short window");
    }
}
