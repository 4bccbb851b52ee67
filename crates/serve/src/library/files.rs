//! The files of a results folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Everything in a folder at any depth except folders, in the order of the paths: regular files with their sizes in bytes,
/// and `None` for anything else. Links are not followed: they may lead anywhere.
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
