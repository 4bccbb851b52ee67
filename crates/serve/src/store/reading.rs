//! Reads the submissions of a queue. One that cannot be used stays as it is, and the others are read.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::{Entry, STATUS_FILE, SUBMISSION_FILE, StoreError, Submitted, deleted, remove_secrets};

/// Maximum size of a file that is read, bytes: a submission has the options of a command, and a status the messages of a failure.
const LARGEST_BYTES: u64 = 64 << 20;

/// Names of the submissions' folders, sorted. Other files, and folders that are incomplete or being removed, are left out.
pub(super) fn submissions(queue: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(queue)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A folder that was removed after it was listed is left out as well.
        if !name.starts_with('.') && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// All submissions that are complete and can be used; the others stay unchanged ([`super::Store::unreadable`]). Incomplete
/// folders are removed, by `delete`; those that cannot be are returned as well ([`super::Store::left_over`]).
pub(super) fn read_all(
    queue: &Path,
    delete: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<(BTreeMap<String, Entry>, Vec<StoreError>)> {
    let mut left_over = Vec::new();
    for entry in fs::read_dir(queue)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().to_string_lossy().starts_with('.') {
            left_over.extend(deleted(&entry.path(), delete(&entry.path())).err());
        }
    }
    let mut found = BTreeMap::new();
    for name in submissions(queue)? {
        let folder = queue.join(&name);
        let Ok(entry) = read_one(&folder) else { continue };
        if entry.status.state.is_over() {
            left_over.extend(remove_secrets(&folder, &entry.submitted).err());
        }
        found.insert(name, entry);
    }
    Ok((found, left_over))
}

/// The submission in a folder.
///
/// # Errors
/// It cannot be read, is a copy of another one, or its status could not be written.
pub(super) fn read_one(folder: &Path) -> io::Result<Entry> {
    let submitted: Submitted = read_json(&folder.join(SUBMISSION_FILE))?;
    let unusable = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    // The id is the name under which the queue finds it: as a copy, it would be taken for the other one for ever.
    if folder.file_name().is_none_or(|name| name != submitted.id.as_str()) {
        return Err(unusable(format!("`{}` is a copy of `{}`: remove it", folder.display(), submitted.id)));
    }
    // Its files are deleted at its end, so they must be in its folder.
    if submitted.file.as_ref().is_some_and(|file| file.contains('/') || file.starts_with('.')) {
        return Err(unusable(format!("`{}` names a file outside its folder", folder.join(SUBMISSION_FILE).display())));
    }
    let entry = Entry { submitted, status: read_json(&folder.join(STATUS_FILE))? };
    may_write(folder).map_err(|error| {
        let reason = format!("files cannot be written in `{}`: {error}", folder.display());
        io::Error::new(error.kind(), reason)
    })?;
    Ok(entry)
}

/// Whether this process may create and replace files in a folder: not, if another user's files were copied with their owner and mode.
fn may_write(folder: &Path) -> io::Result<()> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string that outlives the call.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK | libc::X_OK, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn read_json<Value: DeserializeOwned>(path: &Path) -> io::Result<Value> {
    let failed = |error: &dyn std::fmt::Display| format!("failed to read `{}`: {error}", path.display());
    let text = read_regular(path).map_err(|error| io::Error::new(error.kind(), failed(&error)))?;
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, failed(&error)))
}

/// The content of a regular file. Another kind of file, such as a FIFO, could block or never end.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if found.len() > LARGEST_BYTES {
        return Err(io::Error::other(format!("it is larger than {LARGEST_BYTES} B")));
    }
    let mut text = Vec::new();
    file.take(LARGEST_BYTES).read_to_end(&mut text)?;
    Ok(text)
}
