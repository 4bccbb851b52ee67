//! One run at a time on a machine, whatever the results folder of the server: a lock that all servers of a user share.
//!
//! The lock is on a file in a folder that only this user can access. The child that measures and its descendants hold it:
//! it is released when the last of these processes has ended, for any reason.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Name of the lock file.
const LOCK_FILE: &str = "pubmark-measures";

/// Folders for the lock file. They are searched each time, because the end of a login session removes its folder.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Folders that are used if only this user can access them.
    sessions: Vec<PathBuf>,
    /// Folder of temporary files, in which a folder for this user is created.
    temporary: PathBuf,
    user: u32,
}

/// The lock cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to use `{}` for the lock that keeps runs of other servers apart", path.display())]
pub struct NoPlace {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl Machine {
    /// The lock of this user: in the session's folder, or else in a folder within that of temporary files.
    pub fn this() -> Machine {
        // SAFETY: geteuid always succeeds and touches no memory.
        let user = unsafe { libc::geteuid() };
        let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let sessions = given.into_iter().chain([PathBuf::from(format!("/run/user/{user}"))]).collect();
        Machine { sessions, temporary: std::env::temp_dir(), user }
    }

    /// Takes the lock, unless another process measures. It is held as long as the file is open in any process.
    ///
    /// # Errors
    /// There is no folder that only this user can access, or the file cannot be opened.
    pub fn try_take(&self) -> Result<Option<File>, NoPlace> {
        let path = self.folder()?.join(LOCK_FILE);
        let taken = open(&path).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        });
        taken.map_err(|source| NoPlace { path, source })
    }

    fn folder(&self) -> Result<PathBuf, NoPlace> {
        match self.sessions.iter().find(|folder| is_private(folder, self.user).is_ok()) {
            Some(folder) => Ok(folder.clone()),
            None => own(self.temporary.join(format!("pubmark-{}", self.user)), self.user),
        }
    }

    /// A lock for a test.
    #[cfg(test)]
    pub fn with_session(folder: PathBuf) -> Machine {
        Machine { sessions: vec![folder.clone()], temporary: folder, ..Machine::this() }
    }
}

/// Opens the file. A symbolic link is not followed, and a FIFO does not block.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// The folder with this name, created if it is missing.
fn own(folder: PathBuf, user: u32) -> Result<PathBuf, NoPlace> {
    let made = match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => is_private(&folder, user),
    };
    match made {
        Ok(()) => Ok(folder),
        Err(source) => Err(NoPlace { path: folder, source }),
    }
}

/// Checks that this is a folder, not a link to one, and that only this user can write to it. In a folder for all users,
/// others may have created it.
fn is_private(folder: &Path, user: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    match () {
        () if !found.is_dir() => Err(io::Error::other("it is a link or a file, no folder")),
        () if found.uid() != user => {
            Err(io::Error::other(format!("it belongs to the user with the number {}", found.uid())))
        }
        () if found.mode() & 0o022 != 0 => Err(io::Error::other("others may write in it")),
        () => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn two_servers_of_one_user_have_one_lock() {
        let place = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| Machine::with_session(place.path().to_owned()));
        let held = one.try_take().unwrap().unwrap();
        assert!(other.try_take().unwrap().is_none());
        drop(held);
        assert!(other.try_take().unwrap().is_some());
    }

    #[test]
    fn a_session_that_has_ended_is_replaced_by_a_folder_of_our_own() {
        let place = tempfile::tempdir().unwrap();
        let sessions = vec![place.path().join("ended")];
        let machine = Machine { sessions, temporary: place.path().to_owned(), ..Machine::this() };
        assert!(machine.try_take().unwrap().is_some());
        assert!(place.path().join(format!("pubmark-{}", machine.user)).join(LOCK_FILE).is_file());
    }

    #[test]
    fn what_others_may_have_made_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let user = Machine::this().user;
        let folder = |name: &str, mode: u32| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            folder
        };
        let [good, open] = [folder("good", 0o700), folder("open", 0o777)];
        let link = place.path().join("link");
        symlink(&good, &link).unwrap();
        assert!(is_private(&good, user).is_ok());
        for wrong in [&open, &link, &place.path().join("none")] {
            assert!(is_private(wrong, user).is_err(), "{}", wrong.display());
        }
        assert!(is_private(&good, user + 1).is_err());
        // Our folder within that of temporary files is not created through a link.
        let temporary = folder("temporary", 0o1777);
        let ours = temporary.join(format!("pubmark-{user}"));
        symlink(&good, &ours).unwrap();
        assert!(own(ours.clone(), user).unwrap_err().to_string().contains("pubmark-"));
        fs::remove_file(&ours).unwrap();
        own(ours.clone(), user).unwrap();
        assert_eq!(fs::metadata(&ours).unwrap().mode() & 0o777, 0o700);
        // A link in place of the file is not followed.
        symlink("/etc/passwd", ours.join(LOCK_FILE)).unwrap();
        assert!(Machine { sessions: vec![], temporary, user }.try_take().is_err());
    }
}
