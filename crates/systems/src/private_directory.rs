//! A directory for a system's files. It is removed when its owner ends; if the owner was killed, the next start removes
//! it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::SystemError;

/// Prefix of the name of every such directory.
const PREFIX: &str = "pubmark-system-";
/// File that the owner keeps locked; the kernel releases the lock when the owner ends.
pub(crate) const LOCK: &str = "lock";

/// A directory for one system, readable only by its owner; removed when dropped.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    _lock: File,
}

impl PrivateDirectory {
    /// Creates a directory in `folder`, and removes those whose owners have ended.
    pub fn within(folder: &Path) -> Result<PrivateDirectory, SystemError> {
        remove_abandoned(folder);
        PrivateDirectory::create(&planned(folder))
    }

    /// Creates one at a path that [`planned`] returned.
    pub fn create(path: &Path) -> Result<PrivateDirectory, SystemError> {
        let failed = |action, source| SystemError::File { action, path: path.to_owned(), source };
        DirBuilder::new().mode(0o700).create(path).map_err(|source| failed("create", source))?;
        lock(path).map(|lock| PrivateDirectory { path: path.to_owned(), _lock: lock }).map_err(|source| {
            // The failed lock is reported. If the empty directory remains, it does no harm.
            let _ = fs::remove_dir_all(path);
            failed("lock", source)
        })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // A failure cannot be reported from here; the next start removes what remains.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Absolute path of the folder for temporary files: supervisors have another working directory.
pub fn folder() -> Result<PathBuf, SystemError> {
    let folder = std::env::temp_dir();
    std::path::absolute(&folder).map_err(|source| SystemError::File { action: "find", path: folder, source })
}

/// A path in `folder` for a directory that does not exist yet, so that a supervisor can register it before it is
/// created.
pub fn planned(folder: &Path) -> PathBuf {
    folder.join(format!("{PREFIX}{:016x}", RandomState::new().hash_one(std::process::id())))
}

/// Creates the lock under another name first, so that the lock file is never visible unlocked while its owner runs.
fn lock(directory: &Path) -> io::Result<File> {
    let early = directory.join("lock-early");
    let file = File::create_new(&early)?;
    file.try_lock().map_err(io::Error::from)?;
    fs::rename(&early, directory.join(LOCK))?;
    Ok(file)
}

/// Removes directories of our user whose lock is free. Those that cannot be read or removed remain.
pub fn remove_abandoned(folder: &Path) {
    // SAFETY: the call has no arguments and cannot fail.
    let own_user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir() && found.uid() == own_user);
        if ours
            && File::open(path.join(LOCK)).is_ok_and(|file| !matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_its_owner_and_abandoned_ones_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let kept = PrivateDirectory::within(folder.path()).unwrap();
        assert_eq!(fs::metadata(kept.path()).unwrap().mode() & 0o777, 0o700);
        // The state after an owner was killed: a lock file that is not locked.
        let abandoned = folder.path().join(format!("{PREFIX}0"));
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let foreign = folder.path().join("something-else");
        fs::create_dir(&foreign).unwrap();

        let second = PrivateDirectory::within(folder.path()).unwrap();
        assert!(!abandoned.exists() && foreign.exists() && kept.path().exists());
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }
}
