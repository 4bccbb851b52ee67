//! Results as an archive that can be read without a server: each folder unchanged, and an index.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use flate2::Compression;
use flate2::write::GzEncoder;
use pubmark_record::comparison::{MOST_RUNS, compare};
use pubmark_record::record::Record;
use pubmark_record::store;
use pubmark_report::html::{self, IndexRow};
use tar::{Builder, EntryType, Header};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{files, loaded};
use crate::problem::Problem;

/// Name of the archive's folder.
const TOP: &str = "pubmark-results";
/// Maximum size of all files in bytes: a browser assembles the archive in memory.
pub const MOST_BYTES: u64 = 512 << 20;
/// Maximum number of files.
const MOST_FILES: usize = 50_000;
/// Number of bytes that are sent together.
const PIECE: usize = 64 << 10;
/// Maximum wait for a client to read a piece.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Maximum time of a whole export: enough for the largest one at 0.6 MB/s. Only one export runs at a time, and others wait
/// for it.
const LONGEST_EXPORT: Duration = Duration::from_secs(900);

/// The files of an export: listed and measured, not read yet.
pub struct Export {
    folders: Vec<Folder>,
    comparison: Option<String>,
}

/// A results folder.
struct Folder {
    path: PathBuf,
    name: String,
    row: IndexRow,
    files: Vec<(PathBuf, u64)>,
}

impl Export {
    /// Lists the files of results folders. Links in them are left out: they may lead anywhere.
    ///
    /// # Errors
    /// A folder cannot be read, or the total size is too large.
    pub fn of(folders: Vec<(PathBuf, IndexRow)>) -> Result<Export, Problem> {
        let mut export = Export { comparison: comparison(&folders), folders: vec![] };
        let (mut files, mut bytes) = (0, 0);
        for (path, row) in folders {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let found = files::of(&path).map_err(|error| Problem::internal(&error))?;
            let found: Vec<(PathBuf, u64)> = found.into_iter().filter_map(|(path, size)| Some((path, size?))).collect();
            files += found.len();
            let size: u64 = found.iter().map(|(_, size)| size).sum();
            bytes += size;
            if bytes > MOST_BYTES || files > MOST_FILES {
                return Err(too_large(&name, size));
            }
            let report = loaded::report_in(&path);
            let row = IndexRow { report: report.map(|report| format!("{name}/{report}")), ..row };
            export.folders.push(Folder { path, name, row, files: found });
        }
        Ok(export)
    }

    /// Writes the archive, compressed. Of a file that grew since it was listed, it has the part that was there then.
    ///
    /// # Errors
    /// A file cannot be read or became shorter, or the client no longer reads the archive.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut archive = Builder::new(GzEncoder::new(BufWriter::with_capacity(PIECE, out), Compression::fast()));
        let rows: Vec<&IndexRow> = self.folders.iter().map(|folder| &folder.row).collect();
        text(&mut archive, "index.html", &html::index(&rows, self.comparison.is_some()))?;
        if let Some(page) = &self.comparison {
            text(&mut archive, "comparison.html", page)?;
        }
        for folder in &self.folders {
            for (path, bytes) in &folder.files {
                let inside = path.strip_prefix(&folder.path).map_err(io::Error::other)?;
                file(&mut archive, &Path::new(TOP).join(&folder.name).join(inside), path, *bytes)?;
            }
        }
        archive.into_inner()?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.flush()
    }
}

fn too_large(name: &str, bytes: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "the selection has more than {} MiB or {MOST_FILES} files, at `{name}` with {bytes} B",
            MOST_BYTES >> 20
        ),
    )
    .hint("export fewer results, or copy their folders")
}

/// The comparison of all exported results, if they can be compared.
fn comparison(folders: &[(PathBuf, IndexRow)]) -> Option<String> {
    if !(2..=MOST_RUNS).contains(&folders.len()) {
        return None;
    }
    let records: Vec<Record> = folders.iter().map(|(path, _)| store::load(path).ok()).collect::<Option<_>>()?;
    compare(&records).ok().map(|comparison| html::comparison(&comparison))
}

fn text(archive: &mut Builder<impl Write>, name: &str, text: &str) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(text.len() as u64);
    archive.append_data(&mut header, Path::new(TOP).join(name), text.as_bytes())
}

/// Appends the first bytes of a file. The header states their number, which must not differ from what follows it.
fn file(archive: &mut Builder<impl Write>, name: &Path, path: &Path, bytes: u64) -> io::Result<()> {
    let file = File::open(path)?;
    let mut header = Header::new_gnu();
    header.set_metadata(&file.metadata()?);
    header.set_size(bytes);
    let mut content = file.take(bytes);
    archive.append_data(&mut header, name, &mut content)?;
    if content.limit() > 0 {
        let missing = format!("`{}` became {} B shorter while it was read", path.display(), content.limit());
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, missing));
    }
    Ok(())
}

/// Passes what is written to a response in pieces. For a thread that may block.
pub struct Pieces {
    to: mpsc::Sender<Result<Vec<u8>, io::Error>>,
    /// Deadline of the export, however fast its client is.
    until: Instant,
}

impl Pieces {
    /// Pieces of an export that begins now.
    pub fn to(to: mpsc::Sender<Result<Vec<u8>, io::Error>>) -> Pieces {
        Pieces { to, until: Instant::now() + LONGEST_EXPORT }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = || self.until.saturating_duration_since(Instant::now());
        let wait = left().min(LONGEST_WAIT);
        let sent = Handle::current().block_on(self.to.send_timeout(Ok(bytes.to_vec()), wait));
        if left().is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the archive was not taken in time"));
        }
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody takes the archive any more"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use flate2::read::GzDecoder;
    use pubmark_record::sample;
    use pubmark_record::store::RunFolder;
    use tar::Archive;

    use super::*;

    #[test]
    fn an_archive_holds_the_files_an_index_and_no_links() {
        let place = tempfile::tempdir().unwrap();
        let mut folders = Vec::new();
        for name in ["one", "two"] {
            let folder = RunFolder::at(&place.path().join(name)).unwrap();
            folder.write_record(&sample::record()).unwrap();
            fs::write(folder.path().join("report.html"), "<p>report").unwrap();
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("inner"), "x").unwrap();
            symlink("/etc/passwd", folder.path().join("secret")).unwrap();
            folders.push((folder.path().to_owned(), IndexRow { name: name.to_owned(), ..IndexRow::default() }));
        }
        let mut archive = Vec::new();
        Export::of(folders).unwrap().write(&mut archive).unwrap();
        let mut archive = Archive::new(GzDecoder::new(&archive[..]));
        let names = archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let expected = ["comparison.html", "index.html", "one/one/inner", "one/record.json", "one/report.html"];
        let expected: Vec<String> = expected.iter().map(|name| format!("{TOP}/{name}")).collect();
        assert_eq!(names[..5], expected);
        assert_eq!(names.len(), 8, "{names:?}");
    }

    /// An archive of one folder with one file, which changes after it was listed.
    fn of_a_file(change: impl FnOnce(&Path)) -> io::Result<Vec<u8>> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("one");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("progress.jsonl"), "a".repeat(700)).unwrap();
        let export = Export::of(vec![(folder.clone(), IndexRow::default())]).unwrap();
        change(&folder.join("progress.jsonl"));
        let mut archive = Vec::new();
        export.write(&mut archive).map(|()| archive)
    }

    #[test]
    fn a_file_that_grows_is_archived_as_it_was_listed_and_one_that_shrinks_is_an_error() {
        let grown = of_a_file(|file| fs::write(file, "a".repeat(700) + &"b".repeat(9_000)).unwrap()).unwrap();
        let mut archive = Archive::new(GzDecoder::new(&grown[..]));
        let sizes: Vec<u64> = archive.entries().unwrap().map(|entry| entry.unwrap().size()).collect();
        assert_eq!((sizes.len(), sizes.last()), (2, Some(&700)), "the index and the file");
        let error = of_a_file(|file| fs::write(file, "a").unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("699 B shorter"), "{error}");
    }

    #[test]
    fn an_index_links_the_report_of_a_choice() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("one");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("choice.html"), "<p>choice").unwrap();
        let export = Export::of(vec![(folder, IndexRow::default())]).unwrap();
        assert_eq!(export.folders[0].row.report.as_deref(), Some("one/choice.html"));
    }

    #[tokio::test]
    async fn a_reader_that_takes_a_little_now_and_then_does_not_hold_an_export_for_ever() {
        let (send, mut receive) = mpsc::channel(1);
        let until = Instant::now() + Duration::from_millis(300);
        let written = tokio::task::spawn_blocking(move || {
            let mut pieces = Pieces { to: send, until };
            // More than is read in that time.
            (0..100_000).try_for_each(|_| pieces.write_all(&[0; 8]))
        });
        let reading = tokio::spawn(async move {
            let mut taken = 0;
            while receive.recv().await.is_some() {
                taken += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            taken
        });
        let error = written.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(reading.await.unwrap() > 1, "it was taken until then");
    }
}
