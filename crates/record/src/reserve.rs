//! Reserves disk space for a record before the run, so that a disk that fills up during the run does not lose the
//! measurement.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::record::Record;
use crate::store::{self, RECORD_FILE, StoreError, failure, to_json};

/// Name of the file that reserves the space until the record is written into it.
pub const RESERVE_FILE: &str = ".reserve";
/// Space reserved for a record, bytes: tens of times what a run of an hour with 250 device types needs.
pub const RESERVED_BYTES: u64 = 8 << 20;

/// Reserved space on the disk of a run's folder. The record is written into this file, so no other program can use the
/// space in between; dropping the value frees the space.
#[derive(Debug)]
pub struct Reserve {
    /// Folder of the run.
    folder: PathBuf,
    file: File,
}

impl Reserve {
    /// Reserves the space.
    ///
    /// # Errors
    /// The disk has too little free space, or files cannot be created in the folder.
    pub(crate) fn take(folder: &Path, bytes: u64) -> Result<Reserve, StoreError> {
        let path = folder.join(RESERVE_FILE);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let reserve =
            Reserve { folder: folder.to_owned(), file: opened.map_err(|source| failure("create", &path, source))? };
        // Locked until this process ends, so that the file of a killed process is recognised. A failure drops the
        // reserve, which removes the file.
        reserve.file.try_lock().map_err(|error| failure("lock", &path, error.into()))?;
        allocate(&reserve.file, bytes).map_err(|source| {
            let action = "reserve the space of a record in";
            failure(action, folder, source)
        })?;
        Ok(reserve)
    }

    /// Writes `record.json` into the reserved space and returns its path. A record that is larger than the space needs
    /// free space on the disk.
    ///
    /// # Errors
    /// The folder was removed, or the record is larger than the space and the disk is full.
    pub fn write_record(self, record: &Record) -> Result<PathBuf, StoreError> {
        let text = to_json(record)?;
        let path = self.folder.join(RECORD_FILE);
        let filled = self.fill(text.as_bytes()).and_then(|()| fs::rename(self.path(), &path));
        drop(self);
        match filled {
            Ok(()) => store::sync_folder_of(&path)?,
            // The reserve was removed, or the disk failed: try a new file.
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
        // The file does not exist any more if it became the record. A failure cannot be reported from `drop`; the next
        // run removes the file.
        let _ = fs::remove_file(self.path());
    }
}

/// Removes the reserves of killed processes from the folders of all runs in `root`.
pub(crate) fn remove_abandoned(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path().join(RESERVE_FILE);
        // A reserve whose process has created but not yet locked it may be removed here; its record is then written to
        // a new file.
        if File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            // A file that cannot be removed is left.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Allocates the blocks of a file, so that writing that many bytes cannot run out of space.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    loop {
        // SAFETY: a plain system call on an open descriptor.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
