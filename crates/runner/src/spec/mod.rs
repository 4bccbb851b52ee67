//! [`RunSpec`]: the complete specification of a run, as data. The options of `pubmark run` have the names of its
//! fields.
//!
//! [`text`] defines how values are written, [`mod@file`] how a specification is stored beside a run.

mod check;
mod connect_rate;
pub mod file;
mod groups;
mod source_addresses;
pub mod text;

use pubmark_model::metric::MetricProgram;
use pubmark_model::placement::Labels;
use pubmark_record::message_log::LogFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connect_rate::ConnectRate;
pub use groups::{
    BackEnd, Connection, DevicePlacement, Generator, Load, Netem, Nodes, PlacedSystem, Protocols, Reading,
    SubscriberPlacement, TargetSpec, Transport, Window, local_name,
};
pub use source_addresses::SourceAddresses;

/// Version of the format of a specification.
pub const SPEC_VERSION: u32 = 1;

/// The complete specification of a run.
///
/// ```
/// use pubmark_runner::RunSpec;
///
/// let mut spec = RunSpec::new("smart-home");
/// spec.target.system = Some("mosquitto".to_owned());
/// spec.load.scale = 10;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "All that a run is.")]
pub struct RunSpec {
    /// Version of this format: 1.
    #[serde(default = "spec_version")]
    pub spec_version: u32,
    /// Which devices publish and who subscribes.
    pub workload: WorkloadSource,
    /// Changes of the workload, and the seed of the schedule.
    #[serde(default)]
    pub load: Load,
    /// The system under test: one to start, or one that already runs.
    #[serde(default)]
    pub target: TargetSpec,
    /// Protocols of clients.
    #[serde(default)]
    pub protocols: Protocols,
    /// How clients connect.
    #[serde(default)]
    pub connection: Connection,
    /// When messages are sent and measured.
    #[serde(default)]
    pub window: Window,
    /// How pubmark generates the load on this machine.
    #[serde(default)]
    pub generator: Generator,
    /// Nodes among which the fleet is divided.
    #[serde(default)]
    pub nodes: Nodes,
    /// Limits that the run has to meet, separated by commas, such as `p99<50ms,loss=0`; in place of the workload's.
    #[serde(default)]
    pub objectives: Option<String>,
    /// Write a row for each message and each subscriber beside the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_log: Option<LogFormat>,
    /// Metrics of your own: programs that read the message log and print a value. They are added to the workload's, and
    /// replace those of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricProgram>,
    /// Number of repetitions, each with a fresh system: 1 to 1,000.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 1000))]
    pub repetitions: u32,
}

/// A workload by name, or its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "the name or the path of a workload was expected, or its `file_name` and `text`")]
pub enum WorkloadSource {
    /// A built-in workload, or the path of a workload file.
    Named(String),
    /// The text of a workload file.
    Inline {
        /// Name of the workload in messages, such as the file's name.
        file_name: String,
        /// The text.
        text: String,
        /// Passwords in the text were left out when the specification was written: it cannot be run unchanged.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        passwords_left_out: bool,
    },
}

impl WorkloadSource {
    /// Name of the workload in messages.
    pub fn name(&self) -> &str {
        match self {
            WorkloadSource::Named(name) => name,
            WorkloadSource::Inline { file_name, .. } => file_name,
        }
    }
}

fn spec_version() -> u32 {
    SPEC_VERSION
}

fn once() -> u32 {
    1
}

impl RunSpec {
    /// A workload on the built-in broker, with the defaults of `pubmark run`: 5 s of warm-up, 60 s measured.
    pub fn new(workload: &str) -> RunSpec {
        RunSpec {
            spec_version: SPEC_VERSION,
            workload: WorkloadSource::Named(workload.to_owned()),
            load: Load::default(),
            target: TargetSpec::default(),
            protocols: Protocols::default(),
            connection: Connection::default(),
            window: Window::default(),
            generator: Generator::default(),
            nodes: Nodes::default(),
            objectives: None,
            message_log: None,
            metrics: vec![],
            repetitions: 1,
        }
    }

    /// Number of nodes among which the fleet is divided: machines that join, or worker processes of this machine.
    pub fn node_count(&self) -> u16 {
        self.nodes.nodes.or(self.nodes.local_nodes).unwrap_or(1)
    }

    /// Labels of each node, as far as they are known before a node joins: empty for machines.
    pub fn node_labels(&self) -> Vec<Labels> {
        let labels = |number: usize| self.nodes.node_labels.iter().map(|labels| labels.of(number)).collect();
        match self.nodes.nodes {
            Some(_) => vec![],
            None => (0..self.node_count().into()).map(labels).collect(),
        }
    }
}

/// The JSON Schema of a specification, indented, ending with a line feed.
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(RunSpec)).expect("a schema is plain JSON");
    text.push('\n');
    text
}
