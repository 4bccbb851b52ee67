//! The outcome of a shard.

use std::collections::{BTreeMap, HashMap};

use pubmark_metrics::bounded;
use pubmark_metrics::bounds::Bounds;
use pubmark_metrics::distribution::{Distribution, Precision};
use pubmark_metrics::holes::Holes;
use pubmark_metrics::ledger::Ledger;
use pubmark_metrics::series::Series;
use pubmark_protocol::client_program::Misreport;
use pubmark_protocol::tls::Agreed;
use pubmark_record::connections::AgreedOn;
use serde::{Deserialize, Serialize};

use crate::content::counts::ContentCounts;
use crate::content::matches::MatchNotes;
use crate::due_times::sample::{DueClaim, SAMPLE};
use crate::epochs::Epochs;
use crate::faults::log::FaultNotes;
use crate::followed::FollowedDeliveries;
use crate::message_log::writer::Logged;
use crate::plan::{PAIRED_NODES, TYPE_LIMIT};
use crate::ramp::Ramp;
use crate::requests::ShardRequests;
use crate::traffic::GroupTraffic;
use crate::transform::GroupTransforms;
use crate::usage::ThreadUsage;

/// One publisher's side of the message accounting. Counts are of measured messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PublisherBook {
    /// Number in the fleet.
    pub publisher: u32,
    /// Index of its group.
    pub group: u16,
    /// It is the first publisher of its device. A device that reacts to several triggers has several publishers.
    pub leads: bool,
    /// Due.
    pub offered: u64,
    /// Due while planned online.
    pub planned_online: u64,
    /// Due while planned offline, or left out because the device sent less after a received message.
    pub skipped_planned: u64,
    /// Of `skipped_planned`, left out because the device sent less.
    pub slowed: u64,
    /// Due after an unplanned loss of the connection, so not sent.
    pub skipped_disconnected: u64,
    /// Larger than the system accepts, so not sent.
    pub too_large: u64,
    /// Due and still waiting at the deadline.
    pub unsent: u64,
    /// Payload sizes raised to the size of the header, of messages that were due.
    pub sizes_raised: u64,
    /// Sequence number of the first measured message; 0 if there is none yet.
    pub first_measured: u32,
    /// Highest sequence number used; 0 if there is none yet.
    pub last: u32,
    /// Written completely, measured.
    pub written: u64,
    /// Measured messages whose last byte was never accepted because their connection ended (planned or not).
    pub broken: Vec<u32>,
    /// Measured messages not yet written completely at the deadline.
    pub stuck: Vec<u32>,
    /// Measured messages that the system refused after they were sent. A system may refuse all of them.
    pub refused: Holes,
    /// Messages whose acknowledgement can no longer arrive.
    pub unanswered: Vec<u32>,
    /// Epochs in which its messages were passed to the adapter.
    pub epochs: Epochs,
    /// (segment between faults, first sequence number passed to the adapter in it); empty in a run without faults.
    pub segments: Vec<(u16, u32)>,
    /// Which of its measured messages the predicates of subscribers match; empty if no such subscriber receives them.
    pub matches: Vec<MatchNotes>,
}

/// A period in which a filter of an audience was not active in the system: the audience had no session, or the filter
/// was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// The audience's number in the message accounting.
    pub subscriber: u32,
    /// Index of the filter in the subscription.
    pub filter: u16,
    /// First epoch of the absence.
    pub from_epoch: u32,
    /// First epoch after the absence; `None` if it lasted to the end.
    pub to_epoch: Option<u32>,
}

/// Streams of one audience from one publisher, as numbered in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRow {
    /// The audience's number in the message accounting.
    pub subscriber: u32,
    /// The publisher's number in the fleet.
    pub publisher: u32,
    /// The ledger's stream of first copies. The streams of copies for further matching filters have the next numbers.
    pub stream: u32,
    /// Filters of the subscriber that match the publisher's topic.
    pub filters: u8,
    /// The subscriber group whose predicate the system filters by, if any.
    pub filtered_for: Option<u16>,
}

/// Counters and times by device type that are known on the receiver's side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TypeTimes {
    /// Delivery − due.
    pub latency: Bounds,
    /// Delivery − write start.
    pub service_latency: Bounds,
    /// Written − ready.
    pub backpressure: Distribution,
    /// First copies that arrived after a newer message.
    pub out_of_order: u64,
    /// Duplicates.
    pub duplicated: u64,
    /// Copies for a second matching filter.
    pub overlap: u64,
    /// First copies more than 2 s after publishing ended, and after they were due.
    pub late: u64,
}

impl TypeTimes {
    /// Without samples.
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

    /// Adds the values of another shard.
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

/// The times of a whole run, or of one shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Times {
    /// Delivery − due.
    pub latency: Bounds,
    /// Delivery − write start.
    pub service_latency: Bounds,
    /// Ready − due.
    pub scheduler_lag: Distribution,
    /// Written − ready.
    pub backpressure: Bounds,
    /// Our read − the latest time at which the message had certainly not arrived.
    pub receive_lateness: Distribution,
    /// Our read − the kernel's timestamp.
    pub kernel_lateness: Distribution,
    /// Delivery of a reaction − due time of the root of its chain.
    pub chain: Bounds,
    /// From the connect to its acceptance.
    pub connect: Distribution,
    /// Of connections over TLS: from the TCP connection to the end of a full TLS handshake, with certificates.
    pub full_handshake: Distribution,
    /// The same for handshakes that resumed an earlier session.
    pub resumed_handshake: Distribution,
    /// From the end of the TLS handshake to acceptance: the protocol's connect exchange.
    pub opening: Distribution,
    /// From ping to pong of client programs.
    pub program_round_trip: Distribution,
}

impl Times {
    /// Without samples.
    pub fn new() -> Times {
        let empty = || Distribution::new(Precision::Total);
        Times {
            latency: Bounds::new(Precision::Total),
            service_latency: Bounds::new(Precision::Total),
            scheduler_lag: empty(),
            backpressure: Bounds::new(Precision::Total),
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

    /// Adds the values of another shard.
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

/// Counters that do not depend on streams.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Connects attempted.
    pub attempted: u64,
    /// Connects accepted.
    pub established: u64,
    /// Not reached, or rejected.
    pub refused: u64,
    /// Rejected because of the credentials.
    pub auth_failed: u64,
    /// Accepted connections that the system ended because their credentials were no longer valid.
    pub log_in_ended: u64,
    /// New tokens that the system accepted on open connections.
    pub reauthenticated: u64,
    /// Failed TLS handshakes.
    pub tls_failed: u64,
    /// Ended without a request by pubmark.
    pub dropped: u64,
    /// Connections with a completed TLS handshake, by its parameters.
    pub secured: Vec<AgreedOn>,
    /// Connects repeated.
    pub retried: u64,
    /// Sessions that should have been connected and never were.
    pub never_connected: u64,
    /// Persistent sessions of subscribers that had lost their connection and were not connected again at the end.
    pub not_resumed: u64,
    /// Planned disconnects.
    pub planned_leaves: u64,
    /// Subscriptions refused.
    pub subscriptions_refused: u64,
    /// Subscriptions granted, and ended by the system while their connection lasted. One that is refused, too, counts once, as
    /// what it was first.
    pub subscriptions_revoked: u64,
    /// Subscriptions granted at a lower QoS than requested.
    pub granted_lower: u64,
    /// Servers that accept only a lower QoS for publishing than the run uses.
    pub publish_level_lower: u64,
    /// Cause of a connection's end in words → how often; at most 32 different causes, then `other causes`.
    pub causes: HashMap<String, u64>,
    /// Retained messages replayed.
    pub retained_replay: u64,
    /// Messages of another run, or not sent by pubmark.
    pub foreign: u64,
    /// Messages of this run that were shorter than the smallest that their publisher sends.
    pub truncated: u64,
    /// Measured messages whose steps of `transform` could not be undone.
    pub corrupt: u64,
    /// Connections with a will that ended without a graceful disconnect.
    pub wills_due: u64,
    /// The same, without an acceptance that was read, or at the end of the run: their wills may have come or not.
    pub wills_undetermined: u64,
    /// Measured messages that their senders did not send, because no remote reader had subscribed to them.
    pub withheld: u64,
    /// Messages that arrived and that match no filter of their session.
    pub discarded: u64,
    /// Wills that arrived, counted once for each audience that received one.
    pub wills: u64,
    /// Connections whose server does not accept topic aliases, although they were requested.
    pub topic_alias_refused: u64,
    /// Messages sent again.
    pub resent: u64,
    /// Messages that arrived and were dropped by pubmark, because a shard did not read them from a client library in
    /// time.
    pub missed: u64,
    /// Datagrams that the kernel dropped, because a shard did not read its socket in time.
    pub overflowed: u64,
    /// Datagrams that the kernel dropped in UDP sockets of client libraries, from the start of the measured window on.
    pub library_overflowed: u64,
    /// Messages that were sent with an identifier used shortly before, so that a server may take them for repetitions (CoAP).
    pub ids_reused: u64,
    /// Reports of client programs that cannot be true.
    pub misreports: BTreeMap<Misreport, u64>,
    /// How a client program ended, if it ended before the run did.
    pub program_ended: Option<String>,
    /// Deliveries whose header is too small for a write start.
    pub without_write_start: u64,
    /// Messages written completely inside the measured window, those of the warm-up included.
    pub sent_in_window: u64,
    /// First copies delivered inside the measured window.
    pub delivered_in_window: u64,
    /// Their payload bytes.
    pub bytes_in_window: u64,
    /// Duplicates, measured.
    pub duplicated: u64,
    /// Copies for a second matching filter, measured.
    pub overlap: u64,
    /// First copies that arrived after a newer message, measured.
    pub out_of_order: u64,
    /// First copies more than 2 s after publishing ended, and after they were due, measured.
    pub late: u64,
}

/// Largest number of causes that are counted by name; further ones are counted together.
pub const CAUSE_LIMIT: usize = 32;

impl Counters {
    /// Counts a connection with a completed TLS handshake.
    pub fn count_secured(&mut self, agreed: &Agreed) {
        self.count_agreed(AgreedOn::new(agreed.version, agreed.suite, agreed.group, agreed.resumed, 1));
    }

    fn count_agreed(&mut self, agreed: AgreedOn) {
        match self.secured.iter_mut().find(|known| known.is_like(&agreed)) {
            Some(known) => known.count += agreed.count,
            None => self.secured.push(agreed),
        }
    }

    /// Counts the cause of a connection's end.
    pub fn count_cause(&mut self, words: String) {
        let known = self.causes.len() < CAUSE_LIMIT || self.causes.contains_key(&words);
        *self.causes.entry(if known { words } else { "other causes".into() }).or_default() += 1;
    }

    /// Adds the counters of another shard.
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
        self.never_connected += other.never_connected;
        self.not_resumed += other.not_resumed;
        self.planned_leaves += other.planned_leaves;
        self.subscriptions_refused += other.subscriptions_refused;
        self.subscriptions_revoked += other.subscriptions_revoked;
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
        self.wills_undetermined += other.wills_undetermined;
        self.withheld += other.withheld;
        self.discarded += other.discarded;
        self.wills += other.wills;
        self.topic_alias_refused += other.topic_alias_refused;
        self.resent += other.resent;
        self.missed += other.missed;
        self.overflowed += other.overflowed;
        self.library_overflowed += other.library_overflowed;
        self.ids_reused += other.ids_reused;
        for (misreport, count) in other.misreports {
            *self.misreports.entry(misreport).or_default() += count;
        }
        self.program_ended = self.program_ended.take().or(other.program_ended);
        self.without_write_start += other.without_write_start;
        self.sent_in_window += other.sent_in_window;
        self.delivered_in_window += other.delivered_in_window;
        self.bytes_in_window += other.bytes_in_window;
        self.duplicated += other.duplicated;
        self.overlap += other.overlap;
        self.out_of_order += other.out_of_order;
        self.late += other.late;
    }
}

/// Largest number of subscriber groups of a workload, and of device groups with steps of `transform`.
const GROUP_LIMIT: usize = 10_000;

/// The outcome of one shard.
#[derive(Serialize, Deserialize)]
pub struct ShardOutcome {
    /// Its name.
    pub name: String,
    /// The publishers' side of its message accounting.
    pub publishers: Vec<PublisherBook>,
    /// The subscriptions' side of its message accounting.
    pub ledger: Ledger,
    /// Publisher and audience of the ledger's streams.
    pub streams: Vec<StreamRow>,
    /// Periods without a session.
    pub absences: Vec<Absence>,
    /// Requests and replies.
    pub requests: ShardRequests,
    /// Times.
    pub times: Times,
    /// Times by type: by group index up to [`TYPE_LIMIT`], then one entry for the rest.
    #[serde(deserialize_with = "bounded::at_most::<{ TYPE_LIMIT + 1 }, _, _>")]
    pub types: Vec<Option<Box<TypeTimes>>>,
    /// Counters.
    pub counters: Counters,
    /// Results of its clients with predicates, by subscriber group.
    #[serde(deserialize_with = "bounded::at_most::<{ GROUP_LIMIT }, _, _>")]
    pub content: Vec<Option<Box<ContentCounts>>>,
    /// Results of the steps of `transform`, by device group.
    #[serde(deserialize_with = "bounded::at_most::<{ GROUP_LIMIT }, _, _>")]
    pub transform: GroupTransforms,
    /// Time series.
    pub series: Series,
    /// Latencies by the sender's node, in a run on several nodes.
    #[serde(deserialize_with = "bounded::at_most::<{ PAIRED_NODES as usize }, _, _>")]
    pub from_nodes: Vec<Option<Box<Bounds>>>,
    /// A sample of the due times that measured first copies carried.
    #[serde(deserialize_with = "bounded::at_most::<{ SAMPLE }, _, _>")]
    pub due_times: Vec<DueClaim>,
    /// Traffic of its sessions, by connection group.
    pub traffic: Vec<GroupTraffic>,
    /// Deliveries of followed messages.
    pub followed: FollowedDeliveries,
    /// Bytes unsent at the end.
    pub unsent_bytes: u64,
    /// Bytes that were read for busy subscribers and not processed at the end.
    pub held_bytes: u64,
    /// CPU time and wake-ups of the thread in the measured window; `None` if the window did not begin or did not reach
    /// its end.
    pub usage: Option<ThreadUsage>,
    /// Sessions.
    pub sessions: u64,
    /// The ramp-up of its sessions before the schedule began.
    pub ramp: Ramp,
    /// Notes about faults, in a run with faults.
    pub faults: Option<FaultNotes>,
    /// What is missing from its part of the message log, in a run with one.
    pub logged: Option<Logged>,
}
