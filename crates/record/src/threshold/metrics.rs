//! Metrics that can be limited, with the names that users type.

use crate::figures::{Figure, Unit, figure};
use crate::record::{LatencyBounds, OwnDrops, Record, Summary};
use crate::threshold::{Interval, MeasuredFigure};
use crate::verdict::limits::LATE_US;
use crate::verdict::rules::blame;
use crate::wanted::not_delivered;

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
    /// Value of the figure that the system alone may have reached at best, where pubmark or the machine may have made it worse.
    pub alone: Option<fn(&Record) -> Option<f64>>,
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
    Metric {
        alone: Some(delivered_at_most),
        ..metric("delivered", &[], "share of wanted deliveries that arrived", "delivered")
    },
    Metric {
        is_complement: true,
        alone: Some(delivered_at_most),
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
        alone: Some(answered_at_most),
        ..metric("answered", &[], "share of requests that were answered in time", "answered in time")
    },
    Metric { alone: Some(lost_at_least), ..metric("lost", &[], "messages lost", "lost") },
    metric("duplicated", &["duplicates"], "further copies delivered", "duplicated"),
    Metric {
        alone: Some(rate_at_most),
        ..metric("rate", &["delivered_rate"], "messages delivered per second", "delivered rate")
    },
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
    Metric { name, also, meaning, figure, is_complement: false, percentile_of: None, alone: None }
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

/// What had arrived and was dropped before pubmark read it. A datagram counts as one message.
fn own_drops(record: &Record) -> u64 {
    let OwnDrops { missed, overflowed_datagrams, library_datagrams } = record.delivery.own_drops;
    missed.saturating_add(overflowed_datagrams).saturating_add(library_datagrams.unwrap_or(0))
}

/// Expected messages that did not arrive.
fn missing(record: &Record) -> u64 {
    let books = &record.delivery.messages;
    books.lost.saturating_add(books.unknown)
}

/// How many of `missing` messages or replies the system alone may have delivered: all of them where it may have dropped them because
/// of pubmark or the machine, otherwise as many as pubmark dropped on arrival.
fn not_the_systems(record: &Record, missing: u64) -> u64 {
    if is_loss_open(record) { missing } else { own_drops(record).min(missing) }
}

/// Share of wanted deliveries that arrived, with the missing ones that the system alone may have delivered.
fn delivered_at_most(record: &Record) -> Option<f64> {
    let books = &record.delivery.messages;
    let wanted = books.delivered + not_delivered(record, books);
    let more = not_the_systems(record, missing(record));
    (wanted > 0).then(|| books.delivered.saturating_add(more) as f64 / wanted as f64)
}

/// Messages lost, without those that the system alone may have delivered.
fn lost_at_least(record: &Record) -> Option<f64> {
    let more = not_the_systems(record, missing(record));
    Some(record.delivery.messages.lost.saturating_sub(more) as f64)
}

/// Messages delivered per second, with the missing ones that the system alone may have delivered; `None` if there are none, and for a
/// flood that was held up, whose rate has no upper bound.
fn rate_at_most(record: &Record) -> Option<f64> {
    let books = &record.delivery.messages;
    let more = not_the_systems(record, missing(record));
    let is_known = more > 0 && books.delivered > 0 && !is_flood_held_up(record);
    is_known.then(|| {
        record.throughput.delivered_per_s * books.delivered.saturating_add(more) as f64 / books.delivered as f64
    })
}

/// Share of requests that were answered in time, with those that only pubmark made late, those without a reply that the system alone
/// may have delivered, and those that pubmark's responders dropped because they were late.
fn answered_at_most(record: &Record) -> Option<f64> {
    let requests = record.requests.as_ref()?;
    let books = &requests.outcomes;
    let missing = books.timed_out + books.unknown;
    let by_responders = requests.responses.dropped_by_generator;
    let more = not_the_systems(record, missing).saturating_add(by_responders).min(missing);
    (books.sent > 0).then(|| (books.answered + books.late_by_generator + more) as f64 / books.sent as f64)
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
/// The rule by which a thread of pubmark may have been the limit of a flood. With due times its delays are measured.
const SATURATED: &str = "V04";
/// The rule by which pubmark read late. What waits in its socket fills it, and a system drops messages for which it has no room.
const READ_LATE: &str = "V02";

/// Whether latencies are longer, and fewer replies in time, than the system alone would cause.
pub fn is_held_up(record: &Record) -> bool {
    held_up_by(record).is_some()
}

/// Code of the reason of the verdict that says so; of several, the one whose cause may have caused the others.
pub fn held_up_by(record: &Record) -> Option<&str> {
    let codes = record.verdict.reasons.iter().map(|reason| reason.code.as_str());
    codes.filter(|code| HELD_UP.contains(code)).min_by_key(|code| blame(code))
}

/// Whether the rate of a flood is lower than the system alone would reach. In other runs the rate follows from the load.
fn is_flood_held_up(record: &Record) -> bool {
    record.settings.flood && (is_held_up(record) || has_reason(record, SATURATED))
}

/// Whether the system may have dropped any number of messages because pubmark or the machine was the limit.
fn is_loss_open(record: &Record) -> bool {
    // V02 reports what was dropped on arrival, too, whose number is known, unless it was read late as well.
    let is_late = |own: &Summary| own.p99.or(own.p95).or(own.p90).unwrap_or(own.max) > LATE_US;
    let was_late = || own_drops(record) == 0 || record.latency.receive_lateness.as_ref().is_some_and(is_late);
    let is_read_late = || has_reason(record, READ_LATE) && was_late();
    is_flood_held_up(record) || is_read_late()
}

fn has_reason(record: &Record, code: &str) -> bool {
    record.verdict.reasons.iter().any(|reason| reason.code == code)
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
        let held_up = match self.unit() {
            Unit::PerSecond => is_flood_held_up(record),
            _ if self.is_worse_in_a_limited_flood() => is_loss_open(record) && missing(record) > 0,
            _ => self.of_figure().is_of_times() && is_held_up(record),
        };
        if let Some([lower, upper]) = self.of_figure().bounds(record) {
            let alone = self.alone.and_then(|alone| alone(record)).unwrap_or(upper);
            let bounds = self.from_bounds([lower.min(alone), upper.max(alone)]);
            return Some(MeasuredFigure { held_up, ..MeasuredFigure::within(bounds) });
        }
        let ends = self.percentile_of?(record)?;
        Some(MeasuredFigure { few_samples: true, held_up, ..MeasuredFigure::within(between(ends)) })
    }

    /// Whether a flood makes it worse if pubmark or the machine is the limit: the rate, and what was delivered or lost.
    pub fn is_worse_in_a_limited_flood(&self) -> bool {
        self.alone.is_some() && !self.of_figure().is_of_times()
    }

    /// Unit of the metric.
    pub fn unit(&self) -> Unit {
        self.of_figure().unit
    }
}
