//! A repetition with a folder of its own: the folder is made, the run is made, and what came of it is written there.

use std::fs;
use std::path::Path;

use pubmark_record::reserve::{RESERVED_BYTES, Reserve};
use pubmark_record::store::RunFolder;

use crate::error::RunError;
use crate::observer::RunObserver;
use crate::prepared::{PreparedRun, RunOutcome};
use crate::recording::now;
use crate::save::{Saved, no_folder, unwritten};

/// A repetition of a run, and its folder.
pub struct Repetition<'a> {
    run: &'a PreparedRun,
    number: u32,
    folder: RunFolder,
    /// Space for its record, once it was measured.
    reserve: Option<Reserve>,
}

impl PreparedRun {
    /// Makes the folder of repetition `number` (from 1) in `out`. Nothing is started.
    ///
    /// # Errors
    /// There is no place for it.
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

    /// Its number, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the run. Where nothing was measured, because it failed or nobody connected, the folder is removed.
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
            // One with something in it stays.
            let _ = fs::remove_dir(self.folder.path());
        }
        measured
    }

    /// Writes what was measured into the folder, and makes it the latest.
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
