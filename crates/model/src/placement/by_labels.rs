//! The groups of a workload that are placed by labels.

use std::collections::{BTreeMap, BTreeSet};

use super::{NodeLabels, Placement};
use crate::workload::Workload;

/// Placements by labels, each with the groups that use it.
pub fn by_labels(workload: &Workload) -> BTreeMap<&Placement, Vec<&str>> {
    let devices = workload.devices.iter().map(|group| (workload.placement_of_devices(group), group.name.as_str()));
    let subscribers =
        workload.subscribers.iter().map(|group| (workload.placement_of_subscribers(group), group.name.as_str()));
    let mut found: BTreeMap<&Placement, Vec<&str>> = BTreeMap::new();
    for (placement, group) in devices.chain(subscribers).filter(|(placement, _)| placement.key().is_some()) {
        found.entry(placement).or_default().push(group);
    }
    found
}

/// Keys of the labels that placements of a workload use.
pub fn keys(workload: &Workload) -> BTreeSet<&str> {
    by_labels(workload).into_keys().filter_map(Placement::key).collect()
}

/// The first placement by a label that no node has, with its groups.
pub fn missing<'a>(workload: &'a Workload, nodes: NodeLabels<'_>) -> Option<(&'a Placement, Vec<&'a str>)> {
    let nobody = |placement: &Placement| {
        let copies = nodes.of(placement);
        copies.is_empty() || copies.iter().any(Vec::is_empty)
    };
    by_labels(workload).into_iter().find(|(placement, _)| nobody(placement))
}
