//! Removes results: first moves each folder atomically to another place, then deletes it. Links are never followed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use pubmark_record::in_use;
use pubmark_record::store::LATEST;
use schemars::JsonSchema;
use serde::Serialize;

use super::files;

/// Folder within the server's folder for results that are being removed.
pub const REMOVED_FOLDER: &str = "removed";

/// Prevents commands from starting in a folder until it is dropped.
pub struct Idle {
    _locks: Vec<File>,
}

/// Checks that no command uses a folder. Then none can start while the returned value exists; `None` if a command uses it.
/// Concurrent calls are allowed.
///
/// # Errors
/// The lock files cannot be opened.
pub fn idle(root: &Path, name: &str) -> io::Result<Option<Idle>> {
    let folder = real_folder(root, name)?;
    Ok(in_use::claim(&folder)?.map(|locks| Idle { _locks: locks }))
}

/// Size of a results folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Extent {
    /// Name of the folder.
    pub folder: String,
    /// Number of files in it, at any depth.
    pub files: u64,
    /// Size of these files in bytes.
    pub bytes: u64,
}

/// Measures a folder. Links in it count as files of size zero.
///
/// # Errors
/// The folder is a link, or cannot be read.
pub fn extent(root: &Path, name: &str) -> io::Result<Extent> {
    let folder = real_folder(root, name)?;
    let found = files::of(&folder)?;
    let bytes = found.iter().filter_map(|(_, size)| *size).sum();
    Ok(Extent { folder: name.to_owned(), files: found.len() as u64, bytes })
}

/// Removes a results folder, and the link `latest` if it points to the folder. `aside` is a folder on the same disk.
///
/// # Errors
/// It is a link, a command uses it, or it cannot be removed. A folder that was already moved is deleted at the next start
/// of the server.
pub fn remove(root: &Path, name: &str, aside: &Path) -> io::Result<()> {
    let folder = real_folder(root, name)?;
    let _idle =
        idle(root, name)?.ok_or_else(|| io::Error::new(io::ErrorKind::ResourceBusy, "a command is at work there"))?;
    fs::create_dir_all(aside)?;
    let hidden = aside.join(name);
    fs::rename(&folder, &hidden)?;
    let latest = root.join(LATEST);
    if fs::read_link(&latest).is_ok_and(|target| target.file_name() == Some(name.as_ref())) {
        fs::remove_file(&latest)?;
    }
    fs::remove_dir_all(&hidden)
}

/// Completes removals that a killed server started.
///
/// # Errors
/// A folder cannot be deleted.
pub fn finish(aside: &Path) -> io::Result<()> {
    match fs::remove_dir_all(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The path of a folder, unless it is a link.
fn real_folder(root: &Path, name: &str) -> io::Result<PathBuf> {
    let folder = root.join(name);
    if !fs::symlink_metadata(&folder)?.is_dir() {
        return Err(io::Error::other(format!("`{name}` is a link or a file, no folder of results")));
    }
    Ok(folder)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use pubmark_record::in_use::JOURNAL_FILE;
    use pubmark_record::reserve::RESERVE_FILE;

    use super::*;

    #[test]
    fn a_link_is_never_followed() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("runs"), place.path().join("outside"));
        fs::create_dir_all(root.join("one/csv")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("mine"), "x").unwrap();
        fs::write(root.join("one/csv/a"), "12345").unwrap();
        symlink(&outside, root.join("one/away")).unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink("one", root.join(LATEST)).unwrap();
        assert_eq!(extent(&root, "one").unwrap(), Extent { folder: "one".to_owned(), files: 2, bytes: 5 });
        assert!(extent(&root, "link").is_err() && remove(&root, "link", &root.join(".aside")).is_err());
        remove(&root, "one", &root.join(".aside")).unwrap();
        assert!(!root.join("one").exists() && fs::symlink_metadata(root.join(LATEST)).is_err());
        assert!(outside.join("mine").exists() && root.join("link").exists());
    }

    #[test]
    fn a_folder_in_which_a_command_is_at_work_stays() {
        for file in [RESERVE_FILE, JOURNAL_FILE] {
            let place = tempfile::tempdir().unwrap();
            fs::create_dir_all(place.path().join("one")).unwrap();
            let path = place.path().join("one").join(file);
            let held = File::create(&path).unwrap();
            held.lock().unwrap();
            assert!(idle(place.path(), "one").unwrap().is_none(), "{file}");
            let refused = remove(place.path(), "one", &place.path().join(".aside")).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{file}");
            drop(held);
            let both = [(); 2].map(|()| idle(place.path(), "one").unwrap());
            assert!(both.iter().all(Option::is_some), "requests do not keep each other out: {file}");
            assert!(File::open(&path).unwrap().try_lock().is_err(), "nothing begins meanwhile: {file}");
            drop(both);
            // Links are not opened.
            fs::remove_file(&path).unwrap();
            symlink("/etc/passwd", &path).unwrap();
            assert!(idle(place.path(), "one").is_err(), "{file}");
        }
    }

    #[test]
    fn what_was_left_half_removed_is_finished() {
        let place = tempfile::tempdir().unwrap();
        let aside = place.path().join("aside");
        finish(&aside).unwrap();
        fs::create_dir_all(aside.join("one")).unwrap();
        finish(&aside).unwrap();
        assert!(!aside.exists());
    }
}
