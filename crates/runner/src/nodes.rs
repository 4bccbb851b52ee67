//! Nodes of a run, for its record.

use std::collections::BTreeMap;

use pubmark_engine::outcome::Outcome;
use pubmark_engine::plan::RunPlan;
use pubmark_engine::sections;
use pubmark_engine::shares::{WorkerLocation, shares};
use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::placement::Labels;
use pubmark_record::cost::{GroupUsage, Usage};
use pubmark_record::nodes::{LostWorker, NodeRow, ReceivedPerSecond};

use crate::cluster::{JoinedNodes, WorkerUsage};
use crate::error::RunError;
use crate::spec::{RunSpec, local_name};

/// Refuses options for nodes in a run that has none, and options that would concern this machine alone in a run on others.
///
/// # Errors
/// The first such option.
pub fn validate(spec: &RunSpec) -> Result<(), RunError> {
    let nodes = &spec.nodes;
    if nodes.nodes.is_some() {
        return refuse_of_this_machine(spec);
    }
    if nodes.observers.is_some() || spec.target.node.is_some() {
        return Ok(());
    }
    let given = [
        ("--listen", nodes.listen.is_some()),
        ("--credentials", nodes.credentials.is_some()),
        ("--join-limit", nodes.join_limit.is_some()),
        ("--announce", nodes.announce),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(RunError::input(format!("`{option}` is for nodes, and the run wants none"))
            .hint("`--nodes N` sends and receives on N machines, `--observers N` observes the system's machines")),
        None => Ok(()),
    }
}

/// Clients run on machines that join, whose addresses and cores are not those of this machine.
fn refuse_of_this_machine(spec: &RunSpec) -> Result<(), RunError> {
    if spec.connection.source_addresses.is_some() {
        return Err(RunError::unsupported(
            "`--source-addresses` are this machine's, and with `--nodes` clients connect from the machines that join",
        )
        .hint("leave it out: each node connects from its own address, so more nodes have more ports; or `--local-nodes` for processes of this machine"));
    }
    if let Some(pin) = spec.generator.pin.iter().find(|pin| pin.trim_start().starts_with("generator")) {
        let cores = pin.split_once('=').map_or("0", |(_, cores)| cores.trim());
        return Err(RunError::unsupported(format!(
            "`--pin {pin}` is for the generator on this machine, and with `--nodes` the load is generated on the machines that join"
        ))
        .hint(format!("leave it out, and start the nodes with `taskset -c {cores} pubmark node …`")));
    }
    Ok(())
}

/// The nodes of a run, which is empty if only this process took part; and the usage of groups that had processes of
/// their own on nodes that joined.
pub fn rows(plan: &RunPlan, outcome: &Outcome, joined: Option<&JoinedNodes>) -> (Vec<NodeRow>, Vec<GroupUsage>) {
    let (rows, workers) = joined.map(JoinedNodes::rows).unwrap_or_default();
    let rows: Vec<NodeRow> = match joined {
        Some(_) => rows,
        None if plan.nodes < 2 && plan.node_labels.iter().all(Labels::is_empty) => vec![],
        None => (0..plan.nodes).map(|node| local_row(plan, node)).collect(),
    };
    let parts = (0u16..).zip(sections::on_nodes(plan));
    let with_part = |(row, (node, (devices, subscribers))): (NodeRow, (u16, (u64, u64)))| {
        // The control plane knows the reason better than a closed channel does. A node that left after its last report
        // was not lost. Without that report its clock is not known, and no latency from or to it has a bound.
        let closed = outcome.lost.iter().find(|lost| lost.node == node).map(|closed| closed.why.as_str());
        let unreported = (joined.is_some() && row.clock.is_none()).then_some("it did not report its clock");
        let lost = closed.or(unreported).map(|why| row.lost.clone().unwrap_or_else(|| why.to_owned()));
        let seconds = outcome.received_on_nodes.get(usize::from(node)).and_then(Option::as_deref);
        let received = received_per_second(seconds, subscribers, lost.is_some());
        NodeRow { devices, subscribers, lost, received, ..row }
    };
    (rows.into_iter().zip(parts).map(with_part).collect(), groups(plan, &workers))
}

/// Usage of each group that has processes of its own, over all nodes: the sum of its processes; unknown if one of them
/// did not report its usage.
fn groups(plan: &RunPlan, workers: &[WorkerUsage]) -> Vec<GroupUsage> {
    let shares = shares(plan);
    let mut usages: BTreeMap<u16, Option<Usage>> = BTreeMap::new();
    for worker in workers {
        let location = shares.get(worker.first_shard as usize).and_then(|share| share.remote(plan));
        let Some(group) = location.and_then(|location| location.group) else { continue };
        let known = usages.entry(group).or_insert(Some(Usage::default()));
        *known = known.take().zip(worker.usage).map(|(sum, usage)| sum.and(usage));
    }
    let names = ConnectionGroups::of(&plan.workload).names;
    let name = |group: u16| names.get(usize::from(group)).cloned().unwrap_or_default();
    usages.into_iter().map(|(group, usage)| GroupUsage { group: name(group), usage }).collect()
}

fn local_row(plan: &RunPlan, node: u16) -> NodeRow {
    let labels = plan.node_labels.get(usize::from(node)).cloned().unwrap_or_default();
    NodeRow { name: local_name(node), labels, ..NodeRow::default() }
}

/// Messages per second that a node's subscribers received. `None` without subscribers, because nothing is measured, and
/// for a lost node, of which only a part is known.
fn received_per_second(seconds: Option<&[u64]>, subscribers: u64, is_lost: bool) -> Option<ReceivedPerSecond> {
    seconds.filter(|_| subscribers > 0 && !is_lost).and_then(ReceivedPerSecond::of)
}

/// Worker processes that were lost, in a run without nodes.
pub fn lost_workers(plan: &RunPlan, outcome: &Outcome) -> Vec<LostWorker> {
    if plan.nodes > 1 || plan.on_nodes {
        return vec![];
    }
    let shares = shares(plan);
    let groups = ConnectionGroups::of(&plan.workload).names;
    let mut workers: Vec<(Option<WorkerLocation>, LostWorker)> = vec![];
    for lost in &outcome.lost {
        let place = shares.get(lost.shard as usize).and_then(|share| share.remote(plan));
        let group = place.and_then(|place| groups.get(usize::from(place.group?)));
        match workers.iter_mut().find(|(known, _)| *known == place) {
            Some((_, worker)) if group.is_none() => worker.worker.push_str(&format!(", {}", lost.name)),
            Some(_) => {}
            None => {
                let worker = group.map_or_else(|| lost.name.clone(), |group| format!("`{group}`"));
                workers.push((place, LostWorker { worker, reason: lost.why.clone() }));
            }
        }
    }
    workers.into_iter().map(|(_, worker)| worker).collect()
}

/// Resource usage of pubmark on all nodes together; `None` if one node did not report it.
pub fn generator(nodes: &[NodeRow]) -> Option<Usage> {
    let usages: Option<Vec<Usage>> = nodes.iter().map(|node| node.generator).collect();
    usages?.into_iter().reduce(Usage::and)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::spec::SourceAddresses;

    #[test]
    fn what_concerns_this_machine_alone_is_refused_for_clients_on_others() {
        let refused = |change: fn(&mut RunSpec), nodes: Option<u16>| {
            let mut spec = RunSpec::new("hello");
            spec.nodes.nodes = nodes;
            change(&mut spec);
            validate(&spec).err().map(|error| format!("{error} / {}", error.hint.as_deref().unwrap_or_default()))
        };
        let sources: fn(&mut RunSpec) =
            |spec| spec.connection.source_addresses = Some(SourceAddresses::parse("127.0.0.2").unwrap());
        assert!(refused(sources, Some(2)).unwrap().contains("clients connect from the machines that join"));
        let pin: fn(&mut RunSpec) = |spec| spec.generator.pin = vec!["system=0".to_owned(), "generator=1-2".to_owned()];
        let text = refused(pin, Some(2)).unwrap();
        assert!(
            text.starts_with("`--pin generator=1-2` is") && text.contains("`taskset -c 1-2 pubmark node"),
            "{text}"
        );
        assert_eq!((refused(sources, None), refused(pin, None)), (None, None));
        assert_eq!(refused(|spec| spec.generator.pin = vec!["system=0".to_owned()], Some(2)), None);
    }

    #[test]
    fn a_node_that_was_lost_or_has_no_subscribers_has_no_figure_of_what_it_received() {
        let seconds = Some(&[3, 5][..]);
        assert_eq!(received_per_second(seconds, 2, false).unwrap().mean_per_s, 4.0);
        assert_eq!(received_per_second(seconds, 2, true), None, "some of its shards came back");
        assert_eq!(received_per_second(Some(&[0, 0]), 0, false), None, "it has devices or requesters alone");
        assert_eq!(received_per_second(Some(&[0, 0]), 1, false).unwrap().mean_per_s, 0.0, "nothing came");
        assert_eq!(received_per_second(None, 2, false), None);
    }
}
