//! The system under test, how it was started, and how it ended if it ended before the run.

use std::fmt;

use pubmark_model::topology::TopologyMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The system under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemInfo {
    /// Name of the system's definition, or `external`.
    pub name: String,
    /// Version that its program reports.
    pub version: Option<String>,
    /// Back end that runs the system.
    pub back_end: BackEndKind,
    /// `default` or `tuned`.
    pub profile: Option<String>,
    /// Address that clients connected to, without password; the first one of several brokers.
    pub endpoint: String,
    /// Whether it may be ranked against other systems. The built-in broker may not.
    pub ranked: bool,
    /// Configuration file as used, if pubmark wrote it; the first one of several brokers.
    pub configuration: Option<String>,
    /// Container image.
    #[serde(default)]
    pub image: Option<String>,
    /// Node that started the system, if it was not the coordinator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Brokers and how they are connected; `null` for a single broker.
    #[serde(default)]
    pub topology: Option<TopologyInfo>,
    /// Resource limits; `null` without limits.
    #[serde(default)]
    pub limits: Option<LimitInfo>,
    /// Cores that the system was pinned to, in the kernel's notation (`0-1,3`).
    #[serde(default)]
    pub pinned_cores: Option<String>,
    /// Versions that published measurements used.
    #[serde(default)]
    pub papers: Vec<PaperVersion>,
    /// How the system ended before the run did, unless a fault of the run ended it; `null` if it ran to the end, as far
    /// as known.
    #[serde(default)]
    pub ended: Option<SystemEnd>,
}

/// Back end that runs a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackEndKind {
    /// pubmark: its built-in broker.
    Builtin,
    /// A process on this machine that the run started.
    Process,
    /// A container that the run started.
    Container,
    /// A system that was running before the run and continues after it.
    #[default]
    External,
    /// No broker: clients discover each other.
    Brokerless,
}

impl BackEndKind {
    /// Name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            BackEndKind::Builtin => "builtin",
            BackEndKind::Process => "process",
            BackEndKind::Container => "container",
            BackEndKind::External => "external",
            BackEndKind::Brokerless => "brokerless",
        }
    }
}

impl fmt::Display for BackEndKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Unexpected end of a system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemEnd {
    /// How it ended, in words: exit status or signal; for a system that was not started here, what was observed.
    pub how: String,
    /// Time at which the end was detected, seconds since the start of the measured window, negative before it; `null`
    /// where it is not known.
    pub at_s: Option<f64>,
    /// Exit status of a program that was started here.
    pub exit_status: Option<i32>,
    /// Signal that ended the program.
    pub signal: Option<i32>,
    /// The kernel OOM-killed a process of the system.
    pub out_of_memory: bool,
}

/// Several brokers as one system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyInfo {
    /// Number of brokers.
    pub brokers: u32,
    /// How the brokers work together.
    pub mode: TopologyMode,
    /// Address that clients connected to, by broker.
    pub endpoints: Vec<String>,
}

/// Resource limits of a system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitInfo {
    /// The limits as requested: `cpu=0.5,memory=256MB`, or the name of a set of limits.
    #[serde(alias = "asked")]
    pub requested: String,
    /// CPU time over elapsed time: 0.5 is half a core.
    pub cpu: Option<f64>,
    /// Period of the CPU limit, ms; `null` if it is the container engine's own.
    pub cpu_period_ms: Option<f64>,
    /// Memory, bytes; without swap.
    pub memory_bytes: Option<u64>,
    /// Number of cores that the system may run on.
    pub cores: Option<u32>,
    /// Mechanism that enforces the limits: `cgroup v1`, `cgroup v2`, `container`.
    pub held_by: String,
}

/// Version of the system that a publication measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperVersion {
    /// The publication.
    pub paper: String,
    /// The version that it states.
    pub version: String,
}
