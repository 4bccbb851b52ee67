//! Files that a workload names: payload sizes, credentials, keys. They are read while the workload is loaded, so that
//! errors in them are reported before a run.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::diagnostic::{Problem, ProblemKind};
use super::node::{Node, Value};
use super::shape::Spanned;
use super::yaml;

/// Maximum size of a file, bytes.
const LARGEST_BYTES: u64 = 64 << 20;
/// Key by which a workload names a file.
pub(super) const KEY: &str = "file";
/// Key whose file contains payload sizes; every other file contains credentials.
const SIZES: &str = "sizes";

/// Folder that relative paths start from: that of the workload's file.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Contents that were sent with the workload, by the name of the file in the workload.
    contents: BTreeMap<String, String>,
}

impl Files {
    /// The folder of the workload file with this name.
    pub(crate) fn beside(file_name: &str) -> Files {
        Files { folder: Path::new(file_name).parent().unwrap_or(Path::new("")).to_owned(), contents: BTreeMap::new() }
    }

    /// Adds contents; these files are not read from disk.
    pub(crate) fn with_contents(self, contents: BTreeMap<String, String>) -> Files {
        Files { contents, ..self }
    }

    /// Path of a file that a workload names.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Text of a file that a workload names.
    pub(crate) fn read(&self, name: &Spanned<String>) -> Result<String, Problem> {
        let path = self.path(&name.value);
        let failed = |reason: String| {
            Problem::new(ProblemKind::ImpossibleValue, format!("failed to read `{}`: {reason}", path.display()))
                .at(name.span, "this file")
                .help("a relative path counts from the folder of the workload's file")
        };
        let text = match self.contents.get(&name.value) {
            Some(text) => text.clone(),
            None => read_regular(&path, LARGEST_BYTES).map_err(|error| failed(error.to_string()))?,
        };
        // Spreadsheet programs write a byte order mark at the beginning.
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

/// Text of a file of at most `largest` bytes. A pipe or a device is refused: reading it could block or never end.
pub fn read_regular(path: &Path, largest: u64) -> io::Result<String> {
    use std::io::Read;
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {largest} B")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// The text of a workload and its settings, in which the paths of files are relative to `folder`, which is absolute, so
/// that both can be moved. Files whose `contents` are known keep their names. What cannot be changed, such as a path behind
/// an alias of YAML, stays as it is.
pub fn with_absolute_files(
    text: &str,
    settings: &mut [(String, String)],
    folder: &Path,
    contents: &BTreeMap<String, String>,
) -> String {
    for (path, value) in settings {
        if path.rsplit('.').next() == Some(KEY) && !contents.contains_key(value) {
            *value = folder.join(&*value).display().to_string();
        }
    }
    let Ok(mut root) = yaml::parse(text) else { return text.to_owned() };
    let mut named = Vec::new();
    make_absolute(&mut root, folder, contents, &mut named);
    // From last to first, so that earlier positions stay valid; an alias refers to a position that is already listed.
    named.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
    named.dedup();
    let mut moved = text.to_owned();
    for (start, end, path) in named {
        if moved.get(start..end).is_none() {
            return text.to_owned();
        }
        moved.replace_range(start..end, &path);
    }
    match yaml::parse(&moved).is_ok_and(|moved| moved == root) {
        true => moved,
        false => text.to_owned(),
    }
}

/// Makes relative paths of files absolute, and collects their positions with the quoted replacement.
fn make_absolute(
    node: &mut Node,
    folder: &Path,
    contents: &BTreeMap<String, String>,
    named: &mut Vec<(usize, usize, String)>,
) {
    match &mut node.value {
        Value::Map(entries) => {
            for entry in entries {
                let span = entry.node.span;
                match &mut entry.node.value {
                    Value::Text(name)
                        if entry.key == KEY && Path::new(name).is_relative() && !contents.contains_key(name) =>
                    {
                        *name = folder.join(&*name).display().to_string();
                        let quoted = serde_json::Value::from(name.as_str()).to_string();
                        let start = span.start as usize;
                        named.push((start, start + span.length as usize, quoted));
                    }
                    _ => make_absolute(&mut entry.node, folder, contents, named),
                }
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| make_absolute(item, folder, contents, named)),
        _ => {}
    }
}

/// An error in a line of a file that a workload names; lines count from 1.
pub(crate) fn wrong_line(name: &Spanned<String>, line: usize, reason: &str) -> Problem {
    Problem::new(ProblemKind::ImpossibleValue, format!("{}:{line}: {reason}", name.value)).at(name.span, "this file")
}

/// Whether the text of a workload, with these settings, names files to read.
pub fn names_files<'a>(text: &str, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
    has_keys(&[KEY], text, settings)
}

/// Whether it names files whose `contents` are not known.
pub fn names_other_files(text: &str, settings: &[(String, String)], contents: &BTreeMap<String, String>) -> bool {
    let mut files = Vec::new();
    let is_known = settings.iter().all(|(path, value)| match path.rsplit('.').next() {
        Some(KEY) => contents.contains_key(value),
        _ => {
            let in_path = path.split('.').any(|part| part == KEY);
            !in_path && yaml::parse(value).map_or(true, |root| all_files(&root, &mut files))
        }
    });
    let is_read = yaml::parse(text).map_or(true, |root| all_files(&root, &mut files));
    !is_known || !is_read || files.iter().any(|name| !contents.contains_key(name))
}

/// Collects the names of files below a node; false if a name is not text.
fn all_files(node: &Node, names: &mut Vec<String>) -> bool {
    match &node.value {
        Value::Map(entries) => entries.iter().all(|entry| match &entry.node.value {
            Value::Text(name) if entry.key == KEY => {
                names.push(name.clone());
                true
            }
            _ => entry.key != KEY && all_files(&entry.node, names),
        }),
        Value::List(items) => items.iter().all(|item| all_files(item, names)),
        _ => true,
    }
}

/// Names of the files of payload sizes in the text of a workload and in these settings. They contain no secrets, unlike all
/// other files.
pub fn size_files(text: &str, settings: &[(String, String)]) -> Vec<String> {
    let mut names = Vec::new();
    for (path, value) in settings {
        let mut parts = path.rsplit('.');
        match (parts.next(), parts.next()) {
            (Some(KEY), Some(SIZES)) => names.push(value.clone()),
            (Some(SIZES), _) => yaml::parse(value).iter().for_each(|root| names.extend(file_of(root).cloned())),
            _ => yaml::parse(value).iter().for_each(|root| collect_sizes(root, &mut names)),
        }
    }
    yaml::parse(text).iter().for_each(|root| collect_sizes(root, &mut names));
    names
}

fn collect_sizes(node: &Node, names: &mut Vec<String>) {
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                match file_of(&entry.node) {
                    Some(name) if entry.key == SIZES => names.push(name.clone()),
                    _ => collect_sizes(&entry.node, names),
                }
            }
        }
        Value::List(items) => items.iter().for_each(|item| collect_sizes(item, names)),
        _ => {}
    }
}

/// The file of `{file: NAME}`.
fn file_of(node: &Node) -> Option<&String> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find_map(|entry| match &entry.node.value {
        Value::Text(name) if entry.key == KEY => Some(name),
        _ => None,
    })
}

/// Whether the text of a workload, with these settings, has one of these keys. Reads nothing else. A text that is not YAML
/// has none, because it is not loaded; a setting that is not YAML is a text.
pub fn has_keys<'a>(keys: &[&str], text: &str, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
    let in_text = |text: &str| yaml::parse(text).is_ok_and(|root| has_key(&root, keys));
    let in_setting = |(path, value): (&str, &str)| path.split('.').any(|part| keys.contains(&part)) || in_text(value);
    settings.into_iter().any(in_setting) || in_text(text)
}

fn has_key(node: &Node, keys: &[&str]) -> bool {
    match &node.value {
        Value::Map(entries) => {
            entries.iter().any(|entry| keys.contains(&entry.key.as_str()) || has_key(&entry.node, keys))
        }
        Value::List(items) => items.iter().any(|item| has_key(item, keys)),
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::load::{LoadOptions, parse};

    #[test]
    fn files_of_a_moved_text_stay_where_they_are() {
        let text = "# Größe\ndevices:\n  - &a {name: a, payload: {sizes: {file: s.csv}}, credentials: {file: \"d/é.csv\"}}\n  \
                    - {name: b, credentials:\n      {file: /abs.csv}}\n  - *a\n  - name: c\n    credentials:\n      file: ../x.csv # here\n";
        let mut settings = vec![("devices.a.credentials.file".to_owned(), "y.csv".to_owned())];
        let moved = with_absolute_files(text, &mut settings, Path::new("/from"), &BTreeMap::new());
        assert_eq!(settings[0].1, "/from/y.csv");
        let expected = text
            .replace("file: s.csv", "file: \"/from/s.csv\"")
            .replace("\"d/é.csv\"", "\"/from/d/é.csv\"")
            .replace("../x.csv", "\"/from/../x.csv\"");
        assert_eq!(moved, expected);
        let plain = "devices: [{name: file, topic: file}]\n";
        assert_eq!(with_absolute_files(plain, &mut [], Path::new("/from"), &BTreeMap::new()), plain);
    }

    #[test]
    fn a_pipe_is_refused_and_a_byte_order_mark_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.csv"), "\u{feff}bytes\n20\n").unwrap();
        let files = Files { folder: folder.path().to_owned(), contents: BTreeMap::new() };
        let name = |value: &str| Spanned { value: value.to_owned(), span: Default::default() };
        assert_eq!(files.read(&name("s.csv")).unwrap(), "bytes\n20\n");
        let pipe = Command::new("mkfifo").arg(folder.path().join("pipe")).status();
        assert!(pipe.unwrap().success());
        let refused = files.read(&name("pipe")).unwrap_err();
        assert!(format!("{refused:?}").contains("no regular file"), "{refused:?}");
    }

    #[test]
    fn a_text_that_names_a_file_is_known_without_reading_it() {
        let text = "name: t\ndevices:\n  - {name: a, every: 1s, payload: {sizes: {file: /nowhere}}}\nsubscribers: []\n";
        assert!(names_files(text, []));
        let plain = text.replace("{sizes: {file: /nowhere}}", "100B");
        assert!(!names_files(&plain, [("devices.a.payload", "20B"), ("devices.a.topic", "file/a")]));
        for (path, value) in [
            ("devices.a.payload.sizes.file", "/nowhere"),
            ("devices.a.payload", "{sizes: {file: /nowhere}}"),
            ("devices.a.payload", "sizes:\n  file: /nowhere"),
            ("devices.a.payload", "{sizes: {\"fi\\x6ce\": /nowhere}}"),
            ("devices.a.payload", "{? sizes : {? file : /nowhere}}"),
        ] {
            assert!(names_files(&plain, [(path, value)]), "{path}={value}");
            assert!(names_files("", [(path, value)]), "{path}={value}");
        }
    }

    #[test]
    fn sizes_that_came_along_are_not_read_and_keep_their_name() {
        let text = "name: t\ndevices:\n  - {name: a, every: 1s, payload: {sizes: {file: s.csv}}, credentials: {file: d.csv}}\n";
        let settings = [("devices.a.payload.sizes.file".to_owned(), "t.csv".to_owned())];
        assert_eq!(size_files(text, &settings), ["t.csv", "s.csv"], "log-ins are none");
        assert_eq!(size_files("devices: 1", &[("x.sizes".to_owned(), "{file: u.csv}".to_owned())]), ["u.csv"]);
        let contents: BTreeMap<String, String> =
            ["s.csv", "t.csv"].into_iter().map(|name| (name.to_owned(), "100\n200\n".to_owned())).collect();
        let moved = with_absolute_files(text, &mut settings.clone(), Path::new("/from"), &contents);
        assert!(moved.contains("{file: s.csv}") && moved.contains("/from/d.csv"), "{moved}");
        assert!(names_other_files(text, &settings, &contents), "the log-ins");
        let sizes = text.replace(", credentials: {file: d.csv}", "");
        assert!(!names_other_files(&sizes, &settings, &contents));
        assert!(names_other_files(&sizes, &settings, &BTreeMap::new()));
        assert!(names_other_files(&sizes, &[("a.file.b".to_owned(), "1".to_owned())], &contents), "nothing is guessed");
        let options = LoadOptions { contents, ..LoadOptions::default() };
        let workload = parse("w.yaml", &format!("{sizes}subscribers: []\n"), &options).unwrap();
        assert_eq!(workload.devices[0].name, "a");
    }
}
