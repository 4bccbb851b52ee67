//! Nodes of a run: the machines, or the processes that stand for them, that the fleet was dealt out over.

use std::collections::BTreeMap;

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
    /// Where clients on other nodes reach its clients, in systems without a broker: the address that it named (`--address` of `pubmark node`),
    /// otherwise that from which it joined; `null` for a worker process, and in records of older versions.
    #[serde(default)]
    pub clients_at: Option<String>,
    /// Its labels (`--label` of `pubmark node`), value by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
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
    /// First copies that its subscribers received in each full second of the measured window, without replies to its requesters; `null`
    /// of a node that was lost or has no subscribers, and of a window below a second.
    #[serde(default)]
    pub received: Option<ReceivedPerSecond>,
    /// What its whole machine took in the measured window; `null` for a worker process, and where its kernel does not say.
    #[serde(default)]
    pub machine_usage: Option<MachineUsage>,
}

/// Messages received a second, over the full seconds of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedPerSecond {
    /// Full seconds.
    pub seconds: u64,
    /// Mean.
    pub mean_per_s: f64,
    /// Variance of the seconds (divided by their number − 1), messages² per second²; `null` for one second.
    pub variance: Option<f64>,
    /// In the second with the fewest.
    pub min_per_s: u64,
    /// In the second with the most.
    pub max_per_s: u64,
}

impl ReceivedPerSecond {
    /// Of these seconds; `None` if there are none.
    pub fn of(seconds: &[u64]) -> Option<ReceivedPerSecond> {
        let count = seconds.len();
        let (min_per_s, max_per_s) = (*seconds.iter().min()?, *seconds.iter().max()?);
        let mean_per_s = seconds.iter().map(|received| *received as f64).sum::<f64>() / count as f64;
        let squares: f64 = seconds.iter().map(|received| (*received as f64 - mean_per_s).powi(2)).sum();
        let variance = (count > 1).then(|| squares / (count - 1) as f64);
        Some(ReceivedPerSecond { seconds: count as u64, mean_per_s, variance, min_per_s, max_per_s })
    }
}

/// What all that ran on a machine took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUsage {
    /// CPU time over the window's length: 1.0 is one core.
    pub cores: f64,
    /// Memory in use, all but what is available, the larger of both edges of the window, bytes; `null` where its kernel does not say.
    pub used_bytes: Option<u64>,
    /// Bytes received by the network interface that has the node's address ([`NodeRow::clients_at`]); others are left out, since a packet
    /// passes a bridge and its ports, a bond, a VLAN or a tunnel more than once. `null` where that is the loopback, where no interface has
    /// the address (it is translated on the way), and where the interface went away or began to count anew in the window.
    pub received_bytes: Option<u64>,
    /// Bytes sent by it; `null` as above.
    pub sent_bytes: Option<u64>,
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_a_mean_a_variance_and_ends() {
        let found = ReceivedPerSecond::of(&[2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
        assert_eq!((found.seconds, found.mean_per_s, found.min_per_s, found.max_per_s), (8, 5.0, 2, 9));
        assert!((found.variance.unwrap() - 32.0 / 7.0).abs() < 1e-12, "{found:?}");
        assert_eq!(ReceivedPerSecond::of(&[3]).unwrap().variance, None, "one second varies from nothing");
        assert_eq!(ReceivedPerSecond::of(&[]), None);
    }
}
