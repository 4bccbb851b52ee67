//! Systems without a broker on several machines. The clients of a node use the node's own address; the ports at which clients listen are
//! agreed with all nodes before anything starts.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

use pubmark_cluster::NodeInfo;
use pubmark_cluster::address::for_clients;
use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::shares;
use pubmark_model::fleet::Fleet;
use pubmark_model::placement::NodeLabels;
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_systems::definition::{DiscoveryAddress, DiscoveryPorts};
use pubmark_systems::{Definition, ports};

use crate::brokerless;
use crate::cluster::JoinedNodes;
use crate::error::{ErrorKind, RunError};

/// Number of further ports for which the coordinator queries a node, beyond those that it needs: some are in use.
const SPARE: usize = 64;

/// Queries a node, by its number, which of some ports are free at an address.
type Ask<'a> = &'a dyn Fn(u16, IpAddr, &[u16]) -> Result<Vec<u16>, RunError>;

/// Endpoints at which the clients of a system without a broker reach each other on the first of the nodes that joined, which have these
/// labels. Each subscriber listens at its node's address, or all clients meet at the addresses of all nodes, or of those with subscribers.
///
/// # Errors
/// The nodes do not reach each other at the addresses from which they joined, or do not have enough free ports; or `stop` was set.
pub fn places(
    definition: &Definition,
    protocol: &Capabilities,
    profile: &str,
    (workload, fleet): (&Workload, &Fleet),
    (joined, labels, stop): (&JoinedNodes, NodeLabels<'_>, &AtomicBool),
) -> Result<Endpoints, RunError> {
    let nodes = labels.nodes;
    let infos = joined.nodes(nodes);
    let at = addresses(&infos)?;
    let ask = |node: u16, address: IpAddr, ports: &[u16]| joined.free_ports(node, address, ports, stop);
    let places = shares::places_of_subscribers(workload, fleet, labels, &fleet.audiences(workload));
    let on: Vec<u16> = places.into_iter().map(|(node, _)| node).collect();
    let settings = brokerless::settings(definition, protocol, profile, &at)?;
    let way = definition.back_ends.brokerless.as_ref();
    let meet = way.map(|way| way.across_links.meet).unwrap_or_default();
    let place = |address: SocketAddr| brokerless::endpoint(definition, protocol, address, &settings);
    let listen = |on: &[u16]| listening(&ask, &infos, &at, on);
    let found = match meet {
        _ if protocol.features.subscribers_listen => {
            Endpoints::several(listen(&on)?.into_iter().map(place).collect(), false)
        }
        DiscoveryAddress::Everywhere => {
            let port = match way.and_then(|way| way.ports.as_ref()) {
                Some(places) => meeting(&ask, &at, places)?,
                None => common(&ask, &at)?,
            };
            Endpoints::by_node(at.iter().map(|address| place((*address, port).into())).collect(), (0..nodes).collect())
        }
        DiscoveryAddress::AtSubscribers => {
            let with: Vec<u16> = on.iter().copied().collect::<BTreeSet<u16>>().into_iter().collect();
            let endpoints = listen(&with)?.into_iter().map(place).collect();
            // A node without subscribers has no listening socket: its devices connect to the other nodes.
            let of = |node: u16| with.iter().position(|with| *with == node).unwrap_or(0) as u16;
            Endpoints::by_node(endpoints, (0..nodes).map(of).collect())
        }
    };
    found.ok_or_else(|| brokerless::not_so_many(on.len()))
}

/// Addresses of the ends of a trunk between links, of which each of the nodes has this number: those of the first node first.
///
/// # Errors
/// As [`places`].
pub fn trunk_ends(
    joined: &JoinedNodes,
    nodes: u16,
    of_node: u16,
    stop: &AtomicBool,
) -> Result<Vec<SocketAddr>, RunError> {
    let infos = joined.nodes(nodes);
    let at = addresses(&infos)?;
    let ask = |node: u16, address: IpAddr, ports: &[u16]| joined.free_ports(node, address, ports, stop);
    let on: Vec<u16> = (0..nodes).flat_map(|node| std::iter::repeat_n(node, usize::from(of_node))).collect();
    listening(&ask, &infos, &at, &on)
}

/// Address of each node for the clients of other nodes.
fn addresses(nodes: &[NodeInfo]) -> Result<Vec<IpAddr>, RunError> {
    for node in nodes {
        for_clients(node.clients_at).map_err(|why| {
            RunError::input(format!("clients on `{}` would use {}, which {why}", node.name, node.clients_at))
                .hint(other_address(&node.name))
        })?;
    }
    let away = |node: &&NodeInfo| !node.clients_at.is_loopback();
    let local = nodes.iter().find(|node| !away(node));
    let far = nodes.iter().find(away).or_else(|| nodes.iter().find(|node| !is_one_machine(node, &nodes[0])));
    if let (Some(local), Some(far)) = (local, far) {
        return Err(unreached(&local.name, local.clients_at, &far.name));
    }
    let is_v4 = nodes.first().is_none_or(|node| node.clients_at.is_ipv4());
    if let Some(other) = nodes.iter().find(|node| node.clients_at.is_ipv4() != is_v4) {
        return Err(unreached(&other.name, other.clients_at, &nodes[0].name));
    }
    Ok(nodes.iter().map(|node| node.clients_at).collect())
}

/// Whether both nodes are on one machine. Cloned machines have the same name, but not the same boot identifier.
pub fn is_one_machine(one: &NodeInfo, other: &NodeInfo) -> bool {
    if one.boot.is_empty() || other.boot.is_empty() { one.host == other.host } else { one.boot == other.boot }
}

fn unreached(name: &str, address: IpAddr, other: &str) -> RunError {
    RunError::input(format!("clients on `{name}` would use {address}, which clients on `{other}` do not reach"))
        .hint(other_address(name))
}

fn other_address(name: &str) -> String {
    format!("`pubmark node --address IP` on `{name}`, with an address of its machine that the others reach")
}

/// Numbers of ports in a query to find `needed` free ones: first some more, as some ports are in use; if that is not enough, all ports.
fn questions(needed: usize) -> [usize; 2] {
    [needed + SPARE, usize::MAX]
}

/// A free port for each listening subscriber, on its node; `on` has the numbers of these nodes.
fn listening(ask: Ask<'_>, nodes: &[NodeInfo], at: &[IpAddr], on: &[u16]) -> Result<Vec<SocketAddr>, RunError> {
    let mut needed: HashMap<u16, usize> = HashMap::new();
    on.iter().for_each(|node| *needed.entry(*node).or_default() += 1);
    let mut given: BTreeSet<SocketAddr> = BTreeSet::new();
    let mut free: HashMap<u16, Vec<u16>> = HashMap::new();
    for ((number, node), address) in (0u16..).zip(nodes).zip(at) {
        let Some(count) = needed.get(&number) else { continue };
        let mut found = vec![];
        for most in questions(given.len() + count) {
            let mut candidates = ports::candidates(most);
            // Nodes of one machine share its ports.
            candidates.retain(|port| !given.contains(&(*address, *port).into()));
            found = ask(number, *address, &candidates)?;
            if found.len() >= *count {
                break;
            }
        }
        if found.len() < *count {
            return Err(too_few(&format!("`{}` has", node.name), *count, found.len()));
        }
        found.truncate(*count);
        given.extend(found.iter().map(|port| SocketAddr::from((*address, *port))));
        free.insert(number, found);
    }
    let place = |node: &u16| Some((at[usize::from(*node)], free.get_mut(node)?.pop()?).into());
    on.iter().map(place).collect::<Option<_>>().ok_or_else(|| too_few("a node has", on.len(), 0))
}

fn too_few(who: &str, needed: usize, found: usize) -> RunError {
    let are = if needed == 1 { "is" } else { "are" };
    RunError::new(
        ErrorKind::TooLarge,
        format!("{who} {found} free ports from {} to {}, {needed} {are} needed", ports::FIRST, ports::LAST),
    )
    .hint("fewer subscribers, more nodes, or a system with a broker")
}

/// A meeting port that is not in use on any node.
fn meeting(ask: Ask<'_>, at: &[IpAddr], places: &DiscoveryPorts) -> Result<u16, RunError> {
    let mut left: Vec<(u16, u16)> = ports::discovery_ports(places).collect();
    for (node, address) in (0u16..).zip(at) {
        let asked: Vec<u16> = left.iter().map(|(_, taken_at)| *taken_at).collect();
        let free = ask(node, *address, &asked)?;
        left.retain(|(_, taken_at)| free.contains(taken_at));
    }
    let found = left.first().map(|(port, _)| *port);
    found.ok_or_else(|| RunError::from_error(ErrorKind::System, &ports::no_discovery_port(places)))
}

/// A port that is free on all nodes.
fn common(ask: Ask<'_>, at: &[IpAddr]) -> Result<u16, RunError> {
    for most in questions(0) {
        let mut left = ports::candidates(most);
        for (node, address) in (0u16..).zip(at) {
            left = ask(node, *address, &left)?;
        }
        if let Some(port) = left.first() {
            return Ok(*port);
        }
    }
    Err(too_few("all nodes together have", 1, 0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn node(name: &str, address: &str, host: &str) -> NodeInfo {
        let address: SocketAddr = address.parse().unwrap();
        NodeInfo {
            name: name.to_owned(),
            address,
            version: String::new(),
            host: host.to_owned(),
            boot: String::new(),
            kernel: String::new(),
            cores: 1,
            memory_bytes: 0,
            discipline: String::new(),
            awake: false,
            kind: pubmark_cluster::node::NodeKind::Clients,
            labels: pubmark_model::placement::Labels::new(),
            clients_at: address.ip(),
            no_links: String::new(),
            no_kernel_netem: String::new(),
        }
    }

    #[test]
    fn nodes_that_do_not_reach_each_other_are_refused() {
        let found = |nodes: &[NodeInfo]| addresses(nodes).map_err(|error| error.chain[0].clone());
        let near = node("near", "127.0.0.1:1", "a");
        assert_eq!(found(&[near.clone(), node("next", "127.0.0.1:2", "a")]).unwrap().len(), 2, "one machine");
        assert_eq!(found(&[node("a", "10.0.0.1:1", "a"), node("b", "10.0.0.2:1", "b")]).unwrap().len(), 2);
        let words = "clients on `near` would use 127.0.0.1, which clients on `far` do not reach";
        assert_eq!(found(&[near.clone(), node("far", "10.0.0.2:1", "b")]).unwrap_err(), words);
        assert_eq!(found(&[near.clone(), node("far", "127.0.0.1:2", "b")]).unwrap_err(), words, "through a tunnel");
        let clones = ["one", "two"].map(|boot| NodeInfo { boot: boot.to_owned(), ..near.clone() });
        assert!(found(&clones).is_err(), "two machines of one name");
        let error = found(&[node("a", "10.0.0.1:1", "a"), node("b", "[fd00::2]:1", "b")]).unwrap_err();
        assert!(error.starts_with("clients on `b` would use fd00::2"), "{error}");
    }

    #[test]
    fn an_address_that_is_not_one_machines_is_refused() {
        let error = addresses(&[node("a", "[fe80::1]:1", "a"), node("b", "[fd00::2]:1", "b")]).unwrap_err();
        assert!(error.chain[0].starts_with("clients on `a` would use fe80::1, which is link-local"), "{error:?}");
    }

    #[test]
    fn a_few_free_ports_among_thousands_are_found() {
        let nodes = [node("a", "127.0.0.1:1", "a"), node("b", "127.0.0.1:2", "a")];
        let at = addresses(&nodes).unwrap();
        // Ports that a first query is unlikely to cover completely.
        let free = [20_000, 24_000, 28_000, 32_767];
        let ask = |_: u16, _: IpAddr, asked: &[u16]| -> Result<Vec<u16>, RunError> {
            Ok(asked.iter().copied().filter(|port| free.contains(port)).collect())
        };
        let found = listening(&ask, &nodes, &at, &[0, 1, 0, 1]).unwrap();
        let ports: BTreeSet<u16> = found.iter().map(SocketAddr::port).collect();
        assert_eq!(ports, free.into(), "each once, as nodes of one machine share its ports");
        let error = listening(&ask, &nodes, &at, &[0, 1, 0, 1, 1]).unwrap_err();
        assert!(error.chain[0].starts_with("`b` has 2 free ports"), "{error:?}");
        assert!(free.contains(&common(&ask, &at).unwrap()));
        let none = |_: u16, _: IpAddr, _: &[u16]| -> Result<Vec<u16>, RunError> { Ok(vec![]) };
        let error = common(&none, &at).unwrap_err();
        assert!(error.chain[0].ends_with("1 is needed"), "{error:?}");
    }
}
