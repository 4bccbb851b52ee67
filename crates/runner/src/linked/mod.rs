//! Emulated links of a run: separate networks for the groups behind links. Links are probed before the run, and their
//! traffic is counted in the measured window. The system runs in the core network, as do all clients that have no link.

mod behind;
mod carried;
mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pubmark_engine::plan::Networks;
use pubmark_links::error::LinkError;
use pubmark_links::namespace::Namespace;
use pubmark_links::netem;
use pubmark_links::network::{BackEnd, Network, Settings};
use pubmark_links::star::Snapshot;
use pubmark_links::trunk::{self, TrunkEnd};
use pubmark_links::verify::{self, Verification};
use pubmark_links::watch::{Watch, WatchResult, WatchSpec};
use pubmark_links::{Direction, privilege, sockets};
use pubmark_model::fault::{Fault, Scope};
use pubmark_model::link::{Conditions, Link};
use pubmark_model::workload::Workload;
use pubmark_protocol::{clock, network};
use pubmark_protocols::ProtocolPair;
use pubmark_record::efficiency::PacketCounts;
use pubmark_record::links::{LinkBackEnd, LinkGroup};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, RunError};
use crate::relayed::{RelayReport, Relayed};
use crate::spec::{self, RunSpec};

use behind::Behind;
pub use behind::{NetworkAddresses, places};
pub use carried::{Carried, CarriedNow, Drained};
pub use report::{LinkReport, figures, left_bytes, requested};

/// Whether a group is behind a link.
pub fn any(workload: &Workload) -> bool {
    !Behind::of(workload).members.is_empty()
}

/// Which networks of a workload a process creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// The networks of all groups, once for each node of this machine.
    All {
        /// Number of nodes, ≥ 1.
        nodes: u16,
    },
    /// Only the network with this number.
    One(u16),
    /// A network for clients that are behind no link, from which they reach those that are.
    Unlinked,
}

/// The active links of a run.
pub struct Linked {
    network: Network,
    /// The groups of one node: number in the workload, and name. Networks are numbered by group first, then by node.
    members: Vec<(usize, String)>,
    nodes: u16,
    networks: Networks,
    found: Vec<Verification>,
    /// Traffic of the probes, before any other traffic.
    probed: Snapshot,
    congestion_control: String,
    watch: Watch,
    /// Some fault of the workload cuts links.
    is_cut: bool,
    /// Longest delay of the workload's links, ns, including those that other processes created: a message may have crossed
    /// one of them before.
    longest_delay_ns: u64,
    /// The relay to a system that already runs.
    relayed: Option<Relayed>,
}

/// What is known of links that have ended.
struct Ended {
    last: Snapshot,
    /// [`LinkReport::queue_drops`].
    queue_drops: u64,
    /// [`LinkReport::gone`].
    gone: Option<String>,
}

impl Ended {
    /// Ends the links.
    fn of(network: Network) -> Result<Ended, RunError> {
        let (last, was_running) = (network.snapshot(), network.is_running());
        match network.stop() {
            Ok(end) => {
                let queue_drops = end.unexpected_drops() - overflowed(&end.snapshot);
                Ok(Ended { last: end.snapshot, queue_drops, gone: None })
            }
            Err(error) => {
                let has_ended = !was_running || matches!(error, LinkError::Stopped { .. });
                let error = RunError::from_error(ErrorKind::Internal, &error);
                if !has_ended {
                    return Err(error);
                }
                // The emulator's interfaces are gone with it, and the kernel's are not read.
                let queue_drops = last.strays.undeliverable;
                Ok(Ended { last, queue_drops, gone: Some(error.chain.join(": ")) })
            }
        }
    }
}

/// Packets that the emulator dropped because its buffer was full.
fn overflowed(last: &Snapshot) -> u64 {
    last.links.iter().flat_map(|link| [&link.up, &link.down]).map(|counters| counters.overflowed.packets).sum()
}

pub(crate) fn failed(error: &LinkError) -> RunError {
    RunError::from_error(ErrorKind::Input, error)
        .during("failed to make the workload's links")
        .hint("`pubmark doctor` says what is missing for them; `--link none` runs the workload without")
}

/// The error of the links, with a hint if only the kernel's emulation is missing or cannot emulate a link.
fn not_made(error: &LinkError, back_end: BackEnd) -> RunError {
    match (error, back_end) {
        (LinkError::Impossible { .. } | LinkError::NotByKernel { .. }, BackEnd::KernelNetem) => {
            RunError::from_error(ErrorKind::Unsupported, error)
                .hint("leave `--netem kernel` out: links are then emulated in user space, which needs no netem")
        }
        _ => failed(error),
    }
}

/// Refuses links that the kernel cannot emulate, and a kernel without netem, before anything starts.
///
/// # Errors
/// What is missing, with a hint.
pub fn by_kernel(workload: &Workload) -> Result<(), RunError> {
    let behind = Behind::of(workload);
    let links: Vec<Link> = behind.members.iter().map(|member| member.link.clone()).collect();
    let not_made = |error| not_made(&error, BackEnd::KernelNetem);
    netem::refuse(&links).map_err(not_made)?;
    privilege::probe().kernel_netem.map_err(|missing| not_made(LinkError::Impossible { missing }))
}

/// Whether the process that leads a run creates its links. If machines join, the nodes with the clients create them.
pub fn are_here(spec: &RunSpec, workload: &Workload) -> bool {
    spec.nodes.nodes.is_none() && any(workload)
}

/// The reasons why links cannot be emulated on this machine, in user space and by the kernel; `None` if they can.
pub fn missing() -> [Option<String>; 2] {
    let found = privilege::probe();
    [found.missing(), found.kernel_netem.err()]
}

/// [`claim`] separated this process from the machine's network.
static HAS_LEFT_NETWORK: AtomicBool = AtomicBool::new(false);

/// Whether creating links would separate this process from the machine's network.
pub fn leaves_network() -> bool {
    !privilege::is_administrator()
}

/// Lets a user without root privileges create links, as root of a user namespace: from then on this process and its
/// children are in a separate network namespace, where the system has to be, too. Call it before any thread is started;
/// it does nothing for root.
///
/// # Errors
/// What this machine lacks.
pub fn claim() -> Result<(), RunError> {
    let leaves = leaves_network();
    privilege::claim().map_err(|error| failed(&error))?;
    HAS_LEFT_NETWORK.store(leaves, Relaxed);
    Ok(())
}

/// Whether links of this process are not in the machine's network: [`claim`] left it, or would.
pub fn are_apart_from_machine() -> bool {
    leaves_network() || HAS_LEFT_NETWORK.load(Relaxed)
}

/// Whether devices open connections, and whether subscribers do.
pub fn connect(protocol_pair: ProtocolPair) -> [bool; 2] {
    [protocol_pair.publish, protocol_pair.subscribe].map(|side| !side.capabilities.features.datagrams)
}

/// Networks of the groups behind links that other processes create: none can be entered here.
pub fn networks_elsewhere(workload: &Workload) -> Networks {
    Behind::of(workload).networks()
}

impl Linked {
    /// Creates networks of a workload and probes its links, which takes about two seconds; `None` if no group is behind
    /// a link. With a trunk there is one network.
    ///
    /// # Errors
    /// What this machine lacks.
    pub fn start(
        workload: &Workload,
        seed: u64,
        back_end: BackEnd,
        extent: Extent,
        trunk: Option<Arc<TrunkEnd>>,
    ) -> Result<Option<Linked>, RunError> {
        let behind = Behind::of(workload);
        let (nodes, only) = match extent {
            Extent::All { nodes } => (nodes, None),
            Extent::One(number) => (1, Some(usize::from(number))),
            // No group has this number.
            Extent::Unlinked => (1, Some(usize::MAX)),
        };
        let all = behind.members.iter().enumerate().filter(|(number, _)| only.is_none_or(|only| only == *number));
        let (members, mut links): (Vec<_>, Vec<_>) =
            all.map(|(number, member)| ((number, member.name.to_owned()), member.link.clone())).unzip();
        if extent == Extent::Unlinked {
            links.push(Link::symmetric("none", Conditions::default()));
        }
        if links.is_empty() {
            return Ok(None);
        }
        let links = (0..nodes).flat_map(|_| links.clone()).collect();
        let settings = Settings { back_end, ..Settings::new(links, seed) };
        let settings = match trunk {
            Some(trunk) => Settings { mtu: trunk::MTU, trunk: Some(trunk), ..settings },
            None => settings,
        };
        let watch = Watch::new();
        let network = Network::start_observed(settings, watch.watcher()).map_err(|error| not_made(&error, back_end))?;
        let congestion_control = sockets::default_congestion_control(network.core()).map_err(|error| failed(&error))?;
        // Without a link there is nothing to measure.
        let found = if members.is_empty() { Ok(vec![]) } else { verify::verify(&network) };
        let found = found.map_err(|error| failed(&error))?;
        let all = (0..network.groups()).filter_map(|group| {
            network.group(group).map(|namespace| Arc::new(namespace.clone()) as Arc<dyn network::Network>)
        });
        Ok(Some(Linked {
            networks: Networks { all: all.collect(), ..behind.networks() },
            probed: network.snapshot(),
            members,
            nodes,
            network,
            found,
            congestion_control,
            watch,
            is_cut: workload.faults.iter().any(|fault| fault.kind.scope() == Scope::Links),
            longest_delay_ns: carried::longest_delay_ns(behind.members.iter().map(|member| member.link)),
            relayed: None,
        }))
    }

    /// Namespaces of the groups, in the order of [`Linked::networks`], with those of the first node first.
    pub fn namespaces(&self) -> Vec<Namespace> {
        (0..self.network.groups()).filter_map(|group| self.network.group(group).cloned()).collect()
    }

    /// Networks of the groups.
    pub fn networks(&self) -> Networks {
        self.networks.clone()
    }

    /// Calls `work` in the network where the system runs: the processes and connections that it starts belong there.
    ///
    /// # Errors
    /// The kernel does not let this thread enter the network, or return.
    pub fn within<T>(&self, work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
        self.network.core().enter(work).map_err(|error| failed(&error))?
    }

    /// The network where the system runs, and where the relay to a system elsewhere listens.
    pub fn core(&self) -> &Namespace {
        self.network.core()
    }

    /// Connects the links to a system that already runs.
    pub fn lead_to(&mut self, relayed: Relayed) {
        self.relayed = Some(relayed);
    }

    /// The relay to a system that already runs.
    pub fn relayed(&self) -> Option<&Relayed> {
        self.relayed.as_ref()
    }

    /// Whether the emulation of the links has ended by itself, or the relay behind them is lost: the run cannot go on.
    pub fn are_lost(&self) -> bool {
        !self.network.is_running() || self.relayed.as_ref().is_some_and(|relayed| relayed.lost().is_some())
    }

    /// Whether messages can be found in packets on the links. They cannot if the kernel carries the packets.
    pub fn shows_packets(&self) -> bool {
        self.network.back_end() == BackEnd::UserSpace
    }

    /// Sets the messages to find in packets on the links.
    pub fn follow(&self, orders: WatchSpec) {
        self.watch.order(orders);
    }

    /// Steps of series are counted from this time, the start of the measured window: ns of [`clock::monotonic_ns`], which
    /// is the run's time in a process that follows the run's clock. The links read the same clock.
    pub fn begin(&self, start_ns: u64) {
        // If the emulator has ended, no traffic passes: the run ends, and the report has the reason.
        let _ = self.network.begin(start_ns);
        self.watch.begin(start_ns);
    }

    /// Disconnects the groups that a fault affects (a group, or all behind a link), or reconnects them.
    pub fn cut(&self, workload: &Workload, fault: &Fault, cut: bool) -> Result<(), String> {
        let behind = Behind::of(workload);
        for (at, (number, _)) in self.members.iter().enumerate() {
            let is_group = fault.group.as_deref().is_some_and(|group| behind.is_of(workload, *number, group));
            if is_group || fault.link.as_ref() == Some(&behind.members[*number].link.name) {
                let mut of_nodes = (at..self.network.groups()).step_by(self.members.len());
                of_nodes.try_for_each(|number| self.network.cut(number, cut)).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// What the links and the relay have carried so far.
    pub fn carried(&self) -> CarriedNow {
        let relay = self.relayed.as_ref().map(Relayed::counts);
        CarriedNow { links: self.network.snapshot(), relay, at_ns: clock::monotonic_ns() }
    }

    /// What the links and the relay have carried at the end of the drain, before clients end their connections.
    pub fn drained(&self) -> Drained {
        let now = self.carried();
        Drained { now, relay_bytes: self.relayed.as_ref().and_then(Relayed::waiting_bytes) }
    }

    /// What the links carried between the edges of the window, with the times of packets that were found; `None` if the
    /// back end does not show packets. Ends the links.
    ///
    /// # Errors
    /// The kernel does not tell what the interfaces dropped.
    pub fn finish(self, carried: Carried, held_ns: u64) -> Result<(LinkReport, Option<WatchResult>), RunError> {
        let links = self.network.links().to_vec();
        // Clients without a link have none in the record.
        let reported = if self.members.is_empty() { 0 } else { links.len() };
        let names: Vec<String> = (0..reported).map(|number| self.name(number)).collect();
        let emulated = self.network.back_end() == BackEnd::UserSpace;
        let relay = self.relay_report(&carried, held_ns);
        let relay_bytes = carried.drained.as_ref().and_then(|drained| drained.relay_bytes);
        let link_bytes = carried.link_bytes(self.longest_delay_ns);
        let [before, after] = carried.edges.map(|now| now.map(|now| now.links));
        let packets = match (&before, &after) {
            (Some(before), Some(after)) => self.packets([&self.probed, before, after]),
            _ => vec![],
        };
        let Ended { last, queue_drops, gone } = Ended::of(self.network)?;
        // A run that was stopped before its window has measured nothing.
        let before = before.as_ref().unwrap_or(&last);
        let after = after.as_ref().unwrap_or(&last);
        let group = |number: usize| LinkGroup {
            group: names[number].clone(),
            link: links[number].name.clone(),
            source: links[number].source.clone(),
            up: report::direction(&links[number], number, Direction::Up, &self.found, [before, after], emulated),
            down: report::direction(&links[number], number, Direction::Down, &self.found, [before, after], emulated),
        };
        let strays = &last.strays;
        let report = LinkReport {
            back_end: if emulated { LinkBackEnd::UserSpace } else { LinkBackEnd::KernelNetem },
            realtime: last.realtime,
            congestion_control: self.congestion_control.clone(),
            groups: (0..reported).map(group).collect(),
            differences: if emulated { vec![] } else { report::differences(&links, self.is_cut) },
            relay,
            relay_held_ns: held_ns,
            relay_bytes,
            link_bytes,
            lateness: after.lateness.since(&before.lateness).buckets().collect(),
            read_wait: after.read_wait.since(&before.read_wait).buckets().collect(),
            cpu_ns: report::cpu_ns([before, after]).filter(|_| emulated),
            queue_drops,
            overflowed: emulated.then(|| overflowed(&last)),
            unroutable_packets: emulated.then_some(strays.unroutable + strays.malformed),
            trunk: report::trunk([before, after, &last]).map(Ok),
            gone,
            packets,
        };
        Ok((report, emulated.then(|| self.watch.take())))
    }

    /// What the relay carried in the window; `None` without a relay, or if the run did not reach the end of its window. `Err` has the
    /// reason for which the relay was lost at any time.
    fn relay_report(&self, carried: &Carried, held_ns: u64) -> Option<Result<RelayReport, String>> {
        if let Some(why) = self.relayed.as_ref()?.lost() {
            return Some(Err(why.to_owned()));
        }
        let counts = |now: &Option<CarriedNow>| now.as_ref().and_then(|now| now.relay.clone());
        let [before, after] = [counts(&carried.edges[0])?, counts(&carried.edges[1])?];
        let drained = carried.drained.as_ref().and_then(|drained| drained.now.relay.as_ref()?.as_ref().ok());
        Some(self.relayed.as_ref()?.report([&before, &after], drained, held_ns))
    }

    /// For each group: packets between the second and the third snapshot, and between the first and the second. Packets
    /// that a group sends are counted when they enter the link, packets that it receives when they leave the link.
    fn packets(&self, [start, before, after]: [&Snapshot; 3]) -> Vec<(String, PacketCounts, PacketCounts)> {
        let counts = |from: &Snapshot, to: &Snapshot, group: usize| {
            let up = to.links[group].up.since(&from.links[group].up).arrived;
            let down = to.links[group].down.since(&from.links[group].down).delivered;
            PacketCounts {
                sent_packets: up.packets,
                sent_bytes: up.bytes,
                received_packets: down.packets,
                received_bytes: down.bytes,
            }
        };
        // The sum for a group over all nodes that have its clients.
        let sum = |from: &Snapshot, to: &Snapshot, group: usize| {
            let of_nodes = (group..self.network.groups()).step_by(self.members.len());
            let mut sum = PacketCounts::default();
            of_nodes.for_each(|number| sum.add(&counts(from, to, number)));
            sum
        };
        let groups = self.members.iter().enumerate();
        groups.map(|(group, (_, name))| (name.clone(), sum(before, after, group), sum(start, before, group))).collect()
    }

    /// Name of a network, by its number.
    fn name(&self, number: usize) -> String {
        let (_, name) = &self.members[number % self.members.len()];
        match self.nodes {
            1 => name.clone(),
            _ => format!("{name} at {}", spec::local_name((number / self.members.len()) as u16)),
        }
    }
}
