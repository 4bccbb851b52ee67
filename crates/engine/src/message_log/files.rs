//! The files of a message log during a run: one for each process, in a folder that is removed as soon as all are open,
//! so that none of them remains however the run ends.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::row::{ROW_BYTES, Row};

/// A folder for the files.
#[derive(Debug)]
pub struct LogFiles {
    folder: PathBuf,
}

impl LogFiles {
    /// Creates the folder, inside another one.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(inside: &Path) -> io::Result<LogFiles> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        // The path must be absolute, because workers are started in other folders.
        let inside = std::path::absolute(inside)?;
        let folder = inside.join(format!(".pubmark-messages-{}-{number}", std::process::id()));
        fs::create_dir_all(&inside)?;
        fs::create_dir(&folder)?;
        Ok(LogFiles { folder })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the file of the process whose first shard has this index.
    pub fn file(&self, first: usize) -> PathBuf {
        file_in(&self.folder, first)
    }

    /// Opens all files, and removes their names.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn open(self) -> io::Result<Vec<File>> {
        fs::read_dir(&self.folder)?.map(|entry| File::open(entry?.path())).collect()
    }
}

impl Drop for LogFiles {
    fn drop(&mut self) {
        // An error is ignored: remaining files do no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Path of the file of the process whose first shard has this index.
pub fn file_in(folder: &Path, first: usize) -> PathBuf {
    folder.join(format!("{first}.rows"))
}

/// The rows of a file, in the order in which they were written.
///
/// # Errors
/// The file cannot be read.
pub fn rows(file: &File) -> io::Result<impl Iterator<Item = io::Result<Row>> + use<>> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    let mut reader = BufReader::with_capacity(ROW_BYTES << 10, file);
    Ok(std::iter::from_fn(move || {
        let mut bytes = [0; ROW_BYTES];
        match reader.read_exact(&mut bytes) {
            Ok(()) => {
                Some(Row::decode(&bytes).ok_or_else(|| io::Error::other("a row of the message log is not readable")))
            }
            // A process that was killed may have left an incomplete row.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(error)),
        }
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn nothing_remains_and_half_a_row_is_none() {
        let files = LogFiles::create(&std::env::temp_dir()).unwrap();
        let folder = files.folder().to_owned();
        let mut file = File::create(files.file(3)).unwrap();
        file.write_all(&[0; ROW_BYTES + 7]).unwrap();
        let opened = files.open().unwrap();
        assert!(!folder.exists());
        assert_eq!(rows(&opened[0]).unwrap().count(), 1);
        assert_eq!(rows(&opened[0]).unwrap().count(), 1, "from the begin again");
    }
}
