//! Access networks that worker processes make for their clients: emulated links on another machine than the one that leads the run. What
//! they are is for whoever makes them to know; here they are made before the shards start and reported with the last outcome.

use crate::plan::RunPlan;
use crate::shares::WorkerLocation;
use crate::sides::Sides;

/// The access network of a worker process's clients.
pub trait AccessNetwork {
    /// Makes it, and moves the calling thread to where threads of clients belong. Returns the plan as these clients see it.
    ///
    /// # Errors
    /// What this machine lacks, or what does not answer behind it.
    fn connect(&mut self, plan: RunPlan) -> Result<RunPlan, String>;

    /// Devices follow their schedule from now on; the measured window starts at this time of the run's clock, ns.
    fn begin(&mut self, start_ns: u64);

    /// Ends it, and says what it carried; at most [`LARGEST_REPORT`] bytes.
    fn finish(&mut self) -> Vec<u8>;
}

/// Largest report of an access network, bytes.
pub const LARGEST_REPORT: usize = 1 << 20;

/// What an access network of a run carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReport {
    /// Where its clients ran.
    pub location: WorkerLocation,
    /// What [`AccessNetwork::finish`] returned; empty if the process was lost before.
    pub report: Vec<u8>,
}

/// An access network that is to be connected, or why there is none.
pub type AccessResult = Result<Box<dyn AccessNetwork>, String>;

/// What a worker process needs to serve a run.
#[derive(Clone, Copy)]
pub struct Service {
    /// What devices and subscribers speak, by the words of [`super::Launcher::speaks`].
    pub sides: fn(&[String; 2]) -> Result<Sides, String>,
    /// The access network of these words ([`super::Launcher::access`]). Called before the process has a second thread.
    pub access: fn(&[u8]) -> AccessResult,
    /// Ends the process: whoever drove it is gone.
    pub gone: fn(),
}
