//! A file that another process appends to, read line by line.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

/// Bytes that are read at once, at most.
const PIECE: u64 = 64 << 10;

/// New lines of a file that grows.
pub struct Tail {
    path: PathBuf,
    read: u64,
    /// The beginning of a line whose end is not there yet.
    rest: Vec<u8>,
}

impl Tail {
    /// From its beginning.
    pub fn of(path: PathBuf) -> Tail {
        Tail { path, read: 0, rest: Vec::new() }
    }

    /// Whole lines that were not given before; an empty list if there is none. A file that is not there yet has none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn lines(&mut self) -> std::io::Result<Vec<String>> {
        let mut file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.read))?;
        self.read += file.take(PIECE).read_to_end(&mut self.rest)? as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(vec![]) };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        Ok(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_line_is_given_once_and_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut tail = Tail::of(path.clone());
        assert!(tail.lines().unwrap().is_empty());
        let mut file = std::fs::File::create(path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.lines().unwrap(), ["one"]);
        assert!(tail.lines().unwrap().is_empty());
        file.write_all(b"o\nthree\n").unwrap();
        assert_eq!(tail.lines().unwrap(), ["two", "three"]);
    }
}
