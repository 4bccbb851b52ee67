//! How far a run may be believed: the verdict as a record holds it. [`crate::verdict`] reaches it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a run may be believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerdictStatus {
    /// Every check passed.
    #[default]
    Valid,
    /// A check is near its limit: read the reasons before quoting.
    Suspect,
    /// The figures do not describe the system.
    Invalid,
}

impl VerdictStatus {
    /// The word of records.
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
    /// The worst of the reasons, `valid` where there are none.
    pub status: VerdictStatus,
    /// What was found wanting.
    pub reasons: Vec<Reason>,
    /// What a reader should know besides; a warning changes no verdict.
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
    /// How bad.
    pub status: VerdictStatus,
    /// One sentence with the figures.
    pub text: String,
    /// What to do, as something that can be typed where possible.
    pub hint: String,
}

/// A warning: something that a reader should know before quoting the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable code for `pubmark explain`, for instance `W01`.
    pub code: String,
    /// One sentence with the figures.
    pub text: String,
    /// What to do, as something that can be typed where possible.
    pub hint: String,
}

/// One check: the figure that was judged, its limits, and the same in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable code.
    pub code: String,
    /// What was checked.
    pub name: String,
    /// What it came to.
    pub status: VerdictStatus,
    /// The figure that was judged, in `unit`; `null` where the check is a yes or no (V10, V13, V14, V25), where what it judges was
    /// not measured, and where nothing could be wrong (V19 without a lost message).
    #[serde(default)]
    pub value: Option<f64>,
    /// What `value` may be; `null` where `value` is.
    #[serde(default)]
    pub limits: Option<CheckLimits>,
    /// What `value` and its limits count in; `null` where `value` is.
    #[serde(default)]
    pub unit: Option<CheckUnit>,
    /// One sentence with the figures.
    pub text: String,
}

/// Limits of a check, in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLimits {
    /// A value up to here is valid.
    pub valid: f64,
    /// A value up to here is suspect, a larger one invalid; `null` where the value alone makes no run invalid.
    pub suspect: Option<f64>,
}

/// What a check counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckUnit {
    /// µs.
    Microseconds,
    /// A share, 1.0 being all.
    Share,
    /// Cores, 1.0 being one.
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
    /// Conditions of links.
    LinkConditions,
    /// Faults.
    Faults,
    /// Nodes or worker processes.
    Nodes,
    /// Subscriptions.
    Subscriptions,
    /// Pairs of a writer and a reader.
    Pairs,
}
