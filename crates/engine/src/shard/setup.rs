//! What a shard is made of.

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
use crate::faults::log::FaultLog;
use crate::message_log::writer::ShardLog;
use crate::pacing::Pacing;
use crate::progress::Progress;
use crate::requests::ShardRequests;

/// A session with what it carries, to be made by a shard.
pub struct SessionSetup {
    /// For the adapter.
    pub config: SessionConfig,
    /// Its publishers, by index on the shard.
    pub publishers: std::ops::Range<u32>,
    /// Its subscriber, by index on the shard.
    pub subscriber: Option<u32>,
    /// The group of that subscriber.
    pub subscriber_group: Option<u16>,
    /// What tells its client from all others, the same in every run.
    pub identity: u64,
    /// What makes it reply to requests.
    pub responder: Option<Box<Responder>>,
    /// Among the groups whose traffic is reported together: [`pubmark_model::connection_groups`].
    pub connection_group: u16,
}

/// All that a shard needs to know.
pub struct Setup {
    /// Its name: `publisher 0`, …
    pub name: String,
    /// Its index in [`Progress::shards`].
    pub index: usize,
    /// For the adapter.
    pub config: ShardConfig,
    /// Who sends and receives.
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
    /// Messages whose deliveries it notes.
    pub follows: Option<Sampling>,
    /// Where it notes messages, if the run has a message log.
    pub log: Option<ShardLog>,
    /// What its clients react to.
    pub reactions: Reactions,
    /// Its requesters' books.
    pub requests: ShardRequests,
    /// Seed of draws of processing times.
    pub seed: u64,
    /// Number of this run.
    pub run: u32,
    /// Start of series: −warm-up, ns.
    pub series_start_ns: i64,
    /// Length of the warm-up, ns.
    pub warmup_ns: u64,
    /// Length of the measured window, ns.
    pub duration_ns: u64,
    /// Connects started per second at most.
    pub connects_per_s: f64,
    /// Ask for SCHED_FIFO: how many threads of this machine do.
    pub realtime: Option<usize>,
    /// How exactly it sends at due times.
    pub pacing: Pacing,
    /// Least time of a send.
    pub handicap: Option<Duration>,
    /// Pause between two turns, in a flood.
    pub pause: Option<Duration>,
    /// Draws of pauses before reconnects.
    pub backoff: Stream,
    /// Faults, in a run that has some.
    pub faults: Option<Box<FaultLog>>,
    /// How far publishers of this process have come.
    pub announced: Arc<Announced>,
    /// Shared with the other shards.
    pub progress: Arc<Progress>,
}
