//! A file that another process appends to, read line by line.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use pubmark_runner::stream::StreamEvent;

/// Maximum number of bytes read at once.
const PIECE: u64 = 64 << 10;

/// Reads the new lines of a growing file.
pub struct Tail {
    path: PathBuf,
    read: u64,
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
}

/// A line and the position of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Position of the end of the line in the file, bytes: it identifies the line.
    pub end: u64,
    /// Text of the line without the line feed.
    pub text: String,
}

impl Tail {
    /// Starts at the beginning of the file.
    pub fn of(path: PathBuf) -> Tail {
        Tail { path, read: 0, rest: Vec::new() }
    }

    /// Starts after the line that ends at `end`.
    pub fn behind(path: PathBuf, end: u64) -> Tail {
        Tail { path, read: end, rest: Vec::new() }
    }

    /// Complete lines that were not returned before; an empty list if there are none. A file that does not exist yet has no
    /// lines.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lines(&mut self) -> io::Result<Vec<Line>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(error),
        };
        let mut end = self.read - self.rest.len() as u64;
        file.seek(SeekFrom::Start(self.read))?;
        // Repeated until there is a complete line: a line may be longer than a piece.
        loop {
            let read = file.by_ref().take(PIECE).read_to_end(&mut self.rest)?;
            self.read += read as u64;
            if read == 0 || self.rest[self.rest.len() - read..].contains(&b'\n') {
                break;
            }
        }
        let Some(last) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(vec![]) };
        let whole: Vec<u8> = self.rest.drain(..=last).collect();
        let line = |bytes: &[u8]| {
            end += bytes.len() as u64;
            Line { end, text: String::from_utf8_lossy(&bytes[..bytes.len() - 1]).into_owned() }
        };
        Ok(whole.split_inclusive(|byte| *byte == b'\n').map(line).collect())
    }
}

impl Tail {
    /// Passes on all events that were not passed on before. Lines that cannot be parsed, because another version wrote
    /// them, are ignored.
    ///
    /// # Errors
    /// The file cannot be read: events before the error were passed on.
    pub fn each_event(&mut self, mut take: impl FnMut(StreamEvent)) -> io::Result<()> {
        loop {
            let lines = self.lines()?;
            if lines.is_empty() {
                return Ok(());
            }
            lines.iter().filter_map(|line| serde_json::from_str(&line.text).ok()).for_each(&mut take);
        }
    }
}

/// The end of the last complete line of a file; and whether a line ends at `end`, or `end` is 0.
///
/// # Errors
/// The file cannot be read.
pub fn whole_lines(path: &Path, end: u64) -> io::Result<(u64, bool)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, end == 0)),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut last = Vec::new();
    let from = length.saturating_sub(PIECE);
    file.seek(SeekFrom::Start(from))?;
    file.by_ref().take(PIECE).read_to_end(&mut last)?;
    let whole = last.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| from + place as u64 + 1);
    if end == 0 || end > whole {
        return Ok((whole, end == 0));
    }
    let mut before = [0];
    file.seek(SeekFrom::Start(end - 1))?;
    file.read_exact(&mut before)?;
    Ok((whole, before == [b'\n']))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn texts(tail: &mut Tail) -> Vec<String> {
        tail.lines().unwrap().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_line_is_given_once_and_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut tail = Tail::of(path.clone());
        assert!(tail.lines().unwrap().is_empty());
        let mut file = File::create(path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(texts(&mut tail), ["one"]);
        assert!(tail.lines().unwrap().is_empty());
        file.write_all(b"o\nthree\n").unwrap();
        assert_eq!(texts(&mut tail), ["two", "three"]);
    }

    #[test]
    fn a_line_longer_than_what_is_read_at_once_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let long = "x".repeat(3 * PIECE as usize);
        std::fs::write(&path, format!("one\n{long}\nthree\n")).unwrap();
        let mut tail = Tail::of(path);
        let mut found = Vec::new();
        loop {
            match texts(&mut tail) {
                none if none.is_empty() => break,
                some => found.extend(some),
            }
        }
        assert_eq!(found, ["one", &long, "three"]);
    }

    #[test]
    fn the_end_of_a_line_is_where_the_next_one_is_read_from() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        std::fs::write(&path, b"one\nz\xff\nthree\nha").unwrap();
        let lines = Tail::of(path.clone()).lines().unwrap();
        assert_eq!(lines.iter().map(|line| line.end).collect::<Vec<_>>(), [4, 7, 13]);
        for (index, line) in lines.iter().enumerate() {
            let rest = Tail::behind(path.clone(), line.end).lines().unwrap();
            assert_eq!(rest, lines[index + 1..]);
            assert_eq!(whole_lines(&path, line.end).unwrap(), (13, true));
        }
        for (wrong, is_one) in [(0, true), (5, false), (15, false), (u64::MAX, false)] {
            assert_eq!(whole_lines(&path, wrong).unwrap(), (13, is_one), "{wrong}");
        }
        assert_eq!(whole_lines(&folder.path().join("none"), 4).unwrap(), (0, false));
    }
}
