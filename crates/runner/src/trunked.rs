//! Clients without a broker behind links of several nodes. Each worker process has its clients in a network of their own, and
//! the trunk carries packets from one network to the next. Networks have numbers over all nodes: first those of the first node.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::shares;
#[cfg(feature = "cluster")]
use pubmark_engine::shares::WorkerLocation;
use pubmark_links::addresses::{CORE_V4, MOST_GROUPS, group_v4};
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

/// Location of clients on their node: number of the network behind a link, and number of the separate process. Each location has
/// one worker process, with one network.
type Location = (Option<u16>, Option<u16>);

/// Numbers of the networks of a workload's clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Locations on a node, by the number of their network: first those behind links, then that of other clients, then those of
    /// isolated groups without a link. There is none without a process: nothing would read what comes to its end of the trunk.
    of_node: Vec<Location>,
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
        let devices: Vec<Location> = (0u16..)
            .zip(&workload.devices)
            .map(|(group, _)| (networks.of_devices(group), groups.process_of_devices(group)))
            .collect();
        let subscribers: Vec<Location> = (0u16..)
            .zip(&workload.subscribers)
            .map(|(group, _)| (networks.of_subscribers(group), groups.process_of_subscribers(group)))
            .collect();
        let mut locations = [&devices[..], &subscribers[..]].concat();
        if devices.is_empty() || subscribers.is_empty() {
            // A side without groups has a process, too.
            locations.push((None, None));
        }
        locations.sort_unstable_by_key(|(network, process)| (network.is_none(), *network, *process));
        locations.dedup();
        let of_node = locations.len();
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
        // Each of them is one of the locations, of which there are few.
        let numbers = |of: Vec<Location>| of.iter().filter_map(|own| number(&locations, *own)).collect();
        Ok(Numbers { devices: numbers(devices), subscribers: numbers(subscribers), of_node: locations })
    }

    /// Networks of each node.
    pub fn of_node(&self) -> u16 {
        self.of_node.len() as u16
    }

    /// Address of a network on a node.
    fn address(&self, node: u16, network: u16) -> IpAddr {
        group_v4(usize::from(node) * self.of_node.len() + usize::from(network), 0).into()
    }

    /// Number of the network that all subscribers of a node have in common.
    ///
    /// # Errors
    /// They are in several networks.
    fn of_all_subscribers(&self, title: &str) -> Result<u16, RunError> {
        let first = self.subscribers.first().copied().unwrap_or(0);
        let link = |number: u16| self.of_node.get(usize::from(number)).and_then(|(network, _)| *network);
        if self.subscribers.iter().all(|other| *other == first) {
            Ok(first)
        } else if self.subscribers.iter().all(|other| link(*other).is_none()) {
            Err(RunError::unsupported(format!(
                "over {title} devices meet subscribers at one address, and isolated groups have networks of their own beside links \
                 of nodes"
            ))
            .hint("`isolate` for groups of devices alone; or `--link none`"))
        } else {
            Err(brokerless::no_common_endpoint(title))
        }
    }
}

/// Number of the network at a location; `None` if no client is there.
fn number(locations: &[Location], own: Location) -> Option<u16> {
    locations.iter().position(|location| *location == own).and_then(|number| u16::try_from(number).ok())
}

/// How clients of a system find each other across links.
fn meeting(definition: &Definition) -> DiscoveryAddress {
    definition.back_ends.brokerless.as_ref().map(|ways| ways.across_links.meet).unwrap_or_default()
}

/// Refuses a workload whose clients find no address on this many nodes, before any has joined.
///
/// # Errors
/// As [`Numbers::of`] and [`endpoints`].
pub fn check(
    definition: &Definition,
    protocol: &Capabilities,
    workload: &Workload,
    nodes: u16,
) -> Result<(), RunError> {
    let numbers = Numbers::of(workload, nodes)?;
    match meeting(definition) {
        DiscoveryAddress::AtSubscribers if !protocol.features.subscribers_listen => {
            numbers.of_all_subscribers(protocol.title).map(drop)
        }
        DiscoveryAddress::AtSubscribers | DiscoveryAddress::Everywhere => Ok(()),
    }
}

/// Endpoints at which the clients reach each other, in their networks. No other program uses a port there.
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
    let found = match meeting(definition) {
        DiscoveryAddress::Everywhere => {
            let all = (0..nodes).flat_map(|node| (0..numbers.of_node()).map(move |network| (node, network)));
            let all = all.map(|(node, network)| numbers.address(node, network));
            // The first endpoint is that of clients without a network, of which there are none.
            let all = std::iter::once(IpAddr::from(CORE_V4)).chain(all);
            let from_one = |networks: &[u16]| networks.iter().map(|network| network + 1).collect();
            let groups = [from_one(&numbers.devices), from_one(&numbers.subscribers)];
            Endpoints::by_group(
                all.map(|address| endpoint((address, port).into())).collect(),
                groups,
                numbers.of_node(),
            )
        }
        DiscoveryAddress::AtSubscribers => {
            let network = numbers.of_all_subscribers(protocol.title)?;
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
    /// With these ends, and a random key: each run has a key of its own.
    ///
    /// # Errors
    /// The kernel has no random number.
    pub fn new(numbers: Numbers, ends: Vec<SocketAddr>) -> Result<Trunk, RunError> {
        let mut key = [0; 16];
        SystemRandom::new()
            .fill(&mut key)
            .map_err(|_| RunError::new(ErrorKind::Internal, "the kernel has no random number for the trunk's key"))?;
        Ok(Trunk { key: Key::new(key), numbers, ends: ends.into() })
    }

    /// The order for a process at this location.
    #[cfg(feature = "cluster")]
    pub fn order(&self, place: WorkerLocation) -> TrunkOrder {
        let network = number(&self.numbers.of_node, (place.network, place.group));
        let own = network.and_then(|network| place.node.checked_mul(self.numbers.of_node())?.checked_add(network));
        // No end has the last number: a process without a network is refused when it opens its end.
        TrunkOrder { key: self.key, own: own.unwrap_or(u16::MAX), ends: self.ends.to_vec() }
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
    pub fn open(self) -> Result<Arc<TrunkEnd>, RunError> {
        TrunkEnd::open(self.key, self.own, self.ends).map_err(|error| {
            RunError::from_error(ErrorKind::System, &error).during("failed to connect the links of the nodes").hint(
                "run again if another program took the port meanwhile; `pubmark node --address IP` on that node if the address is \
                 not one of its machine",
            )
        })
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
        assert_eq!(numbers.of_node, [(Some(0), None), (None, None)]);
        assert_eq!((&*numbers.devices, &*numbers.subscribers), (&[0, 1][..], &[1][..]));
        assert_eq!(numbers.address(1, 1), group_v4(3, 0));
        assert!(Numbers::of(&workload(WORKLOAD), 255).is_ok());
        let error = Numbers::of(&workload(WORKLOAD), 256).unwrap_err().to_string();
        assert!(error.ends_with("512, and at most 511 have addresses"), "{error}");
        let isolated = WORKLOAD.replace("count: 2,", "count: 2, isolate: process,");
        let numbers = Numbers::of(&workload(&isolated), 2).unwrap();
        assert_eq!((numbers.of_node(), &*numbers.devices, &*numbers.subscribers), (3, &[0, 2][..], &[1][..]));
    }

    #[test]
    fn a_network_without_a_process_has_no_number() {
        let linked = WORKLOAD.replace("topic: 'b/{index}'", "topic: 'b/{index}', link: far");
        let linked = linked.replace("filters: ['#']", "filters: ['#'], link: far, isolate: process");
        let numbers = Numbers::of(&workload(&linked), 2).unwrap();
        assert_eq!((numbers.of_node(), &*numbers.devices, &*numbers.subscribers), (3, &[0, 1][..], &[2][..]));
    }

    #[test]
    fn what_no_address_fits_is_refused_before_nodes_join() {
        let checked = |system: &str, text: &str| {
            let definition = Definition::load(system).unwrap();
            let protocol = &find(definition.protocols.keys().next().unwrap()).unwrap().capabilities;
            check(&definition, protocol, &workload(text), 2).map_err(|error| error.to_string())
        };
        let several = format!("{WORKLOAD}  - {{name: other, filters: ['#'], link: far}}\n");
        assert!(checked("zenoh-peers", &several).unwrap_err().contains("behind several links"));
        let isolated = format!("{WORKLOAD}  - {{name: other, filters: ['#'], isolate: process}}\n");
        let error = checked("zenoh-peers", &isolated).unwrap_err();
        assert!(error.contains("isolated groups") && !error.contains("several links"), "{error}");
        for system in ["zeromq-peers", "dds"] {
            assert_eq!((checked(system, &several), checked(system, &isolated)), (Ok(()), Ok(())), "{system}");
        }
        assert_eq!(checked("zenoh-peers", WORKLOAD), Ok(()));
    }

    #[test]
    fn an_end_that_cannot_be_opened_has_a_hint_of_its_own() {
        // A documentation address (RFC 5737), which no machine has.
        let ends = vec!["192.0.2.1:20000".parse().unwrap()];
        let error = TrunkOrder { key: Key::new([7; 16]), own: 0, ends }.open().unwrap_err();
        assert!(error.chain.join(": ").contains("192.0.2.1:20000"), "{error:?}");
        assert!(error.hint.unwrap().contains("--address"));
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
