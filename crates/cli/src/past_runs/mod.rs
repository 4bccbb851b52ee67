//! Past runs of a folder: [`search`] finds them, newest first, [`filter`] chooses, [`text`] prints.

pub mod filter;
pub mod moment;
pub mod text;

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use pubmark_record::headline::{self, RUN_LIST_SCHEMA_VERSION, RunList, Unreadable};
use pubmark_record::store::LATEST;
use pubmark_record::time::UtcTime;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use filter::Filter;

/// Where runs are written unless another folder is asked for.
pub const DEFAULT_FOLDER: &str = "runs";
/// Length of the time in front of a folder's name, `20260301-090507`.
const STAMP: usize = 15;

/// The newest `limit` entries of `root` that match. One record is in memory at a time.
pub fn search(root: &Path, filter: &Filter, limit: usize) -> Result<RunList, Failure> {
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
                let reason = Failure::from_error(ExitCode::Usage, &error).chain.join(": ");
                list.unreadable.push(Unreadable { folder: name.to_string_lossy().into_owned(), reason });
            }
        }
    }
    Ok(list)
}

/// Names of the folders in `root`, by the time in front of the name; where there is none, by their last change.
fn newest_first(root: &Path) -> Result<Vec<OsString>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::from_error(ExitCode::Usage, &error)
            .during(format!("failed to list `{}`", root.display()))
            .hint("give the folder that runs were written to: `pubmark runs --folder runs`")
    };
    let mut found: Vec<(String, OsString)> = vec![];
    let entries = match fs::read_dir(root) {
        // Where nothing was run yet there is nothing to list, and no mistake.
        Err(error) if error.kind() == ErrorKind::NotFound && root == Path::new(DEFAULT_FOLDER) => return Ok(vec![]),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let shown = name.to_string_lossy();
        // A link beside the folders would show one of them twice.
        if shown == LATEST || shown.starts_with('.') || !entry.path().is_dir() {
            continue;
        }
        let stamp = stamp(&shown).map_or_else(|| changed(&entry), str::to_owned);
        found.push((stamp, name));
    }
    found.sort_by(|one, other| other.cmp(one));
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

/// The time in front of a name, which sorts as text.
fn stamp(name: &str) -> Option<&str> {
    let stamp = name.get(..STAMP)?;
    let is_digit = |(index, letter): (usize, char)| if index == 8 { letter == '-' } else { letter.is_ascii_digit() };
    stamp.chars().enumerate().all(is_digit).then_some(stamp)
}

/// When a folder was changed last, in the same form; the oldest of all where that is not known.
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
