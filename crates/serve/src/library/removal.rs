//! Removes results: first moves each folder out of sight, whole, then deletes it. A link is never followed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pubmark_record::store::LATEST;
use schemars::JsonSchema;
use serde::Serialize;

use super::files;

/// Folder in the server's for what is being removed.
pub const REMOVED_FOLDER: &str = "removed";

/// A folder of results as far as its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Extent {
    /// Its name.
    pub folder: String,
    /// Files in it, at any depth.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How large a folder is. Links in it count as files of no size.
///
/// # Errors
/// It is a link, or cannot be read.
pub fn extent(root: &Path, name: &str) -> io::Result<Extent> {
    let folder = real_folder(root, name)?;
    let found = files::of(&folder)?;
    let bytes = found.iter().filter_map(|(_, size)| *size).sum();
    Ok(Extent { folder: name.to_owned(), files: found.len() as u64, bytes })
}

/// Removes a folder of results, and the link `latest` if it leads there. `aside` is a folder on the same disk.
///
/// # Errors
/// It is a link, or cannot be removed. What was moved aside already is deleted at the next start of the server.
pub fn remove(root: &Path, name: &str, aside: &Path) -> io::Result<()> {
    let folder = real_folder(root, name)?;
    fs::create_dir_all(aside)?;
    let hidden = aside.join(name);
    fs::rename(&folder, &hidden)?;
    let latest = root.join(LATEST);
    if fs::read_link(&latest).is_ok_and(|target| target.file_name() == Some(name.as_ref())) {
        fs::remove_file(&latest)?;
    }
    fs::remove_dir_all(&hidden)
}

/// Deletes what a server that was killed left half removed.
///
/// # Errors
/// It cannot be deleted.
pub fn finish(aside: &Path) -> io::Result<()> {
    match fs::remove_dir_all(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The path of a folder that is none by way of a link.
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
    fn what_was_left_half_removed_is_finished() {
        let place = tempfile::tempdir().unwrap();
        let aside = place.path().join("aside");
        finish(&aside).unwrap();
        fs::create_dir_all(aside.join("one")).unwrap();
        finish(&aside).unwrap();
        assert!(!aside.exists());
    }
}
