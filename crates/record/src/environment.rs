//! The machine of a run, and its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine and its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name of the operating system.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Name of the processor.
    pub cpu: String,
    /// Cores that pubmark may use, before any `--pin`.
    pub cores: u32,
    /// CPU time that the control groups of pubmark allow, in cores, which may be less than `cores`; `null` without such a
    /// quota, and in older records.
    #[serde(default)]
    pub cpu_quota_cores: Option<f64>,
    /// Processors of the whole machine, to which `busy_cores` refers; `null` if not known.
    #[serde(default)]
    pub processors: Option<u32>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Load average over one minute before the run.
    pub load_before: Option<f64>,
    /// Load average over one minute after the run.
    pub load_after: Option<f64>,
    /// Share of CPU time stolen by the hypervisor during the run, 0 to 1.
    pub steal: Option<f64>,
    /// Mean number of busy cores of the whole machine in the measured window, pubmark and the system included, stolen
    /// time excluded.
    #[serde(default)]
    pub busy_cores: Option<f64>,
    /// CPU frequency governor, where it can be read.
    pub governor: Option<String>,
    /// Virtualisation, where it can be detected.
    pub virtualization: Option<String>,
    /// Limit of open file descriptors.
    pub descriptor_limit: u64,
    /// TCP congestion control of the machine's sockets.
    pub congestion_control: Option<String>,
    /// The clock that latencies are measured with.
    pub clock: String,
}

impl Environment {
    /// The machine in a few words: number of cores, processor, kernel. Figures of two runs are comparable only where they are equal.
    pub fn machine(&self) -> String {
        format!("{} × {}, kernel {}", self.cores, self.cpu, self.kernel)
    }

    /// Processors of the machine; in older records those that pubmark could use.
    pub fn machine_cores(&self) -> u32 {
        self.processors.unwrap_or(self.cores)
    }

    /// CPU time per second that pubmark, and a system in its control group, may use, in cores.
    pub fn usable_cores(&self) -> f64 {
        f64::from(self.cores).min(self.cpu_quota_cores.unwrap_or(f64::INFINITY))
    }
}
