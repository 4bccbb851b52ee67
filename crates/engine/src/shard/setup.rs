//! The configuration of a shard.

use std::sync::Arc;
use std::time::Duration;

use pubmark_model::random::Stream;
use pubmark_model::schedule::Rules;
use pubmark_model::workload::Workload;
use pubmark_protocol::clients::{SessionConfig, ShardConfig};
use pubmark_protocol::sampling::Sampling;

use super::presence::Presence;
use super::publisher::Publisher;
use super::reactions::Reactions;
use super::receiver::Receiver;
use super::responder::Responder;
use crate::announced::Announced;
use crate::due_times::sample::DueSample;
use crate::faults::log::FaultLog;
use crate::message_log::writer::ShardLog;
use crate::pacing::Pacing;
use crate::progress::Progress;
use crate::realtime::RealtimeThreads;
use crate::requests::ShardRequests;

/// A session to be created by a shard, and what it carries.
pub struct SessionSetup {
    /// Configuration for the adapter.
    pub config: SessionConfig,
    /// Its publishers, by index on the shard.
    pub publishers: std::ops::Range<u32>,
    /// Its subscriber, by index on the shard.
    pub subscriber: Option<u32>,
    /// The group of that subscriber.
    pub subscriber_group: Option<u16>,
    /// Identifies its client among all others; the same in every run.
    pub identity: u64,
    /// Its state as a responder, if it replies to requests.
    pub responder: Option<Box<Responder>>,
    /// Index of its connection group; the traffic of a group is reported together:
    /// [`pubmark_model::connection_groups`].
    pub connection_group: u16,
}

/// Everything that a shard needs to start.
pub struct Setup {
    /// Its name: `publisher 0`, …
    pub name: String,
    /// Its index in [`Progress::shards`].
    pub index: usize,
    /// Configuration for the adapter.
    pub config: ShardConfig,
    /// The devices and subscribers.
    pub workload: Arc<Workload>,
    /// Rules of every group.
    pub rules: Arc<[Rules]>,
    /// Its sessions.
    pub sessions: Vec<SessionSetup>,
    /// Its publishers.
    pub publishers: Vec<Publisher>,
    /// Its subscribers.
    pub receiver: Receiver,
    /// When the system held their filters.
    pub presence: Presence,
    /// Messages whose deliveries it records individually.
    pub follows: Option<Sampling>,
    /// The message log of this shard, if the run has one.
    pub log: Option<ShardLog>,
    /// Reactions of its clients.
    pub reactions: Reactions,
    /// Message accounting of its requesters.
    pub requests: ShardRequests,
    /// Seed of the random processing times.
    pub seed: u64,
    /// The sample of due times, still empty.
    pub due_times: DueSample,
    /// Number of this run.
    pub run: u32,
    /// Start of the time series: −warm-up, ns.
    pub series_start_ns: i64,
    /// Length of the warm-up, ns.
    pub warmup_ns: u64,
    /// Length of the measured window, ns.
    pub duration_ns: u64,
    /// The time over which it spreads the first connects of its sessions. All shards of a side have the same one, so
    /// that together they start connects at the plan's rate, however many sessions each has.
    pub ramp_up: Duration,
    /// The threads of this machine that request SCHED_FIFO; `None` if it is not requested.
    pub realtime: Option<RealtimeThreads>,
    /// How exactly messages are sent at their due times.
    pub pacing: Pacing,
    /// Minimum duration of a send.
    pub handicap: Option<Duration>,
    /// Pause between two turns, in a flood.
    pub pause: Option<Duration>,
    /// Random stream for the pauses before reconnects.
    pub backoff: Stream,
    /// Log of faults, in a run with faults.
    pub faults: Option<Box<FaultLog>>,
    /// How far publishers of this process have sent.
    pub announced: Arc<Announced>,
    /// Counters shared with the other shards.
    pub progress: Arc<Progress>,
}
