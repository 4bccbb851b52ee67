//! `GET /runs/{id}/messages`: the message log of a run, as it is stored.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pubmark_record::message_log::LogFormat;
use pubmark_record::record::Record;
use pubmark_record::store::Stored as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::lookup::{self, Id};
use crate::problem::Problem;
use crate::shared::Shared;

/// Bytes that are read and sent together.
const PIECE: usize = 64 << 10;
/// Pieces that wait to be sent at most.
const WAITING: usize = 4;
/// Longest wait for a reader to take a piece.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Formats with their media types.
const FORMATS: [(LogFormat, &str); 3] = [
    (LogFormat::Parquet, "application/vnd.apache.parquet"),
    (LogFormat::Csv, "text/csv; charset=utf-8"),
    (LogFormat::Ndjson, "application/x-ndjson"),
];

/// A message log, read while it is sent.
pub struct MessageLog {
    file: File,
    bytes: u64,
    media_type: &'static str,
    /// What a browser saves it as.
    name: String,
}

impl IntoResponse for MessageLog {
    fn into_response(self) -> Response {
        let heads = [
            (header::CONTENT_TYPE, self.media_type.to_owned()),
            (header::CONTENT_LENGTH, self.bytes.to_string()),
            (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", self.name)),
        ];
        let (send, receive) = mpsc::channel(WAITING);
        tokio::spawn(pieces(self.file, self.bytes, send));
        (heads, Body::from_stream(ReceiverStream::new(receive))).into_response()
    }
}

impl OperationOutput for MessageLog {
    type Inner = MessageLog;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let bare = |media_type: &str| media_type.split(';').next().unwrap_or_default().to_owned();
        let content = FORMATS.iter().map(|(_, media_type)| (bare(media_type), MediaType::default())).collect();
        let response = ApiResponse { description: "The message log.".to_owned(), content, ..ApiResponse::default() };
        vec![(Some(ApiStatus::Code(200)), response)]
    }
}

/// The message log.
pub async fn messages(State(shared): State<Arc<Shared>>, Path(Id { id }): Path<Id>) -> Result<MessageLog, Problem> {
    let used = Arc::clone(&shared);
    lookup::slowly(&shared, move || {
        let folder = lookup::results(&used, &id)?;
        for (format, media_type) in FORMATS {
            match opened(&folder.join(format.file_name())) {
                Ok((file, bytes)) => {
                    let name = format!("{}-{}", named(&folder), format.file_name());
                    return Ok(MessageLog { file, bytes, media_type, name });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Problem::internal(&error)),
            }
        }
        Err(none(&id, &folder))
    })
    .await
}

/// The folder's name, if a header can hold it.
fn named(folder: &FilePath) -> String {
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

/// A regular file and its length. A link is not followed: it may lead anywhere.
fn opened(path: &PathBuf) -> io::Result<(File, u64)> {
    // Without waiting: somebody may have put a pipe there.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found.len())),
        false => Err(io::Error::other(format!("`{}` is no regular file", path.display()))),
    }
}

/// Reads a piece after the other, none before there is room for it; no thread waits for the reader meanwhile.
async fn pieces(mut file: File, bytes: u64, send: mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut left = bytes;
    while left > 0 {
        let Ok(Ok(permit)) = tokio::time::timeout(LONGEST_WAIT, send.reserve()).await else { return };
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE);
            let read = file.by_ref().take(left.min(PIECE as u64)).read_to_end(&mut piece);
            (file, read.map(|_| piece))
        });
        let Ok((same, read)) = read.await else { return };
        file = same;
        // A file that became shorter, or cannot be read: the connection is cut, so that what came does not pass for the whole.
        let piece = read.and_then(|piece| match piece.is_empty() {
            true => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            false => Ok(piece),
        });
        left -= piece.as_ref().map_or(left, |piece| piece.len() as u64);
        permit.send(piece);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_format_has_a_media_type() {
        assert_eq!(FORMATS.map(|(format, _)| format), LogFormat::ALL);
    }

    #[test]
    fn a_link_and_a_folder_are_no_log() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", folder.path().join("link")).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        for name in ["link", "folder"] {
            let error = opened(&folder.path().join(name)).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::NotFound, "{name}");
        }
        std::fs::write(folder.path().join("log"), "12345").unwrap();
        assert_eq!(opened(&folder.path().join("log")).unwrap().1, 5);
    }

    #[tokio::test]
    async fn a_log_comes_whole_and_one_that_was_cut_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &content).unwrap();
        for (claimed, is_whole) in [(content.len() as u64, true), (content.len() as u64 + 1, false)] {
            let (send, mut receive) = mpsc::channel(WAITING);
            tokio::spawn(pieces(File::open(&path).unwrap(), claimed, send));
            let mut received = Vec::new();
            let mut ended_well = true;
            while let Some(piece) = receive.recv().await {
                match piece {
                    Ok(piece) => received.extend(piece),
                    Err(_) => ended_well = false,
                }
            }
            assert!(received == content && ended_well == is_whole, "{} {ended_well}", received.len());
        }
    }
}
