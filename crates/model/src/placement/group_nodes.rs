//! The nodes on which the clients of each group run, and how clients are distributed over them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Labels, Placement};

/// Number and labels of the nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLabels<'a> {
    /// Number of nodes, at least 1.
    pub nodes: u16,
    /// Labels of each node; empty while they are not known because nodes have not joined. Then every node counts as having
    /// the labels that a placement requires, and as a separate site.
    pub labels: &'a [Labels],
}

impl NodeLabels<'_> {
    /// Nodes whose labels are not known or do not matter.
    pub fn unknown(nodes: u16) -> NodeLabels<'static> {
        NodeLabels { nodes, labels: &[] }
    }

    /// The nodes for each copy of a group.
    pub(super) fn of(&self, placement: &Placement) -> Vec<Vec<u16>> {
        let all = || (0..self.nodes).collect::<Vec<u16>>();
        let each_alone = || (0..self.nodes).map(|node| vec![node]).collect();
        let labelled = || (0..self.nodes).zip(self.labels);
        match placement {
            Placement::Split => vec![all()],
            Placement::Replicate => each_alone(),
            Placement::On(_) if self.labels.is_empty() => vec![all()],
            Placement::Each(_) if self.labels.is_empty() => each_alone(),
            Placement::On(label) => {
                vec![labelled().filter(|(_, labels)| label.is_among(labels)).map(|(node, _)| node).collect()]
            }
            Placement::Each(key) => {
                let mut sites: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
                for (node, labels) in labelled() {
                    if let Some(value) = labels.get(key) {
                        sites.entry(value).or_default().push(node);
                    }
                }
                sites.into_values().collect()
            }
        }
    }
}

/// Placement of each group, in the order of the workload.
#[derive(Clone, Debug)]
pub struct GroupPlacements<'a> {
    /// Device groups.
    pub devices: Vec<&'a Placement>,
    /// Subscriber groups.
    pub subscribers: Vec<&'a Placement>,
}

/// Number of copies of each group.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Copies {
    /// Copies of device groups, in the workload's order.
    pub devices: Vec<u32>,
    /// Copies of subscriber groups, in the workload's order.
    pub subscribers: Vec<u32>,
}

impl Copies {
    /// `copies` copies of all devices and of the subscribers that run on every node, one copy of the other subscribers.
    pub fn of_all(placements: &GroupPlacements<'_>, copies: u32) -> Copies {
        let of_subscribers = |placement: &&Placement| match placement {
            Placement::Replicate => copies,
            Placement::Split | Placement::On(_) | Placement::Each(_) => copies.min(1),
        };
        Copies {
            devices: vec![copies; placements.devices.len()],
            subscribers: placements.subscribers.iter().map(of_subscribers).collect(),
        }
    }
}

/// Nodes of the copies of each group, by number from 0. Equal lists of nodes are stored once, so that all clients on the
/// same list are distributed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupNodes {
    lists: Vec<Vec<u16>>,
    /// By device group: the index in `lists` for each copy.
    devices: Vec<Arc<[u32]>>,
    /// By subscriber group: the index in `lists` for each copy.
    subscribers: Vec<Arc<[u32]>>,
}

impl GroupNodes {
    /// The nodes for the groups of a workload.
    pub fn of(placements: &GroupPlacements<'_>, nodes: NodeLabels<'_>) -> GroupNodes {
        let mut lists: Vec<Vec<u16>> = vec![];
        let mut places: HashMap<Vec<u16>, u32> = HashMap::new();
        let mut known: BTreeMap<&Placement, Arc<[u32]>> = BTreeMap::new();
        let mut of = |placement| {
            let copies = known.entry(placement).or_insert_with(|| {
                let place = |list: Vec<u16>| {
                    *places.entry(list).or_insert_with_key(|list| {
                        lists.push(list.clone());
                        lists.len() as u32 - 1
                    })
                };
                nodes.of(placement).into_iter().map(place).collect()
            });
            Arc::clone(copies)
        };
        let devices = placements.devices.iter().map(|placement| of(*placement)).collect();
        let subscribers = placements.subscribers.iter().map(|placement| of(*placement)).collect();
        GroupNodes { lists, devices, subscribers }
    }

    /// Number of copies of each group.
    pub fn copies(&self) -> Copies {
        let count = |groups: &[Arc<[u32]>]| groups.iter().map(|copies| copies.len() as u32).collect();
        Copies { devices: count(&self.devices), subscribers: count(&self.subscribers) }
    }

    /// Lists of nodes that groups are distributed over.
    pub fn lists(&self) -> &[Vec<u16>] {
        &self.lists
    }

    /// Index in the [lists](GroupNodes::lists) for a copy of a device group; `None` if the copy has no nodes.
    pub fn list_of_devices(&self, group: u16, copy: u32) -> Option<usize> {
        of_copy(&self.devices, group, copy)
    }

    /// Index in the [lists](GroupNodes::lists) for a copy of a subscriber group.
    pub fn list_of_subscribers(&self, group: u16, copy: u32) -> Option<usize> {
        of_copy(&self.subscribers, group, copy)
    }

    /// Nodes of each copy of a device group, by the group's index in the workload.
    pub fn of_devices(&self, group: usize) -> impl Iterator<Item = &[u16]> {
        self.devices[group].iter().map(|list| &*self.lists[*list as usize])
    }

    /// Nodes of each copy of a subscriber group.
    pub fn of_subscribers(&self, group: usize) -> impl Iterator<Item = &[u16]> {
        self.subscribers[group].iter().map(|list| &*self.lists[*list as usize])
    }
}

/// Index in `lists` for a copy of a group.
fn of_copy(groups: &[Arc<[u32]>], group: u16, copy: u32) -> Option<usize> {
    let copies = groups.get(usize::from(group)).filter(|copies| !copies.is_empty())?;
    Some(copies[copy as usize % copies.len()] as usize)
}

/// Distributes clients over nodes in turn, separately for each list of nodes, so that each node gets an equal part of every
/// group.
#[derive(Clone, Debug)]
pub struct Dealer<'a> {
    lists: &'a [Vec<u16>],
    /// Number of clients distributed so far, by list.
    dealt: Vec<usize>,
}

impl<'a> Dealer<'a> {
    /// Starts with no clients distributed.
    pub fn new(nodes: &'a GroupNodes) -> Dealer<'a> {
        Dealer { lists: &nodes.lists, dealt: vec![0; nodes.lists.len()] }
    }

    /// Node of the next client of a list, and the client's number among those of this list on that node. A client without
    /// nodes, which does not occur in a prepared run, is assigned to the first node.
    pub fn next(&mut self, list: Option<usize>) -> (u16, usize) {
        let Some((place, nodes)) = list.and_then(|place| Some((place, self.lists.get(place)?))) else { return (0, 0) };
        let number = self.dealt[place];
        self.dealt[place] += 1;
        match nodes.get(number % nodes.len().max(1)) {
            Some(node) => (*node, number / nodes.len()),
            None => (0, number),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::fleet::Fleet;
    use crate::load::{LoadOptions, parse};
    use crate::placement::{Label, missing};
    use crate::schedule::{self, Timeline};
    use crate::workload::Workload;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Values of a label on all nodes.
    fn values<'a>(labels: &'a [Labels], key: &str) -> BTreeSet<&'a str> {
        labels.iter().filter_map(|labels| labels.get(key).map(String::as_str)).collect()
    }

    fn workload(placement: &str) -> Workload {
        let text = format!(
            "name: w
devices:
  - {{name: cameras, count: 7, every: 50ms, payload: 20B, topic: 'c/{{device}}'}}
  - {{name: meters, count: 10, every: 70ms, payload: 20B, topic: 'm/{{device}}'}}
subscribers:
  - {{name: screens, count: 2, filters: ['#']}}
  - {{name: store, count: 3, filters: ['#']}}
placement: {placement}
"
        );
        parse("w.yaml", &text, &LoadOptions::default()).unwrap()
    }

    fn nodes(sites: &[&str]) -> Vec<Labels> {
        let labels = |site: &&str| match *site {
            "" => Labels::new(),
            site => Labels::from([("site".to_owned(), site.to_owned())]),
        };
        sites.iter().map(labels).collect()
    }

    /// Node of each device and of each subscriber.
    fn dealt(workload: &Workload, labels: &[Labels]) -> (Fleet, Vec<u16>, Vec<u16>) {
        let labels = NodeLabels { nodes: labels.len() as u16, labels };
        let groups = GroupNodes::of(&workload.placements(), labels);
        let fleet = Fleet::on_nodes(workload, labels);
        let mut dealer = Dealer::new(&groups);
        let devices = fleet
            .devices()
            .iter()
            .map(|device| dealer.next(groups.list_of_devices(device.group, device.copy)).0)
            .collect();
        let mut dealer = Dealer::new(&groups);
        let subscribers = fleet
            .subscribers()
            .iter()
            .map(|entry| dealer.next(groups.list_of_subscribers(entry.group, entry.copy)).0)
            .collect();
        (fleet, devices, subscribers)
    }

    #[test]
    fn groups_run_where_their_placement_says() {
        let workload = workload("{cameras: site=edge, screens: each site, store: site=cloud, default: split}");
        let labels = nodes(&["edge", "cloud", "edge", ""]);
        let (fleet, devices, subscribers) = dealt(&workload, &labels);
        assert_eq!(devices[..7], [0, 2, 0, 2, 0, 2, 0]);
        assert_eq!(devices[7..], [0, 1, 2, 3, 0, 1, 2, 3, 0, 1], "meters on all");
        let of = |group: u16| -> Vec<u16> {
            let all = fleet.subscribers().iter().zip(&subscribers);
            all.filter(|(subscriber, _)| subscriber.group == group).map(|(_, node)| *node).collect()
        };
        // Two screens at each of two sites; the site `cloud` has one node.
        assert_eq!(of(0), [1, 1, 0, 2]);
        assert_eq!(of(1), [1, 1, 1]);
    }

    #[test]
    fn a_group_on_every_node_stands_beside_one_that_is_there_once() {
        let workload = workload("{meters: replicate}");
        let (fleet, devices, _) = dealt(&workload, &nodes(&["", ""]));
        assert_eq!(fleet.devices().len(), 7 + 2 * 10);
        let meters = fleet.devices().iter().zip(&devices).filter(|(device, _)| device.group == 1);
        assert!(meters.into_iter().all(|(device, node)| device.copy == u32::from(*node)));
    }

    #[test]
    fn a_label_that_no_node_has_is_found() {
        let workload = workload("{cameras: site=edge, screens: each zone}");
        let of = |sites: &[&str]| {
            let labels = nodes(sites);
            let found = missing(&workload, NodeLabels { nodes: labels.len() as u16, labels: &labels });
            found.map(|(placement, groups)| (placement.to_string(), groups.join(",")))
        };
        assert_eq!(of(&["cloud"]), Some(("site=edge".to_owned(), "cameras".to_owned())));
        assert_eq!(of(&["edge"]), Some(("each zone".to_owned(), "screens".to_owned())));
        assert_eq!(missing(&workload, NodeLabels::unknown(2)), None);
    }

    #[test]
    fn the_schedule_does_not_depend_on_where_a_device_runs() {
        let timeline = Timeline { warmup_ns: 0, duration_ns: 1_000_000_000 };
        let of = |workload: &Workload, labels: &[Labels]| {
            let fleet = Fleet::on_nodes(workload, NodeLabels { nodes: labels.len() as u16, labels });
            schedule::summary(workload, &fleet, 7, &timeline)
        };
        let plain = of(&workload("{}"), &nodes(&[""]));
        let placed = workload("{cameras: site=edge, meters: site=cloud, screens: each site}");
        for sites in [&["edge", "cloud"][..], &["edge", "edge", "cloud", "", "edge"]] {
            assert_eq!(of(&placed, &nodes(sites)), plain, "{sites:?}");
        }
        assert_ne!(of(&workload("{meters: replicate}"), &nodes(&["", ""])).hash, plain.hash, "more devices");
    }

    prop_compose! {
        fn sites()(sites in prop::collection::vec(prop::sample::select(vec!["", "a", "b", "c"]), 1..9)) -> Vec<&'static str> {
            sites
        }
    }

    proptest! {
        #[test]
        fn every_client_runs_once_where_it_may(
            sites in sites(),
            chosen in prop::collection::vec(prop::sample::select(vec!["split", "replicate", "site=a", "site=b", "each site"]), 4),
        ) {
            let mut workload = workload("{}");
            for (group, placement) in ["cameras", "meters", "screens", "store"].into_iter().zip(&chosen) {
                let is_of_subscribers = matches!(group, "screens" | "store");
                let placement = if *placement == "each site" && !is_of_subscribers { "split" } else { placement };
                workload.placement.put(group, Placement::parse(placement).unwrap());
            }
            let labels = nodes(&sites);
            prop_assume!(missing(&workload, NodeLabels { nodes: labels.len() as u16, labels: &labels }).is_none());
            let (fleet, devices, subscribers) = dealt(&workload, &labels);
            let site = |node: u16| sites[usize::from(node)];
            let may = |placement: &Placement, copy: u32, node: u16| match placement {
                Placement::Split => copy == 0,
                Placement::Replicate => copy == u32::from(node),
                Placement::On(Label { value, .. }) => copy == 0 && site(node) == value,
                Placement::Each(_) => values(&labels, "site").into_iter().nth(copy as usize) == Some(site(node)),
            };
            for (device, node) in fleet.devices().iter().zip(&devices) {
                let placement = workload.placement_of_devices(&workload.devices[usize::from(device.group)]);
                prop_assert!(may(placement, device.copy, *node), "{} {:?} on {}", placement, device, node);
            }
            for (subscriber, node) in fleet.subscribers().iter().zip(&subscribers) {
                let placement = workload.placement_of_subscribers(&workload.subscribers[usize::from(subscriber.group)]);
                prop_assert!(may(placement, subscriber.copy, *node), "{} {:?} on {}", placement, subscriber, node);
            }
            // Each client exists as often as its placement says.
            let copies = |placement: &Placement| match placement {
                Placement::Split | Placement::On(_) => 1,
                Placement::Replicate => sites.len(),
                Placement::Each(_) => values(&labels, "site").len(),
            };
            for (number, group) in workload.devices.iter().enumerate() {
                let there = fleet.devices().iter().filter(|device| usize::from(device.group) == number).count();
                prop_assert_eq!(there, group.count as usize * copies(workload.placement_of_devices(group)));
            }
            for (number, group) in workload.subscribers.iter().enumerate() {
                let there = fleet.subscribers().iter().filter(|entry| usize::from(entry.group) == number).count();
                prop_assert_eq!(there, group.count as usize * copies(workload.placement_of_subscribers(group)));
            }
            // The parts of a group on its possible nodes differ by at most one.
            for (number, group) in workload.devices.iter().enumerate() {
                let placement = workload.placement_of_devices(group);
                let parts: Vec<usize> = (0..sites.len() as u16)
                    .filter(|node| *placement != Placement::Replicate && may(placement, 0, *node))
                    .map(|node| {
                        let all = fleet.devices().iter().zip(&devices);
                        all.filter(|(device, on)| usize::from(device.group) == number && **on == node).count()
                    })
                    .collect();
                let apart = parts.iter().max().unwrap_or(&0) - parts.iter().min().unwrap_or(&0);
                prop_assert!(apart <= 1, "{}: {:?}", group.name, parts);
            }
        }
    }
}
