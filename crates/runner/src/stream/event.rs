//! The lines of `--events`: one JSON object each; `event` names the kind. A missing measurement is `null`.

use pubmark_engine::run::Phase;
use pubmark_engine::window_latency::{BUCKETS, Buckets, WindowLatency, edge_ns};
use pubmark_systems::sampler::UsageNow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::observer::{LiveInterval, LiveLatency};

/// Version of the lines: it changes only if a field changes its meaning or is removed.
pub const STREAM_VERSION: u32 = 1;

/// A line of `--events`. `t_s` is the time since the command began, seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum StreamEvent {
    /// A run, an experiment or a search for capacity begins; its folder exists.
    Begins(Begins),
    /// A run of an experiment begins.
    RunBegins(RunBegins),
    /// A trial of a search for capacity begins.
    TrialBegins(TrialBegins),
    /// A phase of a run begins; the one before has ended.
    Phase {
        /// Time, seconds.
        t_s: f64,
        /// The phase.
        phase: PhaseWord,
    },
    /// Progress of a run, once a second.
    Progress(Box<Progress>),
    /// A fault of the workload begins or ends.
    Fault {
        /// Time, seconds.
        t_s: f64,
        /// Whether the fault begins or ends.
        what: FaultWord,
        /// Kind of the fault and its target; the same text at its end.
        fault: String,
    },
    /// A node joined or left.
    Node {
        /// Time, seconds.
        t_s: f64,
        /// Name of the node.
        name: String,
        /// Whether the node is connected now.
        joined: bool,
        /// Address of the node, if it joined.
        address: Option<String>,
        /// Reason why the node left, if it did.
        reason: Option<String>,
    },
    /// Another message for people: a trial ended, the machine is busy.
    Note {
        /// Time, seconds.
        t_s: f64,
        /// The message.
        text: String,
    },
    /// The run, experiment or search has ended, and its folder is written.
    Ends(Ends),
    /// The command failed without a result.
    Failed(Failed),
}

/// The start of a run, an experiment or a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Begins {
    /// Time, seconds.
    pub t_s: f64,
    /// Version of the lines, 1.
    pub stream_version: u32,
    /// Folder of the results.
    pub folder: String,
    /// Name of the workload or the experiment.
    pub name: String,
    /// Number of this repetition, from 1.
    pub repetition: u32,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Name of the system; `null` for several systems, and in lines of an older version.
    #[serde(default)]
    pub system: Option<String>,
    /// Protocol of the devices; `null` as for `system`.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Load before the measured window, seconds; for a run only.
    pub warmup_s: Option<f64>,
    /// Length of the measured window, seconds; for a run only.
    pub duration_s: Option<f64>,
}

/// The start of a run of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunBegins {
    /// Time, seconds.
    pub t_s: f64,
    /// Number of the run, from 1.
    pub number: u64,
    /// Number of all runs.
    pub of: u64,
    /// Label of the cell.
    pub cell: String,
    /// Name of the workload; `null` in lines of an older version.
    #[serde(default)]
    pub workload: Option<String>,
    /// Name of the system; `null` in lines of an older version.
    #[serde(default)]
    pub system: Option<String>,
    /// Protocol of the devices; `null` in lines of an older version.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Longest expected time of this run and the remaining ones, seconds.
    pub left_s: f64,
}

/// The start of a trial of a search for capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialBegins {
    /// Time, seconds.
    pub t_s: f64,
    /// Number of the trial, from 1.
    pub number: u64,
    /// Candidate of a choice whose headroom is searched; `null` for a search of its own, and in lines of an older version.
    #[serde(default)]
    pub candidate: Option<String>,
    /// Name of the workload; `null` in lines of an older version.
    #[serde(default)]
    pub workload: Option<String>,
    /// Name of the system; `null` in lines of an older version.
    #[serde(default)]
    pub system: Option<String>,
    /// Protocol of the devices; `null` in lines of an older version.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Messages offered per second.
    pub offered_per_s: f64,
    /// Number of the attempt at this load, from 1.
    pub attempt: u32,
    /// Time in which further trials may begin, seconds.
    pub left_s: f64,
}

/// The end of a run, an experiment or a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    /// Time, seconds.
    pub t_s: f64,
    /// Folder of the results.
    pub folder: String,
    /// `complete` or `interrupted`.
    pub status: String,
    /// `valid`, `suspect` or `invalid`; `null` if there is no verdict on the whole.
    pub verdict: Option<String>,
    /// Message accounting of a run; `null` for an experiment or a search, and in lines of an older version.
    #[serde(default)]
    pub counted: Option<Counted>,
}

/// Message accounting of the measured window, as in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// Messages that were due.
    pub offered: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// First copies that were delivered.
    pub delivered: u64,
    /// Deliveries that did not arrive; those of `unknown` are not in it.
    pub lost: u64,
    /// Deliveries that did not arrive and whose message was sent at QoS 1 or 2 on a connection that ended before the
    /// acknowledgement: with `delivered` and `lost` they are all that were expected. `null` in lines of an older version.
    #[serde(default)]
    pub unknown: Option<u64>,
}

/// A failure, as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Time, seconds.
    pub t_s: f64,
    /// Exit code of the command.
    pub exit_code: u8,
    /// What was tried, then the causes, outermost first.
    pub chain: Vec<String>,
    /// What to do about the failure.
    pub hint: Option<String>,
}

/// Phases of a run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseWord {
    /// Subscribers connect and subscribe.
    Subscribe,
    /// Devices connect.
    Connect,
    /// The schedule runs; nothing is measured yet.
    WarmUp,
    /// The measured window.
    Measure,
    /// Waiting for late messages.
    Drain,
    /// Sessions are ended, and the message accounting is closed.
    Collect,
}

impl PhaseWord {
    /// All phases, in order.
    pub const ALL: [PhaseWord; 6] = [
        PhaseWord::Subscribe,
        PhaseWord::Connect,
        PhaseWord::WarmUp,
        PhaseWord::Measure,
        PhaseWord::Drain,
        PhaseWord::Collect,
    ];

    /// The name of the phase in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            PhaseWord::Subscribe => "subscribe",
            PhaseWord::Connect => "connect",
            PhaseWord::WarmUp => "warm-up",
            PhaseWord::Measure => "measure",
            PhaseWord::Drain => "drain",
            PhaseWord::Collect => "collect",
        }
    }
}

impl From<Phase> for PhaseWord {
    fn from(phase: Phase) -> PhaseWord {
        match phase {
            Phase::Subscribe => PhaseWord::Subscribe,
            Phase::Connect => PhaseWord::Connect,
            Phase::WarmUp => PhaseWord::WarmUp,
            Phase::Measure => PhaseWord::Measure,
            Phase::Drain => PhaseWord::Drain,
            Phase::Collect => PhaseWord::Collect,
        }
    }
}

/// Whether a fault begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultWord {
    /// The fault begins.
    Begins,
    /// The fault has ended.
    Ends,
}

/// Progress of a run. Counters are those of the whole fleet since the start, and approximate until the run is over. In a
/// run on nodes they remain those of the warm-up during the measured window, in which nodes send no counts. In the drain they
/// are partly those of the warm-up until all nodes have sent their first counts. `outstanding` is `null` in such lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Time, seconds.
    pub t_s: f64,
    /// The phase.
    pub phase: PhaseWord,
    /// Time since the phase began, seconds.
    pub elapsed_s: f64,
    /// Length of the phase, seconds; `null` if it ends at an event, not at a time.
    pub length_s: Option<f64>,
    /// Subscriber sessions whose subscriptions are confirmed.
    pub subscribed: u64,
    /// Sessions that are connected.
    pub online: u64,
    /// Sessions whose latest attempt to connect failed.
    pub failing: u64,
    /// Messages of the measured window that were due.
    pub offered: u64,
    /// Messages written, warm-up included.
    pub sent: u64,
    /// Deliveries that are expected of the messages written.
    pub expected: u64,
    /// Deliveries that arrived.
    pub delivered: u64,
    /// Deliveries that have not arrived yet: `expected` less `delivered`. Messages in transit are included. `null` while
    /// nodes measure, because they send no counts meanwhile, until all nodes have sent their first counts of the drain, and in
    /// lines of an older version.
    #[serde(default)]
    pub outstanding: Option<u64>,
    /// Deliveries that are known to be lost so far: a later message of the same stream arrived at least two seconds
    /// ago, and they did not. A lost message that no later one followed, or that was sent while the publisher's
    /// connection broke, is counted only at the end (`counted` of `ends`). Warm-up included; `null` while other
    /// machines measure, while `outstanding` is, and in lines of an older version.
    #[serde(default)]
    pub lost: Option<u64>,
    /// Messages of the measured window that were written.
    #[serde(default)]
    pub measured_sent: u64,
    /// First copies of messages of the measured window that were delivered.
    #[serde(default)]
    pub measured_delivered: u64,
    /// Messages that are due and not yet passed to the client.
    pub backlog: u64,
    /// Messages that were passed to the client and are not yet settled.
    pub in_flight: u64,
    /// Messages written a second, since the previous line; `null` in the first line of a phase, within half a second of
    /// it, and where `outstanding` is `null` in this line or the previous one.
    pub sent_per_s: Option<f64>,
    /// Deliveries a second; `null` as for `sent_per_s`.
    pub delivered_per_s: Option<f64>,
    /// Latencies of the last seconds, while devices follow their schedule; `null` if other machines measure them.
    pub latency: Option<Latencies>,
    /// Latencies of the measured window since its start; `null` before it, if other machines measure them, and in lines
    /// of an older version.
    #[serde(default)]
    pub window: Option<WindowLatencies>,
    /// Resource usage of the system; `null` if it cannot be sampled.
    pub system: Option<Usage>,
    /// Resource usage of pubmark; `null` if other machines generate the load, or if it cannot be sampled.
    pub generator: Option<Usage>,
}

/// Latencies of the last second or seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latencies {
    /// Messages delivered in the last second.
    pub samples: u64,
    /// Median; `null` without enough samples in the last ten seconds.
    pub p50: Option<Interval>,
    /// 99th percentile; `null` without enough samples in the last ten seconds.
    pub p99: Option<Interval>,
}

/// Latencies of the measured window since its start, counted at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowLatencies {
    /// The measured latencies.
    pub upper: LatencyBuckets,
    /// The measured latencies less the possible delay of the generator. The time in a relay of pubmark, which is known only
    /// after the run, is still in them.
    pub lower: LatencyBuckets,
}

/// Histogram of latencies. Edges of buckets are a quarter of a power of two apart, from 4.096 µs to 68.7 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBuckets {
    /// Pairs of the upper edge of a bucket, ns, and the number of deliveries between the previous edge and this one;
    /// empty buckets are left out.
    pub below_ns: Vec<(u64, u64)>,
    /// Number of deliveries that took longer than the last edge.
    pub longer: u64,
    /// Sum of the latencies, seconds: within 1/32 of the exact sum.
    pub sum_s: f64,
}

/// Interval that contains a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower bound, µs.
    pub lower_us: f64,
    /// Upper bound, µs.
    pub upper_us: f64,
    /// Length of the time that the percentile covers, seconds.
    pub over_s: u32,
}

/// Resource usage of one side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Cores in use: CPU seconds a second, over about the last second.
    pub cores: f64,
    /// Resident set, bytes.
    pub rss_bytes: u64,
}

/// Upper edges of the buckets, ns.
pub fn latency_edges_ns() -> impl Iterator<Item = u64> {
    (0..BUCKETS).map(edge_ns)
}

impl From<&WindowLatency> for WindowLatencies {
    fn from(latency: &WindowLatency) -> WindowLatencies {
        WindowLatencies { upper: (&latency.upper).into(), lower: (&latency.lower).into() }
    }
}

impl From<&Buckets> for LatencyBuckets {
    fn from(buckets: &Buckets) -> LatencyBuckets {
        let with_edges = (0..BUCKETS).map(|bucket| (edge_ns(bucket), buckets.deliveries[bucket]));
        LatencyBuckets {
            below_ns: with_edges.filter(|(_, deliveries)| *deliveries > 0).collect(),
            longer: buckets.deliveries[BUCKETS],
            sum_s: buckets.sum_s,
        }
    }
}

impl From<LiveLatency> for Latencies {
    fn from(latency: LiveLatency) -> Latencies {
        let LiveLatency { samples, p50, p99 } = latency;
        Latencies { samples, p50: p50.map(Interval::from), p99: p99.map(Interval::from) }
    }
}

impl From<LiveInterval> for Interval {
    fn from(interval: LiveInterval) -> Interval {
        let LiveInterval { lower_ns, upper_ns, over_s } = interval;
        Interval { lower_us: lower_ns as f64 / 1e3, upper_us: upper_ns as f64 / 1e3, over_s }
    }
}

impl From<UsageNow> for Usage {
    fn from(usage: UsageNow) -> Usage {
        Usage { cores: (usage.cores * 1e4).round() / 1e4, rss_bytes: usage.rss_bytes }
    }
}
