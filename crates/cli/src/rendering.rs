//! Loading records, and writing files that are generated from them.

use std::path::Path;

use pubmark_record::record::Record;
use pubmark_record::store::{self, StoreError, Stored};
use pubmark_report::terminal::{self, TerminalOptions};
use pubmark_runner::save;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::printer::Printer;

/// Loads the record of a run from its folder or file.
pub fn load(run: &Path) -> Result<Record, Failure> {
    load_as(run)
}

/// Loads a record of any kind.
pub fn load_as<Kind: Stored>(run: &Path) -> Result<Kind, Failure> {
    store::load_as(run).map_err(unreadable)
}

/// A failure for a record that cannot be read.
pub fn unreadable(error: StoreError) -> Failure {
    Failure::from_error(ExitCode::Usage, &error).hint(error.reading_hint())
}

/// Writes a file atomically.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    Ok(save::write(path, text)?)
}

/// Writes files below a folder.
pub fn write_files(files: &[(String, String)], folder: &Path) -> Result<(), Failure> {
    files.iter().try_for_each(|(name, text)| write(&folder.join(name), text))
}

/// The summary for the terminal.
pub fn summary(record: &Record, printer: &Printer, folder: Option<&Path>, verbose: bool) -> String {
    let folder = folder.map(|folder| folder.display().to_string());
    terminal::summary(record, &TerminalOptions { verbose, ..printer.summary_options(folder.as_deref()) })
}
