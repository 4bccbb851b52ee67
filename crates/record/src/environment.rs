//! The machine of a run, and its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share of the memory by which two machines differ at least.
const SMALLEST_MEMORY_DIFFERENCE: f64 = 0.01;

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

    /// Whether both are one machine with one kernel: [`Environment::machine`] is equal, and so is the memory.
    pub fn is_same_machine(&self, other: &Environment) -> bool {
        self.machine() == other.machine() && self.is_same_memory(other)
    }

    /// Whether both have as much memory: the same kernel reports some tenths of a percent more or less of it from boot to boot, or with
    /// a balloon.
    pub fn is_same_memory(&self, other: &Environment) -> bool {
        let (one, other) = (self.memory_bytes, other.memory_bytes);
        one == other || (one.abs_diff(other) as f64) < SMALLEST_MEMORY_DIFFERENCE * one.max(other) as f64
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_a_kernel_reports_a_little_differently_is_no_other_machine() {
        let machine = |memory_bytes: u64| Environment { memory_bytes, ..Environment::default() };
        let is_same = |one: u64, other: u64| machine(one).is_same_machine(&machine(other));
        assert!(is_same(25_325_268_992, 25_276_284_928), "0.2 %");
        assert!(is_same(0, 0), "not known of either");
        assert!(!is_same(16_000, 15_840) && !is_same(15_840, 16_000), "1 %");
        assert!(!is_same(8 << 30, 16 << 30));
        let other_kernel = Environment { kernel: "7.1".to_owned(), ..machine(8) };
        assert!(!machine(8).is_same_machine(&other_kernel));
    }
}
