//! A build without runs on several machines.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::remote::Launcher;
use pubmark_engine::run::Phase;
use pubmark_model::fleet::Fleet;
use pubmark_model::placement::{Labels, NodeLabels};
use pubmark_model::workload::Workload;
use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocols::ProtocolPair;
use pubmark_record::cost::{HostUsage, ResourceRow, Usage};
use pubmark_record::nodes::NodeRow;
use pubmark_systems::Definition;

use super::{FinishedSystem, WorkerUsage};
use crate::error::RunError;
use crate::node_links::LinksOnNodes;
use crate::observer::RunObserver;
use crate::spec::{Netem, Nodes, RunSpec};
use crate::target::Target;

/// Nodes that joined: a type without values.
#[derive(Debug)]
pub enum JoinedNodes {}

impl JoinedNodes {
    /// `None`, or why a run cannot have nodes.
    pub fn of(
        nodes: &Nodes,
        system_hosts: Vec<String>,
        _: &AtomicBool,
        _: &mut dyn RunObserver,
    ) -> Result<Option<JoinedNodes>, RunError> {
        match (nodes.nodes, nodes.observers) {
            (None, None) if system_hosts.is_empty() => Ok(None),
            _ => Err(RunError::input("this build of pubmark has no runs on several machines")
                .hint("`make install` builds one that has; or `--local-nodes` for processes of this machine")),
        }
    }

    /// Never called.
    pub fn gather(&self, _: &mut dyn RunObserver, _: &AtomicBool) -> Result<(), RunError> {
        match *self {}
    }

    /// Never called.
    pub fn machines_in_words(&self) -> String {
        match *self {}
    }

    /// Never called.
    pub(crate) fn check_reach(&self, _: Option<Ipv4Addr>) -> Result<(), RunError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn check_loopback(&self, _: &str) -> Result<(), RunError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn check_links(&self, _: u16, _: Netem) -> Result<(), RunError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn has(&self, _: &Nodes) -> bool {
        match *self {}
    }

    /// Never called.
    pub(crate) fn lost(&self, _: u16) -> Vec<String> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn labels(&self, _: u16) -> Vec<(String, Labels)> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn machines(&self, _: u16) -> Vec<(String, Vec<usize>)> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn drives(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub(crate) fn start_system(
        &self,
        _: &str,
        _: &RunSpec,
        _: ProtocolPair,
        _: &AtomicBool,
    ) -> Result<Hosted, RunError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn observe(&self) -> Result<Option<Observed>, RunError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn launcher(self: &Arc<JoinedNodes>, _: [String; 2], _: Option<LinksOnNodes>) -> Box<dyn Launcher> {
        match **self {}
    }

    /// Never called.
    pub(crate) fn places(
        &self,
        _: &Definition,
        _: &Capabilities,
        _: &str,
        _: (&Workload, &Fleet),
        _: (NodeLabels<'_>, &AtomicBool),
    ) -> Result<Endpoints, RunError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn trunk_ends(&self, _: u16, _: u16, _: &AtomicBool) -> Result<Vec<SocketAddr>, RunError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn phase(&self, _: Phase) {
        match *self {}
    }

    /// Never called.
    pub(crate) fn edge(&self, _: usize) {
        match *self {}
    }

    /// Never called.
    pub(crate) fn rows(&self) -> (Vec<NodeRow>, Vec<WorkerUsage>) {
        match *self {}
    }
}

/// A system that a node starts: a type without values.
#[derive(Debug)]
pub enum Hosted {}

impl Hosted {
    /// Never called.
    pub fn target(&self) -> Target {
        match *self {}
    }

    /// Never called.
    pub fn begin(&self, _: u64) {
        match *self {}
    }

    /// Never called.
    pub fn has_ended(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn finish(&mut self, _: (u64, u64), _: u64) -> FinishedSystem {
        match *self {}
    }
}

/// Active observers: a type without values.
#[derive(Debug)]
pub enum Observed {}

/// What observers measured.
pub struct Seen {
    pub system: Option<Usage>,
    pub host: Option<HostUsage>,
    pub rows: Vec<ResourceRow>,
}

impl Observed {
    /// Never called.
    pub fn finish(self, _: (u64, u64)) -> Seen {
        match self {}
    }
}

/// Never called.
pub fn beside(_: &mut [ResourceRow], _: &[ResourceRow]) {}
