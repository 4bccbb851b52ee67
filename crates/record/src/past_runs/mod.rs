//! Past runs in a folder: [`search`] finds them, newest first, [`filter`] selects.

pub mod filter;
pub mod moment;

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::headline::{self, RUN_LIST_SCHEMA_VERSION, RunList, Unreadable};
use crate::store::LATEST;
use crate::time::UtcTime;
use filter::Filter;

/// Folder for runs, unless another one is given.
pub const DEFAULT_FOLDER: &str = "runs";
/// Length of the timestamp at the start of a folder's name, `20260301-090507`.
const STAMP: usize = 15;

/// The content of a folder cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("failed to list `{}`", path.display())]
pub struct NotListed {
    /// The folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

/// Reads the newest `limit` entries of `root` that match. Only one record is in memory at a time.
///
/// # Errors
/// The folder cannot be listed. Records that cannot be read are reported in the list.
pub fn search(root: &Path, filter: &Filter, limit: usize) -> Result<RunList, NotListed> {
    let names = newest_first(root)?;
    let mut list = RunList {
        schema_version: RUN_LIST_SCHEMA_VERSION,
        folder: root.display().to_string(),
        folders: names.len() as u64,
        read: 0,
        runs: vec![],
        without_record: 0,
        unreadable: vec![],
    };
    for name in names {
        if list.runs.len() >= limit {
            break;
        }
        list.read += 1;
        match headline::of_folder(&root.join(&name)) {
            Ok(Some(entry)) if filter.matches(&entry) => list.runs.push(entry),
            Ok(Some(_)) => {}
            Ok(None) => list.without_record += 1,
            Err(error) => {
                let folder = name.to_string_lossy().into_owned();
                list.unreadable.push(Unreadable { folder, reason: with_causes(&error) });
            }
        }
    }
    Ok(list)
}

/// An error and its causes, on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", with_causes(cause)),
        None => error.to_string(),
    }
}

/// Names of the folders in `root`, newest first, by the timestamp at the start of the name, otherwise by their last
/// modification.
///
/// # Errors
/// The folder cannot be listed.
pub fn newest_first(root: &Path) -> Result<Vec<OsString>, NotListed> {
    let failed = |source: std::io::Error| NotListed { path: root.to_path_buf(), source };
    let mut found: Vec<(String, OsString)> = vec![];
    let entries = match fs::read_dir(root) {
        // Without previous runs the default folder does not exist; that is not an error.
        Err(error) if error.kind() == ErrorKind::NotFound && root == Path::new(DEFAULT_FOLDER) => return Ok(vec![]),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let shown = name.to_string_lossy();
        // A link beside the folders would list one of them twice.
        if shown == LATEST || shown.starts_with('.') || !entry.path().is_dir() {
            continue;
        }
        let stamp = stamp(&shown).map_or_else(|| changed(&entry), str::to_owned);
        found.push((stamp, name));
    }
    found.sort_by(|one, other| other.cmp(one));
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

/// Timestamp at the start of a name; as text it sorts by time.
fn stamp(name: &str) -> Option<&str> {
    let stamp = name.get(..STAMP)?;
    let is_digit = |(index, letter): (usize, char)| if index == 8 { letter == '-' } else { letter.is_ascii_digit() };
    stamp.chars().enumerate().all(is_digit).then_some(stamp)
}

/// Last modification of a folder in the same format; the oldest possible one if it is not known.
fn changed(entry: &fs::DirEntry) -> String {
    let time = entry.metadata().and_then(|metadata| metadata.modified());
    time.map_or_else(|_| String::new(), |time| UtcTime::from_system_time(time).compact())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_a_time_or_does_not() {
        assert_eq!(stamp("20260301-090507-smart-home"), Some("20260301-090507"));
        for name in ["before", "2026-03-01-090507-x", "20260301-09050x", "größer-als-15-Bytes"] {
            assert_eq!(stamp(name), None, "{name}");
        }
    }
}
