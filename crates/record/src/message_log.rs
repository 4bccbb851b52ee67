//! The message log of a run: a table beside the record with one row for each message and each subscriber.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table of what each client sent and received, in the folder of a run.
pub const BY_CLIENT_FILE: &str = "csv/by_client.csv";

/// File format of a message log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Apache Parquet, compressed with Snappy.
    Parquet,
    /// Comma-separated values (RFC 4180).
    Csv,
    /// One JSON object per line.
    Ndjson,
}

impl LogFormat {
    /// All formats.
    pub const ALL: [LogFormat; 3] = [LogFormat::Parquet, LogFormat::Csv, LogFormat::Ndjson];

    /// Name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            LogFormat::Parquet => "parquet",
            LogFormat::Csv => "csv",
            LogFormat::Ndjson => "ndjson",
        }
    }

    /// Reads a name.
    ///
    /// # Errors
    /// There is no format of this name.
    pub fn read(text: &str) -> Result<LogFormat, String> {
        LogFormat::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| {
            let names = LogFormat::ALL.map(|format| format!("`{}`", format.as_str()));
            format!("a format is expected, {}, not `{text}`", names.join(" or "))
        })
    }

    /// Name of the file in the folder of a run.
    pub fn file_name(self) -> &'static str {
        match self {
            LogFormat::Parquet => "messages.parquet",
            LogFormat::Csv => "messages.csv",
            LogFormat::Ndjson => "messages.ndjson",
        }
    }
}

impl MessageLogInfo {
    /// Whether rows are missing.
    pub fn is_partial(&self) -> bool {
        self.missing > 0 || self.reason.is_some()
    }
}

/// Information about the message log of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageLogInfo {
    /// Path of the log, relative to the record.
    pub file: String,
    /// Rows that could not be recorded or written during the run; the log is partial if this is not 0.
    pub missing: u64,
    /// Why rows are missing, unless they were produced faster than they could be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "why")]
    pub reason: Option<String>,
    /// Table of what each client sent and received; `null` with more than 100,000 clients.
    #[serde(default)]
    pub by_client: Option<String>,
    /// The table has no percentiles: for a log of more than 16 million rows they would need more memory than pubmark's
    /// limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_client_without_percentiles: bool,
}
