//! Nodes that joined, and which worker runs on which node: the state that node sessions share with the coordinator.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pubmark_engine::progress::{Progress, ROW};
use pubmark_model::placement::Labels;
use tokio::sync::mpsc;

use super::accept::Carried;
use crate::address::for_clients;
use crate::error::Refusal;
use crate::lanes::Lanes;
use crate::messages::{CoordinatorMessage, FreePorts, Join, Report, ToNode};
use crate::node::NodeKind;

/// A node that joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// The node's name.
    pub name: String,
    /// Address from which the node joined.
    pub address: SocketAddr,
    /// The node's version of pubmark.
    pub version: String,
    /// Name of the node's machine.
    pub host: String,
    /// Boot id of the machine's kernel, which differs between machines with the same name; empty if the node is to
    /// count as another machine.
    pub boot: String,
    /// Release of the machine's kernel.
    pub kernel: String,
    /// Cores that pubmark can use on the machine.
    pub cores: u32,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// State of the machine's time service, as the kernel reports it.
    pub discipline: String,
    /// CPU idle states of the machine are prevented while a worker runs.
    pub awake: bool,
    /// The node's role in the run.
    pub kind: NodeKind,
    /// The node's labels, by which groups are placed.
    pub labels: Labels,
    /// Address at which clients on other machines reach the node's clients: as the node specifies, otherwise the
    /// address from which it joined.
    pub clients_at: IpAddr,
    /// Why links cannot be emulated on the machine; empty if they can.
    pub no_links: String,
    /// Why links cannot be emulated by the kernel's netem on the machine; empty if they can.
    pub no_kernel_netem: String,
}

impl NodeInfo {
    /// Creates it from the node's `Join` message; the labels were parsed when the message was checked.
    pub(super) fn of(join: Join, labels: Labels, address: SocketAddr) -> NodeInfo {
        let named = join.address.parse().ok().and_then(|address| for_clients(address).ok());
        let clients_at = named.unwrap_or_else(|| address.ip().to_canonical());
        let kind = NodeKind::of(&join);
        NodeInfo {
            name: join.name,
            address,
            version: join.version,
            host: join.host,
            boot: join.boot,
            kernel: join.kernel,
            cores: join.cores,
            memory_bytes: join.memory_bytes,
            discipline: join.discipline,
            awake: join.awake,
            kind,
            labels,
            clients_at,
            no_links: join.no_links,
            no_kernel_netem: join.no_kernel_netem,
        }
    }
}

/// Events that are reported to users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node joined.
    Joined(NodeInfo),
    /// A node was refused.
    Refused(Refusal),
    /// A node disconnected; the reason.
    Left(String, String),
}

/// State of one node.
pub(super) struct Slot {
    pub info: NodeInfo,
    pub lanes: Lanes<ToNode>,
    pub carried: Arc<Carried>,
    /// Bytes carried until the start and until the end of the measurement.
    pub marks: [Option<u64>; 2],
    /// Largest possible error of its clock, as it reported last, ns.
    pub bound_ns: u64,
}

/// Numbers of nodes that a run needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodesRequired {
    /// Nodes that send and receive.
    pub nodes: usize,
    /// Nodes that measure what a system uses.
    pub observers: usize,
    /// Names of nodes that start systems.
    pub system_hosts: Vec<String>,
}

impl NodesRequired {
    fn of(&self, kind: NodeKind) -> usize {
        match kind {
            NodeKind::Clients => self.nodes,
            NodeKind::Observer => self.observers,
            NodeKind::SystemHost => self.system_hosts.len(),
        }
    }
}

/// A worker on a node.
pub(super) struct Run {
    pub node: String,
    pub progress: Arc<Progress>,
    pub own: Vec<u32>,
    /// Was it started, or why not?
    pub began: Option<Result<(), String>>,
    /// Channel to the driver of the worker in this process; `None` after its last output.
    pub to_driver: Option<mpsc::Sender<Vec<u8>>>,
    pub report: Option<Report>,
    /// Why its node was lost, even if a node of that name has joined again since: the worker ended with the first one.
    pub lost: Option<String>,
}

#[derive(Default)]
pub(super) struct State {
    /// The required nodes; no other node may join.
    pub wanted: NodesRequired,
    pub nodes: BTreeMap<String, Slot>,
    /// Nodes of the run, in the order of their numbers.
    pub order: Vec<NodeInfo>,
    /// Observers of the run, in the order of their names.
    pub observers: Vec<NodeInfo>,
    /// Nodes that start the run's systems, in the order of their names.
    pub system_hosts: Vec<NodeInfo>,
    /// Nodes that were lost and have not joined again, with the reason.
    pub lost: BTreeMap<String, String>,
    /// Connected nodes that had to end their newest worker, with the reason.
    pub without_worker: BTreeMap<String, String>,
    pub runs: BTreeMap<u32, Run>,
    /// Number of the next worker.
    pub next_run: u32,
    /// Number of the newest request for free ports, the node that received it, and the response.
    pub ports: (u32, String, Option<FreePorts>),
    pub refused: Vec<Refusal>,
    events: Vec<Event>,
}

/// Most refusals and events that are stored: an unknown client that retries without end must not fill the memory.
const KEPT: usize = 1_000;

/// State, and a notification when it changes.
#[derive(Default)]
pub(super) struct Hub {
    state: Mutex<State>,
    changed: Condvar,
}

impl Hub {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and notifies.
    pub fn change<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        let result = what(&mut self.state());
        self.changed.notify_all();
        result
    }

    /// Waits until `found` returns something, for `limit` at most.
    pub fn wait<T>(&self, limit: Duration, mut found: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let until = Instant::now() + limit;
        let mut state = self.state();
        loop {
            if let Some(found) = found(&mut state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn refuse(&self, refusal: Refusal) {
        self.change(|state| {
            if state.refused.len() < KEPT {
                state.refused.push(refusal.clone());
            }
            state.tell(Event::Refused(refusal));
        });
    }

    /// Accepts a node, or returns the reason of the refusal and whether the node may try again.
    pub fn join(&self, slot: Slot) -> Result<(), (String, bool)> {
        self.change(|state| {
            let name = slot.info.name.clone();
            if state.nodes.contains_key(&name) {
                return Err((format!("there is a node `{name}` already: give this one another --name"), false));
            }
            let kind = slot.info.kind;
            let hosts = &state.wanted.system_hosts;
            if kind == NodeKind::SystemHost && !hosts.is_empty() && !hosts.contains(&name) {
                return Err((format!("the run starts its system on `{}`", hosts.join("`, `")), true));
            }
            if state.count(kind) >= state.wanted.of(kind) {
                let why = match (kind, state.wanted.of(kind)) {
                    (NodeKind::Observer, 0) => {
                        "the run wants no observers: `pubmark run --observers 1` does".to_owned()
                    }
                    (NodeKind::SystemHost, 0) => {
                        "the run starts its system elsewhere: `pubmark run --system-node NAME` starts it here"
                            .to_owned()
                    }
                    _ => format!("the run has all {} that it wants", kind.plural()),
                };
                return Err((why, true));
            }
            state.lost.remove(&name);
            state.tell(Event::Joined(slot.info.clone()));
            state.nodes.insert(name, slot);
            Ok(())
        })
    }

    /// A node disconnected: nothing waits for it any more.
    pub fn leave(&self, name: &str, why: &str) {
        self.change(|state| {
            if state.nodes.remove(name).is_none() {
                return;
            }
            state.lost.insert(name.to_owned(), why.to_owned());
            state.tell(Event::Left(name.to_owned(), why.to_owned()));
            for run in state.runs.values_mut().filter(|run| run.node == name) {
                run.to_driver = None;
                run.began.get_or_insert(Err(why.to_owned()));
                run.lost = Some(why.to_owned());
            }
        });
    }

    /// Stores the largest possible error of a node's clock; returns the largest one of all nodes, ns.
    pub fn clock_bound_ns(&self, name: &str, bound_ns: u64) -> u64 {
        let mut state = self.state();
        if let Some(slot) = state.nodes.get_mut(name) {
            slot.bound_ns = bound_ns;
        }
        state.nodes.values().map(|slot| slot.bound_ns).max().unwrap_or(0)
    }

    /// Stores counters of a worker.
    pub fn rows(&self, node: &str, number: u32, counters: &[u64]) {
        let state = self.state();
        let Some(run) = state.runs.get(&number).filter(|run| run.node == node) else { return };
        let shards = run.progress.shards();
        for (index, row) in run.own.iter().zip(counters.chunks_exact(ROW)) {
            if let (Some(shard), Ok(row)) = (shards.get(*index as usize), row.try_into()) {
                shard.copy(row);
            }
        }
    }

    /// Sends a message to every node.
    pub fn broadcast(&self, message: impl Fn() -> CoordinatorMessage) {
        for slot in self.state().nodes.values() {
            // A node that does not receive the message is detected as lost by its missing heartbeats.
            slot.lanes.say(ToNode { message: Some(message()) });
        }
    }
}

impl State {
    /// Number of connected nodes of a kind.
    pub fn count(&self, kind: NodeKind) -> usize {
        self.nodes.values().filter(|slot| slot.info.kind == kind).count()
    }

    /// Does the worker run on a node with clients?
    pub fn has_clients(&self, run: &Run) -> bool {
        self.order.iter().any(|node| node.name == run.node)
    }

    /// Removes the workers on nodes with clients, and returns them by their numbers.
    pub fn take_runs(&mut self) -> BTreeMap<u32, Run> {
        let all = std::mem::take(&mut self.runs);
        let (runs, others) = all.into_iter().partition(|(_, run)| self.has_clients(run));
        self.runs = others;
        runs
    }

    /// The first kind of which too few nodes have joined: the required number, the kind, and the names of those that
    /// joined.
    pub fn missing(&self) -> Option<(usize, &'static str, Vec<String>)> {
        let kinds = [NodeKind::Clients, NodeKind::Observer, NodeKind::SystemHost];
        let kind = kinds.into_iter().find(|kind| self.count(*kind) < self.wanted.of(*kind))?;
        let came = self.nodes.values().filter(|slot| slot.info.kind == kind);
        Some((self.wanted.of(kind), kind.plural(), came.map(|slot| slot.info.name.clone()).collect()))
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() < KEPT {
            self.events.push(event);
        }
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

impl Slot {
    /// Bytes carried in both directions so far.
    pub fn bytes(&self) -> u64 {
        self.carried.sent.load(Relaxed) + self.carried.received.load(Relaxed)
    }
}
