//! What each side of a run used until now: the processes of a system ([`SystemMeter`]), this process with its workers
//! ([`OwnMeter`]), and the client programs that they started ([`ProgramMeter`]).
//!
//! CPU time, memory and threads are read for every sample. Figures that cost more to read are read when their
//! [`Ration`] allows it.

mod long_waits;
mod own_meter;
mod proc_files;
mod program_meter;
mod ration;
mod run_queue;
mod switches;
mod system_meter;
mod tree_meter;

pub use long_waits::{LongWaits, ORDINARY_NS};
pub use own_meter::{OwnMeter, Workers};
pub use program_meter::ProgramMeter;
pub use ration::Ration;
pub use run_queue::{RunQueueMeter, RunQueueWait};
pub use switches::{SwitchMeter, Switches};
pub use system_meter::SystemMeter;
pub use tree_meter::{TreeMeter, TreeReading};

use crate::network::Traffic;

/// What a side used until now. `None`: the figure is not available, or was not read for this sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// CPU time since the start, ns.
    pub cpu_ns: u64,
    /// Resident set now, bytes. A page that several processes share counts once for each process.
    pub rss_bytes: u64,
    /// Threads now.
    pub threads: u64,
    /// Proportional set now, bytes: a page shared by n processes counts 1/n for each.
    pub pss_bytes: Option<u64>,
    /// Memory charged to the side's control groups now, bytes.
    pub cgroup_bytes: Option<u64>,
    /// Largest memory ever charged to the control groups, bytes; for several brokers, the sum of the maxima.
    pub cgroup_peak_bytes: Option<u64>,
    /// Open descriptors now.
    pub descriptors: Option<u64>,
    /// Context switches until now.
    pub switches: Option<Switches>,
    /// Time that the threads waited for a CPU since the meter started.
    pub run_queue: Option<RunQueueWait>,
    /// Long waits within the run-queue wait, ns ([`LongWaits`]).
    pub long_wait_ns: Option<u64>,
    /// Bytes that the TCP sockets carried since the meter started.
    pub traffic: Option<Traffic>,
}
