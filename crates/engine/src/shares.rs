//! The shards of a run, and which part of the fleet each has. This also determines where each shard runs, and is the
//! same in every process that computes it.

use std::collections::{BTreeSet, HashMap};

use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::fleet::{Device, Fleet, Subscriber};
use pubmark_model::placement::{Dealer, GroupNodes, NodeLabels};
use pubmark_model::workload::Workload;

use crate::plan::RunPlan;
use crate::shared_connections::SharedConnections;

/// A side of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Devices.
    Publish,
    /// Subscribers, and devices on their connections.
    Subscribe,
}

/// Location of shards that are not threads of the process that leads the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerLocation {
    /// Number of the node, from 0; 0 in a run without nodes.
    pub node: u16,
    /// Number of the network that the process is inside; `None`: the machine's network.
    pub network: Option<u16>,
    /// The group whose clients alone are in this process, by its index in [`ConnectionGroups::names`].
    pub group: Option<u16>,
}

/// Separates clients from others, whatever their number: a shard has clients of only one isolation domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IsolationDomain {
    /// Only clients of this network, if shards are assigned by network: `Some(None)` is the machine's network.
    network: Option<Option<u16>>,
    /// Only clients of this group, which has a separate process.
    group: Option<u16>,
}

/// The isolation domains of the clients of a run.
#[derive(Clone, Debug)]
pub struct IsolationDomains {
    /// By device group, in the workload's order.
    pub devices: Vec<IsolationDomain>,
    /// By subscriber group, likewise.
    pub subscribers: Vec<IsolationDomain>,
}

impl IsolationDomains {
    /// The isolation domains of a plan.
    pub fn of(plan: &RunPlan) -> IsolationDomains {
        let groups = ConnectionGroups::of(&plan.workload);
        // A separate process is inside its network, wherever the sockets of other clients are opened.
        let domain = |network: Option<u16>, group: Option<u16>| IsolationDomain {
            network: (plan.by_network || group.is_some()).then_some(network),
            group,
        };
        let devices = (0..plan.workload.devices.len() as u16)
            .map(|group| domain(plan.networks.of_devices(group), groups.process_of_devices(group)));
        let subscribers = (0..plan.workload.subscribers.len() as u16)
            .map(|group| domain(plan.networks.of_subscribers(group), groups.process_of_subscribers(group)));
        IsolationDomains { devices: devices.collect(), subscribers: subscribers.collect() }
    }
}

/// A shard's part of its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The side.
    pub side: Side,
    /// Only clients of this node: from 0; 0 in a run without nodes.
    pub node: u16,
    /// Only clients of this isolation domain.
    pub domain: IsolationDomain,
    /// Index of its part of these clients.
    pub part: usize,
    /// Number of parts.
    pub of: usize,
}

impl Share {
    /// Does it have clients of this node and this isolation domain?
    pub fn is_of(&self, node: u16, domain: IsolationDomain) -> bool {
        self.node == node && self.domain == domain
    }

    /// The process in which it runs; `None`: on a thread of the process that leads the run.
    pub fn remote(&self, plan: &RunPlan) -> Option<WorkerLocation> {
        let place =
            WorkerLocation { node: self.node, network: self.domain.network.flatten(), group: self.domain.group };
        let is_remote = plan.nodes > 1 || plan.on_nodes || place.network.is_some() || place.group.is_some();
        is_remote.then_some(place)
    }
}

/// The shards of a run: first those of devices, then those of subscribers, each sorted by node.
pub fn shares(plan: &RunPlan) -> Vec<Share> {
    let IsolationDomains { devices, subscribers } = IsolationDomains::of(plan);
    let sides =
        [(Side::Publish, plan.publisher_shards, devices), (Side::Subscribe, plan.subscriber_shards, subscribers)];
    let mut shares = vec![];
    for (side, of, domains) in sides {
        // A side without groups has shards as well, but they have no clients.
        let mut domains: BTreeSet<IsolationDomain> = domains.into_iter().collect();
        if domains.is_empty() {
            domains.insert(IsolationDomain::default());
        }
        for node in 0..plan.nodes {
            for domain in &domains {
                // A separate network has a separate process with one shard per side, because the client library there
                // has its own threads.
                let of = if plan.by_network && domain.network.flatten().is_some() { 1 } else { of };
                shares.extend((0..of).map(|part| Share { side, node, domain: *domain, part, of }));
            }
        }
    }
    shares
}

/// Number of shards of one side.
pub fn count(shares: &[Share], side: Side) -> usize {
    shares.iter().filter(|share| share.side == side).count()
}

/// The node of each client of a fleet. Each node has its part of every group that may run on it.
pub struct NodeOfClient {
    /// Node of each client that only sends, by its index among them.
    senders: Vec<u16>,
    subscribers: Vec<(u16, usize)>,
}

impl NodeOfClient {
    /// The nodes of a plan's clients.
    pub fn of(plan: &RunPlan, connections: &SharedConnections<'_>, audiences: &[u32]) -> NodeOfClient {
        let groups = GroupNodes::of(&plan.workload.placements(), plan.labels());
        let mut dealer = Dealer::new(&groups);
        let node = |members: Vec<Device>| {
            let list = members.first().and_then(|first| groups.list_of_devices(first.group, first.copy));
            dealer.next(list).0
        };
        let senders = connections.sending().map(node).collect();
        let subscribers = places_of_subscribers(&plan.workload, &plan.fleet, plan.labels(), audiences);
        NodeOfClient { senders, subscribers }
    }

    /// Node of a client that only sends, by its index among all of them.
    pub fn of_sender(&self, place: usize) -> u16 {
        self.senders[place]
    }

    /// Node of a subscriber, and the number by which it is assigned to a shard there. Members of a shared group that
    /// are one audience are on one shard.
    pub fn of_subscriber(&self, subscriber: &Subscriber) -> (u16, usize) {
        self.subscribers[subscriber.number as usize]
    }
}

/// Node of each subscriber, and the number by which it is assigned to a shard there.
pub fn places_of_subscribers(
    workload: &Workload,
    fleet: &Fleet,
    nodes: NodeLabels<'_>,
    audiences: &[u32],
) -> Vec<(u16, usize)> {
    let groups = GroupNodes::of(&workload.placements(), nodes);
    let mut dealer = Dealer::new(&groups);
    // All members of a shared group are on the node and shard of its first member.
    let mut shared: HashMap<(Option<usize>, u32), (u16, usize)> = HashMap::new();
    let place = |(subscriber, audience): (&Subscriber, &u32)| {
        let list = groups.list_of_subscribers(subscriber.group, subscriber.copy);
        match workload.subscribers[usize::from(subscriber.group)].shared {
            None => dealer.next(list),
            Some(_) => *shared.entry((list, *audience)).or_insert_with(|| dealer.next(list)),
        }
    };
    fleet.subscribers().iter().zip(audiences).map(place).collect()
}
