//! What a run tells while it goes on.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use pubmark_engine::live::{LiveInterval, LiveLatency};
use pubmark_engine::progress::Totals;
pub use pubmark_engine::run::Phase;
pub use pubmark_systems::sampler::{LiveUsage, UsageNow};

/// How far a run is. Counters are of the whole fleet and only approximate until the run is over.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress {
    /// The phase.
    pub phase: Phase,
    /// Time since it began.
    pub elapsed: Duration,
    /// Its length; `None` if it ends when something has come about.
    pub length: Option<Duration>,
    /// Counters.
    pub totals: Totals,
    /// Latencies of the last seconds, while devices follow their schedule; `None` where other machines measure them.
    pub latency: Option<LiveLatency>,
    /// What the system and pubmark use.
    pub usage: LiveUsage,
}

/// Something that happened beside the phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The run waits for nodes to join.
    WaitsForNodes {
        /// Nodes that make load.
        nodes: usize,
        /// Nodes that observe the system's machines.
        observers: usize,
        /// Where they join.
        address: SocketAddr,
    },
    /// A node joined.
    NodeJoined {
        /// Its name.
        name: String,
        /// Where it is.
        address: IpAddr,
    },
    /// Somebody was turned away.
    NodeRefused {
        /// Who, and why.
        reason: String,
    },
    /// A node left before the run began.
    NodeLeft {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A fault of the workload begins.
    FaultBegins {
        /// Its kind and what it befalls.
        fault: String,
    },
    /// It is over.
    FaultEnds {
        /// The same words.
        fault: String,
    },
}

/// Receives what a run tells. Every method is called on the thread that called [`crate::PreparedRun::run`]; one that takes long
/// delays the run's phases, never its messages.
pub trait RunObserver {
    /// A phase begins; the one before has ended.
    fn phase(&mut self, _phase: Phase) {}

    /// How it goes, some ten times a second.
    fn progress(&mut self, _progress: &RunProgress) {}

    /// Something happened.
    fn event(&mut self, _event: &RunEvent) {}
}

/// Nobody looks.
impl RunObserver for () {}
