//! Nodes that joined a run, and their rows in the record.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubmark_cluster::credentials::Role;
use pubmark_cluster::messages::Report;
use pubmark_cluster::node::NodeKind;
use pubmark_cluster::{Announcement, Cluster, ClusterError, Credentials, Event, NodeInfo, NodesRequired, WorkerReport};
use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::progress::Progress;
use pubmark_engine::remote::{Launcher, Started};
use pubmark_engine::run::Phase;
use pubmark_engine::shares::WorkerLocation;
use pubmark_model::fleet::Fleet;
use pubmark_model::placement::{Labels, NodeLabels};
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocols::ProtocolPair;
use pubmark_record::cost::Usage;
use pubmark_record::nodes::{self, ControlBytes, MachineUsage, NodeClock, NodeMachine, NodeRow};
use pubmark_systems::{Definition, environment};

use super::{Hosted, Observed, WorkerUsage};
use crate::across_nodes::{self, is_one_machine};
use crate::error::{ErrorKind, RunError};
use crate::node_links::LinksOnNodes;
use crate::observer::{RunEvent, RunObserver};
use crate::spec::{Netem, Nodes, RunSpec};

/// Default address at which nodes join.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 7700);
/// Default folder of the coordinator.
const CREDENTIALS: &str = "cluster/coordinator";
/// Default longest wait for nodes.
const JOIN_LIMIT: Duration = Duration::from_secs(60);

/// Nodes that joined: of one run, or of several runs that are made one after the other.
#[derive(Debug)]
pub struct JoinedNodes {
    cluster: Cluster,
    wanted: NodesRequired,
    limit: Duration,
    /// Credentials of the coordinator that is announced while it waits for nodes.
    announced: Option<Credentials>,
}

impl JoinedNodes {
    /// Listens for nodes, including those with these names that start systems, and waits until all have joined; `None` if the run has no
    /// nodes.
    ///
    /// # Errors
    /// The coordinator cannot listen, too few nodes joined in time, or `stop` was set.
    pub fn of(
        nodes: &Nodes,
        system_hosts: Vec<String>,
        stop: &AtomicBool,
        observer: &mut dyn RunObserver,
    ) -> Result<Option<JoinedNodes>, RunError> {
        let wanted = [nodes.nodes, nodes.observers].map(|count| usize::from(count.unwrap_or(0)));
        let wanted = NodesRequired { nodes: wanted[0], observers: wanted[1], system_hosts };
        if wanted == NodesRequired::default() {
            return Ok(None);
        }
        let folder = nodes.credentials.clone().unwrap_or_else(|| PathBuf::from(CREDENTIALS));
        let credentials = Credentials::read(&folder, None)
            .and_then(|credentials| credentials.check(Role::Coordinator).map(|()| credentials))
            .map_err(|error| unusable(&error, &folder))?;
        let listen = nodes.listen.unwrap_or(LISTEN);
        if nodes.announce && listen.ip().is_loopback() {
            return Err(RunError::input(format!(
                "`--announce` for nodes elsewhere, and `--listen {listen}` is for this machine"
            ))
            .hint("`--listen 0.0.0.0:7700`, or without `--announce`"));
        }
        let cluster = Cluster::listen(listen, &credentials, env!("CARGO_PKG_VERSION")).map_err(|error| {
            let failure = RunError::from_error(ErrorKind::Input, &error);
            match error {
                ClusterError::Listen { .. } => failure.hint("`--listen 0.0.0.0:7701` takes another port"),
                _ => failure,
            }
        })?;
        let limit = nodes.join_limit.unwrap_or(JOIN_LIMIT);
        let joined =
            JoinedNodes { cluster, wanted: wanted.clone(), limit, announced: nodes.announce.then_some(credentials) };
        observer.event(&RunEvent::WaitsForNodes {
            nodes: wanted.nodes,
            observers: wanted.observers,
            system_hosts: wanted.system_hosts.len(),
            address: joined.cluster.address(),
        });
        joined.wait_for_nodes(observer, stop)?;
        Ok(Some(joined))
    }

    /// Refuses a system that listens at an address that nodes cannot reach; `None` for a system that pubmark does not start.
    pub(crate) fn check_reach(&self, listens_at: Option<Ipv4Addr>) -> Result<(), RunError> {
        let Some(host) = listens_at.filter(Ipv4Addr::is_loopback) else { return Ok(()) };
        match self.cluster.nodes().into_iter().find(|node| !is_local(node.address)) {
            Some(far) => Err(RunError::input(format!(
                "a system at {host} is out of reach for `{}` at {}",
                far.name,
                far.address.ip()
            ))
            .hint("`--system-host ADDRESS` with an address of this machine that nodes reach; or `--endpoint`")),
            None => Ok(()),
        }
    }

    /// Refuses an endpoint at a loopback address, at which each machine reaches itself, for nodes on other machines.
    pub(crate) fn check_loopback(&self, endpoint: &str) -> Result<(), RunError> {
        match self.cluster.nodes().into_iter().find(|node| !is_local(node.address)) {
            Some(far) => Err(RunError::input(format!(
                "`{endpoint}` leads each node to its own machine, and `{}` at {} is not this one",
                far.name,
                far.address.ip()
            ))
            .hint("`--endpoint` with an address of the system's machine that all nodes reach")),
            None => Ok(()),
        }
    }

    /// Refuses nodes, among the first ones, that cannot emulate links with the requested back end.
    pub(crate) fn check_links(&self, first: u16, netem: Netem) -> Result<(), RunError> {
        let missing = |node: &NodeInfo| match netem {
            Netem::User => node.no_links.clone(),
            Netem::Kernel => node.no_kernel_netem.clone(),
        };
        match self.nodes(first).into_iter().find(|node| !missing(node).is_empty()) {
            Some(node) => Err(RunError::unsupported(format!(
                "`{}` cannot emulate the links of its clients: {}",
                node.name,
                missing(&node)
            ))
            .hint(match netem {
                Netem::User => "`pubmark doctor` there says more; `--link none` runs the workload without links",
                Netem::Kernel => "leave `--netem kernel` out: links are then emulated in user space",
            })),
            None => Ok(()),
        }
    }

    /// Whether as many nodes have joined as a run needs. The run uses the first of them.
    pub(crate) fn has(&self, wanted: &Nodes) -> bool {
        usize::from(wanted.nodes.unwrap_or(0)) <= self.wanted.nodes
    }

    /// Waits until nodes that were lost have joined again.
    ///
    /// # Errors
    /// One stayed away ([`ErrorKind::NodeLost`]), or `stop` was set.
    pub fn gather(&self, observer: &mut dyn RunObserver, stop: &AtomicBool) -> Result<(), RunError> {
        self.wait_for_nodes(observer, stop).map_err(lost)
    }

    /// The machines of the nodes that send and receive, by kind.
    pub fn machines_in_words(&self) -> String {
        let row = |node: NodeInfo| NodeRow { machine: Some(machine_of(&node)), ..NodeRow::default() };
        nodes::machines(&self.cluster.nodes().into_iter().map(row).collect::<Vec<NodeRow>>())
    }

    /// Waits until all nodes have joined, including those that were lost before.
    fn wait_for_nodes(&self, observer: &mut dyn RunObserver, stop: &AtomicBool) -> Result<(), RunError> {
        let mut seen = |event: &Event| {
            observer.event(&match event {
                Event::Joined(node) => RunEvent::NodeJoined { name: node.name.clone(), address: node.address.ip() },
                Event::Refused(refusal) => RunEvent::NodeRefused { reason: refusal.to_string() },
                Event::Left(name, why) => RunEvent::NodeLeft { name: name.clone(), reason: why.clone() },
            });
        };
        let announce = |credentials| Announcement::begin(self.cluster.address(), credentials);
        let _announced = self.announced.as_ref().map(announce).transpose().map_err(|error| {
            RunError::from_error(ErrorKind::Internal, &error)
                .during("failed to announce the run on local networks (--announce)")
        })?;
        self.cluster.gather(self.wanted.clone(), self.limit, stop, &mut seen).map_err(|error| match &error {
            ClusterError::Interrupted => RunError::new(ErrorKind::Interrupted, "interrupted while waiting for nodes"),
            ClusterError::Missing { what, .. } => RunError::from_error(ErrorKind::Input, &error).hint(format!(
                "on each machine: `pubmark node --join {}:{}{}`; `--join-limit` waits longer",
                environment::host_name(),
                self.cluster.address().port(),
                match self.wanted.system_hosts.first().filter(|_| *what == NodeKind::SystemHost.plural()) {
                    Some(name) => format!(" --start-systems --name {name}"),
                    None => String::new(),
                }
            )),
            _ => RunError::from_error(ErrorKind::Internal, &error),
        })
    }

    /// The first `first` nodes.
    pub(crate) fn nodes(&self, first: u16) -> Vec<NodeInfo> {
        self.cluster.nodes().into_iter().take(first.into()).collect()
    }

    /// Names and labels of the first `first` nodes.
    pub(crate) fn labels(&self, first: u16) -> Vec<(String, Labels)> {
        self.nodes(first).into_iter().map(|node| (node.name, node.labels)).collect()
    }

    /// Machines of the first `first` nodes: the name of each, and the numbers of its nodes, whose clients have its ports in common.
    pub(crate) fn machines(&self, first: u16) -> Vec<(String, Vec<usize>)> {
        machines(&self.nodes(first))
    }

    /// Returns the ports of a list that are free on a node, at its address for clients.
    ///
    /// # Errors
    /// The node is lost, or does not have that address; or `stop` was set.
    pub(crate) fn free_ports(
        &self,
        node: u16,
        address: IpAddr,
        ports: &[u16],
        stop: &AtomicBool,
    ) -> Result<Vec<u16>, RunError> {
        self.cluster.free_ports(node.into(), address, ports, stop).map_err(|error| match &error {
            ClusterError::Interrupted => {
                RunError::new(ErrorKind::Interrupted, "interrupted while nodes looked for free ports")
            }
            ClusterError::Address { name, .. } => RunError::from_error(ErrorKind::Input, &error)
                .hint(format!("`pubmark node --address IP` on `{name}`, with an address of its machine")),
            _ => RunError::from_error(ErrorKind::NodeLost, &error)
                .hint("the output of the lost node contains the reason for its end; run again with all nodes"),
        })
    }

    /// The first `first` nodes that are lost, each with the reason.
    pub(crate) fn lost(&self, first: u16) -> Vec<String> {
        let nodes = self.cluster.nodes().into_iter().take(first.into()).enumerate();
        nodes.filter_map(|(number, node)| Some(format!("`{}`: {}", node.name, self.cluster.lost(number)?))).collect()
    }

    /// Whether there are nodes with clients.
    pub(crate) fn drives(&self) -> bool {
        self.wanted.nodes > 0
    }

    /// Starts the system of a run on the node of this name.
    pub(crate) fn start_system(
        &self,
        name: &str,
        spec: &RunSpec,
        protocol_pair: ProtocolPair,
        stop: &AtomicBool,
    ) -> Result<Hosted, RunError> {
        Hosted::start(&self.cluster, name, spec, protocol_pair, stop)
    }

    /// Starts the measurement of observers; `None` if the run has none.
    pub(crate) fn observe(&self) -> Result<Option<Observed>, RunError> {
        (self.wanted.observers > 0).then(|| Observed::begin(&self.cluster)).transpose()
    }

    /// Launcher that starts workers on the nodes for clients of these protocols. Workers of an earlier launch are
    /// forgotten, also if that run failed before its results were collected.
    pub(crate) fn launcher(
        self: &Arc<JoinedNodes>,
        adapter_names: [String; 2],
        links: Option<LinksOnNodes>,
    ) -> Box<dyn Launcher> {
        self.cluster.forget_workers();
        Box::new(OnNodes { joined: Arc::clone(self), adapter_names, links })
    }

    /// Endpoints at which the clients of a system without a broker reach each other on the first nodes ([`across_nodes::places`]).
    pub(crate) fn places(
        &self,
        definition: &Definition,
        protocol: &Capabilities,
        profile: &str,
        run: (&Workload, &Fleet),
        (nodes, stop): (NodeLabels<'_>, &AtomicBool),
    ) -> Result<Endpoints, RunError> {
        across_nodes::places(definition, protocol, profile, run, (self, nodes, stop))
    }

    /// Addresses of the ends of a trunk between the links of the first nodes ([`across_nodes::trunk_ends`]).
    pub(crate) fn trunk_ends(&self, nodes: u16, of_node: u16, stop: &AtomicBool) -> Result<Vec<SocketAddr>, RunError> {
        across_nodes::trunk_ends(self, nodes, of_node, stop)
    }

    /// The run enters this phase. Counters are sent only in phases that wait for them.
    pub(crate) fn phase(&self, phase: Phase) {
        match phase {
            Phase::Subscribe | Phase::Drain => self.cluster.watch(true),
            Phase::Measure => self.cluster.watch(false),
            Phase::Connect | Phase::WarmUp | Phase::Collect => {}
        }
    }

    /// The window begins (0) or ends (1).
    pub(crate) fn edge(&self, edge: usize) {
        self.cluster.mark(edge);
    }

    /// Rows of the nodes for the record, in the order of their numbers; and the usage of each worker.
    pub(crate) fn rows(&self) -> (Vec<NodeRow>, Vec<WorkerUsage>) {
        let reports = self.cluster.reports();
        let of_worker = |worker: &WorkerReport| {
            let report = worker.report.clone().map(|report| Report { node_cpu_ns: 0, ..report });
            Some(WorkerUsage { first_shard: *worker.own.first()?, usage: report.as_ref().and_then(usage_of) })
        };
        let workers = reports.iter().flatten().filter_map(of_worker).collect();
        let lost = |(number, workers): (usize, &Vec<WorkerReport>)| {
            workers.iter().find_map(|worker| worker.lost.clone()).or_else(|| self.cluster.lost(number))
        };
        let lost: Vec<Option<String>> = reports.iter().enumerate().map(lost).collect();
        // Of a node that was lost and has joined again, these are the bytes since then.
        let has_stayed = |workers: &[WorkerReport]| workers.iter().all(|worker| worker.lost.is_none());
        let traffic = self.cluster.traffic().into_iter().zip(&reports);
        let traffic: Vec<_> = traffic.map(|(bytes, workers)| bytes.filter(|_| has_stayed(workers))).collect();
        let reports = reports.iter().map(|workers| WorkerReport::of_node(workers));
        let rows = self.cluster.nodes().into_iter().zip(reports).zip(traffic).zip(lost);
        let rows = rows.map(|(((node, report), traffic), lost)| NodeRow {
            address: Some(node.address.ip().to_string()),
            clients_at: Some(node.clients_at.to_string()),
            clock: report.as_ref().and_then(|report| clock_of(report, &node.discipline)),
            generator: report.as_ref().and_then(usage_of),
            machine_usage: report.as_ref().and_then(machine_usage_of),
            control: traffic.map(|traffic| ControlBytes {
                sent: traffic.sent,
                received: traffic.received,
                while_measuring: traffic.between_marks,
            }),
            machine: Some(machine_of(&node)),
            labels: node.labels,
            name: node.name,
            lost,
            ..NodeRow::default()
        });
        (rows.collect(), workers)
    }
}

/// The error for a node that had joined and does not join again: the call was right.
fn lost(error: RunError) -> RunError {
    match error.kind {
        ErrorKind::Input => RunError { kind: ErrorKind::NodeLost, ..error },
        _ => error,
    }
}

fn machine_of(node: &NodeInfo) -> NodeMachine {
    NodeMachine {
        host: node.host.clone(),
        kernel: node.kernel.clone(),
        cores: node.cores,
        memory_bytes: node.memory_bytes,
        cpu_idle_disabled: node.awake,
        pubmark_version: node.version.clone(),
    }
}

/// Whether this machine has the address from which a node joined: the node then shares its loopback addresses. A boot id does not tell,
/// because containers of one machine have loopback addresses of their own.
fn is_local(mut address: SocketAddr) -> bool {
    address.set_port(0);
    address.ip().to_canonical().is_loopback() || UdpSocket::bind(address).is_ok()
}

/// The name of each machine, and the numbers of its nodes. Nodes of one machine have its boot id, and joined from one address or from
/// several addresses of the coordinator's machine. Each alone is not enough: machines that join through tunnels or one NAT have an
/// address in common, and containers of one machine have its boot id, but ports of their own. So nodes of another machine that joined
/// from several of its addresses count as several machines, although they have its ports in common.
fn machines(nodes: &[NodeInfo]) -> Vec<(String, Vec<usize>)> {
    // `None` stands for all addresses of the coordinator's machine.
    let place = |node: &NodeInfo| (!is_local(node.address)).then(|| node.address.ip().to_canonical());
    let places: Vec<Option<IpAddr>> = nodes.iter().map(place).collect();
    let mut machines: Vec<(String, Vec<usize>)> = vec![];
    for (number, node) in nodes.iter().enumerate() {
        let is_there = |known: usize| places[known] == places[number] && is_one_machine(&nodes[known], node);
        match machines.iter_mut().find(|(_, known)| known.first().is_some_and(|first| is_there(*first))) {
            Some((_, known)) => known.push(number),
            None => machines.push((node.host.clone(), vec![number])),
        }
    }
    machines
}

fn clock_of(report: &Report, discipline: &str) -> Option<NodeClock> {
    let clock = report.clock?;
    Some(NodeClock {
        is_the_same: clock.is_the_same,
        offset_us: clock.offset_ns as f64 / 1e3,
        drift_ppm: clock.drift_ppb / 1e3,
        bound_us: Some(clock.bound_ns / 1e3).filter(|bound| bound.is_finite()),
        minimum_round_trip_us: (!clock.is_the_same).then_some(clock.minimum_round_trip_ns as f64 / 1e3),
        samples: clock.samples,
        discipline: discipline.to_owned(),
        restarts: clock.restarts,
        true_error_us: clock.true_error_ns.map(|error| error as f64 / 1e3),
    })
}

fn usage_of(report: &Report) -> Option<Usage> {
    let cpu_seconds = report.cpu_ns.saturating_add(report.node_cpu_ns) as f64 / 1e9;
    (report.measured_ns > 0).then(|| Usage {
        cpu_seconds,
        cores: cpu_seconds / (report.measured_ns as f64 / 1e9),
        peak_rss_bytes: report.peak_rss_bytes,
        ..Usage::default()
    })
}

fn machine_usage_of(report: &Report) -> Option<MachineUsage> {
    let machine = report.machine.filter(|_| report.measured_ns > 0)?;
    Some(MachineUsage {
        cores: machine.cpu_ns as f64 / report.measured_ns as f64,
        used_bytes: machine.used_bytes,
        received_bytes: machine.received_bytes,
        sent_bytes: machine.sent_bytes,
        steal: machine.steal,
    })
}

/// Error for credentials that cannot be used.
pub fn unusable(error: &ClusterError, folder: &Path) -> RunError {
    let failure = RunError::from_error(ErrorKind::Input, error);
    if let ClusterError::Credentials { .. } = error {
        return failure.hint(
            "`pubmark cluster show DIR` says whose credentials are in a folder and until when they are valid; `pubmark cluster init NEW_DIR` makes others",
        );
    }
    if folder.exists() {
        return failure;
    }
    failure.hint("`pubmark cluster init` makes them; `--credentials DIR` names the folder")
}

/// Starts workers on nodes for clients of these protocols.
#[derive(Debug)]
struct OnNodes {
    joined: Arc<JoinedNodes>,
    adapter_names: [String; 2],
    links: Option<LinksOnNodes>,
}

impl Launcher for OnNodes {
    fn launch(
        &self,
        place: WorkerLocation,
        shards: &[u32],
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> io::Result<Started> {
        let control = self.joined.cluster.begin(place.node.into(), shards, progress, stop).map_err(io::Error::other)?;
        Ok(Started { control, child: None })
    }

    fn adapter_names(&self) -> [String; 2] {
        self.adapter_names.clone()
    }

    fn access(&self, place: WorkerLocation) -> Option<Vec<u8>> {
        self.links.as_ref().and_then(|links| links.order(place))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_node_at_an_address_of_this_machine_shares_its_loopback_addresses() {
        // 192.0.2.1 is a documentation address (RFC 5737), which no machine has.
        let far = SocketAddr::from(([192, 0, 2, 1], 7700));
        assert!(!is_local(far));
        for near in ["127.0.0.1:7700", "[::1]:7700", "[::ffff:127.0.0.1]:7700"] {
            assert!(near.parse().is_ok_and(is_local), "{near}");
        }
        // The address of the interface that would lead to another machine; a machine without a network has none.
        let route = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect(far)?;
            socket.local_addr()
        });
        assert!(route.is_err() || route.is_ok_and(is_local));
    }

    /// A node of a machine with this boot id and name that joined from an address.
    fn node(address: &str, boot: &str, host: &str) -> NodeInfo {
        let address: SocketAddr = address.parse().unwrap();
        NodeInfo {
            name: format!("{host} at {address}"),
            address,
            version: String::new(),
            host: host.to_owned(),
            boot: boot.to_owned(),
            kernel: String::new(),
            cores: 1,
            memory_bytes: 0,
            discipline: String::new(),
            awake: false,
            kind: NodeKind::Clients,
            labels: Labels::new(),
            clients_at: address.ip(),
            no_links: String::new(),
            no_kernel_netem: String::new(),
        }
    }

    #[test]
    fn a_node_that_stays_away_after_it_had_joined_is_lost_and_no_error_of_the_call() {
        let error = lost(RunError::input("1 of 2 nodes joined").hint("join"));
        assert_eq!((error.kind, error.hint.as_deref()), (ErrorKind::NodeLost, Some("join")));
        assert_eq!(lost(RunError::new(ErrorKind::Interrupted, "stopped")).kind, ErrorKind::Interrupted);
    }

    #[test]
    fn nodes_of_one_machine_are_those_with_its_ports() {
        let found = |nodes: &[NodeInfo]| machines(nodes).into_iter().map(|(_, nodes)| nodes).collect::<Vec<_>>();
        let tunnels = ["a", "b", "c"].map(|boot| node("127.0.0.1:1", boot, "clone"));
        assert_eq!(found(&tunnels), [[0], [1], [2]], "three machines through tunnels");
        let nat = [node("192.0.2.1:1", "", "a"), node("192.0.2.1:2", "", "b"), node("[::ffff:192.0.2.1]:3", "", "a")];
        assert_eq!(found(&nat), [vec![0, 2], vec![1]], "two machines behind one address");
        assert_eq!(machines(&nat)[1].0, "b");
        let near = [node("127.0.0.1:1", "a", "a"), node("192.0.2.1:1", "a", "a"), node("127.0.0.2:1", "a", "a")];
        assert_eq!(
            found(&near),
            [vec![0, 2], vec![1]],
            "addresses of this machine; and a container with one of its own"
        );
    }
}
