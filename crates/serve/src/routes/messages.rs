//! `GET /runs/{id}/messages`: the message log of a run, as it is stored.

use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pubmark_record::message_log::LogFormat;
use pubmark_record::record::Record;
use pubmark_record::store::Stored as _;

use super::lookup::{self, Id};
use super::sent_file::SentFile;
use crate::problem::Problem;
use crate::shared::Shared;

/// Formats and their media types.
const FORMATS: [(LogFormat, &str); 3] = [
    (LogFormat::Parquet, "application/vnd.apache.parquet"),
    (LogFormat::Csv, "text/csv"),
    (LogFormat::Ndjson, "application/x-ndjson"),
];

/// A message log.
pub struct MessageLog(SentFile);

impl IntoResponse for MessageLog {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl OperationOutput for MessageLog {
    type Inner = MessageLog;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let content = FORMATS.iter().map(|(_, media_type)| ((*media_type).to_owned(), MediaType::default())).collect();
        let response = ApiResponse { description: "The message log.".to_owned(), content, ..ApiResponse::default() };
        vec![(Some(ApiStatus::Code(200)), response)]
    }
}

/// The message log.
pub async fn messages(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<MessageLog, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let folder = lookup::results(&used, &id)?;
        for (format, _) in FORMATS {
            let name = format!("{}-{}", named(&folder), format.file_name());
            match SentFile::open(&folder.join(format.file_name()), name) {
                Ok(sent) => return Ok(MessageLog(sent)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Problem::internal(&error)),
            }
        }
        Err(none(&id, &folder))
    })
    .await
}

/// Name of the folder, if it is valid in a header.
pub(super) fn named(folder: &FilePath) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if lookup::is_name(&name) { name } else { "run".to_owned() }
}

fn none(id: &str, folder: &FilePath) -> Problem {
    let problem = Problem::new(StatusCode::NOT_FOUND, format!("`{id}` has no message log"));
    match folder.join(Record::FILE).is_file() {
        true => problem.hint("make the run again with `message_log: parquet`, or with `csv` or `ndjson`"),
        false => problem.hint("only a single run has one: submit it with `message_log: parquet`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_media_type() {
        assert_eq!(FORMATS.map(|(format, _)| format), LogFormat::ALL);
    }
}
