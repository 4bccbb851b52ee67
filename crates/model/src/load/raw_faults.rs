//! The shape of faults in a file; the comments here are the descriptions in the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use super::raw_links::ChanceText;
use super::shape::{CountText, DurationText, Spanned, Text};
use crate::fault::FaultKind;

/// A fault: what is broken, when, and for how long.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `kind` and `at`, or `mttf` and `mttr`")]
pub(crate) struct RawFault {
    /// What is broken: `kill`, `restart`, `pause` of the system; `reset`, `cut` of connections; `partition` of a group,
    /// `link-down`.
    pub kind: Spanned<FaultKind>,
    /// When, counted from the start of the measured window: `30s`.
    pub at: Option<Text<DurationText>>,
    /// How long: `5s`. It must end within the measured window.
    #[serde(rename = "for")]
    pub length: Option<Text<DurationText>>,
    /// In place of `at`: mean time until the next fault, exponential, drawn from the run's seed.
    pub mttf: Option<Text<DurationText>>,
    /// In place of `for`: mean length, exponential.
    pub mttr: Option<Text<DurationText>>,
    /// Of connections: which part of them, `20%`; all by default.
    pub share: Option<Text<ChanceText>>,
    /// Of connections: those of this group, or of these clients; of all by default. Of a partition: the group, which is
    /// behind a link.
    pub group: Option<Spanned<String>>,
    /// Of `link-down`: the link.
    pub link: Option<Spanned<String>>,
    /// Of the system: this of its servers, from 1; all by default.
    pub server: Option<Text<CountText>>,
}
