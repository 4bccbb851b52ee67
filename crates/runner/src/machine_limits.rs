//! Checks whether a machine has enough open files, ports and memory for its part of a fleet.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pubmark_model::fleet::{ClientCounts, ClientsOnNodes};
use pubmark_model::placement::{self, NodeLabels};
use pubmark_model::plan::{Plan, PlanOptions};
use pubmark_model::workload::Workload;
use pubmark_protocols::ProtocolPair;
use pubmark_systems::{descriptors, environment, ports};

use crate::error::{ErrorKind, RunError};
use crate::spec::RunSpec;
use crate::target::CheckedTarget;
use crate::{linked, sources};

/// File descriptors that pubmark needs in addition to its connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// What clients need on the machine that has the most of them. Machines that join are taken to be like this one; until they
/// have joined, each node is taken to be a machine of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientNeeds {
    /// Open files of the process with the most clients.
    pub open_files: u64,
    /// Connections from one machine to the endpoint that gets most of them; each needs a port of a source address.
    pub ports: u64,
    /// Ports that the machine's source addresses have; `None` if the kernel does not report it.
    pub available_ports: Option<u64>,
    /// Whether the clients are on machines that join.
    pub are_on_nodes: bool,
    /// Address that several nodes have in common, and with it its ports, if these nodes need the most.
    pub shared_address: Option<IpAddr>,
    /// What to do about too few ports.
    pub more_ports: String,
}

impl ClientNeeds {
    /// The needs of a run on nodes with these labels, as far as they are known.
    pub fn of(
        spec: &RunSpec,
        workload: &Workload,
        nodes: NodeLabels<'_>,
        wanted: &CheckedTarget,
        protocol_pair: ProtocolPair,
    ) -> ClientNeeds {
        ClientNeeds::at(spec, workload, nodes, &[], wanted, protocol_pair)
    }

    /// As [`ClientNeeds::of`], with the address of each node, from which its clients are taken to connect.
    pub(crate) fn at(
        spec: &RunSpec,
        workload: &Workload,
        nodes: NodeLabels<'_>,
        addresses: &[IpAddr],
        wanted: &CheckedTarget,
        protocol_pair: ProtocolPair,
    ) -> ClientNeeds {
        ClientNeeds::with(spec, workload, (nodes, addresses), wanted, protocol_pair, ports::outgoing())
    }

    /// As [`ClientNeeds::at`]; each source address has `outgoing` ports.
    fn with(
        spec: &RunSpec,
        workload: &Workload,
        (nodes, addresses): (NodeLabels<'_>, &[IpAddr]),
        wanted: &CheckedTarget,
        protocol_pair: ProtocolPair,
        outgoing: Option<u64>,
    ) -> ClientNeeds {
        let are_on_nodes = spec.nodes.nodes.is_some();
        let is_relayed = matches!(wanted, CheckedTarget::External { .. }) && linked::are_here(spec, workload);
        let second = protocol_pair.second_connection();
        let clients = ClientsOnNodes::of(workload, nodes, second);
        // The relay to a system that already runs is a separate process, with two descriptors for each connection.
        let sockets = match is_relayed {
            true => 2 * wanted.sockets(clients.all, clients.all),
            false => wanted.sockets(clients.most, clients.all),
        };
        // Worker processes of one machine have its addresses, and with them its ports, in common.
        let needed = |clients: ClientCounts| sources::connections_to_one(clients, wanted);
        let (most, shared_address) = match are_on_nodes {
            true => most_at_one_address(&clients, addresses, needed),
            false => (clients.all, None),
        };
        let source_addresses = spec.connection.source_addresses.as_ref().map_or(1, |sources| sources.0.len() as u64);
        let ports = needed(most);
        let more_ports = match (are_on_nodes, outgoing) {
            (true, Some(_)) if shared_address.is_some() => {
                "fewer of these nodes at one address, so more machines; or fewer devices".to_owned()
            }
            (true, Some(each)) => more_nodes(workload, nodes.nodes, ports, each, |count| {
                needed(ClientsOnNodes::of(workload, NodeLabels::unknown(count), second).most)
            }),
            _ if linked::are_here(spec, workload) => "fewer devices, or `--link none`".to_owned(),
            _ => sources::more(ports, outgoing.unwrap_or(1)),
        };
        ClientNeeds {
            open_files: sockets + OTHER_DESCRIPTORS,
            ports,
            available_ports: outgoing.map(|each| each * source_addresses),
            are_on_nodes,
            shared_address,
            more_ports,
        }
    }

    /// Refuses clients that need more open files or ports than a machine has. `available` is called with the number of
    /// required open files and returns the limit.
    pub(crate) fn check(&self, available: fn(u64) -> Result<u64, RunError>) -> Result<(), RunError> {
        let (needed, limit) = (self.open_files, available(self.open_files)?);
        let whose = if self.are_on_nodes { " of the node that has the most" } else { "" };
        if needed > limit {
            let sockets = needed - OTHER_DESCRIPTORS;
            let also = if self.are_on_nodes { ", here and on each node; more nodes" } else { "" };
            return Err(RunError::new(
                ErrorKind::TooLarge,
                format!("{sockets} connections{whose} need {needed} open files, the limit is {limit}"),
            )
            .hint(format!("`ulimit -Hn {needed}` as root{also}, or fewer devices")));
        }
        let whose = self.shared_address.map_or(whose.to_owned(), |address| format!(" of the nodes at {address}"));
        match self.available_ports {
            // As with open files: the largest size of an experiment's axis may be too large while the others are not.
            Some(available) if self.ports > available => Err(RunError::new(
                ErrorKind::TooLarge,
                format!(
                    "{} connections{whose} to one endpoint need as many local ports, the source addresses have {available}",
                    self.ports
                ),
            )
            .hint(self.more_ports.clone())),
            _ => Ok(()),
        }
    }
}

/// The connections of the nodes at one address that need the most ports, and the address if several nodes have it. Without
/// addresses, each node has one of its own.
fn most_at_one_address(
    clients: &ClientsOnNodes,
    addresses: &[IpAddr],
    needed: impl Fn(ClientCounts) -> u64,
) -> (ClientCounts, Option<IpAddr>) {
    let mut shared: BTreeMap<IpAddr, (ClientCounts, usize)> = BTreeMap::new();
    for (address, own) in addresses.iter().zip(&clients.each) {
        let (sum, nodes) = shared.entry(*address).or_default();
        *sum = sum.and(*own);
        *nodes += 1;
    }
    let at_addresses = shared.into_iter().map(|(address, (sum, nodes))| (sum, (nodes > 1).then_some(address)));
    at_addresses.max_by_key(|(sum, _)| needed(*sum)).unwrap_or((clients.most, None))
}

/// How clients on machines that join get more ports: each machine has those of its own address. `needed` is called with a
/// number of nodes.
fn more_nodes(workload: &Workload, nodes: u16, ports: u64, each: u64, needed: impl Fn(u16) -> u64) -> String {
    if !placement::by_labels(workload).is_empty() {
        return "more nodes with the labels that the placement requires, fewer devices, or `pubmark run … --placement none`"
            .to_owned();
    }
    let enough = u64::from(nodes).saturating_mul(ports).div_ceil(each.max(1));
    match u16::try_from(enough) {
        Ok(enough) if enough > nodes && needed(enough) <= each => format!("`--nodes {enough}`, or fewer devices"),
        _ => "fewer devices, or `pubmark run … --devices split --subscribers once`, so that nodes divide the clients"
            .to_owned(),
    }
}

/// Checks open files and ports for the clients of a run on nodes with these labels, as far as they are known.
pub fn check(
    spec: &RunSpec,
    workload: &Workload,
    nodes: NodeLabels<'_>,
    wanted: &CheckedTarget,
    protocol_pair: ProtocolPair,
    available: fn(u64) -> Result<u64, RunError>,
) -> Result<(), RunError> {
    ClientNeeds::of(spec, workload, nodes, wanted, protocol_pair).check(available)
}

/// Raises the limit of open files to the required number, or as far as this process may.
pub fn raise_descriptors(needed: u64) -> Result<u64, RunError> {
    descriptors::raise_for(needed).map(|limit| limit.soft).map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during("failed to raise the limit of open files")
    })
}

/// The value to which the limit of open files could be raised.
pub fn look_at_descriptors(_needed: u64) -> Result<u64, RunError> {
    descriptors::reachable().map_err(|error| {
        RunError::from_error(ErrorKind::Internal, &error).during("failed to read the limit of open files")
    })
}

/// Refuses a run that needs more than the total memory of this machine, by an estimate of the generator's memory;
/// `--dry-run` is stricter.
pub fn check_memory(spec: &RunSpec, workload: &Workload) -> Result<(), RunError> {
    let (nodes, labels, duration) = (spec.node_count(), spec.node_labels(), spec.window.duration);
    let options = PlanOptions { nodes, labels, duration, ..PlanOptions::default() };
    let needed = Plan::new(workload, &options).node.generator_bytes;
    let Some(memory) = environment::memory_bytes().filter(|memory| needed > *memory) else { return Ok(()) };
    let [needed, memory] = [needed, memory].map(|bytes| bytes.div_ceil(1 << 20));
    Err(RunError::new(
        ErrorKind::TooLarge,
        format!("the generator needs about {needed} MiB of memory, this machine has {memory} MiB"),
    )
    .hint("use fewer devices, or more machines"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::placement::{Labels, labels};

    use super::*;
    use crate::{Host, WorkloadSource};

    /// Ports of an address.
    const PORTS: u64 = 100;

    /// The needs of 150 devices and a subscriber, and the error with [`PORTS`] ports and 1,000 open files.
    fn needs(change: impl FnOnce(&mut RunSpec), placement: &str, sites: &[&str]) -> (u64, u64, Option<String>) {
        needs_at(change, placement, sites, &[])
    }

    /// The same for nodes that joined from these addresses.
    fn needs_at(
        change: impl FnOnce(&mut RunSpec),
        placement: &str,
        sites: &[&str],
        addresses: &[IpAddr],
    ) -> (u64, u64, Option<String>) {
        let text = format!(
            "name: w\ndevices: [{{name: a, count: 150, every: 1s, payload: 30B, topic: 'a/{{index}}'}}]\n\
             subscribers: [{{name: b, filters: ['#']}}]\nplacement: {placement}\n"
        );
        let mut spec = RunSpec::new("w");
        spec.workload = WorkloadSource::Inline { file_name: "w.yaml".to_owned(), text, passwords_left_out: false };
        change(&mut spec);
        let checked = spec.check(&Host::this()).unwrap();
        let labels: Vec<Labels> = sites.iter().map(|site| labels(&[format!("site={site}")]).unwrap()).collect();
        let nodes = NodeLabels { nodes: spec.node_count(), labels: &labels };
        let (workload, wanted) = (&checked.workload, &checked.wanted);
        let needs = ClientNeeds::with(&spec, workload, (nodes, addresses), wanted, checked.protocol_pair, Some(PORTS));
        let refusal = needs.check(|_| Ok(1_000)).err();
        let text = refusal.map(|error| format!("{error} / {}", error.hint.as_deref().unwrap_or_default()));
        (needs.open_files, needs.ports, text)
    }

    #[test]
    fn each_machine_has_the_ports_of_its_own_address() {
        let (files, ports, refusal) = needs(|_| (), "{subscribers: once}", &[]);
        assert_eq!((files, ports), (151 + OTHER_DESCRIPTORS, 151));
        assert!(refusal.unwrap().contains("`--source-addresses` with 2 addresses"));
        // Processes of this machine have its ports in common, and open files of their own.
        let (files, ports, refusal) = needs(|spec| spec.nodes.local_nodes = Some(2), "{subscribers: once}", &[]);
        assert_eq!((files, ports), (76 + OTHER_DESCRIPTORS, 151));
        assert!(refusal.unwrap().contains("`--source-addresses` with 2 addresses"));
        assert_eq!(needs(|spec| spec.nodes.nodes = Some(2), "{subscribers: once}", &[]), (140, 76, None));
    }

    #[test]
    fn the_node_that_carries_most_decides() {
        let placed =
            |sites: &[&str]| needs(|spec| spec.nodes.nodes = Some(2), "{a: site=edge, subscribers: once}", sites);
        assert_eq!(placed(&[]).2, None, "labels are not known before nodes join");
        let (files, ports, refusal) = placed(&["edge", "cloud"]);
        assert_eq!((files, ports), (151 + OTHER_DESCRIPTORS, 151));
        let refusal = refusal.unwrap();
        assert!(
            refusal.contains("151 connections of the node that has the most") && refusal.contains("the labels"),
            "{refusal}"
        );
        assert_eq!(placed(&["edge", "edge"]).2, None);
    }

    #[test]
    fn nodes_at_one_address_have_its_ports_in_common() {
        let [one, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let at = |addresses: &[IpAddr]| {
            needs_at(|spec| spec.nodes.nodes = Some(3), "{subscribers: once}", &["a", "b", "c"], addresses)
        };
        let (files, ports, refusal) = at(&[one, other, one]);
        // 50 devices and the subscriber of the first node, and 50 devices of the third.
        assert_eq!((files, ports), (51 + OTHER_DESCRIPTORS, 101));
        let refusal = refusal.unwrap();
        assert!(refusal.contains("101 connections of the nodes at 192.0.2.1 to one endpoint"), "{refusal}");
        assert!(refusal.contains("more machines"), "{refusal}");
        assert_eq!(at(&[one, other, IpAddr::from([192, 0, 2, 3])]), (51 + OTHER_DESCRIPTORS, 51, None));
        assert_eq!(at(&[]), (51 + OTHER_DESCRIPTORS, 51, None), "not known before nodes join");
    }

    #[test]
    fn a_session_with_two_connections_needs_two_ports_and_open_files() {
        let text = "name: w\ndevices: [{name: a, count: 60, every: 1s, payload: 30B, topic: 'a/{index}', scales: false, \
                    client: c}]\nsubscribers: [{name: b, count: 60, filters: ['a/#'], client: c}]\n";
        let needs = |protocol: &str| {
            let mut spec = RunSpec::new("w");
            let text = text.to_owned();
            spec.workload = WorkloadSource::Inline { file_name: "w.yaml".to_owned(), text, passwords_left_out: false };
            spec.protocols.protocol = Some(protocol.to_owned());
            spec.target.endpoint = Some("redis://127.0.0.1:6379".to_owned());
            let checked = spec.check(&Host::this()).unwrap();
            let needs = checked.needs();
            (needs.open_files - OTHER_DESCRIPTORS, needs.ports)
        };
        assert_eq!(needs("redis"), (60, 60));
        assert_eq!(needs("redis-streams"), (120, 120));
    }

    #[test]
    fn the_hint_for_nodes_names_as_many_as_suffice() {
        let hint = |placement| needs(|spec| spec.nodes.nodes = Some(1), placement, &[]).2.unwrap();
        assert!(hint("{subscribers: once}").ends_with("/ `--nodes 2`, or fewer devices"));
        assert!(hint("{devices: replicate, subscribers: every-node}").contains("--devices split"));
    }
}
