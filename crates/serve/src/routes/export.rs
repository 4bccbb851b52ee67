//! `GET /export`: a selection of results as an archive that can be read without a server.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pubmark_report::html::IndexRow;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::lookup;
use super::selection::Selection;
use crate::entry::RunEntry;
use crate::library::export::{Export, Pieces};
use crate::library::holds_results;
use crate::pages;
use crate::problem::Problem;
use crate::shared::Shared;

/// Maximum number of pieces that wait to be sent.
const WAITING: usize = 4;

/// An archive, written while it is sent.
pub struct ArchiveResponse {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Set by the writer before it drops its end of the channel.
    is_whole: Arc<AtomicBool>,
}

impl IntoResponse for ArchiveResponse {
    fn into_response(self) -> Response {
        let heads = [
            (header::CONTENT_TYPE, "application/gzip"),
            (header::CONTENT_DISPOSITION, "attachment; filename=\"pubmark-results.tar.gz\""),
        ];
        (heads, body(self)).into_response()
    }
}

impl OperationOutput for ArchiveResponse {
    type Inner = ArchiveResponse;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let content = [("application/gzip".to_owned(), MediaType::default())].into_iter().collect();
        let response = ApiResponse { description: "The archive.".to_owned(), content, ..ApiResponse::default() };
        vec![(Some(ApiStatus::Code(200)), response)]
    }
}

/// Exports the selection.
pub async fn export(State(shared): State<Arc<Shared>>, selection: Selection) -> Result<ArchiveResponse, Problem> {
    let used = Arc::clone(&shared);
    let permit = Arc::clone(&shared.exports).try_acquire_owned().map_err(|_| {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "another export is under way").hint("try again when it has ended")
    })?;
    let export = lookup::slowly(&shared, move || {
        let rows = folders(&used, &selection.run)?.into_iter().map(|folder| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let result = lookup::result(&used, &name).ok_or_else(|| no_record(&name))?;
            let row: IndexRow = pages::library::index_row(&RunEntry::of_folder(&result));
            Ok((folder, row))
        });
        Export::of(rows.collect::<Result<_, Problem>>()?)
    })
    .await?;
    let (send, receive) = mpsc::channel(WAITING);
    let is_whole = Arc::new(AtomicBool::new(false));
    let whole = Arc::clone(&is_whole);
    // Not counted as slow work: it takes as long as the client reads, within limits.
    tokio::task::spawn_blocking(move || {
        let is_written = export.write(Pieces::to(send.clone())).is_ok();
        whole.store(is_written, Ordering::Release);
        // Dropped last: the reader checks `is_whole` when there is no sender any more.
        drop(send);
        drop(permit);
    });
    Ok(ArchiveResponse { pieces: receive, is_whole })
}

/// The folders of all repetitions that have a record, each once.
fn folders(shared: &Shared, names: &[String]) -> Result<Vec<PathBuf>, Problem> {
    let mut folders = Vec::new();
    for name in names {
        let mut found = lookup::all_results(shared, name)?;
        found.retain(|folder| holds_results(folder));
        if found.is_empty() {
            return Err(no_record(name));
        }
        found.retain(|folder| !folders.contains(folder));
        folders.extend(found);
    }
    Ok(folders)
}

fn no_record(name: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, format!("`{name}` holds no record that can be read"))
}

/// The pieces as they arrive, then an error if the archive is incomplete: the connection is aborted, so that the client
/// does not take it for complete.
fn body(archive: ArchiveResponse) -> Body {
    let ArchiveResponse { pieces, is_whole } = archive;
    let cut = move || {
        let is_cut = !is_whole.swap(true, Ordering::AcqRel);
        is_cut.then(|| Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive was not written to its end")))
    };
    // Evaluated when there is no further piece: the writer has ended.
    Body::from_stream(ReceiverStream::new(pieces).chain(tokio_stream::iter(std::iter::from_fn(cut))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::State as RunState;

    #[test]
    fn a_submission_is_exported_with_each_repetition_that_has_a_record_once() {
        let place = tempfile::tempdir().unwrap();
        let (shared, id) = Shared::of_two_repetitions(place.path(), RunState::Failed);
        let runs = shared.store.runs();
        let names = [id.clone(), "one".to_owned()];
        assert_eq!(folders(&shared, &names).unwrap(), [runs.join("one")]);
        for folder in ["two", "without-a-record"] {
            std::fs::create_dir(runs.join(folder)).unwrap();
            shared.store.change(&id, |status| status.folders.push(folder.to_owned())).unwrap();
        }
        std::fs::copy(runs.join("one/record.json"), runs.join("two/record.json")).unwrap();
        assert_eq!(folders(&shared, &names).unwrap(), [runs.join("one"), runs.join("two")]);
        let none = folders(&shared, &["without-a-record".to_owned()]).unwrap_err();
        assert_eq!(none.status, StatusCode::CONFLICT);
    }

    #[tokio::test]
    async fn an_archive_that_was_not_written_to_its_end_is_an_error() {
        for (is_whole, is_good) in [(true, true), (false, false)] {
            let (send, pieces) = mpsc::channel(WAITING);
            send.send(Ok(b"piece".to_vec())).await.unwrap();
            drop(send);
            let archive = ArchiveResponse { pieces, is_whole: Arc::new(AtomicBool::new(is_whole)) };
            let read = axum::body::to_bytes(body(archive), 100).await;
            assert_eq!(read.is_ok(), is_good);
        }
    }
}
