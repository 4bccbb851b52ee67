//! One run at a time on one machine, whatever folder its server has: a lock that all servers of a user share.
//!
//! It is on a file in a folder that belongs to this user alone, and is held by whoever measures, with all that it starts: it is free again
//! when the last of those processes has ended, however that came.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Name of the file.
const LOCK_FILE: &str = "pubmark-measures";

/// Where the lock is looked for. Each time anew: a session that ends takes its folder with it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Folders that are used if they belong to this user alone.
    sessions: Vec<PathBuf>,
    /// Folder of temporary files, for one of our own in it.
    temporary: PathBuf,
    user: u32,
}

/// The lock cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("failed to use `{}` for the lock that keeps runs of other servers apart", path.display())]
pub struct NoPlace {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl Machine {
    /// Of this user: in the folder of the session, or else in one of its own in that of temporary files.
    pub fn this() -> Machine {
        // SAFETY: geteuid always succeeds and touches no memory.
        let user = unsafe { libc::geteuid() };
        let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let sessions = given.into_iter().chain([PathBuf::from(format!("/run/user/{user}"))]).collect();
        Machine { sessions, temporary: std::env::temp_dir(), user }
    }

    /// The lock, unless somebody measures. It is held as long as the file is open in any process.
    ///
    /// # Errors
    /// There is no folder that belongs to this user alone, or the file cannot be opened.
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

    /// One of a test.
    #[cfg(test)]
    pub fn with_session(folder: PathBuf) -> Machine {
        Machine { sessions: vec![folder.clone()], temporary: folder, ..Machine::this() }
    }
}

/// The file. What somebody put in its place is neither followed nor waited for.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// A folder of this name, made if it is not there.
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

/// Is it a folder, and no link to one, in which nobody but this user can put anything? Others may have made it in a folder for all.
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
        // One of our own in the folder of temporary files: not where a link is.
        let temporary = folder("temporary", 0o1777);
        let ours = temporary.join(format!("pubmark-{user}"));
        symlink(&good, &ours).unwrap();
        assert!(own(ours.clone(), user).unwrap_err().to_string().contains("pubmark-"));
        fs::remove_file(&ours).unwrap();
        own(ours.clone(), user).unwrap();
        assert_eq!(fs::metadata(&ours).unwrap().mode() & 0o777, 0o700);
        // Nor is a link in place of the file followed.
        symlink("/etc/passwd", ours.join(LOCK_FILE)).unwrap();
        assert!(Machine { sessions: vec![], temporary, user }.try_take().is_err());
    }
}
