//! The record itself, version 2: one field a group, each group in a file of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::RunConditions;
use crate::custom::CustomMetric;
use crate::message_log::MessageLogInfo;
use crate::requests::RequestFigures;
use crate::tables::Tables;

// Words of the model that a record uses.
pub use pubmark_model::fault::FaultKind;
pub use pubmark_model::qos::Qos;
pub use pubmark_model::topology::TopologyMode;
pub use pubmark_model::workload::Variant;

pub use crate::connections::{CauseCount, Connections, Side, WillCounts};
pub use crate::cost::{Cost, ShardHealth};
pub use crate::delivery::{
    Delivery, DeliveryFigures, FilteredCounts, LeftAtEnd, PairCounts, ProbedPairs, ReactionCounts,
};
pub use crate::environment::Environment;
pub use crate::judgement::{Check, CheckLimits, CheckUnit, Reason, Verdict, VerdictStatus, Warning};
pub use crate::latency::{LatencyBounds, LatencyFigures, Summary};
use crate::objectives::Objective;
pub use crate::protocol::{ProtocolInfo, SentMeans};
pub use crate::run::{RunInfo, Status};
pub use crate::settings::{Deviation, Settings};
pub use crate::system::{BackEndKind, LimitInfo, PaperVersion, SystemEnd, SystemInfo, TopologyInfo};
pub use crate::tables::Curve;
pub use crate::throughput::{Throughput, Windows};
pub use crate::workload_info::WorkloadInfo;

/// Version of the record's schema: changes only when a field changes its meaning or goes away. [`crate::schema1`] converts records
/// of version 1.
pub const SCHEMA_VERSION: u32 = 2;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Which run it was, and what made it.
    pub run: RunInfo,
    /// How far it may be believed.
    pub verdict: Verdict,
    /// Limits that were asked for, and whether they were kept; in the order written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
    /// What was sent by whom.
    pub workload: WorkloadInfo,
    /// What was measured.
    pub system: SystemInfo,
    /// What clients spoke.
    pub protocol: ProtocolInfo,
    /// Settings of the run, and what differs from what was asked.
    pub settings: Settings,
    /// What happened to connections.
    pub connections: Connections,
    /// What became of messages.
    pub delivery: DeliveryFigures,
    /// Latencies of all messages.
    pub latency: LatencyFigures,
    /// Rates.
    pub throughput: Throughput,
    /// What the run cost, on the system's side and on ours.
    pub cost: Cost,
    /// What became of requests; `null` where there is no requester.
    #[serde(default)]
    pub requests: Option<RequestFigures>,
    /// Emulated links and faults.
    pub conditions: RunConditions,
    /// The message log beside the record, in a run with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_log: Option<MessageLogInfo>,
    /// Metrics of the user's own, in the order of their declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<CustomMetric>,
    /// Rows by device type, by node, over time.
    pub tables: Tables,
    /// The machine.
    pub environment: Environment,
}

impl Record {
    /// Was a node or a worker lost?
    pub fn has_lost(&self) -> bool {
        self.tables.nodes.iter().any(|node| node.lost.is_some()) || !self.tables.lost_workers.is_empty()
    }

    /// Did somebody stop the run? One that lost a node or a worker ended early, too, and nobody stopped it: its verdict says so.
    pub fn was_stopped(&self) -> bool {
        self.run.status == Status::Interrupted && !self.has_lost()
    }
}
