//! Links of clients on nodes, on the coordinator's side: what each worker process has to create, and the reports of the
//! processes.

mod maker;

use pubmark_engine::plan::RunPlan;
use pubmark_engine::remote::AccessReport;
use pubmark_engine::shares::WorkerLocation;
use pubmark_model::fault::{Occurrence, Scope};
use pubmark_model::workload::Workload;
use pubmark_protocols::ProtocolPair;
use pubmark_record::record::Deviation;
use serde::{Deserialize, Serialize};

use crate::faults::FaultTimes;
use crate::linked::{self, Extent, LinkReport};
use crate::relayed;
use crate::spec::Netem;
use crate::trunked::{self, Trunk, TrunkOrder};

pub use maker::NodeLinks;

/// Orders a worker process to create links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeOrder {
    /// Which of the workload's networks it creates.
    pub extent: Extent,
    /// The implementation that emulates the links.
    pub netem: Netem,
    /// Whether devices open connections, and whether subscribers do, so that the system can be tested before the run.
    pub connects: [bool; 2],
    /// Number of the process in the run, for its random draws.
    pub stream: u64,
    /// The trunk to the links of other processes, in a run without a broker; `None`: a relay leads to the system.
    pub trunk: Option<TrunkOrder>,
}

/// What a process's links carried, and the times of the run's faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// What the links carried.
    pub links: LinkReport,
    /// For each fault of the run, in order of time: when it was injected; empty for faults that are not about links.
    pub done: Vec<FaultTimes>,
}

/// Links that nodes create for their clients.
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "no node joins a build without the control plane"))]
#[derive(Clone, Debug)]
pub struct LinksOnNodes {
    netem: Netem,
    connects: [bool; 2],
    /// One process for each network, inside that network.
    by_network: bool,
    /// Between all links, in a run without a broker.
    trunk: Option<Trunk>,
}

impl LinksOnNodes {
    /// The links of a plan whose clients use these protocols; `None` if no group is behind a link.
    pub fn of(plan: &RunPlan, protocol_pair: ProtocolPair, netem: Netem, trunk: Option<Trunk>) -> Option<LinksOnNodes> {
        let connects = linked::connect(protocol_pair);
        linked::any(&plan.workload).then_some(LinksOnNodes { netem, connects, by_network: plan.by_network, trunk })
    }

    /// How a run with these links differs from one without; `at` is where its clients meet the system.
    pub fn deviation(&self, at: &str) -> Deviation {
        match &self.trunk {
            Some(_) => trunked::deviation(),
            None => relayed::deviation(at, "their node"),
        }
    }

    /// The report of a process that did not send one, for this reason.
    fn unreported(&self, why: String) -> LinkReport {
        match &self.trunk {
            Some(_) => LinkReport { trunk: Some(Err(why)), ..LinkReport::default() },
            None => LinkReport { relay: Some(Err(why)), relay_held_ns: u64::MAX, ..LinkReport::default() },
        }
    }

    /// The order for a process at this location; `None` if none of its clients is behind a link, and none meets clients that are.
    #[cfg(feature = "cluster")]
    pub fn order(&self, place: WorkerLocation) -> Option<Vec<u8>> {
        let extent = match (self.by_network, place.network) {
            (true, None) if self.trunk.is_some() => Extent::Unlinked,
            (true, None) => return None,
            (true, Some(network)) => Extent::One(network),
            (false, _) => Extent::All { nodes: 1 },
        };
        let network = place.network.map_or(0, |network| u64::from(network) + 1);
        let stream = u64::from(place.node) << 16 | network;
        let trunk = self.trunk.as_ref().map(|trunk| trunk.order(place));
        serde_json::to_vec(&NodeOrder { extent, netem: self.netem, connects: self.connects, stream, trunk }).ok()
    }
}

/// Reports of the nodes.
#[derive(Debug)]
pub struct Reported {
    /// What links carried, for each process, with its location.
    pub links: Vec<(WorkerLocation, LinkReport)>,
    /// For each fault of the run: when it was injected; empty for faults that are not about links.
    pub done: Vec<FaultTimes>,
}

impl Reported {
    /// Reads the reports of a run's worker processes, which had orders for these links. `names` are those of its nodes, and
    /// `faults` is the number of its faults.
    pub fn read(
        ordered: &LinksOnNodes,
        access: &[AccessReport],
        workload: &Workload,
        names: &[String],
        faults: usize,
    ) -> Reported {
        let mut links = vec![];
        let mut done: Option<Vec<FaultTimes>> = None;
        for access in access {
            let location = access.location;
            let name = names.get(usize::from(location.node)).map_or("", String::as_str);
            let report: Option<NodeReport> = serde_json::from_slice(&access.report).ok().flatten();
            let Some(mut report) = report else {
                links.push((location, ordered.unreported(format!("`{name}` did not report what its links carried"))));
                continue;
            };
            for group in &mut report.links.groups {
                [group.up.requested, group.down.requested] = linked::requested(workload, &group.link);
            }
            if names.len() > 1 {
                report.links.groups.iter_mut().for_each(|group| group.group = format!("{} at {name}", group.group));
                report.links.gone.iter_mut().for_each(|why| *why = format!("`{name}`: {why}"));
            }
            links.push((location, report.links));
            report.done.resize(faults, FaultTimes::default());
            done = Some(match done {
                None => report.done,
                Some(known) => known.into_iter().zip(&report.done).map(|(one, other)| one.and(other)).collect(),
            });
        }
        Reported { links, done: done.unwrap_or_else(|| vec![FaultTimes::default(); faults]) }
    }

    /// Longest time that a relay held a byte, ns; `u64::MAX` if it is unknown for one relay.
    pub fn held_ns(&self) -> u64 {
        self.links.iter().map(|(_, report)| report.relay_held_ns).max().unwrap_or(u64::MAX)
    }

    /// Adds the times at which nodes injected faults to those of the coordinator.
    pub fn add_done(&self, faults: &[Occurrence], done: &mut [FaultTimes]) {
        let of_links =
            faults.iter().zip(done).zip(&self.done).filter(|((fault, _), _)| fault.kind.scope() == Scope::Links);
        of_links.for_each(|((_, done), theirs)| done.clone_from(theirs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(trunk: Option<Trunk>) -> LinksOnNodes {
        LinksOnNodes { netem: Netem::default(), connects: [true; 2], by_network: true, trunk }
    }

    fn workload() -> Workload {
        crate::RunSpec::new("hello").load().expect("a built-in workload")
    }

    fn report(node: u16, done_ns: u64) -> AccessReport {
        let done = vec![
            FaultTimes::default(),
            FaultTimes { done_ns: Some(done_ns), ended_ns: Some(done_ns + 9), ..FaultTimes::default() },
        ];
        let group = pubmark_record::links::LinkGroup { group: "cameras".to_owned(), ..Default::default() };
        let links = LinkReport { groups: vec![group], relay_held_ns: done_ns, ..LinkReport::default() };
        let location = WorkerLocation { node, network: None, group: None };
        AccessReport { location, report: serde_json::to_vec(&Some(NodeReport { links, done })).unwrap_or_default() }
    }

    #[test]
    fn reports_of_nodes_are_separate_and_the_latest_act_counts() {
        let names = ["edge-1".to_owned(), "edge-2".to_owned()];
        let reported = Reported::read(&ordered(None), &[report(0, 5), report(1, 7)], &workload(), &names, 2);
        let groups: Vec<&str> =
            reported.links.iter().flat_map(|(_, links)| &links.groups).map(|group| group.group.as_str()).collect();
        assert_eq!(groups, ["cameras at edge-1", "cameras at edge-2"]);
        assert_eq!(reported.held_ns(), 7);
        assert_eq!(
            reported.done,
            [FaultTimes::default(), FaultTimes { done_ns: Some(7), ended_ns: Some(16), ..FaultTimes::default() }]
        );
    }

    #[test]
    fn what_cannot_be_read_leaves_nothing_known() {
        let broken = AccessReport { report: b"null".to_vec(), ..report(1, 7) };
        let reports = [report(0, 5), broken];
        let (workload, names) = (workload(), ["a".to_owned(), "b".to_owned()]);
        let reported = Reported::read(&ordered(None), &reports, &workload, &names, 2);
        assert_eq!(reported.held_ns(), u64::MAX);
        let why = "`b` did not report what its links carried".to_owned();
        assert_eq!(reported.links[1].1.relay, Some(Err(why.clone())));
        // A run with a trunk has no relay that could be lost, or that held a byte.
        let numbers = trunked::Numbers::of(&workload, 2).expect("few networks");
        let trunk = Trunk::new(numbers, vec![]).expect("a random key");
        let reported = Reported::read(&ordered(Some(trunk)), &reports, &workload, &names, 2);
        assert_eq!((&reported.links[1].1.relay, &reported.links[1].1.trunk), (&None, &Some(Err(why))));
        assert_eq!(reported.held_ns(), 5);
    }
}
