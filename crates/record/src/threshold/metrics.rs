//! Metrics that can be limited, with the names that users type.

use crate::figures::{Figure, Unit, figure};
use crate::record::{LatencyBounds, Record, Summary};
use crate::threshold::{Interval, MeasuredFigure};

/// A metric that can be limited.
#[derive(Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Other spellings that are accepted.
    pub also: &'static [&'static str],
    /// Description, for tables and messages.
    pub meaning: &'static str,
    /// Name of the figure in [`crate::figures::FIGURES`].
    pub figure: &'static str,
    /// Whether the metric is 1 minus the figure: loss, where the figure is the delivered share.
    pub is_complement: bool,
    /// Distribution of a percentile: if it has too few samples for the percentile to be printed, the value still lies
    /// between a lower percentile and the largest sample.
    pub percentile_of: Option<fn(&Record) -> Option<Ends<'_>>>,
    /// Largest value that the system alone may have reached, where the figure is only the smallest.
    pub at_most: Option<fn(&Record) -> Option<f64>>,
}

/// The distributions of both bounds of a time, the lower one first; two equal ones if the lower one was not measured.
type Ends<'a> = [&'a Summary; 2];

/// All metrics that can be limited, in the order of the help. A new metric is a row here.
pub static METRICS: [Metric; 22] = [
    of_latency("p50", &["median"], "median latency", "latency p50"),
    of_latency("p95", &[], "95th percentile of latency", "latency p95"),
    of_latency("p99", &[], "99th percentile of latency", "latency p99"),
    of_latency("p99.9", &["p999"], "99.9th percentile of latency", "latency p99.9"),
    metric("max", &[], "largest latency", "latency max"),
    Metric {
        percentile_of: Some(|record| ends(&record.latency.service)),
        ..metric("service_p99", &[], "99th percentile of service latency", "service latency p99")
    },
    Metric {
        percentile_of: Some(back_pressure),
        ..metric("backpressure_p99", &[], "99th percentile of back-pressure wait", "back-pressure p99")
    },
    metric("delivered", &[], "share of wanted deliveries that arrived", "delivered"),
    Metric {
        is_complement: true,
        ..metric("loss", &[], "share of wanted deliveries that did not arrive", "delivered")
    },
    Metric {
        percentile_of: Some(round_trip),
        ..metric("round_trip_p50", &[], "median round trip of requests", "round trip p50")
    },
    Metric {
        percentile_of: Some(round_trip),
        ..metric("round_trip_p99", &[], "99th percentile of the round trip of requests", "round trip p99")
    },
    Metric {
        at_most: Some(answered_at_most),
        ..metric("answered", &[], "share of requests that were answered in time", "answered in time")
    },
    metric("lost", &[], "messages lost", "lost"),
    metric("duplicated", &["duplicates"], "further copies delivered", "duplicated"),
    metric("rate", &["delivered_rate"], "messages delivered per second", "delivered rate"),
    metric("cpu", &[], "cores that the system uses", "system CPU"),
    metric(
        "cpu_per_million",
        &[],
        "CPU seconds of the system per million messages that arrived, replies included",
        "system CPU a million",
    ),
    metric("client_cpu", &[], "cores that client programs use", "client CPU"),
    metric(
        "client_cpu_per_million",
        &[],
        "CPU seconds of client programs per million messages",
        "client CPU a million",
    ),
    metric("client_memory", &[], "largest resident set of client programs", "client memory"),
    metric("memory", &["rss"], "largest resident set of the system", "system memory"),
    metric("memory_per_connection", &[], "growth of the resident set per connection", "memory per connection"),
];

const fn metric(
    name: &'static str,
    also: &'static [&'static str],
    meaning: &'static str,
    figure: &'static str,
) -> Metric {
    Metric { name, also, meaning, figure, is_complement: false, percentile_of: None, at_most: None }
}

const fn of_latency(
    name: &'static str,
    also: &'static [&'static str],
    meaning: &'static str,
    figure: &'static str,
) -> Metric {
    Metric { percentile_of: Some(|record| ends(&record.latency.total)), ..metric(name, also, meaning, figure) }
}

fn round_trip(record: &Record) -> Option<Ends<'_>> {
    ends(&record.requests.as_ref()?.round_trip)
}

fn back_pressure(record: &Record) -> Option<Ends<'_>> {
    let upper = record.latency.backpressure.as_ref()?;
    Some([record.latency.backpressure_lower.as_ref().unwrap_or(upper), upper])
}

fn ends(bounds: &Option<LatencyBounds>) -> Option<Ends<'_>> {
    let bounds = bounds.as_ref()?;
    Some([bounds.lower.as_ref().unwrap_or(&bounds.upper), &bounds.upper])
}

/// Share of requests that were answered in time, with those that only pubmark made late.
fn answered_at_most(record: &Record) -> Option<f64> {
    let books = record.requests.as_ref()?.outcomes;
    (books.sent > 0).then(|| (books.answered + books.late_by_generator) as f64 / books.sent as f64)
}

/// Bounds of a percentile with too few samples: the highest percentile that has enough samples, or the smallest sample,
/// and the largest sample. No metric is below the median.
fn between([low, high]: Ends<'_>) -> Interval {
    let lower = [low.p99, low.p95, low.p90].into_iter().flatten().next();
    [lower.or(low.p50).unwrap_or(low.min).min(high.max), high.max]
}

/// Rules of the verdict whose violation implies that the system could have been faster: bursts that no device sends, or
/// CPUs used by other programs, or links that were emulated late.
const HELD_UP: [&str; 5] = ["V01", "V02", "V06", "V18", "V28"];

/// Whether latencies are longer, and fewer replies in time, than the system alone would cause.
pub fn is_held_up(record: &Record) -> bool {
    record.verdict.reasons.iter().any(|reason| HELD_UP.contains(&reason.code.as_str()))
}

/// Finds a metric by name or another spelling, case-insensitive.
pub fn find(name: &str) -> Option<&'static Metric> {
    let is_named = |known: &str| known.eq_ignore_ascii_case(name);
    METRICS.iter().find(|metric| is_named(metric.name) || metric.also.iter().any(|other| is_named(other)))
}

/// All names, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.name)
}

impl Metric {
    /// The corresponding figure.
    pub fn of_figure(&self) -> &'static Figure<'static> {
        figure(self.figure).expect("every row of the table names a figure, which a test checks")
    }

    /// Converts a value of the figure to a value of the metric.
    pub fn from_figure(&self, value: f64) -> f64 {
        if self.is_complement { 1.0 - value } else { value }
    }

    /// Converts both bounds of the figure to bounds of the metric.
    pub fn from_bounds(&self, bounds: Interval) -> Interval {
        let [lower, upper] = bounds.map(|value| self.from_figure(value));
        if self.is_complement { [upper, lower] } else { [lower, upper] }
    }

    /// Value in a record; `None` where it was not measured.
    pub fn measured(&self, record: &Record) -> Option<MeasuredFigure> {
        let held_up = self.of_figure().is_of_times() && is_held_up(record);
        if let Some([lower, upper]) = self.of_figure().bounds(record) {
            let at_most = self.at_most.and_then(|at_most| at_most(record)).unwrap_or(upper);
            let bounds = self.from_bounds([lower, upper.max(at_most)]);
            return Some(MeasuredFigure { held_up, ..MeasuredFigure::within(bounds) });
        }
        let ends = self.percentile_of?(record)?;
        Some(MeasuredFigure { few_samples: true, held_up, ..MeasuredFigure::within(between(ends)) })
    }

    /// Unit of the metric.
    pub fn unit(&self) -> Unit {
        self.of_figure().unit
    }
}
