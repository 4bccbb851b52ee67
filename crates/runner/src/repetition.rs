//! A repetition with its folder: the folder is created, the run is executed, and its results are written to the folder.

use std::fs;
use std::path::Path;

use pubmark_record::reserve::{RESERVED_BYTES, Reserve};
use pubmark_record::store::RunFolder;

use crate::error::RunError;
use crate::observer::RunObserver;
use crate::prepared::{PreparedRun, RunOutcome};
use crate::recording::now;
use crate::save::{Saved, no_folder, unwritten};

/// A repetition of a run, and the folder of the repetition.
pub struct Repetition<'a> {
    run: &'a PreparedRun,
    number: u32,
    folder: RunFolder,
    /// Disk space that is reserved for the record, once the run was measured.
    reserve: Option<Reserve>,
}

impl PreparedRun {
    /// Creates the folder of repetition `number` (from 1) in `out`. Nothing is started.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn repetition(&self, number: u32, out: &Path) -> Result<Repetition<'_>, RunError> {
        let folder = RunFolder::create(out, &self.workload.name, now()).map_err(|error| no_folder(&error))?;
        Ok(Repetition { run: self, number, folder, reserve: None })
    }
}

impl Repetition<'_> {
    /// The run.
    pub fn run(&self) -> &PreparedRun {
        self.run
    }

    /// Number of the repetition, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Folder of the repetition.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the repetition. If nothing was measured, because the run failed or no client connected, the folder is
    /// removed.
    ///
    /// # Errors
    /// As [`PreparedRun::repeat`]; or the disk has no space for a record.
    pub fn measure(&mut self, observer: &mut dyn RunObserver) -> Result<RunOutcome, RunError> {
        let reserved = self.folder.reserve(RESERVED_BYTES).map_err(|error| no_folder(&error));
        let measured = reserved.and_then(|reserve| {
            let outcome = self.run.repeat(self.number, self.folder.name(), observer)?;
            self.reserve = Some(reserve).filter(|_| !outcome.never_connected());
            Ok(outcome)
        });
        if self.reserve.is_none() {
            // A folder with files in it is not removed.
            let _ = fs::remove_dir(self.folder.path());
        }
        measured
    }

    /// Writes the results into the folder, and makes it the latest one.
    pub fn save(self, outcome: &RunOutcome) -> Saved {
        let Repetition { folder, reserve, .. } = self;
        let Some(reserve) = reserve else {
            return Saved { record: outcome.record.clone(), unwritten: None };
        };
        let Saved { record, unwritten: error } = outcome.save(&folder, reserve);
        let error = error.or_else(|| folder.mark_latest().err().map(|error| unwritten(&error)));
        Saved { record, unwritten: error }
    }
}
