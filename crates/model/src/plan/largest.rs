//! The node with the most clients, which decides whether a plan fits.

use crate::fleet::Fleet;
use crate::placement::GroupNodes;

/// The node with the most clients.
pub(super) struct Largest {
    pub devices: u64,
    pub subscribers: u64,
    /// For each device group, the part of a copy that runs on this node.
    pub parts: Vec<f64>,
}

impl Largest {
    pub fn of(fleet: &Fleet, groups: &GroupNodes, nodes: u32) -> Largest {
        // For each list of nodes: devices, subscribers.
        let mut dealt = vec![(0u64, 0u64); groups.lists().len()];
        for device in fleet.devices().iter().filter(|device| fleet.leads(device.publisher)) {
            if let Some(list) = groups.list_of_devices(device.group, device.copy) {
                dealt[list].0 += 1;
            }
        }
        for subscriber in fleet.subscribers() {
            if let Some(list) = groups.list_of_subscribers(subscriber.group, subscriber.copy) {
                dealt[list].1 += 1;
            }
        }
        let mut on = vec![(0u64, 0u64); nodes as usize];
        for (list, (devices, subscribers)) in groups.lists().iter().zip(dealt) {
            for node in list {
                let node = &mut on[usize::from(*node)];
                node.0 += devices.div_ceil(list.len() as u64);
                node.1 += subscribers;
            }
        }
        let clients = |(node, (devices, subscribers)): &(u16, (u64, u64))| (devices + subscribers, u16::MAX - node);
        let (node, (devices, subscribers)) = (0u16..).zip(on).max_by_key(clients).unwrap_or_default();
        let part = |group: usize| {
            groups.of_devices(group).filter(|list| list.contains(&node)).map(|list| 1.0 / list.len() as f64).sum()
        };
        let parts = (0..fleet.copies().devices.len()).map(part).collect();
        Largest { devices, subscribers, parts }
    }
}
