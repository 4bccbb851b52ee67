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
    /// What is broken: `kill`, `restart`, `pause` for the system; `reset`, `cut` for connections; `partition` for a group,
    /// `link-down` for a link.
    pub kind: Spanned<FaultKind>,
    /// Time of the fault since the start of the measured window: `30s`.
    pub at: Option<Text<DurationText>>,
    /// Length of the fault: `5s`. It must end within the measured window.
    #[serde(rename = "for")]
    pub length: Option<Text<DurationText>>,
    /// Instead of `at`: mean time until the next fault, exponentially distributed, drawn from the run's seed.
    pub mttf: Option<Text<DurationText>>,
    /// Instead of `for`: mean length, exponentially distributed.
    pub mttr: Option<Text<DurationText>>,
    /// For connections: the share that is affected, `20%`; all by default.
    pub share: Option<Text<ChanceText>>,
    /// For connections: those of this group or of these clients; all by default. For a partition: the group, which must use
    /// a link.
    pub group: Option<Spanned<String>>,
    /// For `link-down`: the link.
    pub link: Option<Spanned<String>>,
    /// For the system: the number of the affected server, from 1; all by default.
    pub server: Option<Text<CountText>>,
}
