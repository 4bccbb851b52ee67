//! Nodes of a run: the machines, or processes that represent machines, over which the fleet was distributed.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::by_reason::named;
use crate::cost::Usage;
use crate::quantity;

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRow {
    /// Name of the node, as in the rows by pair of nodes.
    pub name: String,
    /// Address from which it joined; `null` for a worker process on the coordinator's machine.
    pub address: Option<String>,
    /// Address at which clients on other nodes reach its clients, in systems without a broker: the address given by
    /// `--address` of `pubmark node`, otherwise the one from which it joined; `null` for a worker process, and in
    /// records of older versions.
    #[serde(default)]
    pub clients_at: Option<String>,
    /// Its labels (`--label` of `pubmark node`), value by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Machine of the node; `null` for a worker process.
    pub machine: Option<NodeMachine>,
    /// Number of devices on the node.
    pub devices: u64,
    /// Number of subscribers on the node.
    pub subscribers: u64,
    /// Why the node was lost; its measurements are missing from all other figures.
    pub lost: Option<String>,
    /// Its clock relative to the clock of the run; `null` if there is one clock.
    pub clock: Option<NodeClock>,
    /// Bytes between the node and the coordinator, without headers of TCP and lower layers; `null` for a worker
    /// process and for a node that was lost.
    pub control: Option<ControlBytes>,
    /// CPU time and memory of pubmark on the node in the measured window; `null` where it is included in the
    /// generator's figures.
    pub generator: Option<Usage>,
    /// First copies that its subscribers received in each full second of the measured window, without replies to its
    /// requesters; `null` for a node that was lost or has no subscribers, and for a window shorter than one second.
    #[serde(default)]
    pub received: Option<ReceivedPerSecond>,
    /// Use of the whole machine in the measured window; `null` for a worker process, and where the kernel does not
    /// report it.
    #[serde(default)]
    pub machine_usage: Option<MachineUsage>,
}

/// Messages received per second, over the full seconds of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedPerSecond {
    /// Number of full seconds.
    pub seconds: u64,
    /// Mean.
    pub mean_per_s: f64,
    /// Variance of the per-second counts (divided by their number − 1), messages² per second²; `null` for one second.
    pub variance: Option<f64>,
    /// Count of the second with the fewest messages.
    pub min_per_s: u64,
    /// Count of the second with the most messages.
    pub max_per_s: u64,
}

impl ReceivedPerSecond {
    /// Statistics of the counts of these seconds; `None` without seconds.
    pub fn of(seconds: &[u64]) -> Option<ReceivedPerSecond> {
        let count = seconds.len();
        let (min_per_s, max_per_s) = (*seconds.iter().min()?, *seconds.iter().max()?);
        let mean_per_s = seconds.iter().map(|received| *received as f64).sum::<f64>() / count as f64;
        let squares: f64 = seconds.iter().map(|received| (*received as f64 - mean_per_s).powi(2)).sum();
        let variance = (count > 1).then(|| squares / (count - 1) as f64);
        Some(ReceivedPerSecond { seconds: count as u64, mean_per_s, variance, min_per_s, max_per_s })
    }
}

/// Resources used by everything that ran on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUsage {
    /// CPU time over the window's length: 1.0 is one core.
    pub cores: f64,
    /// Memory in use (total minus available), the larger value of the start and the end of the window, bytes; `null`
    /// where the kernel does not report it.
    pub used_bytes: Option<u64>,
    /// Bytes received by the network interface that has the node's address ([`NodeRow::clients_at`]). Other interfaces
    /// are left out, because a packet passes a bridge and its ports, a bond, a VLAN or a tunnel more than once. `null`
    /// if that interface is the loopback, if no interface has the address (address translation), and if the interface
    /// disappeared or its counters were reset in the window.
    pub received_bytes: Option<u64>,
    /// Bytes sent by that interface; `null` as above.
    pub sent_bytes: Option<u64>,
    /// Share of the CPU time that the hypervisor took for other guests, 0 to 1; `null` where the kernel does not report
    /// it, and in records of older versions.
    #[serde(default)]
    pub steal: Option<f64>,
}

/// A worker process that ended early or froze: its measurements are missing from all other figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostWorker {
    /// Clients that it ran: the group that has its own process, otherwise the names of its shards.
    pub worker: String,
    /// Why it was lost.
    #[serde(alias = "why")]
    pub reason: String,
}

/// Machine of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeMachine {
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Cores that pubmark could use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// CPU idle states were prevented during the measurement: they were disabled, or a loop at idle priority
    /// ran on each.
    #[serde(default)]
    pub cpu_idle_disabled: bool,
    /// Version of pubmark on the node.
    pub pubmark_version: String,
}

impl NodeMachine {
    /// Number of cores and kernel, which a comparison of runs considers. Host names are not part of it: that of a container is
    /// new in each run.
    pub fn in_words(&self) -> String {
        format!("{}, kernel {}", quantity::counted(u64::from(self.cores), "core", "cores"), self.kernel)
    }
}

/// The kinds of the machines of nodes, each with its number. Host names are left out: that of a container is new in each run.
pub fn machines(nodes: &[NodeRow]) -> String {
    let of_node = |node: &NodeRow| node.machine.as_ref().map(|machine| (machine.in_words(), machine.host.clone()));
    let machines: BTreeSet<Option<(String, String)>> = nodes.iter().map(of_node).collect();
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, _) in machines.iter().flatten() {
        *kinds.entry(kind.clone()).or_default() += 1;
    }
    let here = machines.contains(&None).then(|| "this machine".to_string());
    let others = kinds.into_iter().map(|(kind, count)| format!("{count} × ({kind})"));
    let words: Vec<String> = here.into_iter().chain(others).collect();
    match &words[..] {
        [] => "none".to_string(),
        words => named(&words.iter().map(String::as_str).collect::<Vec<&str>>()),
    }
}

/// Machines that joined all runs of an experiment or of a choice, which are not of the coordinator's machine alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinedMachines {
    /// Number of nodes with clients; a cell may use fewer of them. 0 if all clients were on the coordinator's machine.
    pub nodes: u16,
    /// Machines of these nodes by kind, of the first run on most of them; `null` if no such run was measured.
    pub machines: Option<String>,
    /// Node that started the systems; `null` if the coordinator did, or if the definition names a node for each.
    pub system_node: Option<String>,
}

impl JoinedMachines {
    /// Machines of which nothing but this is known yet; `None` if everything is on one machine.
    pub fn new(nodes: Option<u16>, system_node: Option<&str>) -> Option<JoinedMachines> {
        let joins = nodes.is_some() || system_node.is_some();
        let (nodes, system_node) = (nodes.unwrap_or(0), system_node.map(str::to_owned));
        joins.then_some(JoinedMachines { nodes, machines: None, system_node })
    }

    /// The same with the machines of the nodes of runs, in the order of these.
    #[must_use]
    pub fn with_machines<'a>(self, runs: impl Iterator<Item = &'a [NodeRow]>) -> JoinedMachines {
        let larger = |one: &'a [NodeRow], other: &'a [NodeRow]| if other.len() > one.len() { other } else { one };
        let most = runs.reduce(larger).filter(|nodes| self.nodes > 0 && !nodes.is_empty());
        JoinedMachines { machines: most.map(machines), ..self }
    }

    /// ``2 nodes on 2 × (4 cores, kernel 6.1.0), systems on node `broker` ``.
    pub fn in_words(&self) -> String {
        let nodes = (self.nodes > 0).then(|| {
            let count = quantity::counted(u64::from(self.nodes), "node", "nodes");
            self.machines.as_ref().map_or_else(|| count.clone(), |machines| format!("{count} on {machines}"))
        });
        let system = self.system_node.as_ref().map(|node| format!("systems on node `{node}`"));
        nodes.into_iter().chain(system).collect::<Vec<_>>().join(", ")
    }
}

/// A node's clock (`CLOCK_MONOTONIC_RAW`) relative to the coordinator's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    /// The node is on the coordinator's machine: there is one clock, so nothing was estimated.
    pub is_the_same: bool,
    /// The coordinator's time − the node's, at the start of the measured window, µs.
    pub offset_us: f64,
    /// How much faster the coordinator's clock runs, parts per million.
    pub drift_ppm: f64,
    /// Largest error of the node's timestamps, converted to the time of the run, over the whole run, µs; `null` if its
    /// clock jumped, so that the error has no bound.
    pub bound_us: Option<f64>,
    /// Shortest observed round trip to the coordinator, µs.
    pub minimum_round_trip_us: Option<f64>,
    /// Number of readings used for the estimate.
    pub samples: u64,
    /// How often the readings did not fit a straight line, so that the estimate was restarted.
    pub restarts: u64,
    /// Largest actual error of the timestamps, µs, where a known error was added to the clock of a node on the
    /// coordinator's machine to test the bound.
    pub true_error_us: Option<f64>,
    /// State of the kernel's time service (adjtimex(2)).
    pub discipline: String,
}

/// Bytes between a node and the coordinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlBytes {
    /// Bytes to the node, over the whole run.
    pub sent: u64,
    /// Bytes from the node, over the whole run.
    pub received: u64,
    /// Bytes in both directions during the measurement.
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

    #[test]
    fn joined_machines_are_those_of_the_first_run_on_most_nodes() {
        let machine = |cores: u32| NodeMachine { cores, kernel: "6.1".to_string(), ..NodeMachine::default() };
        let node = |cores: u32| NodeRow { machine: Some(machine(cores)), ..NodeRow::default() };
        let runs = [vec![node(8)], vec![node(4), node(2)], vec![node(4), node(4)], vec![]];
        let joined = JoinedMachines::new(Some(2), Some("broker")).unwrap();
        assert_eq!(joined.in_words(), "2 nodes, systems on node `broker`");
        let joined = joined.with_machines(runs.iter().map(Vec::as_slice));
        let expected = "2 nodes on 1 × (2 cores, kernel 6.1); 1 × (4 cores, kernel 6.1), systems on node `broker`";
        assert_eq!(joined.in_words(), expected);
        let unmeasured = JoinedMachines::new(Some(2), None).unwrap().with_machines(runs[3..].iter().map(Vec::as_slice));
        assert_eq!(unmeasured.machines, None);
        assert_eq!(JoinedMachines::new(None, None), None);
        assert_eq!(JoinedMachines::new(None, Some("broker")).unwrap().in_words(), "systems on node `broker`");
    }
}
