//! The folder of an experiment: its definition, its journal, a folder for each run, and the results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pubmark_record::record::Record;
use pubmark_record::reserve::{RESERVED_BYTES, Reserve};
use pubmark_record::store::{self, RunFolder, StoreError};
use pubmark_runner::{ErrorKind, RunError, RunOutcome, save};

use super::journal::RunPosition;

/// Subfolder with the folders of the runs.
const RUNS: &str = "runs";
/// File with the latency histogram of a run.
const LATENCY_FILE: &str = "latency.hdr";
/// File with the histogram of its lower bounds.
const LATENCY_LOWER_FILE: &str = "latency_lower.hdr";

/// The folder of an experiment.
#[derive(Clone, Debug)]
pub struct ExperimentFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Name of the folder, which identifies the experiment in records.
    pub name: String,
}

/// The folder of a run, with space reserved for its record.
pub struct Begun {
    /// Relative to the experiment's folder.
    name: String,
    folder: RunFolder,
    reserve: Reserve,
}

impl Begun {
    /// Saves the run, and returns the name of the folder.
    pub fn save(self, outcome: &RunOutcome) -> Result<String, RunError> {
        outcome.save(&self.folder, self.reserve).whole()?;
        Ok(self.name)
    }

    /// Removes the folder of a run without results.
    pub fn give_up(self) {
        drop(self.reserve);
        // A folder that is not empty is left.
        let _ = fs::remove_dir(self.folder.path());
    }
}

impl ExperimentFolder {
    /// An existing folder of an experiment.
    pub fn at(path: &Path) -> ExperimentFolder {
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ExperimentFolder { path: path.to_owned(), name }
    }

    /// Name of a run's folder, relative to this one.
    pub fn run_name(place: &RunPosition) -> String {
        format!("{RUNS}/{}-{}", place.cell, place.repetition)
    }

    /// Creates the folder of a run and reserves the space of its record. Leftovers of an earlier, unfinished run are
    /// removed.
    pub fn begin(&self, place: &RunPosition) -> Result<Begun, RunError> {
        let name = ExperimentFolder::run_name(place);
        let path = self.path.join(&name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RunError::from_error(ErrorKind::Input, &error)
                    .during(format!("failed to clear `{}`", path.display())));
            }
            _ => {}
        }
        let unwritten = |error: StoreError| save::unwritten(&error);
        let folder = RunFolder::at(&path).map_err(unwritten)?;
        let reserve = folder.reserve(RESERVED_BYTES).map_err(unwritten)?;
        Ok(Begun { name, folder, reserve })
    }

    /// The record of a saved run.
    pub fn record(&self, run: &str) -> Result<Record, RunError> {
        store::load(&self.path.join(run)).map_err(|error| RunError::from_error(ErrorKind::Input, &error))
    }

    /// The latency histogram of a saved run; `None` if it has none.
    pub fn latency(&self, run: &str) -> Result<Option<Vec<u8>>, RunError> {
        self.file(run, LATENCY_FILE)
    }

    /// The same for the lower bounds.
    pub fn latency_lower(&self, run: &str) -> Result<Option<Vec<u8>>, RunError> {
        self.file(run, LATENCY_LOWER_FILE)
    }

    fn file(&self, run: &str, name: &str) -> Result<Option<Vec<u8>>, RunError> {
        let path = self.path.join(run).join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                Err(RunError::from_error(ErrorKind::Input, &error)
                    .during(format!("failed to read `{}`", path.display())))
            }
        }
    }

    /// Writes the record and the files that are generated from it.
    pub fn write(&self, files: &[(String, String)]) -> Result<(), RunError> {
        files.iter().try_for_each(|(name, text)| save::write(&self.path.join(name), text))
    }
}
