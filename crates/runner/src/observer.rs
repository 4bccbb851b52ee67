//! Progress and events of a run while it goes on.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub use pubmark_engine::live::{LiveInterval, LiveLatency};
pub use pubmark_engine::progress::Totals;
pub use pubmark_engine::run::Phase;
pub use pubmark_engine::window_latency::WindowLatency;
pub use pubmark_systems::sampler::{LiveUsage, UsageNow};

/// Progress of a run. Counters are those of the whole fleet, and approximate until the run is over.
#[derive(Clone, Debug)]
pub struct RunProgress {
    /// The phase.
    pub phase: Phase,
    /// Time since the phase began.
    pub elapsed: Duration,
    /// Length of the phase; `None` if it ends at an event, not at a time.
    pub length: Option<Duration>,
    /// Counters.
    pub totals: Totals,
    /// Whether the counters are current. Nodes send no counts while they measure: until each has sent its first ones of
    /// the drain, some or all counters remain those of the warm-up.
    pub are_counts_current: bool,
    /// Deliveries that are known to be lost so far, warm-up included: see [`pubmark_engine::losses`]. `None` if other
    /// machines measure, and while the counters are not current.
    pub lost: Option<u64>,
    /// Latencies of the last seconds, while devices follow their schedule; `None` if other machines measure them.
    pub latency: Option<LiveLatency>,
    /// Latencies of the measured window since its start, at most a second old; `None` before it, and if other machines
    /// measure them.
    pub window_latency: Option<Arc<WindowLatency>>,
    /// Resource usage of the system and of pubmark; that of pubmark is `None` while other machines generate the load.
    pub usage: LiveUsage,
}

/// An event in addition to the phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The run waits for nodes to join.
    WaitsForNodes {
        /// Nodes that generate load.
        nodes: usize,
        /// Nodes that observe the system's machines.
        observers: usize,
        /// Nodes that start systems.
        system_hosts: usize,
        /// Address at which they join.
        address: SocketAddr,
    },
    /// A node joined.
    NodeJoined {
        /// Name of the node.
        name: String,
        /// Address of the node.
        address: IpAddr,
    },
    /// A node was refused.
    NodeRefused {
        /// Which node, and the reason.
        reason: String,
    },
    /// A node left before the run began.
    NodeLeft {
        /// Name of the node.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A fault of the workload begins.
    FaultBegins {
        /// Kind of the fault and its target.
        fault: String,
    },
    /// A fault of the workload ends.
    FaultEnds {
        /// Kind and target, as in [`RunEvent::FaultBegins`].
        fault: String,
    },
}

impl fmt::Display for RunEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunEvent::WaitsForNodes { nodes, observers, system_hosts, address } => {
                write!(formatter, "waiting for {} at {address}", nodes_in_words([*nodes, *observers, *system_hosts]))
            }
            RunEvent::NodeJoined { name, address } => write!(formatter, "`{name}` joined from {address}"),
            RunEvent::NodeRefused { reason } => write!(formatter, "refused {reason}"),
            RunEvent::NodeLeft { name, reason } => write!(formatter, "`{name}` left: {reason}"),
            RunEvent::FaultBegins { fault } => write!(formatter, "fault begins: {fault}"),
            RunEvent::FaultEnds { fault } => write!(formatter, "fault ends: {fault}"),
        }
    }
}

fn nodes_in_words([nodes, observers, system_hosts]: [usize; 3]) -> String {
    let words = |count: usize, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {several}")),
    };
    let kinds = [
        words(nodes, "node", "nodes"),
        words(observers, "observer", "observers"),
        words(system_hosts, "node that starts systems", "nodes that start systems"),
    ];
    kinds.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// Receives the progress and events of a run. Every method is called on the thread that called
/// [`crate::PreparedRun::run`]; a slow method delays the run's phases, never its messages.
pub trait RunObserver {
    /// A phase begins; the one before has ended.
    fn phase(&mut self, _phase: Phase) {}

    /// Progress, about ten times a second.
    fn progress(&mut self, _progress: &RunProgress) {}

    /// An event.
    fn event(&mut self, _event: &RunEvent) {}
}

/// No observer.
impl RunObserver for () {}

/// An optional observer.
impl<One: RunObserver> RunObserver for Option<One> {
    fn phase(&mut self, phase: Phase) {
        self.iter_mut().for_each(|one| one.phase(phase));
    }

    fn progress(&mut self, progress: &RunProgress) {
        self.iter_mut().for_each(|one| one.progress(progress));
    }

    fn event(&mut self, event: &RunEvent) {
        self.iter_mut().for_each(|one| one.event(event));
    }
}

/// Two observers: both are called.
impl<One: RunObserver, Other: RunObserver> RunObserver for (One, Other) {
    fn phase(&mut self, phase: Phase) {
        self.0.phase(phase);
        self.1.phase(phase);
    }

    fn progress(&mut self, progress: &RunProgress) {
        self.0.progress(progress);
        self.1.progress(progress);
    }

    fn event(&mut self, event: &RunEvent) {
        self.0.event(event);
        self.1.event(event);
    }
}
