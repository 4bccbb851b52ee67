//! Systems without a broker: no system is started. Clients meet at a free port of this machine, or each subscriber listens at its own.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::shares;
use pubmark_model::fleet::Fleet;
use pubmark_model::placement::NodeLabels;
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::endpoint::Endpoint;
use pubmark_record::record::{BackEndKind, Deviation, SystemInfo};
use pubmark_systems::definition::{Change, DiscoveryAddress};
use pubmark_systems::{Definition, ports};

use crate::error::{ErrorKind, RunError};
use crate::linked;
use crate::spec::{RunSpec, Transport};
use pubmark_protocols::ProtocolPair;

/// Whether a system has no broker.
pub fn has_no_broker(definition: &Definition) -> bool {
    let ways = &definition.back_ends;
    ways.brokerless.is_some() && ways.process.is_none() && ways.container.is_none()
}

/// Refuses an endpoint for clients that discover each other on several machines: an endpoint is an address of one machine, and the clients
/// on the other machines could not use it.
///
/// # Errors
/// There are several machines.
pub fn refuse_endpoint(nodes: u16, protocol_pair: ProtocolPair) -> Result<(), RunError> {
    if nodes < 2 || !protocol_pair.is_brokerless() {
        return Ok(());
    }
    let title = protocol_pair.title();
    Err(RunError::unsupported(format!(
        "clients of {title} meet without a broker, and `--endpoint` is an address of one machine: on {nodes} machines they would not find each other"
    ))
    .hint("`--system NAME` in place of `--endpoint`: the clients of each node then use the node's own address"))
}

/// Endpoints at which the clients of a system without a broker reach each other: one endpoint where all meet, or one for each subscriber.
/// Behind links, each network has its own endpoint, or a subscriber listens at the address of its network.
///
/// # Errors
/// The specification has an option that only a broker could have, or there are not enough free ports.
pub fn meeting_endpoints(
    definition: &Definition,
    protocol: &Capabilities,
    spec: &RunSpec,
    workload: &Workload,
) -> Result<Endpoints, RunError> {
    let nodes = spec.nodes.local_nodes.unwrap_or(1);
    let networks = linked::places(workload, nodes);
    let meet = definition.back_ends.brokerless.as_ref().map(|ways| ways.across_links.meet).unwrap_or_default();
    let are_subscribers_behind =
        networks.as_ref().is_some_and(|networks| networks.subscribers.iter().any(|at| *at > 0));
    if nodes > 1 && protocol.features.subscribers_listen && are_subscribers_behind {
        return Err(subscribers_of_several_nodes(protocol.title));
    }
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let addresses: Vec<SocketAddr> = match (&networks, protocol.features.subscribers_listen) {
        (networks, true) => {
            let labels = NodeLabels { nodes, labels: &spec.node_labels() };
            let fleet = Fleet::checked_on_nodes(workload, labels).map_err(|error| RunError::fleet_too_large(&error))?;
            let at = |group: u16| networks.as_ref().map_or(here, |networks| networks.of_subscribers(group));
            let ports = listening_ports(fleet.subscribers().len())?;
            fleet.subscribers().iter().zip(ports).map(|(entry, port)| (at(entry.group), port).into()).collect()
        }
        (None, false) => vec![(here, meeting_port(definition)?).into()],
        (Some(networks), false) => {
            let port = meeting_port(definition)?;
            networks.all.iter().map(|address| (*address, port).into()).collect()
        }
    };
    let settings = match &networks {
        Some(_) => settings_behind_links(definition, protocol, &spec.target.profile)?,
        None => settings(definition, protocol, &spec.target.profile, &[])?,
    };
    let at = |address: SocketAddr| endpoint(definition, protocol, address, &settings);
    let endpoints_wanted = addresses.len();
    let endpoints = addresses.into_iter().map(at).collect();
    let found = match (networks, meet) {
        (Some(_), _) if protocol.features.subscribers_listen => Endpoints::several(endpoints, false),
        (Some(networks), DiscoveryAddress::Everywhere) => {
            Endpoints::by_group(endpoints, [networks.devices, networks.subscribers], networks.of_node)
        }
        (Some(networks), DiscoveryAddress::AtSubscribers) => {
            let network = networks.of_all_subscribers().ok_or_else(|| no_common_endpoint(protocol.title))?;
            if nodes == 1 || network == 0 {
                endpoints.into_iter().nth(usize::from(network)).map(Endpoints::one)
            } else {
                let with = nodes_with_subscribers(workload, spec, nodes)?;
                let [first, of_node] = [network, networks.of_node].map(usize::from);
                let at = |node: &u16| endpoints.get(first + usize::from(*node) * of_node).cloned();
                // A node without subscribers has no listening socket: its devices connect to the other nodes.
                let of = |node: u16| with.iter().position(|with| *with == node).unwrap_or(0) as u16;
                let places = (0..nodes).map(of).collect();
                with.iter().map(at).collect::<Option<Vec<_>>>().and_then(|found| Endpoints::by_node(found, places))
            }
        }
        (None, _) => Endpoints::several(endpoints, false),
    };
    found.ok_or_else(|| not_so_many(endpoints_wanted))
}

/// Settings that the endpoints of a profile have after their port. `machines` are the addresses of the machines with clients; none if all
/// clients are on this machine.
pub(crate) fn settings(
    definition: &Definition,
    protocol: &Capabilities,
    profile: &str,
    machines: &[IpAddr],
) -> Result<String, RunError> {
    let profile = definition.profile(profile).map_err(|error| RunError::from_error(ErrorKind::Input, &error))?;
    let mut settings = profile.text.trim().to_owned();
    if let Some(finds) = protocol.features.settings.and_then(|has| has.finds).filter(|_| !machines.is_empty()) {
        add(&mut settings, &finds(machines));
    }
    Ok(settings)
}

/// The settings of a profile for clients in separate networks, behind links.
pub(crate) fn settings_behind_links(
    definition: &Definition,
    protocol: &Capabilities,
    profile: &str,
) -> Result<String, RunError> {
    let mut settings = settings(definition, protocol, profile, &[])?;
    if let Some(ways) = &definition.back_ends.brokerless {
        add(&mut settings, ways.across_links.settings.trim());
    }
    Ok(settings)
}

/// Appends to the settings of an endpoint.
fn add(settings: &mut String, more: &str) {
    if !more.is_empty() {
        settings.push(if settings.is_empty() { '?' } else { '&' });
        settings.push_str(more);
    }
}

/// An endpoint of a system without a broker.
pub(crate) fn endpoint(
    definition: &Definition,
    protocol: &Capabilities,
    address: SocketAddr,
    settings: &str,
) -> Endpoint {
    let listener = definition.protocols.get(protocol.name).and_then(|offer| definition.listeners.get(&offer.listener));
    let scheme = listener.map_or(protocol.name, |listener| listener.scheme.as_str());
    Endpoint {
        shown: format!("{scheme}://{address}{settings}"),
        address,
        tls: None,
        credentials: None,
        upgrade: None,
        settings: (!settings.is_empty()).then(|| settings.into()),
    }
}

/// The nodes that have subscribers, sorted.
fn nodes_with_subscribers(workload: &Workload, spec: &RunSpec, nodes: u16) -> Result<Vec<u16>, RunError> {
    let labels = NodeLabels { nodes, labels: &spec.node_labels() };
    let fleet = Fleet::checked_on_nodes(workload, labels).map_err(|error| RunError::fleet_too_large(&error))?;
    let places = shares::places_of_subscribers(workload, &fleet, labels, &fleet.audiences(workload));
    Ok(places.into_iter().map(|(node, _)| node).collect::<BTreeSet<u16>>().into_iter().collect())
}

fn subscribers_of_several_nodes(title: &str) -> RunError {
    RunError::unsupported(format!(
        "over {title} each subscriber has an address of its own, and those of each node of this machine are behind a link of its own"
    ))
    .hint("links for devices alone: `--link GROUP=NAME`; leave `--local-nodes` out; or a system with a broker")
}

pub(crate) fn no_common_endpoint(title: &str) -> RunError {
    RunError::unsupported(format!(
        "over {title} devices meet subscribers at one address, and these are behind several links"
    ))
    .hint("all subscribers behind one link, or behind none: `--link GROUP=NAME`")
}

/// Error for a fleet with more subscribers than can listen.
pub(crate) fn not_so_many(subscribers: usize) -> RunError {
    let hint = "another number of subscribers, or a system with a broker";
    let text = match subscribers {
        0 => "a workload without subscribers has no receiver".to_owned(),
        many => format!("{many} subscribers would receive, and at most {} can", u16::MAX),
    };
    RunError::new(ErrorKind::TooLarge, text).hint(hint)
}

/// Checks that each subscriber can listen at a separate endpoint.
pub(crate) fn check_listeners(protocol: &Capabilities, subscribers: usize) -> Result<(), RunError> {
    let can = !protocol.features.subscribers_listen || (1..=usize::from(u16::MAX)).contains(&subscribers);
    if can { Ok(()) } else { Err(not_so_many(subscribers)) }
}

/// Ports of this number of subscribers, free on this machine.
pub(crate) fn listening_ports(subscribers: usize) -> Result<Vec<u16>, RunError> {
    ports::free(subscribers).map_err(|error| {
        RunError::from_error(ErrorKind::TooLarge, &error)
            .during(format!("failed to find a port for each of {subscribers} subscribers"))
            .hint("fewer subscribers, or a system with a broker")
    })
}

/// A port at which clients meet, free on this machine.
pub(crate) fn meeting_port(definition: &Definition) -> Result<u16, RunError> {
    let found = match definition.back_ends.brokerless.as_ref().and_then(|brokerless| brokerless.ports.as_ref()) {
        Some(wanted) => ports::free_discovery_port(wanted),
        None => ports::free(1).map(|ports| ports.first().copied().unwrap_or_default()),
    };
    found.map_err(|error| RunError::from_error(ErrorKind::System, &error))
}

/// Description of a system without a broker in the record.
pub fn info(definition: &Definition, profile: &str, endpoints: &Endpoints) -> SystemInfo {
    SystemInfo {
        name: definition.name.clone(),
        version: None,
        back_end: BackEndKind::Brokerless,
        profile: Some(profile.to_owned()),
        endpoint: endpoints.endpoints().first().map(|first| first.shown.clone()).unwrap_or_default(),
        ranked: definition.ranked,
        papers: definition.papers.clone(),
        ..SystemInfo::default()
    }
}

/// Refuses a profile with settings that a client library does not implement.
///
/// # Errors
/// Names the settings, and the libraries that implement them.
pub fn check_settings(settings: &str, protocol_pair: ProtocolPair, profile: &str) -> Result<(), RunError> {
    for protocol in [protocol_pair.publish, protocol_pair.subscribe] {
        let Some(has) = protocol.capabilities.features.settings else { continue };
        (has.check)(settings).map_err(|why| {
            RunError::unsupported(format!("profile `{profile}` cannot be had: {why}"))
                .hint("another `--profile`, or an `--endpoint` with settings of your own")
        })?;
    }
    Ok(())
}

/// Refuses options that only a broker could have.
///
/// # Errors
/// Names the first of these options that was given.
pub(crate) fn refuse_options_of_brokers(definition: &Definition, spec: &RunSpec) -> Result<(), RunError> {
    let target = &spec.target;
    let asked = [
        ("--back-end", target.back_end.is_some()),
        ("--image", target.image.is_some()),
        ("--topology", target.topology.is_some()),
        ("--limit", target.limit.is_some()),
        ("--transport", target.transport != Transport::Tcp),
        ("--user", spec.connection.user.is_some()),
        ("--pin system=…", spec.generator.pins_system()),
    ];
    if let Some((option, _)) = asked.iter().find(|(_, is_asked)| *is_asked) {
        let name = &definition.name;
        return Err(
            RunError::unsupported(format!("`{option}` is for a broker, and `{name}` has none")).hint("leave it out")
        );
    }
    Ok(())
}

/// The location of the clients of a system without a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// All on this machine.
    No,
    /// In separate networks, behind links.
    Links,
    /// On nodes of other machines.
    Nodes,
}

/// Deviations that the definition of a system and its profile cause.
pub fn deviations(definition: &Definition, profile: &str, apart: Apart) -> Vec<Deviation> {
    let across = definition.back_ends.brokerless.as_ref().and_then(|ways| match apart {
        Apart::No => None,
        Apart::Links => Some(&ways.across_links.deviations),
        Apart::Nodes => Some(&ways.across_nodes.deviations),
    });
    let of_profile = definition.profiles.get(profile).map_or(&[][..], |profile| &profile.deviations);
    let shown = |change: &Change| Deviation {
        name: change.name.clone(),
        detail: format!("{}: {}", change.setting, change.reason),
    };
    across.unwrap_or(&definition.deviations).iter().chain(of_profile).map(shown).collect()
}
