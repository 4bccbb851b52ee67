//! Whether a command is at work in a folder of results. It holds a lock on a file of the folder until it ends, and the kernel
//! releases the lock however that happens.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::reserve::RESERVE_FILE;

/// The journal of an experiment or a choice. Its lock is held until the last run has ended.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// Files that are locked. A run and a search hold the lock on the first until their record is written.
const LOCKED: [&str; 2] = [RESERVE_FILE, JOURNAL_FILE];

/// Takes shared locks on these files, so that no command begins in the folder while they are held; `None` if a command is at
/// work there.
///
/// # Errors
/// The files cannot be opened.
pub fn claim(folder: &Path) -> io::Result<Option<Vec<File>>> {
    let mut locks = Vec::new();
    for file in LOCKED {
        // A link in place of such a file is not followed, and a FIFO does not block.
        let opened =
            OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(folder.join(file));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match opened.try_lock_shared() {
            Ok(()) => locks.push(opened),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(Some(locks))
}

/// Whether a command is at work in the folder; not, where that cannot be read.
pub fn is_in_use(folder: &Path) -> bool {
    claim(folder).is_ok_and(|claimed| claimed.is_none())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_in_use_while_a_command_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_in_use(folder.path()), "it has no such file");
        for file in LOCKED {
            let held = File::create(folder.path().join(file)).unwrap();
            assert!(!is_in_use(folder.path()));
            held.lock().unwrap();
            assert!(is_in_use(folder.path()), "{file}");
            drop(held);
            assert!(!is_in_use(folder.path()), "{file}");
        }
        let _claimed = claim(folder.path()).unwrap().unwrap();
        assert!(!is_in_use(folder.path()), "who looks is not at work");
    }
}
