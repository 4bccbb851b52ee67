//! The table of metrics, one row each. To add a metric, add a row here; `pubmark reference` writes its line in
//! docs/reference/metrics.md.

use pubmark_runner::stream::{Interval, LatencyBuckets, PhaseWord, Usage};

use super::values::{Counts, Exposed, RunValues};
use super::{Label, Reading};
use crate::store::State;

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only increases within a run.
    Counter,
    /// It increases and decreases.
    Gauge,
    /// Deliveries by latency; its counts only increase within a run.
    Histogram,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

type Series = Vec<(Vec<Label>, Reading)>;

/// A metric.
pub struct Metric {
    /// Name of the metric; of a counter, without `_total`.
    pub name: &'static str,
    /// Type of the metric.
    pub kind: Kind,
    /// Labels in addition to those of the run.
    pub labels: &'static str,
    /// Meaning of the metric in one sentence.
    pub help: &'static str,
    pub(super) series: fn(&Exposed) -> Series,
}

impl Metric {
    /// Name of the metric in queries.
    pub fn queried(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}

const fn counter(name: &'static str, help: &'static str, series: fn(&Exposed) -> Series) -> Metric {
    Metric { name, kind: Kind::Counter, labels: "", help, series }
}

const fn gauge(name: &'static str, labels: &'static str, help: &'static str, series: fn(&Exposed) -> Series) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help, series }
}

const fn histogram(name: &'static str, help: &'static str, series: fn(&Exposed) -> Series) -> Metric {
    Metric { name, kind: Kind::Histogram, labels: "", help, series }
}

/// All metrics. Where OpenTelemetry's conventions for messaging clients define a name, this name is used.
pub const METRICS: &[Metric] = &[
    gauge("pubmark_phase", "`phase`", "1 for the phase that the run is in, 0 for the others.", phases),
    counter("pubmark_offered_messages", "Messages of the measured window that were due.", |shown| {
        count(shown, |counts| counts.offered)
    }),
    counter(
        "messaging_client_sent_messages",
        "Messages of the measured window that were written; the record subtracts those that the system refused later.",
        |shown| count(shown, |counts| counts.sent),
    ),
    counter(
        "messaging_client_consumed_messages",
        "First copies of messages of the measured window that subscribers received.",
        |shown| count(shown, |counts| counts.delivered),
    ),
    counter(
        "pubmark_lost_messages",
        "Expected deliveries that were not made, without those that are unknown. It is known only once the run \
         is over and its messages are accounted for.",
        |shown| of_run(shown, |run| run.lost.map(Reading::Count)),
    ),
    counter(
        "pubmark_unknown_messages",
        "Expected deliveries that were not made, of messages that were sent at QoS 1 or 2 on a connection that ended \
         before the acknowledgement. Like lost messages, known only after the run.",
        |shown| of_run(shown, |run| run.unknown.map(Reading::Count)),
    ),
    gauge(
        "pubmark_outstanding_deliveries",
        "",
        "Deliveries of written messages that have not come yet, warm-up included: what is under way, and what is lost.",
        |shown| of_run(shown, |run| Some(Reading::Level(run.counts()?.outstanding? as f64))),
    ),
    gauge(
        "pubmark_known_lost_deliveries",
        "",
        "Of these, deliveries that are lost as far as it is known: at least two seconds ago a later message of the same stream came. What \
         no message came after is counted at the end alone.",
        |shown| of_run(shown, |run| Some(Reading::Level(run.counts()?.known_lost? as f64))),
    ),
    gauge("pubmark_backlog_messages", "", "Messages that are due and not handed over to their clients.", |shown| {
        level(shown, |counts| counts.backlog)
    }),
    gauge(
        "pubmark_in_flight_messages",
        "",
        "Messages that are handed over and not yet written or not yet acknowledged.",
        |shown| level(shown, |counts| counts.in_flight),
    ),
    gauge("pubmark_connections", "", "Sessions that are up.", |shown| level(shown, |counts| counts.online)),
    gauge("pubmark_failing_connections", "", "Sessions whose newest attempt to connect failed.", |shown| {
        level(shown, |counts| counts.failing)
    }),
    gauge("pubmark_subscribed_sessions", "", "Subscriber sessions that are subscribed.", |shown| {
        level(shown, |counts| counts.subscribed)
    }),
    histogram(
        "pubmark_delivery_latency_seconds",
        "Latency of deliveries of the measured window, from the time at which a message was due, as it was measured. The sum is \
         within 1/32 of the exact one.",
        |shown| latency(shown, |window| &window.upper),
    ),
    histogram(
        "pubmark_delivery_latency_lower_seconds",
        "The same without what may be the generator's own delay: the lower bound of each latency.",
        |shown| latency(shown, |window| &window.lower),
    ),
    gauge(
        "pubmark_recent_latency_seconds",
        "`percentile`, `bound`",
        "A percentile of the last second, or of up to ten where one has too few deliveries: its upper and its lower bound.",
        recent,
    ),
    gauge(
        "pubmark_cpu_cores",
        "`side`",
        "Cores that the system under test and the generator use, over the last second or so.",
        |shown| usage(shown, |usage| usage.cores),
    ),
    gauge(
        "pubmark_resident_memory_bytes",
        "`side`",
        "Resident memory of the system under test and of the generator.",
        |shown| usage(shown, |usage| usage.rss_bytes as f64),
    ),
    gauge("pubmark_active_faults", "", "Faults of the workload that have begun and not ended.", |shown| {
        of_run(shown, |run| run.faults.map(|faults| Reading::Level(faults as f64)))
    }),
    gauge("pubmark_queue_length", "", "Submissions that wait; of `pubmark serve` alone.", |shown| {
        let Some(queue) = &shown.queue else { return vec![] };
        vec![(vec![], Reading::Level(queue.of(State::Queued) as f64))]
    }),
    gauge(
        "pubmark_submissions",
        "`state`",
        "Submissions by how far they are or how they ended; of `pubmark serve` alone.",
        |shown| {
            let Some(queue) = &shown.queue else { return vec![] };
            let one =
                |state: &State| (vec![("state", state.word().to_owned())], Reading::Level(queue.of(*state) as f64));
            State::ALL.iter().map(one).collect()
        },
    ),
];

fn of_run(shown: &Exposed, read: impl Fn(&RunValues) -> Option<Reading>) -> Series {
    let Some(run) = &shown.run else { return vec![] };
    read(run).map(|reading| (run.labels.clone(), reading)).into_iter().collect()
}

fn count(shown: &Exposed, read: fn(&Counts) -> u64) -> Series {
    of_run(shown, |run| run.counts().map(|counts| Reading::Count(read(counts))))
}

fn level(shown: &Exposed, read: fn(&Counts) -> u64) -> Series {
    of_run(shown, |run| run.counts().map(|counts| Reading::Level(read(counts) as f64)))
}

fn latency(shown: &Exposed, side: fn(&pubmark_runner::stream::WindowLatencies) -> &LatencyBuckets) -> Series {
    of_run(shown, |run| run.window.as_ref().map(|window| cumulative(side(window))))
}

fn cumulative(counted: &LatencyBuckets) -> Reading {
    let edges = pubmark_runner::stream::latency_edges_ns();
    let deliveries = |edge_ns: u64| {
        let found = counted.below_ns.iter().find(|(edge, _)| *edge == edge_ns);
        found.map_or(0, |(_, deliveries)| *deliveries)
    };
    let mut buckets: Vec<(f64, u64)> = edges.map(|edge_ns| (edge_ns as f64 / 1e9, deliveries(edge_ns))).collect();
    buckets.push((f64::INFINITY, counted.longer));
    Reading::Histogram { buckets, sum_s: counted.sum_s }
}

fn with(labels: &[Label], more: &[(&'static str, &str)]) -> Vec<Label> {
    let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
    labels.iter().cloned().chain(more).collect()
}

fn phases(shown: &Exposed) -> Series {
    let Some((run, now)) = shown.run.as_ref().and_then(|run| Some((run, run.phase?))) else { return vec![] };
    let one = |phase: &PhaseWord| {
        let is_now = f64::from(u8::from(*phase == now && !run.over));
        (with(&run.labels, &[("phase", phase.as_str())]), Reading::Level(is_now))
    };
    PhaseWord::ALL.iter().map(one).collect()
}

fn recent(shown: &Exposed) -> Series {
    let Some((run, latency)) = shown.run.as_ref().and_then(|run| Some((run, run.latency?))) else { return vec![] };
    let bounds = |percentile: &'static str, interval: Option<Interval>| {
        let bounds = interval.map(|interval| [("lower", interval.lower_us), ("upper", interval.upper_us)]);
        bounds.into_iter().flatten().map(move |(bound, us)| (percentile, bound, us))
    };
    let all = bounds("50", latency.p50).chain(bounds("99", latency.p99));
    all.map(|(percentile, bound, us)| {
        (with(&run.labels, &[("percentile", percentile), ("bound", bound)]), Reading::Level(us / 1e6))
    })
    .collect()
}

fn usage(shown: &Exposed, read: fn(&Usage) -> f64) -> Series {
    let Some(run) = &shown.run else { return vec![] };
    let sides = [("system", run.system), ("generator", run.generator)];
    let known = sides.iter().filter_map(|(side, usage)| Some((side, read(usage.as_ref()?))));
    known.map(|(side, used)| (with(&run.labels, &[("side", side)]), Reading::Level(used))).collect()
}

/// The table as a page of the reference.
pub fn markdown() -> String {
    let mut text = "# Metrics for Prometheus\n\nThe program generates this page. [Scrape metrics](../how-to/scrape-metrics.md) \
                    says how to read them.\n\nMetrics of a run have the labels `run`, `workload`, `system` and `protocol`, as \
                    far as each is known; those of a run of an experiment or a choice also `cell`, the label of its combination or its \
                    candidate and phase; those of a trial of a search also `load`, in messages per second, and in a choice \
                    `candidate`. An experiment has at most 500 combinations and a search some tens of trials, so that the \
                    values of these labels are few. \
                    Those of `pubmark node` have `run`, \
                    the time at which the run began there, and `node`. A metric that is \
                    not known has no series.\n\nThe names of OpenTelemetry's conventions for messaging clients are used where \
                    they mean the same: `messaging.client.sent.messages` and `messaging.client.consumed.messages`. The labels are \
                    not its attributes: `messaging.system` is what a client library speaks, from a list such as `kafka` and \
                    `rabbitmq`, and no broker for MQTT is in it; `system` is the system under test, by the name that records and \
                    reports have, also on metrics that no convention has, and `protocol` is what `pubmark list protocols` calls \
                    it. A rule of `metric_relabel_configs` copies a label where a dashboard wants another name.\n\n| metric | type | further labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for metric in METRICS {
        let (name, kind) = (metric.queried(), metric.kind.word());
        text.push_str(&format!("| `{name}` | {kind} | {} | {} |\n", metric.labels, metric.help));
    }
    text
}
