//! Run folders: `runs/<YYYYMMDD-HHMMSS>-<name>/record.json`, with a link `latest` beside them. Files are written
//! completely or not at all: each is written under a temporary name and then renamed. A run reserves the space for its
//! record in advance ([`Reserve`]).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::capacity::{CAPACITY_FILE, CAPACITY_SCHEMA_VERSION, CapacityRecord};
use crate::experiment::{EXPERIMENT_FILE, EXPERIMENT_SCHEMA_VERSION, ExperimentRecord};
use crate::plain;
use crate::record::{Record, SCHEMA_VERSION};
use crate::reserve::{self, Reserve};
use crate::schema1::{self, Step};
use crate::time::UtcTime;
use crate::warnings::warnings;

/// Name of the record's file in a run folder.
pub const RECORD_FILE: &str = "record.json";
/// Name of the link to the newest run folder.
pub const LATEST: &str = "latest";
/// Most runs with the same name that may start in the same second.
const SAME_SECOND_LIMIT: u32 = 1_000;
/// Largest count, number of bytes or nanoseconds in a record: all JSON readers represent it exactly (RFC 8259 §6), and
/// it is small enough that sums over the rows of a table do not overflow.
const LARGEST_COUNT: u64 = 1 << 53;
/// Keys whose numbers are not counts.
const NO_COUNTS: [&str; 2] = ["seed", "order_seed"];

/// Errors of run folders.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file or folder at the path.
    #[error("found no record at `{}`", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// The file is not JSON, or not a record.
    #[error("failed to read `{}` as a record", path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// Position and cause of the error.
        #[source]
        source: serde_json::Error,
    },
    /// The file was written with another version of the schema.
    #[error("`{}` has schema version {found}, this pubmark reads versions 1 to {newest}", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u64,
        /// Newest version that this program reads.
        newest: u32,
    },
    /// The file has a number that no run can reach.
    #[error("`{}` has {value} as `{key}`: no count of a run is above {LARGEST_COUNT}", path.display())]
    Impossible {
        /// The file.
        path: PathBuf,
        /// Keys of the number.
        key: String,
        /// The number.
        value: u64,
    },
    /// The record has a value that JSON cannot represent.
    #[error("failed to write the record as JSON")]
    NotJson(#[source] serde_json::Error),
    /// `latest` exists and is not a link.
    #[error("`{}` is not a link: left as it is", path.display())]
    LatestIsNotALink {
        /// The path.
        path: PathBuf,
    },
    /// Too many runs of one name in one second.
    #[error("found no free name for a run like `{}`", path.display())]
    NoFreeName {
        /// The first name that was tried.
        path: PathBuf,
    },
    /// An operation of the operating system failed.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// Its file or folder.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// What to type instead, if reading a record failed.
    pub fn reading_hint(&self) -> &'static str {
        match self {
            StoreError::NotFound { .. } => "give the folder of a run, for instance `runs/latest`",
            StoreError::OtherVersion { .. } => "use the pubmark that wrote it, or run again",
            _ => "give the folder of another run; `pubmark run` makes one",
        }
    }
}

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
    name: String,
}

impl RunFolder {
    /// Creates `<root>/<YYYYMMDD-HHMMSS>-<name>` (UTC), with `-2`, `-3`, … if that exists. Characters of `name` other
    /// than ASCII letters, digits, `.`, `_` and `-` become `-`. Space that killed runs had reserved in `root` is freed.
    pub fn create(root: &Path, name: &str, started: SystemTime) -> Result<RunFolder, StoreError> {
        fs::create_dir_all(root).map_err(|source| failure("create", root, source))?;
        reserve::remove_abandoned(root);
        let base = format!("{}-{}", UtcTime::from_system_time(started).compact(), file_name_part(name));
        for attempt in 1..=SAME_SECOND_LIMIT {
            let name = if attempt == 1 { base.clone() } else { format!("{base}-{attempt}") };
            let path = root.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunFolder { path, name }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(failure("create", &path, source)),
            }
        }
        Err(StoreError::NoFreeName { path: root.join(base) })
    }

    /// Creates the folder `path` or uses the existing one; its name becomes the name of the run.
    pub fn at(path: &Path) -> Result<RunFolder, StoreError> {
        fs::create_dir_all(path).map_err(|source| failure("create", path, source))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(RunFolder { path: path.to_owned(), name })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the folder, which is also the name of the run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reserves space for the record on the folder's disk, bytes. If that fails, the file is removed.
    ///
    /// # Errors
    /// The disk has too little free space.
    pub fn reserve(&self, bytes: u64) -> Result<Reserve, StoreError> {
        Reserve::take(&self.path, bytes)
    }

    /// Writes `record.json` and returns its path.
    pub fn write_record(&self, record: &Record) -> Result<PathBuf, StoreError> {
        self.write_file(RECORD_FILE, to_json(record)?.as_bytes())
    }

    /// Writes a file of the folder, completely or not at all, and returns its path.
    pub fn write_file(&self, name: &str, content: &[u8]) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        write_whole(&path, content)?;
        Ok(path)
    }

    /// Makes the link `latest` beside the folder point to the folder.
    pub fn mark_latest(&self) -> Result<(), StoreError> {
        let root = self.path.parent().unwrap_or_else(|| Path::new("."));
        let link = root.join(LATEST);
        match fs::symlink_metadata(&link) {
            Ok(metadata) if !metadata.file_type().is_symlink() => {
                return Err(StoreError::LatestIsNotALink { path: link });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failure("look at", &link, source)),
        }
        let temporary = root.join(format!(".{LATEST}.{}", std::process::id()));
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failure("replace", &temporary, error));
            }
            _ => {}
        }
        std::os::unix::fs::symlink(&self.name, &temporary).map_err(|source| failure("link", &temporary, source))?;
        fs::rename(&temporary, &link).map_err(|source| failure("replace", &link, source))
    }
}

/// A kind of record that is saved in a folder.
pub trait Stored: Serialize + DeserializeOwned {
    /// Name of its file.
    const FILE: &'static str;
    /// Version of its schema.
    const VERSION: u32;
    /// How its fields in schema 1 are converted.
    const FROM_SCHEMA_1: &'static [Step];

    /// Adds what schema 1 did not store and what follows from other fields.
    fn completed(self) -> Self {
        self
    }
}

impl Stored for Record {
    const FILE: &'static str = RECORD_FILE;
    const VERSION: u32 = SCHEMA_VERSION;
    const FROM_SCHEMA_1: &'static [Step] = schema1::RUN;

    fn completed(mut self) -> Record {
        self.verdict.warnings = warnings(&self);
        self
    }
}

impl Stored for ExperimentRecord {
    const FILE: &'static str = EXPERIMENT_FILE;
    const VERSION: u32 = EXPERIMENT_SCHEMA_VERSION;
    const FROM_SCHEMA_1: &'static [Step] = schema1::EXPERIMENT;
}

impl Stored for CapacityRecord {
    const FILE: &'static str = CAPACITY_FILE;
    const VERSION: u32 = CAPACITY_SCHEMA_VERSION;
    const FROM_SCHEMA_1: &'static [Step] = schema1::CAPACITY;
}

/// The record as indented JSON with a final newline.
pub fn to_json<Kind: Stored>(record: &Kind) -> Result<String, StoreError> {
    let text = serde_json::to_string_pretty(record).map_err(StoreError::NotJson)?;
    // JSON escapes only C0 controls; the file may also be shown in a terminal.
    let mut text = plain::masked(&text).into_owned();
    text.push('\n');
    Ok(text)
}

/// Whether `path` is a record of this kind: a folder that has one, or the file.
pub fn is_a<Kind: Stored>(path: &Path) -> bool {
    path.join(Kind::FILE).is_file() || path.is_file() && path.file_name().is_some_and(|name| name == Kind::FILE)
}

/// The folder of the record at `path`: the folder itself, or that of the file.
pub fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Folders of the run records at `path`: the run's folder, or the folders of all runs of an experiment or a search. A
/// run that failed early may have left logs but no record.
///
/// # Errors
/// The record of the experiment or the search cannot be read.
pub fn run_folders(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let names = if is_a::<ExperimentRecord>(path) {
        load_as::<ExperimentRecord>(path)?.run_folders()
    } else if is_a::<CapacityRecord>(path) {
        load_as::<CapacityRecord>(path)?.trials.into_iter().filter_map(|trial| trial.folder).collect()
    } else {
        return Ok(vec![path.to_owned()]);
    };
    let base = folder_of(path);
    Ok(names.into_iter().map(|name| base.join(name)).filter(|folder| is_a::<Record>(folder)).collect())
}

/// Reads the record of a run at `path`: a run folder, a link to one, or a file.
pub fn load(path: &Path) -> Result<Record, StoreError> {
    load_as(path)
}

/// Reads a record of any kind at `path`.
pub fn load_as<Kind: Stored>(path: &Path) -> Result<Kind, StoreError> {
    let is_folder = path.is_dir();
    let file = if is_folder { path.join(Kind::FILE) } else { path.to_path_buf() };
    // Opening a FIFO in a folder would wait for its writer. One that the caller names, such as `/dev/stdin`, has a writer.
    if is_folder && fs::metadata(&file).is_ok_and(|found| !found.is_file()) {
        return Err(failure("read", &file, io::Error::other("it is no regular file")));
    }
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreError::NotFound { path: file }),
        Err(source) => return Err(failure("read", &file, source)),
    };
    read(&file, &text)
}

/// Parses `text`, the content of `file`, as a record.
///
/// # Errors
/// The text is not a record of this kind, was written by a newer pubmark, or has numbers that no run can reach.
pub fn read<Kind: Stored>(file: &Path, text: &str) -> Result<Kind, StoreError> {
    let path = || file.to_path_buf();
    let not_a_record = |source| StoreError::NotARecord { path: path(), source };
    // First parsed as a map with a version: a record of another version may lack our fields, and serde accepts a list
    // for a struct.
    let whole = Value::Object(serde_json::from_str(text).map_err(not_a_record)?);
    // Parsed from the text again, so that errors have a line number.
    let found = serde_json::from_str::<Version>(text).map_err(not_a_record)?.schema_version;
    if found != 1 && found != u64::from(Kind::VERSION) {
        return Err(StoreError::OtherVersion { path: path(), found, newest: Kind::VERSION });
    }
    if let Some((key, value)) = impossible(&whole) {
        return Err(StoreError::Impossible { path: path(), key, value });
    }
    if found == u64::from(Kind::VERSION) {
        return serde_json::from_str(text).map_err(not_a_record);
    }
    let record = schema1::converted(Kind::FROM_SCHEMA_1, whole);
    serde_json::from_value(record).map(Kind::completed).map_err(not_a_record)
}

/// The first number above [`LARGEST_COUNT`], with its keys.
fn impossible(value: &Value) -> Option<(String, u64)> {
    let below = |key: &str, inner: &Value| {
        let (path, value) = impossible(inner)?;
        Some((if path.is_empty() { key.to_owned() } else { format!("{key}.{path}") }, value))
    };
    match value {
        Value::Number(number) => Some((String::new(), number.as_u64().filter(|count| *count > LARGEST_COUNT)?)),
        Value::Array(items) => (0..).zip(items).find_map(|(index, item): (u32, _)| below(&index.to_string(), item)),
        Value::Object(fields) => {
            let counts = fields.iter().filter(|(key, _)| !NO_COUNTS.contains(&key.as_str()));
            counts.into_iter().find_map(|(key, inner)| below(key, inner))
        }
        _ => None,
    }
}

/// Writes a file completely or not at all: to a temporary name in the same folder, flushed to the disk, then renamed,
/// and the new name is flushed too.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut temporary_name = std::ffi::OsString::from(".");
    temporary_name.push(path.file_name().unwrap_or_default());
    // Threads of one process may write the same file at the same time: the last rename wins, and each file is complete.
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    temporary_name.push(format!(".{}.{}", std::process::id(), WRITTEN.fetch_add(1, Relaxed)));
    let temporary = path.with_file_name(temporary_name);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let outcome = written
        .map_err(|source| failure("write", &temporary, source))
        .and_then(|()| fs::rename(&temporary, path).map_err(|source| failure("write", path, source)))
        .and_then(|()| sync_folder_of(path));
    if outcome.is_err() {
        // Best effort: the relevant error is the one returned.
        let _ = fs::remove_file(&temporary);
    }
    outcome
}

/// Flushes the directory of a file, because a crash may undo a rename that was not flushed.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems do not support flushing a directory.
        Err(error) if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Err(failure("flush", folder, error))
        }
        _ => Ok(()),
    }
}

/// The field that identifies the version.
#[derive(Deserialize)]
struct Version {
    schema_version: u64,
}

pub(crate) fn failure(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io { action, path: path.to_path_buf(), source }
}

fn file_name_part(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    name.chars().map(kept).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn make_fifo(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn a_pipe_is_read_if_it_is_named_and_refused_as_the_record_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let [named, inside] = ["pipe", Record::FILE].map(|name| folder.path().join(name));
        make_fifo(&named);
        let text = serde_json::to_vec(&crate::sample::record()).unwrap();
        let writer = std::thread::spawn({
            let named = named.clone();
            move || fs::write(named, text).unwrap()
        });
        assert_eq!(load(&named).unwrap().run.name, crate::sample::record().run.name);
        writer.join().unwrap();
        make_fifo(&inside);
        let StoreError::Io { source, .. } = load(folder.path()).unwrap_err() else { panic!("another error") };
        assert_eq!(source.to_string(), "it is no regular file");
    }

    #[test]
    fn a_file_that_several_threads_write_is_one_of_their_texts_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note.json");
        std::thread::scope(|scope| {
            for letter in *b"abcd" {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| write_whole(path, &[letter; 5_000]).unwrap()));
            }
        });
        let text = fs::read(&path).unwrap();
        assert!(text.len() == 5_000 && text.iter().all(|letter| *letter == text[0]), "{}", text.len());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
