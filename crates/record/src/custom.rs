//! Metrics of the user's own: what programs computed from the message log of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit;

/// In front of the name of such a metric wherever figures of pubmark's own have names, too.
pub const PREFIX: &str = "custom.";

/// A metric that a program computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomMetric {
    /// Its name; limits call it `custom.NAME`.
    pub name: String,
    /// What its values count in, as it was declared; empty for a plain number.
    #[serde(default)]
    pub unit: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Files among those words, with the SHA-256 of their content: what computed it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// Lower bound of its value, in its unit; `null` where there is none.
    pub lower: Option<f64>,
    /// Upper bound; the same as the lower one where the value is known exactly.
    pub upper: Option<f64>,
    /// Its values by what the program tells apart, such as device types.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by: BTreeMap<String, CustomBounds>,
    /// The message log that it was computed from lacks rows: its values are of a part of the messages, and decide no limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// How long the program ran, s; `null` where it was not started.
    pub ran_s: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Both bounds of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomBounds {
    /// The lower one.
    pub lower: f64,
    /// The upper one; the same where the value is known exactly.
    pub upper: f64,
}

/// The metric of this name among those of a record.
pub fn find<'a>(metrics: &'a [CustomMetric], name: &str) -> Option<&'a CustomMetric> {
    metrics.iter().find(|metric| metric.name == name)
}

/// Both bounds of a metric where values are `wanted`; `None` where it has no value, one of another kind, or one of a part of the
/// messages, which stands for no run.
pub fn bounds_in(metrics: &[CustomMetric], name: &str, wanted: &str) -> Option<[f64; 2]> {
    let metric = find(metrics, name).filter(|metric| !metric.partial)?;
    metric.bounds(wanted)
}

impl CustomMetric {
    /// Both bounds where values are `wanted`, whatever they are of; `None` where it has no value, or one of another kind.
    pub fn bounds(&self, wanted: &str) -> Option<[f64; 2]> {
        let worth = unit::worth(&self.unit, wanted)?;
        Some([self.lower? * worth, self.upper? * worth])
    }
}
