//! Clients without a broker behind links of several nodes. Each worker process has its clients in a network of their own, and
//! the trunk carries packets from one network to the next. Networks have numbers over all nodes: first those of the first node.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::shares;
#[cfg(feature = "cluster")]
use pubmark_engine::shares::WorkerLocation;
use pubmark_links::addresses::{CORE_V4, MOST_GROUPS, group_v4};
use pubmark_links::error::LinkError;
use pubmark_links::trunk::{self, Key, TrunkEnd};
use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::fleet::Fleet;
use pubmark_model::placement::NodeLabels;
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_record::record::Deviation;
use pubmark_systems::Definition;
use pubmark_systems::definition::DiscoveryAddress;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, RunError};
use crate::{brokerless, linked};

/// How a run with a trunk differs from one of the same links on one machine.
pub fn deviation() -> Deviation {
    let detail = format!(
        "packets pass from the link of their sender to that of their receiver in UDP datagrams, over the network of the nodes, \
         which adds its own delay; they have at most {} B in place of 1,500 B",
        trunk::MTU
    );
    Deviation { name: "trunked".to_owned(), detail }
}

/// Numbers of the networks of a workload's clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Networks behind links on a node, which have the first numbers. The next one is that of the clients without a link, and
    /// then each isolated group may have one.
    linked: u16,
    /// Networks of a node.
    of_node: u16,
    /// Network of each device group on the first node.
    devices: Vec<u16>,
    /// The same of each subscriber group.
    subscribers: Vec<u16>,
}

impl Numbers {
    /// Numbers on this many nodes.
    ///
    /// # Errors
    /// There are more networks than addresses.
    pub fn of(workload: &Workload, nodes: u16) -> Result<Numbers, RunError> {
        let networks = linked::networks_elsewhere(workload);
        let groups = ConnectionGroups::of(workload);
        let linked = networks.devices.iter().chain(&networks.subscribers).flatten().max().map_or(0, |last| last + 1);
        let isolated = if groups.has_isolated() { groups.names.len() } else { 0 };
        let of_node = usize::from(linked) + 1 + isolated;
        let all = of_node * usize::from(nodes);
        if all > MOST_GROUPS {
            return Err(RunError::new(
                ErrorKind::TooLarge,
                format!(
                    "{nodes} nodes have {of_node} networks each, behind links and beside them: {all}, and at most \
                     {MOST_GROUPS} have addresses"
                ),
            )
            .hint("fewer nodes, or fewer groups behind links"));
        }
        let number = |network, process| number(linked, network, process);
        let devices = (0u16..).zip(&workload.devices);
        let subscribers = (0u16..).zip(&workload.subscribers);
        Ok(Numbers {
            devices: devices
                .map(|(group, _)| number(networks.of_devices(group), groups.process_of_devices(group)))
                .collect(),
            subscribers: subscribers
                .map(|(group, _)| number(networks.of_subscribers(group), groups.process_of_subscribers(group)))
                .collect(),
            linked,
            of_node: u16::try_from(of_node).unwrap_or(u16::MAX),
        })
    }

    /// Networks of each node.
    pub fn of_node(&self) -> u16 {
        self.of_node
    }

    /// Address of a network on a node.
    fn address(&self, node: u16, network: u16) -> IpAddr {
        group_v4(usize::from(node) * usize::from(self.of_node) + usize::from(network), 0).into()
    }
}

/// Number of a network on its node, for clients behind a link or in a separate process.
fn number(linked: u16, network: Option<u16>, process: Option<u16>) -> u16 {
    network.unwrap_or_else(|| process.map_or(linked, |process| linked + 1 + process))
}

/// Endpoints at which the clients reach each other, in their networks. Every port is free there.
///
/// # Errors
/// Devices are to meet subscribers at one address, and these are in several networks; or there are too many subscribers.
pub fn endpoints(
    definition: &Definition,
    protocol: &Capabilities,
    profile: &str,
    (workload, fleet): (&Workload, &Fleet),
    labels: NodeLabels<'_>,
    numbers: &Numbers,
) -> Result<Endpoints, RunError> {
    let settings = brokerless::settings_behind_links(definition, protocol, profile)?;
    let endpoint = |address: SocketAddr| brokerless::endpoint(definition, protocol, address, &settings);
    let places = shares::places_of_subscribers(workload, fleet, labels, &fleet.audiences(workload));
    let on = places.into_iter().map(|(node, _)| node);
    let nodes = labels.nodes;
    if protocol.features.subscribers_listen {
        let ports = brokerless::listening_ports(fleet.subscribers().len())?;
        let network = |group: u16| numbers.subscribers[usize::from(group)];
        let listen = fleet.subscribers().iter().zip(on).zip(ports);
        let listen =
            listen.map(|((entry, node), port)| SocketAddr::new(numbers.address(node, network(entry.group)), port));
        return Endpoints::several(listen.map(endpoint).collect(), false)
            .ok_or_else(|| brokerless::not_so_many(fleet.subscribers().len()));
    }
    let port = brokerless::meeting_port(definition)?;
    let meet = definition.back_ends.brokerless.as_ref().map(|ways| ways.across_links.meet).unwrap_or_default();
    let found = match meet {
        DiscoveryAddress::Everywhere => {
            let all = (0..nodes).flat_map(|node| (0..numbers.of_node).map(move |network| (node, network)));
            let all = all.map(|(node, network)| numbers.address(node, network));
            // The first endpoint is that of clients without a network, of which there are none.
            let all = std::iter::once(IpAddr::from(CORE_V4)).chain(all);
            let from_one = |networks: &[u16]| networks.iter().map(|network| network + 1).collect();
            let groups = [from_one(&numbers.devices), from_one(&numbers.subscribers)];
            Endpoints::by_group(all.map(|address| endpoint((address, port).into())).collect(), groups, numbers.of_node)
        }
        DiscoveryAddress::AtSubscribers => {
            let network = numbers.subscribers.first().copied().unwrap_or(0);
            if numbers.subscribers.iter().any(|other| *other != network) {
                return Err(brokerless::no_common_endpoint(protocol.title));
            }
            let mut with: Vec<u16> = on.collect();
            with.sort_unstable();
            with.dedup();
            let at = with.iter().map(|node| endpoint((numbers.address(*node, network), port).into()));
            // A node without subscribers has no listening socket: its devices connect to the other nodes.
            let of = |node: u16| with.iter().position(|with| *with == node).unwrap_or(0) as u16;
            Endpoints::by_node(at.collect(), (0..nodes).map(of).collect())
        }
    };
    found.ok_or_else(|| brokerless::not_so_many(fleet.subscribers().len()))
}

/// The trunk of a run, as the coordinator plans it.
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "no node joins a build without the control plane"))]
#[derive(Clone, Debug)]
pub struct Trunk {
    key: Key,
    numbers: Numbers,
    /// Addresses of its ends, by the number of their network.
    ends: Arc<[SocketAddr]>,
}

impl Trunk {
    /// With these ends, which other processes cannot find a way into: each run has a key of its own.
    ///
    /// # Errors
    /// The kernel has no random number.
    pub fn new(numbers: Numbers, ends: Vec<SocketAddr>) -> Result<Trunk, RunError> {
        let mut key = Key::default();
        SystemRandom::new()
            .fill(&mut key)
            .map_err(|_| RunError::new(ErrorKind::Internal, "the kernel has no random number for the trunk's key"))?;
        Ok(Trunk { key, numbers, ends: ends.into() })
    }

    /// The order for a process at this location.
    #[cfg(feature = "cluster")]
    pub fn order(&self, place: WorkerLocation) -> TrunkOrder {
        let network = number(self.numbers.linked, place.network, place.group);
        let number = u32::from(place.node) * u32::from(self.numbers.of_node) + u32::from(network);
        TrunkOrder { key: self.key, own: u16::try_from(number).unwrap_or(u16::MAX), ends: self.ends.to_vec() }
    }
}

/// Orders a worker process to open its end of the trunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrunkOrder {
    key: Key,
    /// Number of its network.
    own: u16,
    ends: Vec<SocketAddr>,
}

impl TrunkOrder {
    /// Opens the end, in the network of the calling thread.
    ///
    /// # Errors
    /// Its address is not one of this machine, or in use.
    pub fn open(self) -> Result<Arc<TrunkEnd>, LinkError> {
        TrunkEnd::open(self.key, self.own, self.ends)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use pubmark_model::load::{LoadOptions, parse};
    use pubmark_protocols::find;

    use super::*;

    const WORKLOAD: &str = "\
name: apart
links: {far: {delay: 20ms}}
devices:
  - {name: sensor, count: 4, every: 1s, payload: 20B, topic: 'a/{index}', link: far}
  - {name: bench, count: 2, every: 1s, payload: 20B, topic: 'b/{index}'}
subscribers:
  - {name: reader, count: 3, filters: ['#']}
";

    fn workload(text: &str) -> Workload {
        parse("apart.yaml", text, &LoadOptions::default()).unwrap()
    }

    fn found(system: &str, text: &str) -> Result<Vec<String>, RunError> {
        let (workload, labels) = (workload(text), NodeLabels { nodes: 2, labels: &[] });
        let fleet = Fleet::checked_on_nodes(&workload, labels).unwrap();
        let definition = Definition::load(system).unwrap();
        let protocol = &find(definition.protocols.keys().next().unwrap()).unwrap().capabilities;
        let numbers = Numbers::of(&workload, 2).unwrap();
        let found = endpoints(&definition, protocol, "default", (&workload, &fleet), labels, &numbers)?;
        Ok(found.endpoints().iter().map(|endpoint| endpoint.address.ip().to_string()).collect())
    }

    #[test]
    fn networks_have_numbers_over_all_nodes() {
        let numbers = Numbers::of(&workload(WORKLOAD), 2).unwrap();
        assert_eq!((numbers.linked, numbers.of_node), (1, 2));
        assert_eq!((&*numbers.devices, &*numbers.subscribers), (&[0, 1][..], &[1][..]));
        assert_eq!(numbers.address(1, 1), group_v4(3, 0));
        assert!(Numbers::of(&workload(WORKLOAD), 255).is_ok());
        let error = Numbers::of(&workload(WORKLOAD), 256).unwrap_err().to_string();
        assert!(error.ends_with("512, and at most 511 have addresses"), "{error}");
        let isolated = WORKLOAD.replace("count: 2,", "count: 2, isolate: process,");
        let numbers = Numbers::of(&workload(&isolated), 2).unwrap();
        assert_eq!((numbers.of_node, &*numbers.devices, &*numbers.subscribers), (5, &[0, 3][..], &[1][..]));
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn each_process_has_an_end_of_its_own() {
        let numbers = Numbers::of(&workload(WORKLOAD), 2).unwrap();
        let ends: Vec<SocketAddr> = (1..=4).map(|port| ([10, 0, 0, 1], port).into()).collect();
        let trunk = Trunk::new(numbers.clone(), ends.clone()).unwrap();
        let place = |node, network| WorkerLocation { node, network, group: None };
        let places = [place(0, Some(0)), place(0, None), place(1, Some(0)), place(1, None)];
        let orders = places.map(|place| trunk.order(place));
        assert_eq!(orders.each_ref().map(|order| order.own), [0, 1, 2, 3]);
        assert!(orders.iter().all(|order| order.ends == ends && order.key == orders[0].key));
        assert_ne!(orders[0].key, Trunk::new(numbers, ends).unwrap().key);
    }

    #[test]
    fn clients_meet_at_the_addresses_of_their_networks() {
        assert_eq!(found("zenoh-peers", WORKLOAD).unwrap(), ["198.18.2.2", "198.18.4.2"]);
        let listening: BTreeSet<String> = found("zeromq-peers", WORKLOAD).unwrap().into_iter().collect();
        assert_eq!(listening, ["198.18.2.2", "198.18.4.2"].map(str::to_owned).into());
        let everywhere = ["198.18.0.1", "198.18.1.2", "198.18.2.2", "198.18.3.2", "198.18.4.2"];
        assert_eq!(found("dds", WORKLOAD).unwrap(), everywhere);
        let several = format!("{WORKLOAD}  - {{name: other, filters: ['#'], link: far}}\n");
        assert!(found("zenoh-peers", &several).unwrap_err().to_string().contains("behind several links"));
    }
}
