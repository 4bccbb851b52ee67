//! `GET /export`: a selection of results as an archive that opens without a server.

use std::sync::Arc;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pubmark_report::html::IndexRow;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::lookup;
use super::selection::Selection;
use crate::entry::RunEntry;
use crate::library::export::{Export, Pieces};
use crate::pages;
use crate::problem::Problem;
use crate::shared::Shared;

/// Pieces that wait to be sent at most.
const WAITING: usize = 4;

/// An archive, written while it is sent.
pub struct ArchiveResponse(ReceiverStream<Result<Vec<u8>, std::io::Error>>);

impl IntoResponse for ArchiveResponse {
    fn into_response(self) -> Response {
        let heads = [
            (header::CONTENT_TYPE, "application/gzip"),
            (header::CONTENT_DISPOSITION, "attachment; filename=\"pubmark-results.tar.gz\""),
        ];
        (heads, Body::from_stream(self.0)).into_response()
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

/// Exports.
pub async fn export(State(shared): State<Arc<Shared>>, selection: Selection) -> Result<ArchiveResponse, Problem> {
    let used = Arc::clone(&shared);
    let permit = Arc::clone(&shared.exports).try_acquire_owned().map_err(|_| {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "another export is under way").hint("try again when it has ended")
    })?;
    let export = lookup::slowly(&shared, move || {
        let folders = selection.run.iter().map(|name| {
            let folder = lookup::results(&used, name)?;
            let folder_name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let result = lookup::result(&used, &folder_name).ok_or_else(|| {
                Problem::new(StatusCode::CONFLICT, format!("`{name}` holds no record that can be read"))
            })?;
            let row: IndexRow = pages::library::index_row(&RunEntry::of_folder(&result));
            Ok((folder, row))
        });
        Export::of(folders.collect::<Result<_, Problem>>()?)
    })
    .await?;
    let (send, receive) = mpsc::channel(WAITING);
    // Beside the other slow work: it takes as long as its reader.
    tokio::task::spawn_blocking(move || {
        if let Err(error) = export.write(Pieces(send.clone())) {
            // The connection is cut, so that what came does not pass for the whole.
            drop(send.blocking_send(Err(error)));
        }
        drop(permit);
    });
    Ok(ArchiveResponse(ReceiverStream::new(receive)))
}
