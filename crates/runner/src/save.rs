//! The folder of a run: its record, histograms and specification, and the reports that are made from the record.

use std::path::Path;

use pubmark_record::record::Record;
use pubmark_record::reserve::Reserve;
use pubmark_record::store::{self, RECORD_FILE, RunFolder, StoreError};
use pubmark_report::exports;

use crate::error::{ErrorKind, RunError};
use crate::prepared::RunOutcome;
use crate::spec::file::SPEC_FILE;

/// A saved record.
pub struct Saved {
    /// The record, which names its files.
    pub record: Record,
    /// The error, of kind [`ErrorKind::NotWritten`], if a file could not be written.
    pub unwritten: Option<RunError>,
}

impl Saved {
    /// The record, if all files were written.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn whole(self) -> Result<Record, RunError> {
        self.unwritten.map_or(Ok(self.record), Err)
    }
}

impl RunOutcome {
    /// Writes the run's folder: the record, which names its files, then those files; computes metrics of the user's
    /// own. `reserve` is the disk space that was allocated for the record before the run began.
    pub fn save(&self, folder: &RunFolder, reserve: Reserve) -> Saved {
        let mut record = self.record.clone();
        let file_of = |name: &str| format!("{name}.hdr");
        record.run.files = exports::all(&record).into_iter().map(|(name, _)| (name.clone(), name)).collect();
        for (name, _) in &self.histograms {
            record.run.files.insert(format!("{name} histogram (HdrHistogram V2, ns)"), file_of(name));
        }
        if let Some(log) = &record.message_log {
            record.run.files.insert("messages, one row for each and each subscriber".to_owned(), log.file.clone());
            let by_client = log.by_client.clone().map(|file| (file.clone(), file));
            record.run.files.extend(by_client);
        }
        record.run.files.insert("specification of the run".to_owned(), SPEC_FILE.to_owned());
        let write_all = || -> Result<(), RunError> {
            let failed = |error: StoreError| unwritten(&error);
            reserve.write_record(&record).map_err(failed)?;
            folder.write_file(SPEC_FILE, self.spec.as_bytes()).map_err(failed)?;
            for (name, bytes) in &self.histograms {
                folder.write_file(&file_of(name), bytes).map_err(failed)?;
            }
            if let Some(log) = &self.message_log {
                log.write(folder.path()).map_err(|error| unwritten_log(&error))?;
            }
            if let Some(custom) = &self.custom {
                // The programs of metrics read the files that were written so far; the record with their values
                // replaces the first one.
                custom.enter(&mut record, self.message_log.as_ref(), folder.path());
                write_record(&record, folder.path())?;
            }
            exports::all(&record).iter().try_for_each(|(name, text)| write(&folder.path().join(name), text))
        };
        // The folder was writable when the run began: a failure here is the disk's, not an error of the user.
        let unwritten = write_all().err().map(|error| RunError { kind: ErrorKind::NotWritten, ..error });
        Saved { record, unwritten }
    }
}

fn unwritten_log(error: &std::io::Error) -> RunError {
    RunError::from_error(ErrorKind::NotWritten, error).during("failed to write the message log".to_owned())
}

fn write_record(record: &Record, folder: &Path) -> Result<(), RunError> {
    let json = store::to_json(record).map_err(|error| no_folder(&error))?;
    write(&folder.join(RECORD_FILE), &json)
}

/// Writes a record that was made elsewhere, and its reports, into a folder.
///
/// # Errors
/// A file could not be written.
pub fn again(record: &Record, folder: &Path) -> Result<(), RunError> {
    write_record(record, folder)?;
    exports::all(record).iter().try_for_each(|(name, text)| write(&folder.join(name), text))
}

/// The error for a completed run that could not be saved completely.
pub fn unwritten(error: &StoreError) -> RunError {
    RunError::from_error(ErrorKind::NotWritten, error)
        .hint("free space, or choose another disk with `--out`; `--json` prints the record, wherever it cannot be kept")
}

/// The error if the folder for a run cannot be created; nothing was started.
pub fn no_folder(error: &StoreError) -> RunError {
    RunError::from_error(ErrorKind::Input, error).hint("choose another folder with `--out`")
}

/// Writes a file completely or not at all; creates its folder.
///
/// # Errors
/// It could not be written.
pub fn write(path: &Path, text: &str) -> Result<(), RunError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error).during(format!("failed to create `{}`", folder.display()))
        })?;
    }
    store::write_whole(path, text.as_bytes()).map_err(|error| no_folder(&error))
}
