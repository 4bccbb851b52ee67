//! A build without runs on several machines.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubmark_engine::remote::Launcher;
use pubmark_engine::run::Phase;
use pubmark_record::cost::{HostUsage, ResourceRow, Usage};
use pubmark_record::nodes::NodeRow;

use crate::commands::run_arguments::Run;
use crate::failure::Failure;
use crate::measurement::Measurement;
use crate::printer::Printer;

/// A run's nodes: there are none.
#[derive(Debug)]
pub enum Joined {}

impl Joined {
    /// None, or why there cannot be any.
    pub fn of(run: &Run, _: &Measurement, _: &Printer, _: &AtomicBool) -> Result<Option<Joined>, Failure> {
        match (run.nodes, run.observers) {
            (None, None) => Ok(None),
            _ => Err(Failure::usage("this build of pubmark has no runs on several machines")
                .hint("`make install` builds one that has; or `--local-nodes` for processes of this machine")),
        }
    }

    /// Never called.
    pub fn gather(&self, _: &Printer, _: &AtomicBool) -> Result<(), Failure> {
        match *self {}
    }

    /// Never called.
    pub fn lost(&self) -> Vec<String> {
        match *self {}
    }

    /// Never called.
    pub fn drives(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn observe(&self) -> Result<Option<Observed>, Failure> {
        match *self {}
    }

    /// Never called.
    pub fn launcher(self: &Arc<Joined>, _: [String; 2]) -> Box<dyn Launcher> {
        match **self {}
    }

    /// Never called.
    pub fn phase(&self, _: Phase) {
        match *self {}
    }

    /// Never called.
    pub fn edge(&self, _: usize) {
        match *self {}
    }

    /// Never called.
    pub fn rows(&self) -> Vec<NodeRow> {
        match *self {}
    }
}

/// Observers that look: there are none.
#[derive(Debug)]
pub enum Observed {}

/// What they would have seen.
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
