//! Nodes of a run: the machines, or the processes that stand for them, that the fleet was dealt out over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cost::Usage;

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRow {
    /// Its name, as in the rows from node to node.
    pub name: String,
    /// Where it joined from; `null` for a worker process of the machine that led the run.
    pub address: Option<String>,
    /// Its machine; `null` for a worker process.
    pub machine: Option<NodeMachine>,
    /// Devices on it.
    pub devices: u64,
    /// Subscribers on it.
    pub subscribers: u64,
    /// Why it was lost, in words; what it had measured is missing from every other figure.
    pub lost: Option<String>,
    /// Its clock against the run's; `null` where there is one clock.
    pub clock: Option<NodeClock>,
    /// Bytes between it and the coordinator, headers of TCP and below left out; `null` for a worker process.
    pub control: Option<ControlBytes>,
    /// Processor time and memory of pubmark on it in the measured window; `null` where it is part of the generator's own.
    pub generator: Option<Usage>,
}

/// A worker process that ended before it was told to, or froze: what it had measured is missing from every other figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostWorker {
    /// Whose clients it ran: the group that has a process of its own, otherwise the names of its shards.
    pub worker: String,
    /// Why it was lost, in words.
    pub why: String,
}

/// A node's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeMachine {
    /// Its own name.
    pub host: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Cores that pubmark could use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Its CPU idle states were disabled while the run measured.
    #[serde(default)]
    pub cpu_idle_disabled: bool,
    /// pubmark's version there.
    pub pubmark_version: String,
}

/// A node's clock (`CLOCK_MONOTONIC_RAW`) against the coordinator's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    /// The node is on the coordinator's machine: one clock, nothing was estimated.
    pub is_the_same: bool,
    /// The coordinator's time − the node's, at the start of the measured window, µs.
    pub offset_us: f64,
    /// How much faster the coordinator's clock runs, parts in a million.
    pub drift_ppm: f64,
    /// The node's stamps are the run's time within this, at worst over the run, µs; `null` if its clock jumped, so that nothing bounds it.
    pub bound_us: Option<f64>,
    /// Shortest way to the coordinator and back that was seen, µs.
    pub minimum_round_trip_us: Option<f64>,
    /// Readings that the estimate rests on.
    pub samples: u64,
    /// How often no straight line fitted what was read, and the estimate began anew.
    pub restarts: u64,
    /// Largest error that stamps had in truth, µs, where one was put into the clock of a node on the coordinator's machine to see whether
    /// it lies inside the bound.
    pub true_error_us: Option<f64>,
    /// What the kernel says of its time service (adjtimex(2)).
    pub discipline: String,
}

/// Bytes between a node and the coordinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlBytes {
    /// To the node, over the whole run.
    pub sent: u64,
    /// From the node, over the whole run.
    pub received: u64,
    /// Of both, while the run measured.
    pub while_measuring: u64,
}
