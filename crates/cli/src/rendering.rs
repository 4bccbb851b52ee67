//! Records on disk, and what is made from them.

use std::path::{Path, PathBuf};

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

/// The same of any kind of record.
pub fn load_as<Kind: Stored>(run: &Path) -> Result<Kind, Failure> {
    store::load_as(run).map_err(unreadable)
}

/// A record that cannot be read.
pub fn unreadable(error: StoreError) -> Failure {
    let failure = Failure::from_error(ExitCode::Usage, &error);
    match error {
        StoreError::NotFound { .. } => failure.hint("give the folder of a run, for instance `runs/latest`"),
        StoreError::OtherVersion { .. } => failure.hint("use the pubmark that wrote it, or run again"),
        _ => failure.hint("give the folder of another run; `pubmark run` makes one"),
    }
}

/// The folder that a run's path names.
pub fn folder_of(run: &Path) -> PathBuf {
    if run.is_dir() {
        return run.to_owned();
    }
    run.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Writes a file, whole or not at all.
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
