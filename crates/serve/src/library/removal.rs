//! Removes results: first moves each folder atomically to another place, then deletes it. Links are never followed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use pubmark_record::in_use;
use pubmark_record::store::LATEST;
use schemars::JsonSchema;
use serde::Serialize;

use super::files;
use crate::store::{StoreError, deleted};
use crate::token::random_hex;

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

/// Removes a results folder, and the link `latest` if it points to the folder. `aside` is a folder on the same disk. Returns what
/// could not be deleted after the folder was moved there; the next start of the server tries it again ([`finish`]).
///
/// # Errors
/// It is a link, a command uses it, or it cannot be moved: nothing was removed.
pub fn remove(root: &Path, name: &str, aside: &Path) -> io::Result<Vec<StoreError>> {
    remove_by(root, name, aside, |path| fs::remove_dir_all(path))
}

fn remove_by(
    root: &Path,
    name: &str,
    aside: &Path,
    delete: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<Vec<StoreError>> {
    let folder = real_folder(root, name)?;
    let _idle =
        idle(root, name)?.ok_or_else(|| io::Error::new(io::ErrorKind::ResourceBusy, "a command is at work there"))?;
    // A folder of each removal's own: a result of the same name may be left over from an earlier one.
    let hidden = aside.join(random_hex(4)?);
    fs::create_dir_all(&hidden)?;
    if let Err(error) = fs::rename(&folder, hidden.join(name)) {
        // It is empty, and the error that matters is the one returned.
        let _ = fs::remove_dir(&hidden);
        return Err(error);
    }
    let latest = root.join(LATEST);
    let is_latest = fs::read_link(&latest).is_ok_and(|target| target.file_name() == Some(name.as_ref()));
    let unlinked = if is_latest { deleted(&latest, fs::remove_file(&latest)) } else { Ok(()) };
    Ok([unlinked, deleted(&hidden, delete(&hidden))].into_iter().filter_map(Result::err).collect())
}

/// Completes removals that a server could not complete. Returns what still cannot be deleted.
pub fn finish(aside: &Path) -> Vec<StoreError> {
    finish_by(aside, |path| fs::remove_dir_all(path))
}

fn finish_by(aside: &Path, delete: impl Fn(&Path) -> io::Result<()>) -> Vec<StoreError> {
    // One by one, so that one that cannot be deleted does not keep the others. A folder that cannot be read cannot be deleted either.
    let folders = fs::read_dir(aside).into_iter().flatten().flatten();
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    let left: Vec<StoreError> = folders.filter_map(|path| deleted(&path, delete(&path)).err()).collect();
    match left.is_empty() {
        true => deleted(aside, delete(aside)).err().into_iter().collect(),
        false => left,
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
        assert!(remove(&root, "one", &root.join(".aside")).unwrap().is_empty());
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
        assert!(finish(&aside).is_empty());
        fs::create_dir_all(aside.join("one")).unwrap();
        assert!(finish(&aside).is_empty());
        assert!(!aside.exists());
    }

    #[test]
    fn what_a_removal_leaves_behind_is_named_and_stands_in_no_other_s_way() {
        let place = tempfile::tempdir().unwrap();
        let (root, aside) = (place.path().join("runs"), place.path().join("aside"));
        let refuse = |_: &Path| -> io::Result<()> { Err(io::ErrorKind::PermissionDenied.into()) };
        for round in 0..2 {
            fs::create_dir_all(root.join("one/csv")).unwrap();
            symlink("one", root.join(LATEST)).unwrap();
            let left = remove_by(&root, "one", &aside, refuse).unwrap();
            let [one] = &left[..] else { panic!("{left:?}") };
            assert!(one.to_string().starts_with("failed to delete `"), "{one}");
            assert!(!root.join("one").exists(), "it is a result no more");
            assert!(fs::symlink_metadata(root.join(LATEST)).is_err());
            assert_eq!(
                fs::read_dir(&aside).unwrap().count(),
                round + 1,
                "a second result of this name is removed, too"
            );
        }
        assert_eq!(finish_by(&aside, refuse).len(), 2);
        let first = fs::read_dir(&aside).unwrap().next().unwrap().unwrap().path();
        let left = finish_by(&aside, |path| if path == first { refuse(path) } else { fs::remove_dir_all(path) });
        assert_eq!((left.len(), fs::read_dir(&aside).unwrap().count()), (1, 1), "the other one is deleted");
        assert!(finish(&aside).is_empty() && !aside.exists());
    }
}
