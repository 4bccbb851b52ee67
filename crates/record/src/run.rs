//! Which run a record is of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which run it was, and what made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// Its name: its folder's name.
    pub name: String,
    /// Its number, which marks its payloads.
    pub id: u32,
    /// Repetition of this workload in the call, from 1.
    pub repetition: u32,
    /// Repetitions of the call.
    pub repetitions: u32,
    /// Start of the measured window, RFC 3339, UTC.
    pub started_at: String,
    /// Whether the run came to its end.
    pub status: Status,
    /// Version of pubmark that made it.
    pub pubmark_version: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// Files beside the record, by what they hold, relative to it.
    pub files: BTreeMap<String, String>,
}

/// Did the run come to its end?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Yes.
    Complete,
    /// It was stopped; the record holds what was measured until then.
    Interrupted,
}

impl Status {
    /// The word of records.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Interrupted => "interrupted",
        }
    }
}
