//! The message log of a run: a table beside the record with one row for each message and each subscriber.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table of what each client sent and received, in the folder of a run.
pub const BY_CLIENT_FILE: &str = "csv/by_client.csv";

/// How a message log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Apache Parquet, compressed with Snappy.
    Parquet,
    /// Comma-separated values (RFC 4180).
    Csv,
    /// One JSON object a line.
    Ndjson,
}

impl LogFormat {
    /// Every format.
    pub const ALL: [LogFormat; 3] = [LogFormat::Parquet, LogFormat::Csv, LogFormat::Ndjson];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            LogFormat::Parquet => "parquet",
            LogFormat::Csv => "csv",
            LogFormat::Ndjson => "ndjson",
        }
    }

    /// The file in the folder of a run.
    pub fn file_name(self) -> &'static str {
        match self {
            LogFormat::Parquet => "messages.parquet",
            LogFormat::Csv => "messages.csv",
            LogFormat::Ndjson => "messages.ndjson",
        }
    }
}

impl MessageLogInfo {
    /// Does it lack rows?
    pub fn is_partial(&self) -> bool {
        self.missing > 0 || self.why.is_some()
    }
}

/// What a record says of its message log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageLogInfo {
    /// Its file, relative to the record.
    pub file: String,
    /// Rows that could not be noted or written while the run went on: the log is partial if there are any.
    pub missing: u64,
    /// Why rows are missing, where it was not that they came faster than they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The table of what each client sent and received; `null` with more than 100,000 clients.
    #[serde(default)]
    pub by_client: Option<String>,
    /// That table has no percentiles: of a log of more than 16 million rows they would take more memory than pubmark allows itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_client_without_percentiles: bool,
}
