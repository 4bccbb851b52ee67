//! Checks whether a machine has enough open files, ports and memory for its part of a fleet.

use pubmark_model::fleet::{ConnectionCounts, ConnectionsOnNodes};
use pubmark_model::placement::{self, NodeLabels};
use pubmark_model::plan::{BOOK_BYTES_PER_STREAM, Plan, PlanOptions};
use pubmark_model::workload::Workload;
use pubmark_protocols::ProtocolPair;
use pubmark_systems::cgroup::quota;
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
    /// Name of the machine whose ports several nodes have in common, if these nodes need the most.
    pub shared_machine: Option<String>,
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

    /// As [`ClientNeeds::of`], for nodes that have joined: the name of each of their machines, and the numbers of its nodes, whose
    /// clients have its ports in common.
    pub(crate) fn at(
        spec: &RunSpec,
        workload: &Workload,
        nodes: NodeLabels<'_>,
        machines: &[(String, Vec<usize>)],
        wanted: &CheckedTarget,
        protocol_pair: ProtocolPair,
    ) -> ClientNeeds {
        ClientNeeds::with(spec, workload, (nodes, machines), wanted, protocol_pair, ports::outgoing())
    }

    /// As [`ClientNeeds::at`]; each source address has `outgoing` ports.
    fn with(
        spec: &RunSpec,
        workload: &Workload,
        (nodes, machines): (NodeLabels<'_>, &[(String, Vec<usize>)]),
        wanted: &CheckedTarget,
        protocol_pair: ProtocolPair,
        outgoing: Option<u64>,
    ) -> ClientNeeds {
        let are_on_nodes = spec.nodes.nodes.is_some();
        let is_relayed = matches!(wanted, CheckedTarget::External { .. }) && linked::are_here(spec, workload);
        let second = protocol_pair.second_connection();
        let connections = ConnectionsOnNodes::of(workload, nodes, second);
        // The relay to a system that already runs is a separate process, with two descriptors for each connection.
        let sockets = match is_relayed {
            true => 2 * wanted.sockets(connections.all, connections.all),
            false => wanted.sockets(connections.most, connections.all),
        };
        // Worker processes of one machine have its addresses, and with them its ports, in common.
        let needed = |connections: ConnectionCounts| sources::connections_to_one(connections, wanted);
        let (most, shared_machine) = match are_on_nodes {
            true => most_on_one_machine(&connections, machines, needed),
            false => (connections.all, None),
        };
        let source_addresses = spec.connection.source_addresses.as_ref().map_or(1, |sources| sources.0.len() as u64);
        let ports = needed(most);
        let more_ports = match (are_on_nodes, outgoing) {
            (true, Some(_)) if shared_machine.is_some() => more_machines(workload).to_owned(),
            (true, Some(each)) => more_nodes(workload, nodes.nodes, ports, each, |count| {
                needed(ConnectionsOnNodes::of(workload, NodeLabels::unknown(count), second).most)
            }),
            _ if linked::are_here(spec, workload) => "fewer devices, or `--link none`".to_owned(),
            _ => sources::more(ports, outgoing.unwrap_or(1)),
        };
        ClientNeeds {
            open_files: sockets + OTHER_DESCRIPTORS,
            ports,
            available_ports: outgoing.map(|each| each * source_addresses),
            are_on_nodes,
            shared_machine,
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
        let shared = self.shared_machine.as_ref().map(|name| format!(" of the nodes on `{name}`"));
        let whose = shared.as_deref().unwrap_or(whose);
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

/// The connections on the machine that needs the most ports, and its name if several nodes are on it. Without machines, each
/// node has one of its own.
fn most_on_one_machine(
    connections: &ConnectionsOnNodes,
    machines: &[(String, Vec<usize>)],
    needed: impl Fn(ConnectionCounts) -> u64,
) -> (ConnectionCounts, Option<String>) {
    let on = |nodes: &[usize]| {
        let each = nodes.iter().filter_map(|node| connections.each.get(*node).copied());
        each.fold(ConnectionCounts::default(), ConnectionCounts::and)
    };
    match machines.iter().max_by_key(|(_, nodes)| needed(on(nodes))) {
        Some((host, nodes)) => (on(nodes), (nodes.len() > 1).then(|| host.clone())),
        None => (connections.most, None),
    }
}

/// How clients of several nodes on one machine get more ports.
fn more_machines(workload: &Workload) -> &'static str {
    if placement::by_labels(workload).is_empty() {
        return "`pubmark node --join HOST:PORT` on further machines, in place of several nodes on one; or fewer devices";
    }
    "`pubmark node --join HOST:PORT --label KEY=VALUE` on further machines, with the labels that the placement requires, in place of \
     several nodes on one; fewer devices; or `pubmark run … --placement none`"
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

/// Refuses a run on this machine that needs more than its total memory, or than the control groups of this process allow, by an
/// estimate of the generator's memory; `--dry-run` is stricter.
pub fn check_memory(spec: &RunSpec, workload: &Workload, protocol_pair: ProtocolPair) -> Result<(), RunError> {
    let options = PlanOptions {
        nodes: spec.node_count(),
        labels: spec.node_labels(),
        warmup: spec.window.warmup,
        duration: spec.window.duration,
        second_connection: protocol_pair.second_connection(),
        ..PlanOptions::default()
    };
    let needed = generator_bytes(&Plan::new(workload, &options));
    refuse_memory(needed, environment::memory_bytes(), quota::own_memory_bytes())
}

/// Memory of all nodes of a plan, which are processes of this machine, bytes.
fn generator_bytes(plan: &Plan) -> u64 {
    let nodes = u64::from(plan.nodes);
    let (node, books) = (&plan.node, plan.streams.saturating_mul(BOOK_BYTES_PER_STREAM));
    // A stream is at one node, though each node may be counted with those of the subscribers that exist once.
    let books = node.book_bytes.saturating_mul(nodes).min(books.max(node.book_bytes));
    (node.generator_bytes - node.book_bytes).saturating_mul(nodes).saturating_add(books)
}

fn refuse_memory(needed: u64, of_machine: Option<u64>, of_group: Option<u64>) -> Result<(), RunError> {
    let fewer = "use fewer devices, or more machines";
    let of_machine = of_machine.map(|bytes| (bytes, "this machine has", fewer.to_owned()));
    let raise = format!("raise it (`memory.max`; of a container, `--memory`), {fewer}");
    let of_group = of_group.map(|bytes| (bytes, "the limit of its control group is", raise));
    let least = of_machine.into_iter().chain(of_group).min_by_key(|(bytes, ..)| *bytes);
    let Some((available, whose, hint)) = least.filter(|(bytes, ..)| needed > *bytes) else { return Ok(()) };
    let [needed, available] = [needed, available].map(|bytes| bytes.div_ceil(1 << 20));
    let text = format!("the generator needs about {needed} MiB of memory, {whose} {available} MiB");
    Err(RunError::new(ErrorKind::TooLarge, text).hint(hint))
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

    /// The same for nodes on these machines: of each, the numbers of its nodes.
    fn needs_at(
        change: impl FnOnce(&mut RunSpec),
        placement: &str,
        sites: &[&str],
        machines: &[&[usize]],
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
        let machines: Vec<(String, Vec<usize>)> =
            machines.iter().zip(1..).map(|(nodes, number)| (format!("machine-{number}"), nodes.to_vec())).collect();
        let needs = ClientNeeds::with(&spec, workload, (nodes, &machines), wanted, checked.protocol_pair, Some(PORTS));
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
    fn nodes_of_this_machine_need_its_memory_together() {
        let needed = |nodes: u16| {
            let workload = pubmark_model::load::load("smart-home", &Default::default()).unwrap();
            let plan = Plan::new(&workload, &PlanOptions { nodes, ..PlanOptions::default() });
            (plan.node.generator_bytes, generator_bytes(&plan))
        };
        let (of_one, all) = needed(1);
        assert_eq!(of_one, all);
        let (of_one, all) = needed(4);
        assert!(all > 3 * of_one && all <= 4 * of_one, "{all} of 4 nodes, each {of_one}");
    }

    #[test]
    fn the_memory_limit_of_the_control_group_counts_if_it_is_less_than_the_machine_has() {
        let refusal = |of_machine: Option<u64>, of_group: Option<u64>| {
            let error = refuse_memory(300 << 20, of_machine, of_group).err()?;
            Some(format!("{error} / {}", error.hint.as_deref().unwrap_or_default()))
        };
        let machine = refusal(Some(200 << 20), Some(250 << 20)).unwrap();
        assert!(machine.contains("about 300 MiB of memory, this machine has 200 MiB / use fewer"), "{machine}");
        let group = refusal(Some(1 << 30), Some(250 << 20)).unwrap();
        assert!(group.contains("the limit of its control group is 250 MiB / raise it"), "{group}");
        assert_eq!(refusal(Some(1 << 30), Some(300 << 20)), None);
        assert_eq!(refusal(None, None), None);
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
    fn nodes_of_one_machine_have_its_ports_in_common() {
        let at = |machines: &[&[usize]]| {
            needs_at(|spec| spec.nodes.nodes = Some(3), "{subscribers: once}", &["a", "b", "c"], machines)
        };
        let (files, ports, refusal) = at(&[&[0, 2], &[1]]);
        // 50 devices and the subscriber of the first node, and 50 devices of the third.
        assert_eq!((files, ports), (51 + OTHER_DESCRIPTORS, 101));
        let refusal = refusal.unwrap();
        assert!(refusal.contains("101 connections of the nodes on `machine-1` to one endpoint"), "{refusal}");
        assert!(refusal.contains("/ `pubmark node --join HOST:PORT` on further machines"), "{refusal}");
        assert_eq!(at(&[&[0], &[1], &[2]]), (51 + OTHER_DESCRIPTORS, 51, None));
        assert_eq!(at(&[]), (51 + OTHER_DESCRIPTORS, 51, None), "not known before nodes join");
    }

    #[test]
    fn further_machines_need_the_labels_that_the_placement_requires() {
        let edge = "{a: site=edge, subscribers: once}";
        let at = |machines: &[&[usize]]| {
            needs_at(|spec| spec.nodes.nodes = Some(3), edge, &["edge", "edge", "cloud"], machines).2
        };
        let refusal = at(&[&[0, 1], &[2]]).unwrap();
        assert!(refusal.contains("of the nodes on `machine-1`"), "{refusal}");
        assert!(
            refusal.contains("/ `pubmark node --join HOST:PORT --label KEY=VALUE` on further machines, with"),
            "{refusal}"
        );
        assert_eq!(at(&[&[0], &[1], &[2]]), None);
    }

    #[test]
    fn a_session_with_two_connections_needs_two_ports_and_open_files() {
        let shared = "name: w\ndevices: [{name: a, count: 60, every: 1s, payload: 30B, topic: 'a/{index}', scales: false, \
                      client: c}]\nsubscribers: [{name: b, count: 60, filters: ['a/#'], client: c}]\n";
        let requests = "name: w\ndevices: []\nsubscribers: []\nrequesters: [{name: a, count: 60, every: 1s, payload: 100B, topic: 'r/{index}'}]\n\
                        responders: [{name: b, filters: ['r/#']}]\n";
        let needs = |protocol: &str, text: &str| {
            let mut spec = RunSpec::new("w");
            let text = text.to_owned();
            spec.workload = WorkloadSource::Inline { file_name: "w.yaml".to_owned(), text, passwords_left_out: false };
            spec.protocols.protocol = Some(protocol.to_owned());
            spec.target.endpoint = Some("redis://127.0.0.1:6379".to_owned());
            let checked = spec.check(&Host::this()).unwrap();
            let needs = checked.needs();
            (needs.open_files - OTHER_DESCRIPTORS, needs.ports)
        };
        assert_eq!(needs("redis", shared), (60, 60));
        assert_eq!(needs("redis-streams", shared), (120, 120));
        assert_eq!(needs("redis", requests), (2 * 61, 2 * 61));
    }

    #[test]
    fn the_hint_for_nodes_names_as_many_as_suffice() {
        let hint = |placement| needs(|spec| spec.nodes.nodes = Some(1), placement, &[]).2.unwrap();
        assert!(hint("{subscribers: once}").ends_with("/ `--nodes 2`, or fewer devices"));
        assert!(hint("{devices: replicate, subscribers: every-node}").contains("--devices split"));
    }
}
