//! What a shard found out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_metrics::ledger::Ledger;
use pubmark_metrics::series::Series;
use pubmark_protocol::client_program::Misreport;
use pubmark_protocol::tls::Agreed;
use pubmark_record::connections::AgreedOn;
use serde::{Deserialize, Serialize};

use crate::content::counts::ContentCounts;
use crate::content::matches::MatchNotes;
use crate::epochs::Epochs;
use crate::faults::log::FaultNotes;
use crate::followed::Followed;
use crate::message_log::writer::Logged;
use crate::plan::{PAIRED_NODES, TYPE_LIMIT};
use crate::ramp::Ramp;
use crate::remote::bounded;
use crate::requests::ShardRequests;
use crate::spent::Spent;
use crate::traffic::GroupTraffic;
use crate::transform::GroupTransforms;

/// One publisher's side of the books. Counts are of measured messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PublisherBook {
    /// Number in the fleet.
    pub publisher: u32,
    /// Index of its group.
    pub group: u16,
    /// It stands for its device: a device that reacts to many is several publishers.
    pub leads: bool,
    /// Due.
    pub offered: u64,
    /// Due while planned online.
    pub planned_online: u64,
    /// Due while planned offline, so not sent.
    pub skipped_planned: u64,
    /// Due after an unplanned loss of the connection, so not sent.
    pub skipped_disconnected: u64,
    /// Larger than the system takes, so not sent.
    pub too_large: u64,
    /// Due and still waiting at the deadline.
    pub unsent: u64,
    /// Sizes raised to the header's, of those due.
    pub sizes_raised: u64,
    /// Sequence number of the first measured message; 0 while there is none.
    pub first_measured: u32,
    /// Highest sequence number used; 0 while there is none.
    pub last: u32,
    /// Written wholly, measured.
    pub written: u64,
    /// Measured messages whose last byte was never accepted because their connection ended (planned or not).
    pub broken: Vec<u32>,
    /// Measured messages still in our hands at the deadline.
    pub stuck: Vec<u32>,
    /// Measured messages that the system refused after they were sent.
    pub refused: BTreeSet<u32>,
    /// Messages whose acknowledgement can no longer come.
    pub unanswered: Vec<u32>,
    /// When its messages were handed over.
    pub epochs: Epochs,
    /// (segment between faults, first sequence number handed over in it), likewise; empty in a run without faults.
    pub segments: Vec<(u16, u32)>,
    /// Which of its measured messages the predicates of subscribers choose; empty where none receives it.
    pub matches: Vec<MatchNotes>,
}

/// A time during which the system did not hold a filter of an audience: no session of it was there, or it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// The audience's number in the books.
    pub subscriber: u32,
    /// The filter, by its place in the subscription.
    pub filter: u16,
    /// First epoch of it.
    pub from_epoch: u32,
    /// First epoch after it; `None` if it lasted to the end.
    pub to_epoch: Option<u32>,
}

/// Streams of one audience from one publisher, as the ledger numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRow {
    /// The audience's number in the books.
    pub subscriber: u32,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// The ledger's stream of first copies; further ones follow for further matching filters.
    pub stream: u32,
    /// Filters of the subscriber that match the publisher's topic.
    pub filters: u8,
    /// The group of subscribers whose predicate the system filters by, if it does.
    pub filtered_for: Option<u16>,
}

/// Counters and times by device type, for what is known at the delivering side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TypeTimes {
    /// Delivery − due.
    pub latency: Bounds,
    /// Delivery − write start.
    pub service_latency: Bounds,
    /// Written − ready.
    pub backpressure: Distribution,
    /// First copies after a newer message.
    pub out_of_order: u64,
    /// Further copies.
    pub duplicated: u64,
    /// Copies for a second filter.
    pub overlap: u64,
    /// First copies more than 2 s after publishing ended.
    pub late: u64,
}

impl TypeTimes {
    /// Nothing yet.
    pub fn new() -> TypeTimes {
        TypeTimes {
            latency: Bounds::new(Precision::Breakdown),
            service_latency: Bounds::new(Precision::Breakdown),
            backpressure: Distribution::new(Precision::Breakdown),
            out_of_order: 0,
            duplicated: 0,
            overlap: 0,
            late: 0,
        }
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: &TypeTimes) {
        self.latency.merge(&other.latency);
        self.service_latency.merge(&other.service_latency);
        self.backpressure.merge(&other.backpressure);
        self.out_of_order += other.out_of_order;
        self.duplicated += other.duplicated;
        self.overlap += other.overlap;
        self.late += other.late;
    }
}

impl Default for TypeTimes {
    fn default() -> TypeTimes {
        TypeTimes::new()
    }
}

/// The times of a whole run, or of one shard's part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Delivery − due.
    pub latency: Bounds,
    /// Delivery − write start.
    pub service_latency: Bounds,
    /// Ready − due.
    pub scheduler_lag: Distribution,
    /// Written − ready.
    pub backpressure: Distribution,
    /// Our read − the latest time at which the message cannot have been there.
    pub receive_lateness: Distribution,
    /// Our read − the kernel's stamp.
    pub kernel_lateness: Distribution,
    /// Delivery of a reaction − due time of the root of its chain.
    pub chain: Bounds,
    /// Connect to acceptance.
    pub connect: Distribution,
    /// Of connections over TLS: TCP connected to TLS agreed on, with certificates.
    pub full_handshake: Distribution,
    /// The same where an earlier session was taken up.
    pub resumed_handshake: Distribution,
    /// TLS agreed on to acceptance: the protocol's own opening.
    pub opening: Distribution,
    /// Ping to pong of client programs.
    pub program_round_trip: Distribution,
}

impl Times {
    /// Nothing yet.
    pub fn new() -> Times {
        let empty = || Distribution::new(Precision::Total);
        Times {
            latency: Bounds::new(Precision::Total),
            service_latency: Bounds::new(Precision::Total),
            scheduler_lag: empty(),
            backpressure: empty(),
            receive_lateness: empty(),
            kernel_lateness: empty(),
            chain: Bounds::new(Precision::Total),
            connect: Distribution::new(Precision::Breakdown),
            full_handshake: Distribution::new(Precision::Breakdown),
            resumed_handshake: Distribution::new(Precision::Breakdown),
            opening: Distribution::new(Precision::Breakdown),
            program_round_trip: Distribution::new(Precision::Breakdown),
        }
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: &Times) {
        self.latency.merge(&other.latency);
        self.service_latency.merge(&other.service_latency);
        self.scheduler_lag.merge(&other.scheduler_lag);
        self.backpressure.merge(&other.backpressure);
        self.receive_lateness.merge(&other.receive_lateness);
        self.kernel_lateness.merge(&other.kernel_lateness);
        self.chain.merge(&other.chain);
        self.connect.merge(&other.connect);
        self.full_handshake.merge(&other.full_handshake);
        self.resumed_handshake.merge(&other.resumed_handshake);
        self.opening.merge(&other.opening);
        self.program_round_trip.merge(&other.program_round_trip);
    }
}

impl Default for Times {
    fn default() -> Times {
        Times::new()
    }
}

/// Counters that need no stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Connects tried.
    pub attempted: u64,
    /// Connects accepted.
    pub established: u64,
    /// Not reached or turned away.
    pub refused: u64,
    /// Refused for the log-in.
    pub auth_failed: u64,
    /// Of those that had been accepted, ended by the system because their log-in holds no longer.
    pub log_in_ended: u64,
    /// New tokens that the system took on open connections.
    pub reauthenticated: u64,
    /// TLS not agreed.
    pub tls_failed: u64,
    /// Ended without our asking.
    pub dropped: u64,
    /// Connections for which TLS was agreed on, by how it was.
    pub secured: Vec<AgreedOn>,
    /// Tried again.
    pub retried: u64,
    /// Planned leaves.
    pub planned_leaves: u64,
    /// Subscriptions refused.
    pub subscriptions_refused: u64,
    /// Subscriptions granted lower than asked.
    pub granted_lower: u64,
    /// Servers that accept a lower level for publishing than we use.
    pub publish_level_lower: u64,
    /// Cause of an end in words → how often; at most 32 different ones, then `other causes`.
    pub causes: HashMap<String, u64>,
    /// Retained messages replayed.
    pub retained_replay: u64,
    /// Messages not of this run, or not ours.
    pub foreign: u64,
    /// Messages of this run that arrived shorter than the smallest that their publisher sends.
    pub truncated: u64,
    /// Measured messages whose steps of `transform` could not be undone.
    pub corrupt: u64,
    /// Connections with a will that ended without a goodbye.
    pub wills_due: u64,
    /// Measured messages that their senders kept back, as nobody at the other end had asked for them.
    pub withheld: u64,
    /// Messages that arrived and that no filter of their session chose.
    pub passed_over: u64,
    /// Wills that arrived, once for each audience that heard one.
    pub wills: u64,
    /// Connections whose server takes no number in place of a topic, although one was asked for.
    pub topic_alias_refused: u64,
    /// Messages sent again.
    pub resent: u64,
    /// Messages that arrived and were dropped by us, as a shard did not take them from a client library in time.
    pub missed: u64,
    /// What client programs reported that cannot be true.
    pub misreports: BTreeMap<Misreport, u64>,
    /// How a client program ended before the end of the run.
    pub program_ended: Option<String>,
    /// Deliveries with a header too small for a write start.
    pub without_write_start: u64,
    /// First copies delivered inside the measured window.
    pub delivered_in_window: u64,
    /// Their payload bytes.
    pub bytes_in_window: u64,
    /// Further copies, measured.
    pub duplicated: u64,
    /// Copies for a second filter, measured.
    pub overlap: u64,
    /// First copies after a newer message, measured.
    pub out_of_order: u64,
    /// First copies more than 2 s after publishing ended, measured.
    pub late: u64,
}

/// Most causes that are counted by name; further ones are counted together.
pub const CAUSE_LIMIT: usize = 32;

impl Counters {
    /// Counts a connection for which TLS was agreed on.
    pub fn count_secured(&mut self, agreed: &Agreed) {
        self.count_agreed(AgreedOn::new(agreed.version, agreed.suite, agreed.group, agreed.resumed, 1));
    }

    fn count_agreed(&mut self, agreed: AgreedOn) {
        match self.secured.iter_mut().find(|known| known.is_like(&agreed)) {
            Some(known) => known.count += agreed.count,
            None => self.secured.push(agreed),
        }
    }

    /// Counts a cause in words.
    pub fn count_cause(&mut self, words: String) {
        let known = self.causes.len() < CAUSE_LIMIT || self.causes.contains_key(&words);
        *self.causes.entry(if known { words } else { "other causes".into() }).or_default() += 1;
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: Counters) {
        self.attempted += other.attempted;
        self.established += other.established;
        self.refused += other.refused;
        self.auth_failed += other.auth_failed;
        self.log_in_ended += other.log_in_ended;
        self.reauthenticated += other.reauthenticated;
        self.tls_failed += other.tls_failed;
        self.dropped += other.dropped;
        other.secured.into_iter().for_each(|agreed| self.count_agreed(agreed));
        self.retried += other.retried;
        self.planned_leaves += other.planned_leaves;
        self.subscriptions_refused += other.subscriptions_refused;
        self.granted_lower += other.granted_lower;
        self.publish_level_lower += other.publish_level_lower;
        for (words, count) in other.causes {
            *self.causes.entry(words).or_default() += count;
        }
        self.retained_replay += other.retained_replay;
        self.foreign += other.foreign;
        self.truncated += other.truncated;
        self.corrupt += other.corrupt;
        self.wills_due += other.wills_due;
        self.withheld += other.withheld;
        self.passed_over += other.passed_over;
        self.wills += other.wills;
        self.topic_alias_refused += other.topic_alias_refused;
        self.resent += other.resent;
        self.missed += other.missed;
        for (misreport, count) in other.misreports {
            *self.misreports.entry(misreport).or_default() += count;
        }
        self.program_ended = self.program_ended.take().or(other.program_ended);
        self.without_write_start += other.without_write_start;
        self.delivered_in_window += other.delivered_in_window;
        self.bytes_in_window += other.bytes_in_window;
        self.duplicated += other.duplicated;
        self.overlap += other.overlap;
        self.out_of_order += other.out_of_order;
        self.late += other.late;
    }
}

/// Most groups of subscribers of a workload, and of devices with steps of `transform`.
const GROUP_LIMIT: usize = 10_000;

/// What one shard hands over at the end.
#[derive(Serialize, Deserialize)]
pub struct ShardOutcome {
    /// Its name.
    pub name: String,
    /// Its publishers' books.
    pub publishers: Vec<PublisherBook>,
    /// Its subscriptions' books.
    pub ledger: Ledger,
    /// What the ledger's streams are.
    pub streams: Vec<StreamRow>,
    /// Times without a session.
    pub absences: Vec<Absence>,
    /// Requests and answers.
    pub requests: ShardRequests,
    /// Times.
    pub times: Times,
    /// Times by type: by group index up to [`TYPE_LIMIT`], then one for the rest.
    #[serde(deserialize_with = "bounded::at_most::<{ TYPE_LIMIT + 1 }, _, _>")]
    pub types: Vec<Option<Box<TypeTimes>>>,
    /// Counters.
    pub counters: Counters,
    /// What its clients with predicates did, by subscriber group.
    #[serde(deserialize_with = "bounded::at_most::<{ GROUP_LIMIT }, _, _>")]
    pub content: Vec<Option<Box<ContentCounts>>>,
    /// What steps of `transform` did, by device group.
    #[serde(deserialize_with = "bounded::at_most::<{ GROUP_LIMIT }, _, _>")]
    pub transform: GroupTransforms,
    /// Over time.
    pub series: Series,
    /// Latencies by the sender's node, in a run on several.
    #[serde(deserialize_with = "bounded::at_most::<{ PAIRED_NODES as usize }, _, _>")]
    pub from_nodes: Vec<Option<Box<Bounds>>>,
    /// What its sessions carried, by connection group.
    pub traffic: Vec<GroupTraffic>,
    /// Deliveries of messages that are followed.
    pub followed: Followed,
    /// Bytes unsent at the end.
    pub unsent_bytes: u64,
    /// Bytes that were read for subscribers at work, and not handled at the end.
    pub held_bytes: u64,
    /// What the thread spent in the measured window; `None` if the window did not begin or never came to its end.
    pub spent: Option<Spent>,
    /// Sessions.
    pub sessions: u64,
    /// How they came up before the schedule began.
    pub ramp: Ramp,
    /// What was noted while there were faults.
    pub faults: Option<FaultNotes>,
    /// What its part of the message log lacks, in a run with one.
    pub logged: Option<Logged>,
}
