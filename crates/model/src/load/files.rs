//! Files that a workload names: sizes. They are read while the workload is loaded, so what is wrong in them is said
//! before a run.

use std::path::{Path, PathBuf};

use super::diagnostic::{Problem, ProblemKind};
use super::node::{Node, Value};
use super::shape::Spanned;
use super::yaml;

/// Largest file that is taken, bytes.
const LARGEST_BYTES: u64 = 64 << 20;
/// Key by which a workload names a file.
const KEY: &str = "file";

/// Where relative paths count from: the folder of the workload's file.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    /// Beside the workload of this name.
    pub(crate) fn beside(file_name: &str) -> Files {
        Files { folder: Path::new(file_name).parent().unwrap_or(Path::new("")).to_owned() }
    }

    /// Path of a file that a workload names.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Text of a file that a workload names.
    pub(crate) fn read(&self, name: &Spanned<String>) -> Result<String, Problem> {
        use std::io::Read;
        let path = self.path(&name.value);
        let failed = |reason: String| {
            Problem::new(ProblemKind::ImpossibleValue, format!("failed to read `{}`: {reason}", path.display()))
                .at(name.span, "this file")
                .help("a relative path counts from the folder of the workload's file")
        };
        let mut bytes = Vec::new();
        std::fs::File::open(&path)
            .and_then(|file| file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| failed(error.to_string()))?;
        if bytes.len() as u64 > LARGEST_BYTES {
            return Err(failed(format!("it is larger than {LARGEST_BYTES} B")));
        }
        String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))
    }
}

/// What is wrong in a line of a file that a workload names; lines count from 1.
pub(crate) fn wrong_line(name: &Spanned<String>, line: usize, reason: &str) -> Problem {
    Problem::new(ProblemKind::ImpossibleValue, format!("{}:{line}: {reason}", name.value)).at(name.span, "this file")
}

/// May the text of a workload, with these settings, make this machine read files that it names? Looks at keys alone and reads
/// nothing; a text that is no YAML names none, because it is not loaded.
pub fn names_files(text: &str, settings: &[(String, String)]) -> bool {
    let by_setting = |(key, value): &(String, String)| {
        key.split('.').any(|part| part == KEY) || (value.contains('{') && value.contains(KEY))
    };
    settings.iter().any(by_setting) || yaml::parse(text).is_ok_and(|root| has_key(&root))
}

fn has_key(node: &Node) -> bool {
    match &node.value {
        Value::Map(entries) => entries.iter().any(|entry| entry.key == KEY || has_key(&entry.node)),
        Value::List(items) => items.iter().any(has_key),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_names_a_file_is_known_without_reading_it() {
        let text = "name: t\ndevices:\n  - {name: a, every: 1s, payload: {sizes: {file: /nowhere}}}\nsubscribers: []\n";
        assert!(names_files(text, &[]));
        let plain = text.replace("{sizes: {file: /nowhere}}", "100B");
        let setting = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        assert!(!names_files(&plain, &setting("devices.a.payload", "20B")));
        assert!(names_files(&plain, &setting("devices.a.payload.sizes.file", "/nowhere")));
        assert!(names_files(&plain, &setting("devices.a.payload", "{sizes: {file: /nowhere}}")));
    }
}
