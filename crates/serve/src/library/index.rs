//! A cache of data from records, in a file that survives a restart of the server: a line for each results folder, with the
//! stamps of the files that were read. The newest line of a folder is valid. Nothing depends on the file: if it is missing,
//! or a stamp differs, the record is read again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubmark_record::store::write_whole;
use serde::{Deserialize, Serialize};

use super::{Known, Listed, Stamp};

/// First line: another version of pubmark may read other data from a record.
const HEAD: &str = concat!("pubmark headlines 2, ", env!("CARGO_PKG_VERSION"));
/// Maximum size of a file that is read, bytes: half a million folders.
const LARGEST_BYTES: u64 = 512 << 20;
/// Number of outdated lines, in addition to as many as there are valid lines, before the file is rewritten.
const SPARE_LINES: usize = 1_000;

/// The index file.
pub struct Index {
    file: PathBuf,
    /// Number of lines in the file; `None` if it has to be rewritten.
    lines: Option<usize>,
}

#[derive(Deserialize)]
struct Row {
    stamps: [Stamp; 2],
    result: Listed,
}

#[derive(Serialize)]
struct RowRef<'a> {
    stamps: [Stamp; 2],
    result: &'a Listed,
}

impl Index {
    /// Opens the file and returns its data. A file that is missing, damaged, or of another version returns no data.
    pub fn open(file: PathBuf) -> (Index, HashMap<String, Known>) {
        let mut known = HashMap::new();
        let lines = read(&file, &mut known).ok().flatten();
        (Index { file, lines }, known)
    }

    /// Adds the data of one folder. While a list is created, its complete data are not available here.
    pub fn add_one(&mut self, known: &Known) {
        if let (Some(lines), Some(row)) = (self.lines, row(known)) {
            self.lines = append(&self.file, &row).map(|()| lines + 1).ok();
        }
    }

    /// Adds the data of these folders. All current data are in `known`, and in `before` for folders that the list has not
    /// reached yet.
    pub fn add(&mut self, new: &[String], known: &HashMap<String, Known>, before: &HashMap<String, Known>) {
        let rows: Vec<String> = new.iter().filter_map(|name| row(known.get(name)?)).collect();
        let most = (known.len() + before.len()) * 2 + SPARE_LINES;
        let written = match self.lines {
            Some(_) if rows.is_empty() => return,
            Some(lines) if lines + rows.len() <= most => {
                append(&self.file, &rows.concat()).map(|()| lines + rows.len())
            }
            _ => {
                let all: Vec<String> = known.values().chain(before.values()).filter_map(row).collect();
                let text = format!("{HEAD}\n{}", all.concat());
                write_whole(&self.file, text.as_bytes()).map(|()| all.len()).map_err(io::Error::other)
            }
        };
        // On a full disk lists are correct without the file; the next list tries again.
        self.lines = written.ok();
    }
}

/// Only for a record that could be read: others may be repaired without a new stamp, for instance by new permissions.
fn row(known: &Known) -> Option<String> {
    let result = known.read.as_ref().ok()?.as_deref()?;
    let mut line = serde_json::to_string(&RowRef { stamps: known.stamps, result }).ok()?;
    line.push('\n');
    Some(line)
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}

/// Reads all lines and returns their number; `None` if the file has to be rewritten.
fn read(file: &Path, known: &mut HashMap<String, Known>) -> io::Result<Option<usize>> {
    let mut text = BufReader::new(File::open(file)?.take(LARGEST_BYTES));
    let mut line = Vec::new();
    text.read_until(b'\n', &mut line)?;
    if line != format!("{HEAD}\n").as_bytes() {
        return Ok(None);
    }
    let (mut lines, mut is_whole) = (0, true);
    loop {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            return Ok(is_whole.then_some(lines));
        }
        lines += 1;
        let row = serde_json::from_slice::<Row>(&line).ok().filter(|_| line.ends_with(b"\n"));
        match row {
            Some(Row { stamps, result }) => {
                let name = result.headline.folder.clone();
                known.insert(name, Known { stamps, read: Ok(Some(Arc::new(result))) });
            }
            None => is_whole = false,
        }
    }
}
