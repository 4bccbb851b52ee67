//! The machine of a run and its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine and its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Operating system's name.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor's name.
    pub cpu: String,
    /// Cores that we may use.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Load average over one minute before the run.
    pub load_before: Option<f64>,
    /// And after it.
    pub load_after: Option<f64>,
    /// Share of CPU time stolen by the hypervisor during the run, 0 to 1.
    pub steal: Option<f64>,
    /// Cores that all of the machine kept busy in the measured window, pubmark and the system among it; time stolen is not.
    #[serde(default)]
    pub busy_cores: Option<f64>,
    /// Frequency governor, where it can be read.
    pub governor: Option<String>,
    /// Virtualisation, where it can be told.
    pub virtualization: Option<String>,
    /// Descriptor limit.
    pub descriptor_limit: u64,
    /// TCP congestion control of the machine's sockets.
    pub congestion_control: Option<String>,
    /// The clock of latencies.
    pub clock: String,
}
