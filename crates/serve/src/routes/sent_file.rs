//! A file of a results folder, read while it is sent.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, StatusCode as ApiStatus};
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Number of bytes that are read and sent together.
const PIECE: usize = 64 << 10;
/// Maximum number of pieces that wait to be sent.
const WAITING: usize = 4;
/// Maximum wait for a client to read a piece.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Media types by file extension.
const TYPES: [(&str, &str); 6] = [
    ("json", "application/json"),
    ("csv", "text/csv; charset=utf-8"),
    ("yaml", "application/yaml"),
    ("html", "text/html; charset=utf-8"),
    ("ndjson", "application/x-ndjson"),
    ("parquet", "application/vnd.apache.parquet"),
];
/// Media type of all other files.
const OTHER: &str = "application/octet-stream";

/// A file to send.
#[derive(Debug)]
pub struct SentFile {
    file: File,
    bytes: u64,
    media_type: &'static str,
    /// Name under which a browser saves the file.
    name: String,
}

impl SentFile {
    /// Opens a regular file, which a browser saves under `name`. Links are not followed: they may lead anywhere.
    ///
    /// # Errors
    /// It is not a regular file, or cannot be opened.
    pub fn open(path: &Path, name: String) -> io::Result<SentFile> {
        // Non-blocking, in case the path is a FIFO.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        match found.is_file() {
            true => Ok(SentFile { file, bytes: found.len(), media_type: media_type(path), name }),
            false => Err(io::Error::other(format!("`{}` is no regular file", path.display()))),
        }
    }
}

/// Media type by the file extension.
fn media_type(path: &Path) -> &'static str {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    TYPES.iter().find(|(known, _)| *known == end).map_or(OTHER, |(_, media_type)| media_type)
}

impl IntoResponse for SentFile {
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

impl OperationOutput for SentFile {
    type Inner = SentFile;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<ApiResponse> {
        let bare = |media_type: &str| media_type.split(';').next().unwrap_or_default().to_owned();
        let types = TYPES.iter().map(|(_, media_type)| *media_type).chain([OTHER]);
        let content = types.map(|media_type| (bare(media_type), MediaType::default())).collect();
        Some(ApiResponse { description: "The file.".to_owned(), content, ..ApiResponse::default() })
    }

    fn inferred_responses(
        context: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<ApiStatus>, ApiResponse)> {
        let response = Self::operation_response(context, operation);
        response.map(|response| (Some(ApiStatus::Code(200)), response)).into_iter().collect()
    }
}

/// Reads one piece after another, each when the channel has space; no thread is blocked while the client reads.
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
        // If the file became shorter or cannot be read, the connection is aborted, so that the client does not take it for
        // complete.
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
    fn a_link_and_a_folder_are_no_file() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", folder.path().join("link")).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        for name in ["link", "folder"] {
            let error = SentFile::open(&folder.path().join(name), name.to_owned()).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::NotFound, "{name}");
        }
        std::fs::write(folder.path().join("log.csv"), "12345").unwrap();
        let sent = SentFile::open(&folder.path().join("log.csv"), "log.csv".to_owned()).unwrap();
        assert_eq!((sent.bytes, sent.media_type), (5, "text/csv; charset=utf-8"));
    }

    #[tokio::test]
    async fn a_file_comes_whole_and_one_that_was_cut_is_an_error() {
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
