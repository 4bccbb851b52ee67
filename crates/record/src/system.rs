//! What was measured: the system under test, how it was started, and how it ended if it did.

use std::fmt;

use pubmark_model::topology::TopologyMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The system under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemInfo {
    /// Name of its definition, or `external`.
    pub name: String,
    /// What its program says.
    pub version: Option<String>,
    /// What runs it.
    pub back_end: BackEndKind,
    /// `default` or `tuned`.
    pub profile: Option<String>,
    /// Where clients connected, without password; of several brokers, the first.
    pub endpoint: String,
    /// May it be ranked against others? The built-in broker may not.
    pub ranked: bool,
    /// Its configuration file as used, where we wrote one; of several brokers, the first's.
    pub configuration: Option<String>,
    /// Image of its container.
    #[serde(default)]
    pub image: Option<String>,
    /// Node that started it, of a run whose coordinator did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Brokers and how they are connected; `null` for a single one.
    #[serde(default)]
    pub topology: Option<TopologyInfo>,
    /// What it may use of the machine; `null` where it may use all.
    #[serde(default)]
    pub limits: Option<LimitInfo>,
    /// Cores that it was pinned to, as the kernel writes them (`0-1,3`).
    #[serde(default)]
    pub pinned_cores: Option<String>,
    /// Versions that published measurements used.
    #[serde(default)]
    pub papers: Vec<PaperVersion>,
    /// How it ended before the run did, unless a fault of the run ended it; `null` where it was there to the end, as far as that is
    /// known.
    #[serde(default)]
    pub ended: Option<SystemEnd>,
}

/// What runs a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackEndKind {
    /// pubmark itself: its built-in broker.
    Builtin,
    /// A program of this machine that the run started.
    Process,
    /// A container that the run started.
    Container,
    /// Somebody else: it ran before and runs on.
    #[default]
    External,
    /// Nobody: clients find each other by themselves.
    Brokerless,
}

impl BackEndKind {
    /// The word of records.
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

/// End of a system that no run asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemEnd {
    /// How, in words: its exit status or signal; of one that was not started here, what was seen of it.
    pub how: String,
    /// When it was seen, seconds since the start of the measured window, negative before; `null` where that is not known.
    pub at_s: Option<f64>,
    /// Exit status, of a program that was started here.
    pub exit_status: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// The kernel OOM-killed a process of it.
    pub out_of_memory: bool,
}

/// Several brokers as one system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopologyInfo {
    /// Brokers.
    pub brokers: u32,
    /// How they act together.
    pub mode: TopologyMode,
    /// Where clients connected, by broker.
    pub endpoints: Vec<String>,
}

/// What a system may use of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitInfo {
    /// As it was asked for: `cpu=0.5,memory=256MB`, or the name of a set of limits.
    pub asked: String,
    /// CPU time over time: 0.5 is half a core.
    pub cpu: Option<f64>,
    /// Period over which CPU time is rationed, ms.
    pub cpu_period_ms: Option<f64>,
    /// Memory, bytes; without swap.
    pub memory_bytes: Option<u64>,
    /// Cores that it may run on.
    pub cores: Option<u32>,
    /// What holds it to them: `cgroup v1`, `cgroup v2`, `container`.
    pub held_by: String,
}

/// Which version a publication measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PaperVersion {
    /// The publication.
    pub paper: String,
    /// The version it names.
    pub version: String,
}
