//! Placement in a plan: a line for each group, if the workload places any group.

use pubmark_model::placement::{GroupNodes, NodeLabels, Placement, keys};
use pubmark_model::workload::Workload;
use pubmark_report::numbers::counted;
use pubmark_runner::local_name;

use pubmark_report::wrapping::wrap;

/// Largest number of groups that are listed.
const GROUPS: usize = 40;
/// Largest number of nodes that are listed by name.
const NODES: usize = 6;

/// The lines; empty if the workload distributes all groups over all nodes.
pub fn text(workload: &Workload, nodes: NodeLabels<'_>) -> String {
    if workload.placement.groups.is_empty() && keys(workload).is_empty() {
        return String::new();
    }
    let placed = GroupNodes::of(&workload.placements(), nodes);
    let devices = workload.devices.iter().enumerate().map(|(number, group)| {
        let there: Vec<&[u16]> = placed.of_devices(number).collect();
        let clients = counted(group.count.into(), "device", "devices");
        (group.name.as_str(), clients, Some(group.count), workload.placement_of_devices(group), there)
    });
    let subscribers = workload.subscribers.iter().enumerate().map(|(number, group)| {
        let there: Vec<&[u16]> = placed.of_subscribers(number).collect();
        let clients = counted(group.count.into(), "subscriber", "subscribers");
        // Members of a shared group run on one node, because each delivery must be matched with those of the other members.
        let count = if group.shared.is_some() { None } else { Some(group.count) };
        (group.name.as_str(), clients, count, workload.placement_of_subscribers(group), there)
    });
    let all = workload.devices.len() + workload.subscribers.len();
    let mut text = String::new();
    for (name, clients, count, placement, there) in devices.chain(subscribers).take(GROUPS) {
        let words = format!("{clients} {}", place(count, placement, &there, nodes));
        text.push_str(&wrap(&format!("  {name:<21} "), 24, &words));
    }
    if all > GROUPS {
        text.push_str(&format!("  {} more groups\n", all - GROUPS));
    }
    text
}

/// The nodes of a group, and the number of its clients on each; `count` is `None` if all of them are on one node.
fn place(count: Option<u32>, placement: &Placement, there: &[&[u16]], nodes: NodeLabels<'_>) -> String {
    let is_known = !nodes.labels.is_empty();
    match placement {
        Placement::Split => format!("over all nodes{}", each(count, there)),
        Placement::Replicate => "on every node".to_owned(),
        Placement::On(label) if !is_known => format!("over the nodes with {label}"),
        Placement::On(label) => {
            format!("over the nodes with {label}: {}{}", names(there.first().unwrap_or(&&[][..])), each(count, there))
        }
        Placement::Each(key) if !is_known => format!("at each {key}"),
        Placement::Each(key) => {
            let site = |nodes_there: &&[u16]| {
                let first = nodes_there.first().and_then(|node| nodes.labels.get(usize::from(*node))?.get(key));
                format!("{} ({})", first.map_or("", String::as_str), names(nodes_there))
            };
            let sites: Vec<String> = there.iter().take(NODES).map(site).collect();
            let more = if there.len() > NODES { format!(" and {} more", there.len() - NODES) } else { String::new() };
            format!("at each {key}: {}{more}", sites.join(", "))
        }
    }
}

fn names(nodes: &[u16]) -> String {
    let named: Vec<String> = nodes.iter().take(NODES).map(|node| local_name(*node)).collect();
    let more = if nodes.len() > NODES { format!(" and {} more", nodes.len() - NODES) } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// Number of clients on each node over which a group is distributed.
fn each(count: Option<u32>, there: &[&[u16]]) -> String {
    let nodes = there.first().map_or(1, |nodes| nodes.len()).max(1) as u32;
    let Some(count) = count else {
        return if nodes == 1 { String::new() } else { " (together on one of them)".to_owned() };
    };
    match (count / nodes, count.div_ceil(nodes)) {
        _ if nodes == 1 => String::new(),
        (least, most) if least == most => format!(" ({most} each)"),
        (least, most) => format!(" ({least} or {most} each)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::load::{LoadOptions, parse};
    use pubmark_model::placement::{Labels, labels};

    const TEXT: &str = "name: w
devices:
  - {name: cameras, count: 7, every: 1s, payload: 30B}
  - {name: meters, count: 10, every: 1s, payload: 30B}
subscribers:
  - {name: dashboards, filters: ['#']}
  - {name: store, filters: ['#']}
  - {name: workers, count: 10, shared: workers, filters: ['#']}
placement: {cameras: site=edge, dashboards: each site, store: site=cloud}
";

    #[test]
    fn a_plan_lists_the_clients_of_each_node() {
        let workload = parse("w.yaml", TEXT, &LoadOptions::default()).expect("a workload");
        let known: Vec<Labels> =
            ["site=edge", "site=edge", "site=cloud"].map(|label| labels(&[label]).expect("labels")).to_vec();
        let expected = "  cameras               7 devices over the nodes with site=edge: local 1, local\n                        2 (3 or 4 each)\n  \
                        meters                10 devices over all nodes (3 or 4 each)\n  \
                        dashboards            1 subscriber at each site: cloud (local 3), edge (local\n                        1, local 2)\n  \
                        store                 1 subscriber over the nodes with site=cloud: local 3\n  \
                        workers               10 subscribers over all nodes (together on one of them)\n";
        assert_eq!(text(&workload, NodeLabels { nodes: 3, labels: &known }), expected);
        let unknown = text(&workload, NodeLabels::unknown(5));
        assert!(unknown.contains("cameras               7 devices over the nodes with site=edge\n"), "{unknown}");
        assert!(unknown.contains("1 subscriber at each site\n") && unknown.contains("(2 each)"), "{unknown}");
        let plain = parse("w.yaml", TEXT.split("placement").next().unwrap_or(""), &LoadOptions::default());
        assert_eq!(text(&plain.expect("a workload"), NodeLabels::unknown(5)), "");
    }
}
