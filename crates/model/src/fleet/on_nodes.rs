//! Connections of a run's clients by node, counted by group, without building the fleet.

use std::collections::HashSet;

use crate::placement::{GroupNodes, NodeLabels};
use crate::workload::{DeviceGroup, SubscriberGroup, Workload};

/// Which sessions of a protocol have a second connection, because a command that waits at the server would hold up what they
/// send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondConnection {
    /// None.
    Never,
    /// Those of clients that publish and subscribe.
    PublishesAndSubscribes,
    /// Those of requesters and responders.
    RequestsAndReplies,
}

impl SecondConnection {
    /// Connections of each client of a device group.
    pub(crate) fn of_device(self, workload: &Workload, group: &DeviceGroup) -> u64 {
        1 + u64::from(match self {
            SecondConnection::Never => false,
            SecondConnection::PublishesAndSubscribes => is_both_ways(workload, group.client.as_deref()),
            SecondConnection::RequestsAndReplies => group.requests.is_some(),
        })
    }

    /// Connections of each client of a subscriber group.
    pub(crate) fn of_subscriber(self, workload: &Workload, group: &SubscriberGroup) -> u64 {
        1 + u64::from(match self {
            SecondConnection::Never => false,
            SecondConnection::PublishesAndSubscribes => is_both_ways(workload, group.client.as_deref()),
            SecondConnection::RequestsAndReplies => group.responds.is_some(),
        })
    }
}

/// Do groups of both sides share these clients?
fn is_both_ways(workload: &Workload, client: Option<&str>) -> bool {
    client.is_some()
        && workload.devices.iter().any(|group| group.client.as_deref() == client)
        && workload.subscribers.iter().any(|group| group.client.as_deref() == client)
}

/// Number of connections of clients, which may have two each. A client that both publishes and subscribes is a subscriber here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Those of devices.
    pub devices: u64,
    /// Those of subscribers.
    pub subscribers: u64,
}

impl ConnectionCounts {
    /// Both together.
    pub fn and(self, other: ConnectionCounts) -> ConnectionCounts {
        ConnectionCounts {
            devices: self.devices.saturating_add(other.devices),
            subscribers: self.subscribers.saturating_add(other.subscribers),
        }
    }
}

/// Connections of a run's clients on several nodes. A client that several groups share counts once: as a subscriber, if one
/// of them subscribes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionsOnNodes {
    /// Connections on all nodes.
    pub all: ConnectionCounts,
    /// Connections of the node that has the most.
    pub most: ConnectionCounts,
    /// Connections of each node.
    pub each: Vec<ConnectionCounts>,
}

impl ConnectionsOnNodes {
    /// Counts the connections of a workload's clients on these nodes, which get their shares as in a run.
    pub fn of(workload: &Workload, nodes: NodeLabels<'_>, second: SecondConnection) -> ConnectionsOnNodes {
        let groups = GroupNodes::of(&workload.placements(), nodes);
        let mut known: HashSet<&str> = HashSet::new();
        let of_subscribers = workload.subscribers.iter().map(|group| {
            (own(&mut known, group.client.as_deref(), group.count), second.of_subscriber(workload, group))
        });
        let subscribers: Vec<(u64, u64)> = of_subscribers.collect();
        let of_devices = workload
            .devices
            .iter()
            .map(|group| (own(&mut known, group.client.as_deref(), group.count), second.of_device(workload, group)));
        let devices: Vec<(u64, u64)> = of_devices.collect();
        let copies = groups.copies();
        let mut dealt = [Dealt::new(&groups, nodes.nodes), Dealt::new(&groups, nodes.nodes)];
        for (group, ((count, connections), copies)) in (0u16..).zip(devices.into_iter().zip(copies.devices)) {
            let all = count * connections;
            (0..copies).for_each(|copy| dealt[0].deal(groups.list_of_devices(group, copy), all, count));
        }
        for (group, ((count, connections), copies)) in (0u16..).zip(subscribers.into_iter().zip(copies.subscribers)) {
            // Members of a shared group are together on one node.
            let parts = if workload.subscribers[usize::from(group)].shared.is_some() { 1 } else { count };
            let all = count * connections;
            (0..copies).for_each(|copy| dealt[1].deal(groups.list_of_subscribers(group, copy), all, parts));
        }
        let [devices, subscribers] = dealt.map(|dealt| dealt.on);
        let on = devices.into_iter().zip(subscribers);
        let each: Vec<ConnectionCounts> =
            on.map(|(devices, subscribers)| ConnectionCounts { devices, subscribers }).collect();
        ConnectionsOnNodes {
            all: each.iter().copied().fold(ConnectionCounts::default(), ConnectionCounts::and),
            most: each.iter().copied().max_by_key(|on| on.devices.saturating_add(on.subscribers)).unwrap_or_default(),
            each,
        }
    }
}

/// Number of a group's clients; 0 if an earlier group has them. Groups that share clients have the same number of them.
fn own<'a>(known: &mut HashSet<&'a str>, client: Option<&'a str>, count: u32) -> u64 {
    if client.is_some_and(|client| !known.insert(client)) { 0 } else { count.into() }
}

/// Connections of one side's clients that nodes got in turn, separately for each list of nodes, as
/// [`crate::placement::Dealer`] assigns them.
struct Dealt<'a> {
    lists: &'a [Vec<u16>],
    /// Number of parts dealt so far, by list.
    parts: Vec<u64>,
    /// Connections by node.
    on: Vec<u64>,
}

impl<'a> Dealt<'a> {
    fn new(groups: &'a GroupNodes, nodes: u16) -> Dealt<'a> {
        Dealt { lists: groups.lists(), parts: vec![0; groups.lists().len()], on: vec![0; nodes.max(1).into()] }
    }

    /// Deals `connections` in as many parts as there are clients, or all of them as one part.
    fn deal(&mut self, list: Option<usize>, connections: u64, parts: u64) {
        let Some(place) = list.filter(|place| connections > 0 && !self.lists[*place].is_empty()) else { return };
        let nodes = &self.lists[place];
        let (count, begin) = (nodes.len() as u64, self.parts[place]);
        self.parts[place] += parts;
        let each = connections / parts.max(1);
        for (number, node) in (0u64..).zip(nodes) {
            let after = (number + count - begin % count) % count;
            let own = parts / count + u64::from(after < parts % count);
            self.on[usize::from(*node)] += own.saturating_mul(each);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::{LoadOptions, parse};
    use crate::placement::{Labels, labels};

    fn counted(rest: &str, nodes: u16, sites: &[&str]) -> [(u64, u64); 2] {
        counted_with(rest, nodes, sites, SecondConnection::Never)
    }

    fn counted_with(rest: &str, nodes: u16, sites: &[&str], second: SecondConnection) -> [(u64, u64); 2] {
        let text = format!("name: w\n{rest}");
        let workload = parse("w.yaml", &text, &LoadOptions::default()).unwrap();
        let known: Vec<Labels> = sites.iter().map(|site| labels(&[format!("site={site}")]).unwrap()).collect();
        let ConnectionsOnNodes { all, most, each } =
            ConnectionsOnNodes::of(&workload, NodeLabels { nodes, labels: &known }, second);
        assert_eq!(each.into_iter().fold(ConnectionCounts::default(), ConnectionCounts::and), all);
        [all, most].map(|counts| (counts.devices, counts.subscribers))
    }

    #[test]
    fn the_node_with_the_most_clients_has_its_real_share() {
        let fleet = "devices: [{name: a, count: 7, every: 1s, payload: 30B, topic: 'a/{index}'}]\nsubscribers: [{name: b, count: 4, filters: ['#']}]\n";
        let placed = |placement: &str| format!("{fleet}placement: {placement}\n");
        assert_eq!(counted(&placed("{subscribers: once}"), 1, &[]), [(7, 4), (7, 4)]);
        assert_eq!(counted(&placed("{subscribers: once}"), 3, &[]), [(7, 4), (3, 2)]);
        let at_one = placed("{a: site=edge, b: split}");
        assert_eq!(counted(&at_one, 3, &["edge", "cloud", "cloud"]), [(7, 4), (7, 2)]);
        assert_eq!(counted(&at_one, 3, &[]), [(7, 4), (3, 2)], "labels are not known yet");
        assert_eq!(counted(&placed("{a: replicate, b: replicate}"), 3, &[]), [(21, 12), (7, 4)]);
    }

    #[test]
    fn a_shared_group_is_on_one_node_and_shared_clients_count_once() {
        let group = |name: &str, rest: &str| format!("  - {{name: {name}, count: 10, filters: ['#']{rest}}}\n");
        let device = "devices:\n  - {name: a, count: 10, every: 1s, payload: 30B, topic: 'a/{index}', scales: false";
        let own = format!("{device}, client: c}}\nsubscribers:\n{}{}", group("b", ", client: c"), group("d", ""));
        assert_eq!(counted(&format!("{own}placement: {{subscribers: once}}\n"), 1, &[])[0], (0, 20));
        let shared = format!("{device}}}\nsubscribers:\n{}{}", group("e", ", shared: e"), group("f", ", shared: f"));
        let [all, most] = counted(&format!("{shared}placement: {{subscribers: once}}\n"), 2, &[]);
        assert_eq!((all, most), ((10, 20), (5, 10)), "one group on each node");
    }

    #[test]
    fn sessions_with_two_connections_count_twice() {
        use SecondConnection::{Never, PublishesAndSubscribes, RequestsAndReplies};
        let both = |rest: &str, second| counted_with(rest, 2, &[], second);
        let shared = "devices:\n  - {name: a, count: 10, every: 1s, payload: 30B, topic: 'a/{index}', scales: false, client: c}\n  \
                      - {name: d, count: 6, every: 1s, payload: 30B, topic: 'd/{index}'}\n\
                      subscribers: [{name: b, count: 10, filters: ['#'], client: c}]\nplacement: {subscribers: once}\n";
        assert_eq!(both(shared, Never), [(6, 10), (3, 5)]);
        assert_eq!(both(shared, PublishesAndSubscribes), [(6, 20), (3, 10)]);
        assert_eq!(both(shared, RequestsAndReplies), [(6, 10), (3, 5)]);
        let requests = "devices: []\nsubscribers: []\n\
                        requesters: [{name: a, count: 8, every: 1s, payload: 100B, topic: 'r/{index}'}]\n\
                        responders: [{name: b, filters: ['r/#']}]\nplacement: {subscribers: once}\n";
        assert_eq!(both(requests, PublishesAndSubscribes), [(8, 1), (4, 1)]);
        assert_eq!(both(requests, RequestsAndReplies), [(16, 2), (8, 2)]);
    }
}
