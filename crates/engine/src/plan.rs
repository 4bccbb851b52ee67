//! The description of a run, decided before anything starts.

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
use crate::progress::Totals;

/// Number of device types that have a separate row in breakdowns; all others share one row.
pub const TYPE_LIMIT: usize = 256;

/// Everything that the engine needs to execute a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunPlan {
    /// The devices and subscribers.
    pub workload: Arc<Workload>,
    /// The individual clients of the workload. Each process computes them from the workload.
    #[serde(skip)]
    pub fleet: Arc<Fleet>,
    /// Seed of every random draw.
    pub seed: u64,
    /// Number of this run, in every payload header.
    pub run_id: u32,
    /// Warm-up and measured window.
    pub timeline: Timeline,
    /// Longest wait for late messages after the window.
    pub drain_limit: Duration,
    /// Longest time until a message that was not acknowledged is sent again on an open connection; `None` if none is.
    pub redelivers_after: Option<Duration>,
    /// Where devices connect.
    pub publish_at: Endpoints,
    /// Where subscribers connect: the same brokers, possibly over another protocol.
    pub subscribe_at: Endpoints,
    /// Networks that clients connect from.
    pub networks: Networks,
    /// Nodes that the fleet is distributed over, ≥ 1.
    pub nodes: u16,
    /// Labels of each node, which placement evaluates; empty if no node has labels.
    pub node_labels: Vec<Labels>,
    /// The shards run on nodes, even if there is only one node.
    pub on_nodes: bool,
    /// Clients discover each other without a broker, and [probes](crate::probes) show when they have.
    pub probes: bool,
    /// Clients with a separate network run in a separate process inside it, because their library opens sockets from
    /// any thread.
    pub by_network: bool,
    /// Client libraries open sockets in pubmark's processes, among them UDP sockets in which the kernel may drop datagrams.
    pub library_sockets: bool,
    /// Messages whose deliveries are recorded one by one, to be compared with packet captures on their path; none if
    /// `None`.
    pub follows: Option<Sampling>,
    /// Folder of the [message log](crate::message_log), on this machine; no log if `None`.
    pub message_log: Option<PathBuf>,
    /// Source addresses of all clients, used in turn; the kernel chooses if empty.
    pub sources: Arc<[IpAddr]>,
    /// Threads for publishers, ≥ 1.
    pub publisher_shards: usize,
    /// Threads for subscribers, ≥ 1.
    pub subscriber_shards: usize,
    /// Connects started per second at most, over all shards: the ramp-up.
    pub connects_per_s: f64,
    /// Longest wait for all sessions to be up before the run starts without the missing ones.
    pub connect_limit: Duration,
    /// The run starts without the sessions that are not established once each of them has failed and has had this long
    /// to try again. Not longer than `connect_limit`.
    pub hopeless_after: Duration,
    /// Request SCHED_FIFO.
    pub realtime: bool,
    /// The system has no core but those of pubmark's threads: this run started it, and it inherited them.
    pub shares_cores: bool,
    /// How exactly messages are sent at their due times. A flood has no due times.
    pub pacing: Pacing,
    /// Minimum duration of each send. It limits the generator to a known capacity, for tests of whether the generator
    /// or the system is reported as the limit.
    pub handicap: Option<Duration>,
    /// Faults injected during the run, in order of time.
    pub faults: Arc<[PlannedFault]>,
    /// How connections are opened and maintained.
    pub connections: ConnectionSettings,
}

/// Networks of device and subscriber groups that have a separate network behind emulated links.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Networks {
    /// All of them, if this process can enter them. A worker process is started inside its network.
    #[serde(skip)]
    pub all: Arc<[Arc<dyn Network>]>,
    /// Network of each device group, by its index in the workload; empty if no group has one.
    pub devices: Vec<Option<u16>>,
    /// Network of each subscriber group, likewise.
    pub subscribers: Vec<Option<u16>>,
}

impl Networks {
    /// All clients in the network of the threads that drive them.
    pub fn none() -> Networks {
        Networks { all: [].into(), devices: vec![], subscribers: vec![] }
    }

    /// Does any group have a separate network?
    pub fn have_clients(&self) -> bool {
        self.devices.iter().chain(&self.subscribers).any(Option::is_some)
    }

    /// Network of a device group.
    pub fn of_devices(&self, group: u16) -> Option<u16> {
        self.devices.get(usize::from(group)).copied().flatten()
    }

    /// Network of a subscriber group.
    pub fn of_subscribers(&self, group: u16) -> Option<u16> {
        self.subscribers.get(usize::from(group)).copied().flatten()
    }
}

/// With `--realtime`, a shard wakes this long before a message is due and polls its sockets until then. In a virtual
/// machine the interrupt of a timer arrives 15 to 30 µs late. The early wake-up removes this from the scheduler lag,
/// and costs some µs of processor time per message.
pub const REALTIME_LEAD: Duration = Duration::from_micros(30);

/// Priority under SCHED_FIFO: above ordinary threads, below the kernel's threads.
pub const REALTIME_PRIORITY: i32 = 10;

/// Longest wait for a server's response to one attempt to connect.
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(10);
/// A thread that wakes this much later than planned was paused, and perhaps the whole machine was (a virtual one that
/// its host stopped). Time limits that passed meanwhile are no evidence about the system.
pub const STALL: Duration = Duration::from_millis(500);

/// A shard that receives polls its sockets at least at this interval. What a poll finds had not arrived at the poll
/// before. Receive lateness is therefore known to within two intervals, even if a system that was paused sends many
/// messages at once, of which only the last has a kernel timestamp. The cost: docs/explanation/generator-health.md.
pub const READER_BEAT: Duration = Duration::from_millis(1);

/// Largest number of deliveries of followed messages that a shard records: 48 B each.
pub const FOLLOWED_LIMIT: usize = 400_000;

/// First and longest pause before a reconnect; each failure doubles the pause.
pub const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Longest time that a device which disconnects gracefully waits for pending exchanges, as client libraries do.
pub const QUIESCE_LIMIT: Duration = Duration::from_secs(1);

/// If messages are missing, wait until there was no activity for this long.
const QUIET: Duration = Duration::from_secs(3);
/// What happens after a known time without activity has this long to arrive.
const MARGIN: Duration = Duration::from_secs(1);

/// Arrivals later than this after publishing ended count as late (PSMark stopped receiving then). For a reaction that is due
/// after the end, the time counts from when it is due.
pub const LATE_AFTER: Duration = Duration::from_secs(2);

/// Pauses of a shard between two turns of a flood: if nothing is acknowledged, and if messages are acknowledged. The
/// second is short enough that an in-flight window of 20 messages does not limit the rate below 200,000 messages a
/// second. A reader that wakes for every message costs more than the message does, and takes the processor from the
/// system. A flood has no latency verdict that the pause could distort.
const FLOOD_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_micros(100));

/// Up to this number of nodes, results are reported for each pair of nodes. 64 nodes have 4,096 pairs, each with a
/// distribution of some kilobytes.
pub(crate) const PAIRED_NODES: u16 = 64;

impl RunPlan {
    /// Labels of its nodes, for placement.
    pub fn labels(&self) -> NodeLabels<'_> {
        NodeLabels { nodes: self.nodes, labels: &self.node_labels }
    }

    /// Are results reported for each pair of nodes?
    pub fn reports_pairs(&self) -> bool {
        (2..=PAIRED_NODES).contains(&self.nodes)
    }

    /// Number of sessions that receive: more than subscribers if each connects to several brokers.
    pub fn listening_sessions(&self) -> usize {
        self.fleet.subscribers().len() * self.subscribe_at.sessions_per_subscriber()
    }

    /// How long it takes to start connecting this many sessions at the rate of the ramp-up.
    pub fn ramp_up(&self, sessions: u64) -> Duration {
        Duration::try_from_secs_f64(sessions as f64 / self.connects_per_s).unwrap_or(Duration::MAX)
    }

    /// After this long without activity, no further message is expected. On a network that may lose packets no length
    /// of silence is conclusive: TCP doubles its interval between retransmissions, up to two minutes (RFC 6298 §2.4,
    /// §5.5).
    pub fn quiet(&self) -> Duration {
        let are_local = self.publish_at.are_on_this_machine() && self.subscribe_at.are_on_this_machine();
        // Links that nodes make lead to a system that may listen on the loopback interface.
        if !are_local || self.networks.have_clients() {
            return self.drain_limit;
        }
        // A request causes no activity until it times out, and a client that lost its connection causes none until its
        // longest pause is over.
        let quiet = if self.faults.is_empty() { QUIET } else { QUIET.max(BACKOFF.1 + MARGIN) };
        // A repetition causes no activity either until it arrives.
        let redelivery = self.redelivers_after.filter(|_| self.is_acknowledged()).map(|after| after + MARGIN);
        [self.workload.longest_timeout(), redelivery].into_iter().flatten().fold(quiet, Duration::max)
    }

    /// Are messages of any group acknowledged?
    fn is_acknowledged(&self) -> bool {
        let (devices, subscribers) = (&self.workload.devices, &self.workload.subscribers);
        let mut levels = devices.iter().map(|group| group.qos).chain(subscribers.iter().map(|group| group.qos));
        levels.any(|qos| qos > Qos::BestEffort)
    }

    /// Has everything arrived that is to arrive? False as well if the sums cannot show it, because a delivery that nobody
    /// expects could stand for a missing one: of a message that the system refused, or that was not written completely, or
    /// that a content filter of the system should have removed.
    pub fn have_all_arrived(&self, totals: &Totals) -> bool {
        let is_filtered = self.workload.subscribers.iter().any(|group| group.broker_filter().is_some());
        let is_exact = totals.unexpected == 0 && !is_filtered;
        is_exact && totals.backlog == 0 && totals.in_flight == 0 && totals.delivered >= totals.expected
    }

    /// Requesters and responders of the fleet.
    pub fn parties(&self) -> Parties {
        let sends_requests = |group: u16| self.workload.devices[usize::from(group)].requests.is_some();
        let answers = |group: u16| self.workload.subscribers[usize::from(group)].responds.is_some();
        Parties {
            requesters: self.fleet.devices().iter().filter(|device| sends_requests(device.group)).count() as u64,
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
