//! Identity of the run that a record belongs to.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Identity of a run, and what produced it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// Name of the run, which is also the name of its folder.
    pub name: String,
    /// Number of the run, which is in the header of its payloads.
    pub id: u32,
    /// Repetition of this workload within the command, from 1.
    pub repetition: u32,
    /// Number of repetitions within the command.
    pub repetitions: u32,
    /// Start of the measured window, RFC 3339, UTC.
    pub started_at: String,
    /// Whether the run was completed.
    pub status: Status,
    /// Version of pubmark that executed the run.
    pub pubmark_version: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// Files beside the record: content to path, relative to the record.
    pub files: BTreeMap<String, String>,
}

/// Whether a run was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The run was completed.
    Complete,
    /// The run was stopped; the record holds what was measured until then.
    Interrupted,
}

impl Status {
    /// Name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Interrupted => "interrupted",
        }
    }
}
