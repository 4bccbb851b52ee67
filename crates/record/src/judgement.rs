//! How far the figures of a run can be trusted: the verdict as stored in a record. [`crate::verdict`] computes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far the figures of a run can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictStatus {
    /// Every check passed.
    #[default]
    Valid,
    /// A check is near its limit: read the reasons before you quote the figures.
    Suspect,
    /// The figures do not describe the system.
    Invalid,
}

impl VerdictStatus {
    /// Name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            VerdictStatus::Valid => "valid",
            VerdictStatus::Suspect => "suspect",
            VerdictStatus::Invalid => "invalid",
        }
    }
}

/// The verdict with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The worst status of the reasons; `valid` without reasons.
    pub status: VerdictStatus,
    /// Reasons for a verdict below valid.
    pub reasons: Vec<Reason>,
    /// What else a reader should know; a warning does not change the verdict.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Every check that was made, passed or not, with its figures.
    pub checks: Vec<Check>,
}

/// One reason for a verdict below valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable code for `pubmark explain`, for instance `V01`.
    pub code: String,
    /// Severity.
    pub status: VerdictStatus,
    /// One sentence with the figures.
    pub text: String,
    /// What to do, if possible as a command or option to type.
    pub hint: String,
}

/// A warning: what a reader should know before quoting the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code for `pubmark explain`, for instance `W01`.
    pub code: String,
    /// One sentence with the figures.
    pub text: String,
    /// What to do, if possible as a command or option to type.
    pub hint: String,
}

/// One check: the figure that was judged, its limits, and both in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable code.
    pub code: String,
    /// Name of the check.
    pub name: String,
    /// Result of the check.
    pub status: VerdictStatus,
    /// The figure that was judged, in `unit`; `null` where the check has only yes or no as results (V10, V13, V14,
    /// V25), where the figure was not measured, and where nothing could fail (V19 without a lost message).
    #[serde(default)]
    pub value: Option<f64>,
    /// Limits of `value`; `null` where `value` is.
    #[serde(default)]
    pub limits: Option<CheckLimits>,
    /// Unit of `value` and its limits; `null` where `value` is.
    #[serde(default)]
    pub unit: Option<CheckUnit>,
    /// One sentence with the figures.
    pub text: String,
}

/// Limits of a check, in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLimits {
    /// A value up to this one is valid.
    pub valid: f64,
    /// A value up to this one is suspect, a larger one invalid; `null` where the value alone does not make a run
    /// invalid.
    pub suspect: Option<f64>,
}

/// Unit of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckUnit {
    /// Microseconds.
    Microseconds,
    /// Share; 1.0 is all.
    Share,
    /// Number of CPU cores.
    Cores,
    /// Messages.
    Messages,
    /// Requests.
    Requests,
    /// Samples of a distribution.
    Samples,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Conditions of emulated links.
    LinkConditions,
    /// Faults.
    Faults,
    /// Nodes or worker processes.
    Nodes,
    /// Connections.
    Connections,
    /// Subscriptions.
    Subscriptions,
    /// Writer–reader pairs.
    Pairs,
}
