//! Systems without a broker on several machines: the clients of a node use its own address, and where clients listen is agreed on with
//! all nodes before anything starts.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

use pubmark_cluster::NodeInfo;
use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::shares;
use pubmark_model::fleet::Fleet;
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_systems::definition::{Meet, MeetingPorts};
use pubmark_systems::{Definition, ports};

use crate::brokerless;
use crate::cluster::Joined;
use crate::error::{ErrorKind, RunError};

/// Ports that a node is asked about beyond those that it needs: some are taken.
const SPARE: usize = 64;

/// Where the clients of a system without a broker find each other on the first `nodes` of the nodes that joined: each subscriber
/// listens at its node's address, or all clients meet at the addresses of all nodes, or of those with subscribers.
///
/// # Errors
/// Nodes do not reach each other at the addresses from which they joined, or have not so many free ports.
pub fn places(
    definition: &Definition,
    protocol: &Capabilities,
    profile: &str,
    (workload, fleet): (&Workload, &Fleet),
    (joined, nodes): (&Joined, u16),
) -> Result<Endpoints, RunError> {
    let at = addresses(&joined.nodes(nodes))?;
    let on: Vec<u16> = fleet
        .subscribers()
        .iter()
        .zip(fleet.audiences(workload))
        .map(|(subscriber, audience)| shares::node_of_subscriber(fleet, nodes, subscriber, audience).0)
        .collect();
    let settings = brokerless::settings(definition, protocol, profile, &at)?;
    let way = definition.back_ends.brokerless.as_ref();
    let meet = way.map(|way| way.across_links.meet).unwrap_or_default();
    let place = |address: SocketAddr| brokerless::endpoint(definition, protocol, address, &settings);
    let found = match meet {
        _ if protocol.features.subscribers_listen => {
            let endpoints = listening(joined, &at, &on)?.into_iter().map(place).collect();
            Endpoints::several(endpoints, false)
        }
        Meet::Everywhere => {
            let port = match way.and_then(|way| way.ports.as_ref()) {
                Some(places) => meeting(joined, &at, places)?,
                None => common(joined, &at)?,
            };
            Endpoints::by_node(at.iter().map(|address| place((*address, port).into())).collect(), (0..nodes).collect())
        }
        Meet::AtSubscribers => {
            let with: Vec<u16> = on.iter().copied().collect::<BTreeSet<u16>>().into_iter().collect();
            let endpoints = listening(joined, &at, &with)?.into_iter().map(place).collect();
            // Nobody listens on a node without subscribers: its devices connect to the others.
            let of = |node: u16| with.iter().position(|with| *with == node).unwrap_or(0) as u16;
            Endpoints::by_node(endpoints, (0..nodes).map(of).collect())
        }
    };
    found.ok_or_else(|| RunError::input(format!("from 1 to {} subscribers can listen", u16::MAX)))
}

/// Address of each node for clients of others.
fn addresses(nodes: &[NodeInfo]) -> Result<Vec<IpAddr>, RunError> {
    let away = |node: &&NodeInfo| !node.clients_at.is_loopback();
    let local = nodes.iter().find(|node| !away(node));
    let far = nodes.iter().find(away).or_else(|| nodes.iter().find(|node| node.host != nodes[0].host));
    if let (Some(local), Some(far)) = (local, far) {
        return Err(unreached(&local.name, local.clients_at, &far.name));
    }
    let is_v4 = nodes.first().is_none_or(|node| node.clients_at.is_ipv4());
    if let Some(other) = nodes.iter().find(|node| node.clients_at.is_ipv4() != is_v4) {
        return Err(unreached(&other.name, other.clients_at, &nodes[0].name));
    }
    Ok(nodes.iter().map(|node| node.clients_at).collect())
}

fn unreached(name: &str, address: IpAddr, other: &str) -> RunError {
    RunError::input(format!("clients on `{name}` would use {address}, which clients on `{other}` do not reach"))
        .hint(format!("`pubmark node --address IP` on `{name}`, with an address of its machine that the others reach"))
}

/// A free port of its node for each who listens, by the number of the node.
fn listening(joined: &Joined, at: &[IpAddr], on: &[u16]) -> Result<Vec<SocketAddr>, RunError> {
    let mut needed: HashMap<u16, usize> = HashMap::new();
    on.iter().for_each(|node| *needed.entry(*node).or_default() += 1);
    let mut given: BTreeSet<SocketAddr> = BTreeSet::new();
    let mut free: HashMap<u16, Vec<u16>> = HashMap::new();
    for (node, address) in (0u16..).zip(at) {
        let Some(count) = needed.get(&node) else { continue };
        // Nodes of one machine share its ports.
        let mut candidates = ports::candidates(given.len() + count + SPARE);
        candidates.retain(|port| !given.contains(&(*address, *port).into()));
        let mut found = joined.free_ports(node, *address, &candidates)?;
        if found.len() < *count {
            return Err(too_few(&joined.nodes(node + 1)[usize::from(node)].name, *count, found.len()));
        }
        found.truncate(*count);
        given.extend(found.iter().map(|port| SocketAddr::from((*address, *port))));
        free.insert(node, found);
    }
    let place = |node: &u16| Some((at[usize::from(*node)], free.get_mut(node)?.pop()?).into());
    on.iter().map(place).collect::<Option<_>>().ok_or_else(|| too_few("a node", on.len(), 0))
}

fn too_few(name: &str, needed: usize, found: usize) -> RunError {
    RunError::new(
        ErrorKind::TooLarge,
        format!("`{name}` has {found} free ports from {} to {}, {needed} are needed", ports::FIRST, ports::LAST),
    )
    .hint("fewer subscribers, more nodes, or a system with a broker")
}

/// A place at which nobody has met on any node.
fn meeting(joined: &Joined, at: &[IpAddr], places: &MeetingPorts) -> Result<u16, RunError> {
    let mut left: Vec<(u16, u16)> = ports::to_meet(places).collect();
    for (node, address) in (0u16..).zip(at) {
        let asked: Vec<u16> = left.iter().map(|(_, taken_at)| *taken_at).collect();
        let free = joined.free_ports(node, *address, &asked)?;
        left.retain(|(_, taken_at)| free.contains(taken_at));
    }
    let found = left.first().map(|(port, _)| *port);
    found.ok_or_else(|| RunError::from_error(ErrorKind::System, &ports::nowhere_to_meet(places)))
}

/// A port that is free on all nodes.
fn common(joined: &Joined, at: &[IpAddr]) -> Result<u16, RunError> {
    let mut left = ports::candidates(SPARE);
    for (node, address) in (0u16..).zip(at) {
        left = joined.free_ports(node, *address, &left)?;
    }
    left.first().copied().ok_or_else(|| too_few("each node", 1, 0))
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
            kernel: String::new(),
            cores: 1,
            memory_bytes: 0,
            discipline: String::new(),
            awake: false,
            observes: false,
            clients_at: address.ip(),
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
        assert_eq!(found(&[near, node("far", "127.0.0.1:2", "b")]).unwrap_err(), words, "through a tunnel");
        let error = found(&[node("a", "10.0.0.1:1", "a"), node("b", "[fd00::2]:1", "b")]).unwrap_err();
        assert!(error.starts_with("clients on `b` would use fd00::2"), "{error}");
    }
}
