//! What a run is to do, decided before anything starts.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pubmark_model::fleet::Fleet;
use pubmark_model::placement::{Labels, NodeLabels};
use pubmark_model::qos::Qos;
use pubmark_model::schedule::Timeline;
use pubmark_model::workload::Workload;
use pubmark_protocol::clients::ConnectionSettings;
use pubmark_protocol::network::Network;
use pubmark_protocol::sampling::Sampling;
use serde::{Deserialize, Serialize};

use crate::endpoints::Endpoints;
use crate::faults::planned::PlannedFault;
use crate::pacing::Pacing;

/// Device types that have a row of their own in breakdowns; all others share one row.
pub const TYPE_LIMIT: usize = 256;

/// Everything that an engine needs to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunPlan {
    /// Who sends and receives.
    pub workload: Arc<Workload>,
    /// The same counted out; each process does that for itself.
    #[serde(skip)]
    pub fleet: Arc<Fleet>,
    /// Seed of every draw.
    pub seed: u64,
    /// Number of this run, in every payload header.
    pub run_id: u32,
    /// Warm-up and measured window.
    pub timeline: Timeline,
    /// Longest wait for late messages after the window.
    pub drain_limit: Duration,
    /// Where devices connect.
    pub publish_at: Endpoints,
    /// Where subscribers connect: the same brokers, over another protocol perhaps.
    pub subscribe_at: Endpoints,
    /// Networks that they connect from.
    pub networks: Networks,
    /// Nodes that the fleet is dealt out over, ≥ 1.
    pub nodes: u16,
    /// Labels of each, which the workload's placement looks at; empty if none has any.
    pub node_labels: Vec<Labels>,
    /// Its shards run on nodes even if there is but one.
    pub on_nodes: bool,
    /// Clients find each other without a broker, and [probes](crate::probes) say when they have.
    pub probes: bool,
    /// Clients of a network of its own run in a process of its own, inside it: their library opens sockets where it likes.
    pub by_network: bool,
    /// Messages whose deliveries are noted one by one, to be set against what was seen of them on their way; none if `None`.
    pub follows: Option<Sampling>,
    /// Folder of the [message log](crate::message_log), on this machine; no log if `None`.
    pub message_log: Option<PathBuf>,
    /// Addresses that all of them connect from, in turn; the kernel's choice if empty.
    pub sources: Arc<[IpAddr]>,
    /// Threads for publishers, ≥ 1.
    pub publisher_shards: usize,
    /// Threads for subscribers, ≥ 1.
    pub subscriber_shards: usize,
    /// Connects started per second at most, over all shards: the ramp-up.
    pub connects_per_s: f64,
    /// Longest wait for all sessions to be up before the run starts without the missing ones.
    pub connect_limit: Duration,
    /// Every session that is not up has failed, and has had this long to try again: the run starts without them. No more than the
    /// limit.
    pub hopeless_after: Duration,
    /// Ask for SCHED_FIFO.
    pub realtime: bool,
    /// How exactly it sends at due times; a flood has none.
    pub pacing: Pacing,
    /// Time that each send is made to take at least: a generator of known capacity, for tests of who is called the limit.
    pub handicap: Option<Duration>,
    /// What is broken while it measures, in order of time.
    pub faults: Arc<[PlannedFault]>,
    /// How connections are made and kept.
    pub connections: ConnectionSettings,
}

/// Networks of device and subscriber groups, where they have one of their own: behind emulated links.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Networks {
    /// All of them, where they can be entered: a worker process was started in its own.
    #[serde(skip)]
    pub all: Arc<[Arc<dyn Network>]>,
    /// Of each device group, by its place in the workload; empty if none has one.
    pub devices: Vec<Option<u16>>,
    /// Of each subscriber group, likewise.
    pub subscribers: Vec<Option<u16>>,
}

impl Networks {
    /// All in the network of the threads that drive them.
    pub fn none() -> Networks {
        Networks { all: [].into(), devices: vec![], subscribers: vec![] }
    }

    /// That of a device group.
    pub fn of_devices(&self, group: u16) -> Option<u16> {
        self.devices.get(usize::from(group)).copied().flatten()
    }

    /// That of a subscriber group.
    pub fn of_subscribers(&self, group: u16) -> Option<u16> {
        self.subscribers.get(usize::from(group)).copied().flatten()
    }
}

/// With `--realtime`, a shard wakes this much before a message is due and looks at its sockets until it is: in a virtual machine a
/// timer's interrupt arrives 15 to 30 µs late, which this takes out of the scheduler lag for some µs of processor time a message.
pub const REALTIME_LEAD: Duration = Duration::from_micros(30);

/// Priority under SCHED_FIFO: above ordinary threads, below the kernel's own.
pub const REALTIME_PRIORITY: i32 = 10;

/// Longest wait for a server's answer to one attempt to connect.
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(10);
/// A thread that comes this much later than it meant to has stood still, and perhaps the whole machine (a virtual one that its host
/// stopped): limits of time that passed meanwhile say nothing of the system.
pub const STALL: Duration = Duration::from_millis(500);

/// A shard that receives checks its sockets at least this often while messages are on their way. What it finds was not there at
/// the check before, so receive lateness is known to two of these even where a system that paused sends many messages at once, of
/// which only the last has a stamp of its own. What it costs: docs/explanation/generator-health.md.
pub const READER_BEAT: Duration = Duration::from_millis(1);

/// The same while no message is on its way: how long it takes until a shard notices that another one has sent something that does
/// not arrive.
pub const IDLE_READER_BEAT: Duration = Duration::from_millis(5);

/// Deliveries of followed messages that a shard notes at most: 40 B each.
pub const FOLLOWED_LIMIT: usize = 400_000;

/// First and longest pause before a connect is tried again; each failure doubles it.
pub const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Longest time that a device which leaves gracefully waits for the exchanges under way, as client libraries do.
pub const QUIESCE_LIMIT: Duration = Duration::from_secs(1);

/// Something has not arrived: wait until nothing has happened for this long.
const QUIET: Duration = Duration::from_secs(3);

/// Arrivals later than this after publishing ended count as late (PSMark stopped listening then).
pub const LATE_AFTER: Duration = Duration::from_secs(2);

/// Pauses of a shard between two turns of a flood: where nothing is acknowledged, and where something is, so that a window of 20
/// messages is no limit of ours below 200,000 messages a second. A reader that wakes for every message costs more than the
/// message does, and takes the processor from the system; a flood has no latency verdict that the pause could spoil.
const FLOOD_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_micros(100));

/// Nodes up to which it is told what went from each to each: 64 have 4,096 pairs, each with a distribution of some kilobytes.
pub(crate) const PAIRED_NODES: u16 = 64;

impl RunPlan {
    /// Its nodes, as far as placement goes.
    pub fn labels(&self) -> NodeLabels<'_> {
        NodeLabels { nodes: self.nodes, labels: &self.node_labels }
    }

    /// Is it told what went from node to node?
    pub fn tells_pairs(&self) -> bool {
        (2..=PAIRED_NODES).contains(&self.nodes)
    }

    /// Sessions that receive: more than subscribers where each connects to several brokers.
    pub fn listening_sessions(&self) -> usize {
        self.fleet.subscribers().len() * self.subscribe_at.sessions_per_subscriber()
    }

    /// Nothing has happened for this long: nothing will. Over a network that may lose packets nobody can say so, however silent it is:
    /// TCP waits longer from one repetition to the next, up to two minutes (RFC 6298 §2.4, §5.5).
    pub fn quiet(&self) -> Duration {
        if !self.publish_at.are_on_this_machine() || !self.subscribe_at.are_on_this_machine() {
            return self.drain_limit;
        }
        // A request is silent until it is given up, a client that lost its connection until its longest pause is over.
        let quiet = if self.faults.is_empty() { QUIET } else { QUIET.max(BACKOFF.1 + Duration::from_secs(1)) };
        self.workload.longest_timeout().map_or(quiet, |timeout| quiet.max(timeout))
    }

    /// Requesters and responders of the fleet.
    pub fn parties(&self) -> Parties {
        let asks = |group: u16| self.workload.devices[usize::from(group)].requests.is_some();
        let answers = |group: u16| self.workload.subscribers[usize::from(group)].responds.is_some();
        Parties {
            requesters: self.fleet.devices().iter().filter(|device| asks(device.group)).count() as u64,
            responders: self.fleet.subscribers().iter().filter(|entry| answers(entry.group)).count() as u64,
        }
    }

    /// Does any device send as fast as it can?
    pub fn is_flood(&self) -> bool {
        use pubmark_model::arrival::Arrival;
        self.workload.devices.iter().any(|group| matches!(group.arrival, Arrival::Flood))
    }

    /// Pause of a shard between two turns; only a flood has one.
    pub fn pause(&self) -> Option<Duration> {
        let acknowledged = self.workload.devices.iter().any(|group| group.qos > Qos::BestEffort);
        self.is_flood().then_some(if acknowledged { FLOOD_PAUSES.1 } else { FLOOD_PAUSES.0 })
    }
}

/// Requesters and responders of a run.
#[derive(Clone, Copy, Debug)]
pub struct Parties {
    /// Clients that send requests.
    pub requesters: u64,
    /// Clients that reply.
    pub responders: u64,
}
