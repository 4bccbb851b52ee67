//! A prepared run and its nodes: they join, the fleet is placed on them, and its clients get their endpoints there.

use std::sync::Arc;

use pubmark_engine::endpoints::Endpoints;
use pubmark_model::fleet::Fleet;
use pubmark_model::placement::{GroupNodes, NodeLabels};
use pubmark_protocol::endpoint::Endpoint;

use crate::cluster::{Hosted, JoinedNodes, Observed};
use crate::error::RunError;
use crate::machine_limits::ClientNeeds;
use crate::observer::RunObserver;
use crate::prepared::PreparedRun;
use crate::target::CheckedTarget;
use crate::trunked::{self, Trunk};
use crate::{labels, linked, machine_limits, prepare};

impl PreparedRun {
    /// Waits until all nodes of the run have joined, including nodes that were lost in an earlier repetition. Does
    /// nothing for a run without nodes.
    ///
    /// # Errors
    /// Some nodes did not join in time, or the run was stopped.
    pub fn gather(&mut self, observer: &mut dyn RunObserver) -> Result<(), RunError> {
        match &self.joined {
            Some(joined) => joined.gather(observer, &self.host.stop)?,
            None => {
                let system_hosts = self.spec.target.node.clone().into_iter().collect();
                let joined = JoinedNodes::of(&self.spec.nodes, system_hosts, &self.host.stop, observer)?;
                self.joined = joined.map(Arc::new);
            }
        }
        self.check_reach()?;
        self.place()
    }

    /// Refuses a system on this machine, or at a loopback address, that nodes cannot reach.
    fn check_reach(&self) -> Result<(), RunError> {
        let listens_at = self.wanted.listens_at().filter(|_| self.spec.target.node.is_none());
        let Some(joined) = &self.joined else { return Ok(()) };
        joined.check_reach(listens_at)?;
        let is_loopback = |endpoint: &&Endpoint| {
            let address = endpoint.address.ip().to_canonical();
            address.is_loopback() || address.is_unspecified()
        };
        let endpoints = self.wanted.external_endpoints();
        let loopback = endpoints.into_iter().flatten().find(is_loopback);
        loopback.map_or(Ok(()), |endpoint| joined.check_loopback(&endpoint.shown))
    }

    /// Places the fleet on the nodes that joined, by their labels.
    fn place(&mut self) -> Result<(), RunError> {
        let Some(joined) = self.driven() else { return Ok(()) };
        if linked::any(&self.workload) {
            joined.check_links(self.spec.node_count(), self.spec.load.netem)?;
        }
        let machines = joined.machines(self.spec.node_count());
        let nodes = joined.labels(self.spec.node_count());
        labels::check_nodes(&self.workload, &nodes)?;
        self.node_labels = nodes.into_iter().map(|(_, labels)| labels).collect();
        let nodes = NodeLabels { nodes: self.spec.node_count(), labels: &self.node_labels };
        // Labels decide how many clients a node has, and nodes of one machine have its ports in common.
        ClientNeeds::at(&self.spec, &self.workload, nodes, &machines, &self.wanted, self.protocol_pair)
            .check(machine_limits::raise_descriptors)?;
        let copies = GroupNodes::of(&self.workload.placements(), nodes).copies();
        if *self.fleet.copies() != copies || !labels::sites_are_known(&self.spec, &self.workload) {
            // Only the subscribers depend on the number of sites: the schedule is the same.
            let fleet = Fleet::of_copies(&self.workload, &copies);
            self.fleet = prepare::checked_fleet(&self.workload, self.protocol_pair, &self.wanted, fleet, true)?;
        }
        Ok(())
    }

    /// Assigns nodes that have already joined to a run with nodes: the first ones, as many as the run needs. Several
    /// successive runs share nodes in this way, so that nodes join once. Does nothing for a run without nodes.
    ///
    /// # Errors
    /// The run needs more nodes than there are, or starts a system that they cannot reach.
    pub fn use_nodes(&mut self, joined: &Arc<JoinedNodes>) -> Result<(), RunError> {
        if !self.wants_nodes() {
            return Ok(());
        }
        if !joined.has(&self.spec.nodes) {
            return Err(RunError::input(format!("the run wants {} nodes, and fewer joined", self.spec.node_count())));
        }
        self.joined = Some(Arc::clone(joined));
        self.check_reach()?;
        self.place()
    }

    /// Whether other machines take part.
    pub(crate) fn wants_nodes(&self) -> bool {
        let nodes = &self.spec.nodes;
        nodes.nodes.is_some() || nodes.observers.is_some() || self.spec.target.node.is_some()
    }

    /// Nodes that joined, which other runs can [use](PreparedRun::use_nodes).
    pub fn nodes(&self) -> Option<&Arc<JoinedNodes>> {
        self.joined.as_ref()
    }

    /// Nodes that send and receive, without observers.
    pub(crate) fn driven(&self) -> Option<&Arc<JoinedNodes>> {
        self.joined.as_ref().filter(|joined| joined.drives())
    }

    /// Endpoints at which clients without a broker find each other on the nodes that joined, and the trunk between their links;
    /// `None` for other systems.
    pub(crate) fn endpoints_on_nodes(&self) -> Result<Option<(Endpoints, Option<Trunk>)>, RunError> {
        let Some(joined) = self.driven() else { return Ok(None) };
        let CheckedTarget::Brokerless { definition, profile, .. } = &self.wanted else { return Ok(None) };
        let can = &self.protocol_pair.subscribe.capabilities;
        let nodes = NodeLabels { nodes: self.spec.node_count(), labels: &self.node_labels };
        let run = (&*self.workload, &*self.fleet);
        if !linked::any(&self.workload) {
            let found = joined.places(definition, can, profile, run, (nodes, &*self.host.stop))?;
            return Ok(Some((found, None)));
        }
        let numbers = trunked::Numbers::of(&self.workload, nodes.nodes)?;
        let found = trunked::endpoints(definition, can, profile, run, nodes, &numbers)?;
        let ends = joined.trunk_ends(nodes.nodes, numbers.of_node(), &self.host.stop)?;
        Ok(Some((found, Some(Trunk::new(numbers, ends)?))))
    }

    /// Names of the nodes that send and receive.
    pub(crate) fn node_names(&self) -> Vec<String> {
        let of = |joined: &Arc<JoinedNodes>| {
            joined.labels(self.spec.node_count()).into_iter().map(|(name, _)| name).collect()
        };
        self.driven().map(of).unwrap_or_default()
    }

    /// Starts the system on the node that the run names; `None` if it names none.
    pub(crate) fn start_on_node(&self) -> Result<Option<Hosted>, RunError> {
        let (Some(name), Some(joined)) = (&self.spec.target.node, &self.joined) else { return Ok(None) };
        joined.start_system(name, &self.spec, self.protocol_pair, &self.host.stop).map(Some)
    }

    /// Starts the measurements of the observers, if there are some.
    pub(crate) fn observe(&self) -> Result<Option<Observed>, RunError> {
        let joined = self.joined.as_ref().filter(|_| self.spec.nodes.observers.is_some());
        joined.map_or(Ok(None), |joined| joined.observe())
    }
}
