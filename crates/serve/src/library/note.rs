//! The note of a result: a text and tags that a user adds, in a file beside the record, which stays unchanged.

use std::fs;
use std::io;
use std::path::Path;

use pubmark_record::plain;
use pubmark_record::store::{StoreError, write_whole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the note file in a results folder.
pub const NOTE_FILE: &str = "note.json";
/// Maximum length of the text, characters.
pub const LONGEST_TEXT: usize = 4_000;
/// Maximum number of tags.
pub const MOST_TAGS: usize = 16;
/// Maximum length of a tag, characters.
pub const LONGEST_TAG: usize = 40;
/// Maximum size of a file that is read, bytes: four for each character, and the syntax.
const LARGEST_BYTES: u64 = 64 << 10;

/// A note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The text, at most 4,000 characters.
    #[serde(default)]
    pub text: String,
    /// Tags for searching, at most 16: letters, digits, `.`, `_` and `-`, at most 40 characters each.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Reason why a note cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// The text is too long.
    #[error("the text has {0} characters, more than {LONGEST_TEXT}")]
    TooLong(usize),
    /// There are too many tags.
    #[error("there are {0} tags, more than {MOST_TAGS}")]
    TooMany(usize),
    /// A tag is not valid.
    #[error("`{0}` is no tag: letters, digits, `.`, `_` and `-`, {LONGEST_TAG} characters at most")]
    NoTag(String),
    /// The file is too large.
    #[error("`{0}` is larger than {LARGEST_BYTES} B")]
    TooLarge(String),
    /// The file cannot be read.
    #[error("failed to read the note `{path}`")]
    Unread {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The file does not contain a note.
    #[error("failed to read `{path}` as a note")]
    NoNote {
        /// Path of the file.
        path: String,
        /// Cause of the failure.
        #[source]
        source: serde_json::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Unwritten(#[from] StoreError),
}

impl Note {
    /// A validated note: tags sorted without repetitions; no terminal control characters.
    ///
    /// # Errors
    /// The text is too long, or a tag is not valid.
    pub fn of(text: &str, tags: &[String]) -> Result<Note, NoteError> {
        let text = plain::masked(text.trim()).into_owned();
        let length = text.chars().count();
        if length > LONGEST_TEXT {
            return Err(NoteError::TooLong(length));
        }
        let mut tags: Vec<String> =
            tags.iter().map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect();
        if let Some(wrong) = tags.iter().find(|tag| !is_tag(tag)) {
            return Err(NoteError::NoTag(wrong.clone()));
        }
        tags.sort_unstable();
        tags.dedup();
        if tags.len() > MOST_TAGS {
            return Err(NoteError::TooMany(tags.len()));
        }
        Ok(Note { text, tags })
    }

    /// Whether the note has neither text nor tags.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tags.is_empty()
    }
}

fn is_tag(tag: &str) -> bool {
    tag.chars().count() <= LONGEST_TAG && tag.chars().all(|letter| letter.is_alphanumeric() || ".-_".contains(letter))
}

/// The note in a results folder; empty if there is none.
///
/// # Errors
/// The file cannot be read, or does not contain a note.
pub fn read(folder: &Path) -> Result<Note, NoteError> {
    let path = folder.join(NOTE_FILE);
    let name = || path.display().to_string();
    let unread = |source| NoteError::Unread { path: name(), source };
    match fs::metadata(&path) {
        Ok(found) if found.len() > LARGEST_BYTES => return Err(NoteError::TooLarge(name())),
        // A FIFO would block.
        Ok(found) if !found.is_file() => return Err(unread(io::Error::other("it is no regular file"))),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Note::default()),
        Err(source) => return Err(unread(source)),
    }
    let text = fs::read(&path).map_err(unread)?;
    serde_json::from_slice(&text).map_err(|source| NoteError::NoNote { path: name(), source })
}

/// Saves a note atomically; an empty note removes the file.
///
/// # Errors
/// The file cannot be written.
pub fn save(folder: &Path, note: &Note) -> Result<(), NoteError> {
    let path = folder.join(NOTE_FILE);
    if note.is_empty() {
        return match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(NoteError::Unwritten(StoreError::Io { action: "remove", path, source }))
            }
            _ => Ok(()),
        };
    }
    let mut text = serde_json::to_vec_pretty(note).expect("a note is plain JSON");
    text.push(b'\n');
    Ok(write_whole(&path, &text)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tags(list: &[&str]) -> Vec<String> {
        list.iter().map(|tag| (*tag).to_owned()).collect()
    }

    #[test]
    fn a_note_is_saved_beside_the_record_and_an_empty_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), Note::default());
        let note = Note::of(" <script>alert(1)</script>\n\u{1b}[31mred ", &tags(&["lab", "a-1", "lab"])).unwrap();
        assert_eq!(note.tags, ["a-1", "lab"]);
        assert!(!note.text.contains('\u{1b}') && note.text.starts_with("<script>"), "{note:?}");
        save(folder.path(), &note).unwrap();
        assert_eq!(read(folder.path()).unwrap(), note);
        save(folder.path(), &Note::default()).unwrap();
        assert!(!folder.path().join(NOTE_FILE).exists());
    }

    #[test]
    fn a_pipe_is_no_note() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(NOTE_FILE)).status().unwrap();
        assert!(made.success() && matches!(read(folder.path()), Err(NoteError::Unread { .. })));
    }

    #[test]
    fn what_is_too_long_or_no_tag_is_refused() {
        assert!(matches!(Note::of(&"x".repeat(LONGEST_TEXT + 1), &[]), Err(NoteError::TooLong(_))));
        for wrong in ["two words", "a,b", "<b>", &"x".repeat(LONGEST_TAG + 1)] {
            assert!(matches!(Note::of("", &tags(&[wrong])), Err(NoteError::NoTag(_))), "{wrong}");
        }
        let many: Vec<String> = (0..=MOST_TAGS).map(|number| format!("tag{number}")).collect();
        assert!(matches!(Note::of("", &many), Err(NoteError::TooMany(_))));
    }
}
