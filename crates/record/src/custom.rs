//! User-defined metrics: figures that programs computed from the message log of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit;

/// Prefix of the names of user-defined metrics wherever they stand beside pubmark's own metrics.
pub const PREFIX: &str = "custom.";

/// A metric that a program computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomMetric {
    /// Name of the metric; limits refer to it as `custom.NAME`.
    pub name: String,
    /// Unit of its values, as declared; empty for a plain number.
    #[serde(default)]
    pub unit: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Files among these arguments, with the SHA-256 of their content, to identify the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Lower bound of the value, in its unit; `null` where there is none.
    pub lower: Option<f64>,
    /// Upper bound of the value; equal to the lower bound where the value is known exactly.
    pub upper: Option<f64>,
    /// Values by a category of the program, such as device types.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, CustomBounds>,
    /// The message log from which it was computed lacks rows: the values cover only a part of the messages, and decide
    /// no limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Run time of the program, s; `null` where it was not started.
    pub ran_s: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Both bounds of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomBounds {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound; equal to the lower bound where the value is known exactly.
    pub upper: f64,
}

/// Finds the metric of this name in the metrics of a record.
pub fn find<'a>(metrics: &'a [CustomMetric], name: &str) -> Option<&'a CustomMetric> {
    metrics.iter().find(|metric| metric.name == name)
}

/// Both bounds of a metric in the unit of figures for `wanted`, or in its own unit if `wanted` is empty; `None` where
/// it has no value, a value with an incompatible unit, or a value for a part of the messages, which does not represent
/// the run.
pub fn bounds_in(metrics: &[CustomMetric], name: &str, wanted: &str) -> Option<[f64; 2]> {
    let metric = find(metrics, name).filter(|metric| !metric.partial)?;
    metric.bounds(wanted)
}

impl CustomMetric {
    /// Both bounds in the unit of figures for `wanted`, also of a partial log; `None` where it has no value, or one
    /// with an incompatible unit.
    pub fn bounds(&self, wanted: &str) -> Option<[f64; 2]> {
        let worth = unit::worth(&self.unit, wanted)?;
        Some([self.lower? * worth, self.upper? * worth])
    }
}
