//! The record itself, version 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::connecting::{RampUp, TlsFigures};
use crate::cost::{Cost, ResourceRow, Resources};
use crate::efficiency::EfficiencyFigures;
use crate::faults::FaultFigures;
use crate::links::LinkFigures;
use crate::nodes::{LostWorker, NodeRow};
use crate::requests::RequestFigures;
use crate::residence::ResidenceFigures;
use crate::tables::{Breakdown, PairRow, SeriesRow};

pub use crate::cost::{GeneratorHealth, ShardHealth};
pub use crate::system::{LimitInfo, PaperVersion, SystemEnd, SystemInfo, TopologyInfo};

/// Version of the record's schema: changes only when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of pubmark that wrote it.
    pub pubmark_version: String,
    /// Name of the run: its folder's name.
    pub run: String,
    /// The run's number, which marks its payloads.
    pub run_id: u32,
    /// Start of the measured window, RFC 3339, UTC.
    pub started_at: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// Whether the run came to its end.
    pub status: Status,
    /// May the figures be believed?
    pub verdict: Verdict,
    /// What was sent by whom.
    pub workload: WorkloadInfo,
    /// What was measured.
    pub system: SystemInfo,
    /// The protocol's name, for instance `mqtt5`.
    pub protocol: String,
    /// The protocol of subscribers, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe_protocol: Option<String>,
    /// What `sent` means: `wire` or `handed-over`.
    pub sent_means: String,
    /// Settings of the run.
    pub settings: Settings,
    /// Everything that differs from what was asked or from a default, by name.
    pub deviations: Vec<Deviation>,
    /// What happened to connections.
    pub connections: Connections,
    /// What TLS took; `null` without TLS.
    #[serde(default)]
    pub tls: Option<TlsFigures>,
    /// Subscriptions granted a lower level than asked for.
    pub granted_qos_lower: u64,
    /// Messages not sent because the system takes no packet of their size.
    pub too_large: u64,
    /// Messages whose configured size was raised to the header's.
    pub sizes_raised: u64,
    /// Messages sent again after a reconnect.
    pub resent: u64,
    /// What became of wills; `null` where no device leaves one.
    #[serde(default)]
    pub wills: Option<WillCounts>,
    /// Reactions; `null` where no device reacts.
    #[serde(default)]
    pub reactions: Option<ReactionCounts>,
    /// What clients filtered; `null` where the system does it for them.
    #[serde(default)]
    pub filtered: Option<FilteredCounts>,
    /// What became of requests; `null` where nobody asks.
    #[serde(default)]
    pub requests: Option<RequestFigures>,
    /// Emulated links; `null` where there are none.
    #[serde(default)]
    pub links: Option<LinkFigures>,
    /// Payload over bytes carried; `null` where no window was lived through.
    #[serde(default)]
    pub efficiency: Option<EfficiencyFigures>,
    /// Where the time of messages went; `null` where none crossed a link.
    #[serde(default)]
    pub residence: Option<ResidenceFigures>,
    /// Faults and what followed from them; `null` where nothing was broken.
    #[serde(default)]
    pub faults: Option<FaultFigures>,
    /// Bytes still unsent in our sockets at the end.
    pub socket_unsent_bytes: u64,
    /// Bytes that were read for subscribers at work, and not handled at the end.
    #[serde(default)]
    pub held_bytes: u64,
    /// Bytes that TCP had not brought from the system to clients when the drain was over, or that clients had not read (behind links
    /// the first alone); `null` where the system was not started by this run, or has no broker.
    #[serde(default)]
    pub system_unsent_bytes: Option<u64>,
    /// Time that threads of the system were ready to run and did not while stragglers were waited for, ns; `null` where that is not
    /// known.
    #[serde(default)]
    pub system_drain_wait_ns: Option<u64>,
    /// The books.
    pub delivery: Delivery,
    /// Did every writer–reader pair meet? `null` where a broker stands between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairCounts>,
    /// Delivery − due.
    pub latency_us: Option<Summary>,
    /// Delivery − write start.
    pub service_latency_us: Option<Summary>,
    /// Ready − due: ours.
    pub scheduler_lag_us: Option<Summary>,
    /// Written − ready: the system's.
    pub backpressure_us: Option<Summary>,
    /// Upper bound of the time between arrival at our socket and our read.
    pub receive_lateness_us: Option<Summary>,
    /// Our read − the kernel's receive stamp, where there is one.
    pub kernel_receive_lateness_us: Option<Summary>,
    /// Messages with a header too small for a write start: no service latency.
    pub without_write_start: u64,
    /// Rates.
    pub throughput: Throughput,
    /// What it cost.
    pub resources: Resources,
    /// The same per message and per connection.
    #[serde(default)]
    pub cost: Cost,
    /// State of our own threads.
    pub generator: GeneratorHealth,
    /// Per device type, first 256 and `other`.
    pub by_type: Vec<Breakdown>,
    /// Nodes of the run; empty where all ran in one process.
    #[serde(default)]
    pub nodes: Vec<NodeRow>,
    /// Worker processes that were lost, of a run whose clients were dealt out over processes but not over nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_workers: Vec<LostWorker>,
    /// Per publisher node and subscriber node.
    pub by_pair: Vec<PairRow>,
    /// Over time.
    pub series: Vec<SeriesRow>,
    /// CPU and memory over time.
    pub resource_series: Vec<ResourceRow>,
    /// Points of the percentile curves.
    pub curves: Vec<Curve>,
    /// Files beside the record, by what they hold, relative to it.
    pub files: std::collections::BTreeMap<String, String>,
    /// The machine.
    pub environment: Environment,
}

impl Record {
    /// What clients spoke, for people: one protocol, or the devices' and the subscribers'.
    pub fn protocols(&self) -> String {
        let publish = &self.protocol;
        self.subscribe_protocol.as_ref().map_or_else(|| publish.clone(), |second| format!("{publish} to {second}"))
    }
}

/// Writer–reader pairs that share a topic, of a system whose clients find each other by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairCounts {
    /// Pairs of which a measured message was expected: its writer had sent it, and its reader was there.
    pub all: u64,
    /// Of these, pairs of which nothing arrived, warm-up included.
    pub silent: u64,
    /// Of the silent, those that loss as it was between the other pairs does not explain.
    pub unmet: u64,
}

/// Did the run come to its end?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Yes.
    Complete,
    /// It was stopped; the record holds what was measured until then.
    Interrupted,
}

/// How far a run may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictStatus {
    /// Every check passed.
    Valid,
    /// A check is near its limit: read the reasons before quoting.
    Suspect,
    /// The figures do not describe the system.
    Invalid,
}

/// The verdict with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The worst of the reasons, `valid` where there are none.
    pub status: VerdictStatus,
    /// What was found wanting.
    pub reasons: Vec<Reason>,
    /// Every check that was made, passed or not, with its figures.
    pub checks: Vec<Check>,
}

/// One reason for a verdict below valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable code for `pubmark explain`, for instance `V01`.
    pub code: String,
    /// How bad.
    pub status: VerdictStatus,
    /// One sentence with the figures.
    pub text: String,
    /// What to do, as something that can be typed where possible.
    pub hint: String,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable code.
    pub code: String,
    /// What was checked.
    pub name: String,
    /// What it came to.
    pub status: VerdictStatus,
    /// Measured value with its unit, limits named.
    pub finding: String,
}

/// The workload of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadInfo {
    /// Its name.
    pub name: String,
    /// `published` or `corrected`.
    pub variant: String,
    /// Multiplier of device counts.
    pub scale: u32,
    /// Seed of every random draw.
    pub seed: u64,
    /// Hash over (device, due, configured size, churn); `none` where the schedule is not fixed before the run (flood).
    pub schedule_hash: String,
    /// Messages due in the measured window, counted from the schedule itself; `null` where it is not fixed before the run (flood).
    #[serde(default)]
    pub scheduled: Option<u64>,
    /// Devices.
    pub devices: u64,
    /// Subscribers.
    pub subscribers: u64,
    /// Topics published to.
    pub topics: u64,
    /// Where its figures come from.
    pub source: Option<String>,
    /// Delivery levels used by devices, as words.
    pub qos: Vec<String>,
}

/// Settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Cut from the front, seconds.
    pub warmup_s: f64,
    /// Measured window, seconds.
    pub duration_s: f64,
    /// Longest wait for stragglers, seconds.
    pub drain_limit_s: f64,
    /// Wait that it came to, seconds.
    pub drain_s: f64,
    /// Publisher shards.
    pub publisher_shards: u32,
    /// Subscriber shards.
    pub subscriber_shards: u32,
    /// SCHED_FIFO asked for and obtained.
    pub realtime: bool,
    /// The machine's cores were kept from sleeping.
    #[serde(default)]
    pub awake: bool,
    /// TLS.
    pub tls: bool,
    /// Congestion control that our sockets were given; `null` where they had the machine's ([`Environment`]).
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// Clients had a certificate of their own to show.
    #[serde(default)]
    pub client_certificate: bool,
    /// Addresses of ours that connections came from in turn; 0 for the kernel's choice.
    #[serde(default)]
    pub source_addresses: u32,
    /// Due = ready, no latency verdict.
    pub flood: bool,
    /// First instant of the measured window, ns of `CLOCK_MONOTONIC` of the machine that ran it; 0 if it never began.
    pub window_start_ns: u64,
    /// First instant after it.
    pub window_end_ns: u64,
    /// Connects started per second at most.
    pub connects_per_s: f64,
    /// Repetition of this workload in the call, from 1.
    pub repetition: u32,
    /// Repetitions of the call.
    pub repetitions: u32,
}

/// A difference from what was asked or from a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deviation {
    /// Short stable name.
    pub name: String,
    /// One sentence.
    pub detail: String,
}

/// What happened to connections; planned churn is apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Connects tried.
    pub attempted: u64,
    /// Connects that succeeded.
    pub established: u64,
    /// Not reached or turned away.
    pub refused: u64,
    /// Wrong or missing user name or password.
    pub auth_failed: u64,
    /// TLS could not be agreed.
    pub tls_failed: u64,
    /// Ended without our asking.
    pub dropped: u64,
    /// Connects tried again after a failure or a drop.
    pub retried: u64,
    /// Planned leaves by churn.
    pub planned_leaves: u64,
    /// Subscriptions refused by the server.
    pub subscriptions_refused: u64,
    /// Each cause with its count, most frequent first, at most 32.
    pub causes: Vec<CauseCount>,
    /// Time from connect to the server's acceptance: TCP, TLS, and the protocol's own opening.
    pub connect_us: Option<Summary>,
    /// How sessions came up before the schedule began, by side.
    #[serde(default)]
    pub ramp_up: Vec<RampUp>,
}

/// Wills: messages that the system publishes for devices that go without a goodbye. No schedule offers them, so they are not in
/// the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WillCounts {
    /// Connections with a will that were open and ended without a goodbye of ours.
    pub due: u64,
    /// Wills that arrived, once for each subscription that got one.
    pub delivered: u64,
}

/// Messages by what made them due, and how long chains of them took. Measured messages only: a reaction belongs to the
/// window if the scheduled message at the root of its chain does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReactionCounts {
    /// Messages offered by schedules.
    pub scheduled: u64,
    /// Messages offered because others were delivered.
    pub triggered: u64,
    /// Reactions that were never triggered: those of an ideal system, which delivers all that is offered by a device online,
    /// minus `triggered`.
    pub starved: u64,
    /// Delivery of a reaction − due time of its chain's root.
    pub chain_latency_us: Option<Summary>,
}

/// What clients filtered, in protocols that leave it to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilteredCounts {
    /// Of the sent, kept back by their publishers: nobody at the other end of the connection had asked for them. Where a
    /// subscription of ours held a session then, they are lost.
    pub withheld: u64,
    /// Messages that arrived and that no filter of their subscriber chose, from the first to the last of the run.
    pub passed_over: u64,
}

/// How often a cause was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CauseCount {
    /// The cause in words.
    pub cause: String,
    /// How often.
    pub count: u64,
}

/// The books. `offered = sent + skipped_planned + skipped_disconnected + refused + unsent`;
/// `expected = delivered + lost + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Due in the measured window.
    pub offered: u64,
    /// Handed to the system.
    pub sent: u64,
    /// Not sent: the device was planned offline.
    pub skipped_planned: u64,
    /// Not sent, or only in part: the connection was lost unplanned.
    pub skipped_disconnected: u64,
    /// Refused by the system or its limits.
    pub refused: u64,
    /// Still waiting at the deadline.
    pub unsent: u64,
    /// Sent, once for each subscription that held a session then; a shared group is one subscription.
    pub expected: u64,
    /// Of these, arrived (first copies).
    pub delivered: u64,
    /// Of these, did not arrive.
    pub lost: u64,
    /// Of these, sent at QoS 1 or 2 on a connection that died before the acknowledgement, and did not arrive.
    pub unknown: u64,
    /// Of the delivered, arrived more than 2 s after publishing ended.
    pub late: u64,
    /// Further copies.
    pub duplicated: u64,
    /// Of the delivered, arrived after a later message of their stream.
    pub out_of_order: u64,
    /// Further copies that a second matching filter of the same client explains.
    pub overlap: u64,
    /// Retained messages replayed on subscribing.
    pub retained_replay: u64,
    /// Messages of another run, or not ours.
    pub foreign: u64,
    /// Messages that arrived shorter than their publisher sends any; not part of delivered.
    #[serde(default)]
    pub truncated: u64,
    /// Sent while a subscription held no session, and not delivered to it; not part of expected.
    pub absent: u64,
    /// Copies of refused messages that were delivered all the same; not part of delivered.
    pub delivered_after_refusal: u64,
    /// A cap was reached; the counts of missing and further copies may be off.
    pub approximate: bool,
}

/// A distribution in µs. Percentiles are `null` where fewer than 10 samples lie beyond them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Samples.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Smallest.
    pub min: f64,
    /// 25th percentile.
    pub p25: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: f64,
    /// Samples below zero, counted as 0 here.
    pub negative: u64,
    /// Samples above the histogram's range, counted as its largest value here.
    pub clipped: u64,
}

/// Rates over the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Offered per second.
    pub offered_per_s: f64,
    /// Sent per second.
    pub sent_per_s: f64,
    /// Delivered per second of the window (arrivals inside it only).
    pub delivered_per_s: f64,
    /// Payload bytes delivered per second of the window.
    pub payload_bytes_per_s: f64,
    /// Deliveries in full seconds; `null` below one full second.
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

/// The machine and its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Operating system's name.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor's name.
    pub cpu: String,
    /// Cores that we may use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Load average over one minute before the run.
    pub load_before: Option<f64>,
    /// And after it.
    pub load_after: Option<f64>,
    /// Share of CPU time stolen by the hypervisor during the run, 0 to 1.
    pub steal: Option<f64>,
    /// Cores that all of the machine kept busy in the measured window, pubmark and the system among it; time stolen is not.
    #[serde(default)]
    pub busy_cores: Option<f64>,
    /// Frequency governor, where it can be read.
    pub governor: Option<String>,
    /// Virtualisation, where it can be told.
    pub virtualization: Option<String>,
    /// Descriptor limit.
    pub descriptor_limit: u64,
    /// TCP congestion control of the machine's sockets.
    pub congestion_control: Option<String>,
    /// The clock of latencies.
    pub clock: String,
}
