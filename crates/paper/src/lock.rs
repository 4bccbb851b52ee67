//! The lock of a publication's folder: two calls at once would each write the record without the results of the other.

use std::fs::{File, TryLockError};
use std::path::Path;

use pubmark_runner::RunError;

/// Locks a folder against other calls until the file is dropped; `None` where the file system has no locks.
pub(crate) fn lock(folder: &Path) -> Result<Option<File>, RunError> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::Error(_)) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            Err(RunError::input(format!("another `pubmark paper` is at work in `{}`", folder.display()))
                .hint("wait for its end, or stop it with Ctrl-C; `--out DIR` gives this call another folder"))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_call_at_a_time_is_at_work_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let _held = lock(folder.path()).unwrap().unwrap();
        let error = lock(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is at work in") && error.hint.is_some_and(|hint| hint.contains("--out")));
        assert!(lock(&folder.path().join("absent")).unwrap().is_none());
    }
}
