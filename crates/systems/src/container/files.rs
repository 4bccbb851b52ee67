//! Makes files readable for a container, whichever user it runs as.
//!
//! A private directory is accessible to its owner only, but the user of an image is often another one. So the files are
//! copied into a subfolder that everybody may use, and the subfolder is mounted. On the host, the private directory
//! around it prevents access by others. In the container, every user can read the files, and write beside them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::SystemError;
use crate::private_directory::LOCK;

/// The folder in a private directory that is mounted.
pub(super) const SHARED: &str = "container";

/// Copies a private directory's files into the subfolder to be mounted, and returns the subfolder. Existing files are
/// not overwritten, because brokers may share a directory.
pub(super) fn share(private: &Path) -> Result<PathBuf, SystemError> {
    let shared = private.join(SHARED);
    copy_open(private, &shared, &[LOCK, SHARED]).map_err(|source| SystemError::File {
        action: "copy for a container",
        path: private.to_owned(),
        source,
    })?;
    Ok(shared)
}

/// Copies files and folders. Everybody may read and write the copies, and execute those that their owner may execute.
fn copy_open(from: &Path, to: &Path, except: &[&str]) -> io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o777))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if except.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_open(&path, &target, &[])?;
        } else if !fs::exists(&target)? {
            fs::copy(&path, &target)?;
            let runs = fs::metadata(&path)?.permissions().mode() & 0o100 != 0;
            fs::set_permissions(&target, fs::Permissions::from_mode(if runs { 0o777 } else { 0o666 }))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_open_and_what_they_are_copied_from_stays_closed() {
        let private = tempfile::tempdir().unwrap();
        let write = |name: &str, mode: u32| {
            let path = private.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for (name, mode) in [(LOCK, 0o600), ("conf/secret", 0o600), ("start", 0o700)] {
            write(name, mode);
        }
        let shared = share(private.path()).unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(shared.join("conf")), 0o777);
        assert_eq!((mode(shared.join("conf/secret")), mode(shared.join("start"))), (0o666, 0o777));
        assert_eq!(mode(private.path().join("conf/secret")), 0o600);
        assert!(!shared.join(LOCK).exists() && !shared.join(SHARED).exists());

        fs::write(shared.join("start"), "written by a broker").unwrap();
        share(private.path()).unwrap();
        assert_eq!(fs::read_to_string(shared.join("start")).unwrap(), "written by a broker");
    }
}
