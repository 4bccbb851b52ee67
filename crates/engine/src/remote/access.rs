//! Access networks that worker processes set up for their clients: emulated links on a machine other than the
//! coordinator's. Only the implementation of [`AccessNetwork`] knows their details. The network is set up before the
//! shards start, and reported with the last outcome.

use crate::plan::RunPlan;
use crate::shares::WorkerLocation;
use crate::sides::Sides;

/// The access network of a worker process's clients.
pub trait AccessNetwork {
    /// Sets the network up, and moves the calling thread into the namespace where threads of clients belong. Returns
    /// the plan as these clients see it.
    ///
    /// # Errors
    /// Something is missing on this machine, or an endpoint behind the network does not respond.
    fn connect(&mut self, plan: RunPlan) -> Result<RunPlan, String>;

    /// Devices follow their schedule from now on; the measured window starts at this time of the run's clock, ns.
    fn begin(&mut self, start_ns: u64);

    /// The drain is over: the clients are about to end their connections.
    fn drained(&mut self);

    /// Ends the network and returns a report of its traffic, of at most [`LARGEST_REPORT`] bytes.
    fn finish(&mut self) -> Vec<u8>;
}

/// Largest report of an access network, bytes.
pub const LARGEST_REPORT: usize = 1 << 20;

/// The report of an access network of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReport {
    /// Where its clients ran.
    pub location: WorkerLocation,
    /// What [`AccessNetwork::finish`] returned; empty if the process was lost before.
    pub report: Vec<u8>,
}

/// An access network to be connected, or the reason why there is none.
pub type AccessResult = Result<Box<dyn AccessNetwork>, String>;

/// What a worker process needs to serve a run.
#[derive(Clone, Copy)]
pub struct Service {
    /// The adapters of devices and subscribers, by the names that [`super::Launcher::adapter_names`] returns.
    pub sides: fn(&[String; 2]) -> Result<Sides, String>,
    /// The access network for the bytes that [`super::Launcher::access`] returns. Called before the process has a
    /// second thread.
    pub access: fn(&[u8]) -> AccessResult,
    /// Ends the process, because the process that controlled it has ended.
    pub on_node_lost: fn(),
}
