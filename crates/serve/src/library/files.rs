//! The files of a folder of results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Pages of folders of results: of a run, an experiment, a search for capacity.
pub const REPORTS: [&str; 3] = ["report.html", "experiment.html", "capacity.html"];

/// What is in a folder at any depth but for folders, in order of the paths: regular files with their sizes in bytes, and `None` for
/// anything else. A link is not followed: it may lead anywhere.
///
/// # Errors
/// A folder cannot be read.
pub fn of(folder: &Path) -> io::Result<Vec<(PathBuf, Option<u64>)>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if found.is_dir() {
                open.push(entry.path());
            } else {
                files.push((entry.path(), found.is_file().then_some(found.len())));
            }
        }
    }
    files.sort();
    Ok(files)
}
