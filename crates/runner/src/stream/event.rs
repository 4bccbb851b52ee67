//! The lines: one JSON object each; `event` says of which kind. A missing measurement is `null`.

use pubmark_engine::run::Phase;
use pubmark_engine::window_latency::{BUCKETS, Buckets, WindowLatency, edge_ns};
use pubmark_systems::sampler::UsageNow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::observer::{LiveInterval, LiveLatency};

/// Version of the lines: changes only when a field changes its meaning or goes away.
pub const STREAM_VERSION: u32 = 1;

/// A line of `--events`. `t_s` is the time since the command began, seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum StreamEvent {
    /// A run, an experiment or a search for capacity has its folder, and begins.
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
    /// How a run goes, once a second.
    Progress(Box<Progress>),
    /// A fault of the workload begins or ends.
    Fault {
        /// Time, seconds.
        t_s: f64,
        /// Which of both.
        what: FaultWord,
        /// Its kind and what it befalls; the same words at its end.
        fault: String,
    },
    /// A node joined or left.
    Node {
        /// Time, seconds.
        t_s: f64,
        /// Its name.
        name: String,
        /// Is it there now?
        joined: bool,
        /// Where it is, if it joined.
        address: Option<String>,
        /// Why it left, if it did.
        reason: Option<String>,
    },
    /// Something else that a person should know: a trial ended, the machine is busy.
    Note {
        /// Time, seconds.
        t_s: f64,
        /// In words.
        text: String,
    },
    /// The run, experiment or search is over, and its folder is written.
    Ends(Ends),
    /// It came to no outcome.
    Failed(Failed),
}

/// What begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Begins {
    /// Time, seconds.
    pub t_s: f64,
    /// Version of the lines, 1.
    pub stream_version: u32,
    /// Its folder.
    pub folder: String,
    /// What is run: the name of a workload or an experiment.
    pub name: String,
    /// Number of this repetition, from 1.
    pub repetition: u32,
    /// Repetitions in all.
    pub repetitions: u32,
    /// What is measured; `null` where several systems are, and in lines of an older version.
    #[serde(default)]
    pub system: Option<String>,
    /// What devices speak, likewise.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Load before the measured window, seconds; of a run.
    pub warmup_s: Option<f64>,
    /// Length of the measured window, seconds; of a run.
    pub duration_s: Option<f64>,
}

/// A run of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunBegins {
    /// Time, seconds.
    pub t_s: f64,
    /// Its number, from 1.
    pub number: u64,
    /// Runs in all.
    pub of: u64,
    /// Label of its cell.
    pub cell: String,
    /// Name of its workload; `null` in lines of an older version.
    #[serde(default)]
    pub workload: Option<String>,
    /// Name of its system, likewise.
    #[serde(default)]
    pub system: Option<String>,
    /// What devices speak, likewise.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Time that it and the rest may take, seconds.
    pub left_s: f64,
}

/// A trial of a search for capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialBegins {
    /// Time, seconds.
    pub t_s: f64,
    /// Its number, from 1.
    pub number: u64,
    /// Messages offered per second.
    pub offered_per_s: f64,
    /// Number of this try of the load, from 1.
    pub attempt: u32,
    /// Time in which further trials may begin, seconds.
    pub left_s: f64,
}

/// The end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ends {
    /// Time, seconds.
    pub t_s: f64,
    /// Its folder.
    pub folder: String,
    /// `complete` or `interrupted`.
    pub status: String,
    /// `valid`, `suspect` or `invalid`; `null` where nothing is judged as a whole.
    pub verdict: Option<String>,
    /// What the message accounting of a run came to; `null` for what is not a run, and in lines of an older version.
    #[serde(default)]
    pub counted: Option<Counted>,
}

/// What became of the messages of the measured window, as the record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// Messages that were due.
    pub offered: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// First copies that were delivered.
    pub delivered: u64,
    /// Deliveries that never came.
    pub lost: u64,
}

/// A failure, as it is printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Time, seconds.
    pub t_s: f64,
    /// The code that the command ends with.
    pub exit_code: u8,
    /// What was tried, then why, outermost first.
    pub chain: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
}

/// Phases of a run, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseWord {
    /// Subscribers come up.
    Subscribe,
    /// Devices come up.
    Connect,
    /// The schedule runs, nothing is measured yet.
    WarmUp,
    /// The measured window.
    Measure,
    /// Late messages are waited for.
    Drain,
    /// Sessions are ended, the message accounting is closed.
    Collect,
}

impl PhaseWord {
    /// All of them, in order.
    pub const ALL: [PhaseWord; 6] = [
        PhaseWord::Subscribe,
        PhaseWord::Connect,
        PhaseWord::WarmUp,
        PhaseWord::Measure,
        PhaseWord::Drain,
        PhaseWord::Collect,
    ];

    /// The word.
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

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultWord {
    /// It begins.
    Begins,
    /// It is over.
    Ends,
}

/// How a run goes. Counters are of the whole fleet since its beginning, and approximate until the run is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Time, seconds.
    pub t_s: f64,
    /// The phase.
    pub phase: PhaseWord,
    /// Time since the phase began, seconds.
    pub elapsed_s: f64,
    /// Length of the phase, seconds; `null` if it ends when something has come about.
    pub length_s: Option<f64>,
    /// Subscriber sessions that are subscribed.
    pub subscribed: u64,
    /// Sessions that are up.
    pub online: u64,
    /// Sessions whose newest attempt to connect failed.
    pub failing: u64,
    /// Messages of the measured window that were due.
    pub offered: u64,
    /// Messages written, warm-up included.
    pub sent: u64,
    /// Deliveries to come of them.
    pub expected: u64,
    /// Deliveries that came.
    pub delivered: u64,
    /// Deliveries that have not come yet: `expected` less `delivered`. Messages on their way are among them. `null` in lines of an older
    /// version.
    #[serde(default)]
    pub outstanding: Option<u64>,
    /// Deliveries that are lost as far as it is known by now: at least two seconds ago a later message of the same stream came, and they did
    /// not. What no message came after, and what was sent while a publisher's connection broke, is counted at the end alone (`counted` of
    /// `ends`). Warm-up included; `null` while other machines measure, and in lines of an older version.
    #[serde(default)]
    pub lost: Option<u64>,
    /// Messages of the measured window written.
    #[serde(default)]
    pub measured_sent: u64,
    /// First copies of them delivered.
    #[serde(default)]
    pub measured_delivered: u64,
    /// Messages that are due and not handed over.
    pub backlog: u64,
    /// Messages that are handed over and not settled.
    pub in_flight: u64,
    /// Messages written a second, over the time since the line before; `null` in the first of a phase, and within half a second of it.
    pub sent_per_s: Option<f64>,
    /// Deliveries a second, likewise.
    pub delivered_per_s: Option<f64>,
    /// Latencies of the last seconds, while devices follow their schedule; `null` where other machines measure them.
    pub latency: Option<Latencies>,
    /// Latencies of the measured window since its beginning; `null` before it, where other machines measure them, and in lines of an older
    /// version.
    #[serde(default)]
    pub window: Option<WindowLatencies>,
    /// What the system uses; `null` where it cannot be sampled.
    pub system: Option<Usage>,
    /// What pubmark uses.
    pub generator: Option<Usage>,
}

/// Latencies of the last second, or seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latencies {
    /// Messages delivered in the last second.
    pub samples: u64,
    /// Median; `null` without enough samples in the last ten seconds.
    pub p50: Option<Interval>,
    /// The same for 99 %.
    pub p99: Option<Interval>,
}

/// Latencies of the measured window since its beginning, counted at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowLatencies {
    /// As they were measured.
    pub upper: LatencyBuckets,
    /// Without what may be the generator's own delay.
    pub lower: LatencyBuckets,
}

/// How many deliveries took how long. Edges of buckets are a quarter of a power of two apart, from 4.096 µs to 68.7 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBuckets {
    /// Pairs of the upper edge of a bucket, ns, and the deliveries between the edge before and this one; buckets without any are left
    /// out.
    pub below_ns: Vec<(u64, u64)>,
    /// Deliveries that took longer than the last edge.
    pub longer: u64,
    /// Sum of the latencies, seconds: within 1/32 of the exact sum.
    pub sum_s: f64,
}

/// A percentile lies between these.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// At least, µs.
    pub lower_us: f64,
    /// At most, µs.
    pub upper_us: f64,
    /// Seconds that it is of.
    pub over_s: u32,
}

/// What one side uses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Cores: CPU seconds a second, over the last second or so.
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
