//! The record, schema version 2: one field for each group of figures; each group has a file of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::RunConditions;
use crate::custom::CustomMetric;
use crate::message_log::MessageLogInfo;
use crate::requests::RequestFigures;
use crate::tables::Tables;

// Types of the model that a record uses.
pub use pubmark_model::fault::FaultKind;
pub use pubmark_model::qos::Qos;
pub use pubmark_model::topology::TopologyMode;
pub use pubmark_model::workload::Variant;

pub use crate::connections::{CauseCount, Connections, Side, WillCounts};
pub use crate::cost::{Cost, ShardHealth};
pub use crate::delivery::{
    Delivery, DeliveryFigures, FilteredCounts, LeftAtEnd, OwnDrops, PairCounts, ProbedPairs, ReactionCounts,
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

/// Version of the record's schema. It changes only when a field changes its meaning or is removed. [`crate::schema1`]
/// converts records of version 1.
pub const SCHEMA_VERSION: u32 = 2;

/// Record of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Identity of the run, and what produced it.
    pub run: RunInfo,
    /// How far the figures can be trusted.
    pub verdict: Verdict,
    /// Limits that the run was required to keep, and whether it kept them; in the order written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Objective>,
    /// The workload: what was sent, and by which clients.
    pub workload: WorkloadInfo,
    /// The system under test.
    pub system: SystemInfo,
    /// Protocols that the clients used.
    pub protocol: ProtocolInfo,
    /// Settings of the run, and deviations from what was requested.
    pub settings: Settings,
    /// Connections: attempts, failures and their causes.
    pub connections: Connections,
    /// Outcomes of messages.
    pub delivery: DeliveryFigures,
    /// Latencies of all messages.
    pub latency: LatencyFigures,
    /// Rates.
    pub throughput: Throughput,
    /// Resources that the run used: the system's and pubmark's.
    pub cost: Cost,
    /// Outcomes of requests; `null` without requesters.
    #[serde(default)]
    pub requests: Option<RequestFigures>,
    /// Emulated links and faults.
    pub conditions: RunConditions,
    /// The message log beside the record; `null` if the run wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_log: Option<MessageLogInfo>,
    /// User-defined metrics, in the order of their declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<CustomMetric>,
    /// Rows by device type, by node and over time.
    pub tables: Tables,
    /// The machine that the run was executed on.
    pub environment: Environment,
}

impl Record {
    /// Whether a node, a worker, the emulation of the links, the relay from the links to the system or an end of the trunk between
    /// links was lost.
    pub fn has_lost(&self) -> bool {
        let links = self.conditions.links.as_ref();
        let relay = links.and_then(|links| links.relay.as_ref());
        let trunk = links.and_then(|links| links.trunk.as_ref());
        self.tables.nodes.iter().any(|node| node.lost.is_some())
            || !self.tables.lost_workers.is_empty()
            || relay.is_some_and(|relay| relay.gone.is_some())
            || trunk.is_some_and(|trunk| trunk.gone.is_some())
            || links.is_some_and(|links| links.gone.is_some())
    }

    /// Whether the run was stopped on request. A run that lost a node, a worker, its links or its relay also ended early, but was not
    /// stopped; its verdict states that loss.
    pub fn was_stopped(&self) -> bool {
        self.run.status == Status::Interrupted && !self.has_lost()
    }

    /// Length of the measured window, seconds: that of [`Settings::duration_s`], or less in a run that ended early.
    pub fn window_s(&self) -> f64 {
        let Settings { duration_s, window_start_ns, window_end_ns, .. } = self.settings;
        match self.run.status {
            Status::Complete => duration_s,
            Status::Interrupted => duration_s.min(window_end_ns.saturating_sub(window_start_ns) as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::{LinkFigures, RelayFigures, TrunkFigures};
    use crate::sample;

    #[test]
    fn a_run_that_ended_early_without_its_relay_was_not_stopped_on_request() {
        let mut record = sample::record();
        record.run.status = Status::Interrupted;
        record.conditions.links = Some(LinkFigures { relay: Some(RelayFigures::default()), ..LinkFigures::default() });
        assert!(record.was_stopped() && !record.has_lost());
        let gone = RelayFigures { gone: Some("it was silent for 3 s".to_owned()), ..RelayFigures::default() };
        record.conditions.links = Some(LinkFigures { relay: Some(gone), ..LinkFigures::default() });
        assert!(!record.was_stopped() && record.has_lost());
        let gone = TrunkFigures { gone: Some("`b` did not report it".to_owned()), ..TrunkFigures::default() };
        record.conditions.links = Some(LinkFigures { trunk: Some(gone), ..LinkFigures::default() });
        assert!(!record.was_stopped() && record.has_lost());
        let gone = Some("its thread panicked".to_owned());
        record.conditions.links = Some(LinkFigures { gone, ..LinkFigures::default() });
        assert!(!record.was_stopped() && record.has_lost());
    }

    #[test]
    fn the_window_of_a_stopped_run_is_as_long_as_it_lasted() {
        let mut record = sample::record();
        (record.settings.window_start_ns, record.settings.window_end_ns) = (7_000_000_000, 10_400_000_000);
        assert!((record.window_s() - 10.0).abs() < 1e-9, "of a complete run: {}", record.window_s());
        record.run.status = Status::Interrupted;
        assert!((record.window_s() - 3.4).abs() < 1e-9, "{}", record.window_s());
        (record.settings.window_start_ns, record.settings.window_end_ns) = (0, 0);
        assert!(record.window_s().abs() < 1e-9, "it never began");
    }
}
