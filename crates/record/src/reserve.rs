//! Disk space for a record, taken before the run: a disk that fills up meanwhile must not cost the measurement.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::record::Record;
use crate::store::{self, RECORD_FILE, StoreError, failure, to_json};

/// Name of the file that holds the space until the record is written into it.
pub const RESERVE_FILE: &str = ".reserve";
/// Space that is taken for a record, bytes: tens of times what a run of an hour with 250 device types needs.
pub const RESERVED_BYTES: u64 = 8 << 20;

/// Space on the disk of a run's folder. The record is written into it, so that nobody can take the space in between; dropping it
/// gives the space back.
#[derive(Debug)]
pub struct Reserve {
    /// The run's folder.
    folder: PathBuf,
    file: File,
}

impl Reserve {
    /// Takes the space.
    ///
    /// # Errors
    /// The disk has less, or the folder takes no files.
    pub(crate) fn take(folder: &Path, bytes: u64) -> Result<Reserve, StoreError> {
        let path = folder.join(RESERVE_FILE);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let reserve =
            Reserve { folder: folder.to_owned(), file: opened.map_err(|source| failure("create", &path, source))? };
        // Held while this process lives: it tells what a killed one left. A failure drops the reserve, which removes the file.
        reserve.file.try_lock().map_err(|error| failure("lock", &path, error.into()))?;
        allocate(&reserve.file, bytes).map_err(|source| {
            let action = "reserve the space of a record in";
            failure(action, folder, source)
        })?;
        Ok(reserve)
    }

    /// Writes `record.json` into the space and returns its path. What is larger than the space needs a disk with room.
    ///
    /// # Errors
    /// The folder is gone, or the record is larger than the space and the disk is full.
    pub fn write_record(self, record: &Record) -> Result<PathBuf, StoreError> {
        let text = to_json(record)?;
        let path = self.folder.join(RECORD_FILE);
        let filled = self.fill(text.as_bytes()).and_then(|()| fs::rename(self.path(), &path));
        drop(self);
        match filled {
            Ok(()) => store::sync_folder_of(&path)?,
            // Somebody removed the reserve, or the disk went wrong: a file of its own may do.
            Err(_) => store::write_whole(&path, text.as_bytes())?,
        }
        Ok(path)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(RESERVE_FILE)
    }

    fn fill(&self, content: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(content)?;
        file.set_len(content.len() as u64)?;
        file.sync_all()
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // Not there any more if it became the record. Nobody is left to hear of a failure; the next run removes what stays.
        let _ = fs::remove_file(self.path());
    }
}

/// Removes the reserves of killed processes from the folders of runs in `root`.
pub(crate) fn remove_abandoned(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path().join(RESERVE_FILE);
        // One whose owner has not come to lock it yet may be taken for abandoned: its record is then written in a file of its own.
        if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            // What cannot be removed stays.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Gives a file its blocks, so that writing so much into it cannot run out of space.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    loop {
        // SAFETY: a plain system call on a descriptor that is open.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
