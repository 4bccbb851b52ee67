//! What was read of records, in a file that survives a restart of the server: a line for each folder of results, with the stamps of the files
//! that it was read from. The newest line of a folder counts. Nothing rests on it: without the file, or where a stamp differs, the record is
//! read again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubmark_record::store::write_whole;
use serde::{Deserialize, Serialize};

use super::{Known, Listed, Stamp};

/// First line: another version of pubmark may read other things of a record.
const HEAD: &str = concat!("pubmark headlines 1, ", env!("CARGO_PKG_VERSION"));
/// Largest file that is read, bytes: half a million folders.
const LARGEST_BYTES: u64 = 512 << 20;
/// Lines that do not count, beyond as many as count, before the file is written anew.
const SPARE_LINES: usize = 1_000;

/// The file.
pub struct Index {
    file: PathBuf,
    /// Lines in it; `None` where it has to be written anew.
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
    /// The file, and what it knows. One that is not there, is damaged, or is of another version knows nothing.
    pub fn open(file: PathBuf) -> (Index, HashMap<String, Known>) {
        let mut known = HashMap::new();
        let lines = read(&file, &mut known).ok().flatten();
        (Index { file, lines }, known)
    }

    /// Notes what was read of one folder; while a list goes on, nobody else knows all that is in the file.
    pub fn add_one(&mut self, known: &Known) {
        if let (Some(lines), Some(row)) = (self.lines, row(known)) {
            self.lines = append(&self.file, &row).map(|()| lines + 1).ok();
        }
    }

    /// Notes what was read of these folders. All that is known is in `known`, and in `before` where a list has not come to it yet.
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
        // On a full disk lists are right all the same; the next one tries again.
        self.lines = written.ok();
    }
}

/// Only what could be read: the rest may be mended without another stamp, by more rights for instance.
fn row(known: &Known) -> Option<String> {
    let result = known.read.as_ref().ok()?.as_deref()?;
    let mut line = serde_json::to_string(&RowRef { stamps: known.stamps, result }).ok()?;
    line.push('\n');
    Some(line)
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}

/// Reads all lines, and says how many there are; `None` if the file has to be written anew.
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
