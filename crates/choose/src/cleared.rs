//! The folder of a run or a search that is made again after an interruption.

use std::path::Path;
use std::{fs, io};

use pubmark_record::store::RunFolder;
use pubmark_runner::{ErrorKind, RunError, save};

/// Makes an empty folder: what an earlier, unfinished try left there goes.
pub fn cleared(path: &Path) -> Result<RunFolder, RunError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(RunError::from_error(ErrorKind::NotWritten, &error)
                .during(format!("failed to clear `{}`", path.display())));
        }
        _ => {}
    }
    RunFolder::at(path).map_err(|error| save::unwritten(&error))
}
