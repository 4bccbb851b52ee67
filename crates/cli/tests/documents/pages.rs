//! The documents: their blocks of commands, and the files that they show.

use std::fs;
use std::path::{Path, PathBuf};

use crate::annotation::{Annotation, Treatment};

/// A document.
pub struct Page {
    /// Path in the repository.
    pub name: String,
    /// Blocks of commands, in order.
    pub blocks: Vec<Block>,
    /// Files that the document shows and that its commands may use, by name.
    pub files: Vec<(String, String)>,
    text: String,
}

/// A block of commands.
pub struct Block {
    /// In order.
    pub commands: Vec<Command>,
}

/// A command.
pub struct Command {
    /// Line in the document.
    pub line: usize,
    /// As it is typed.
    pub text: String,
    /// How the command is tested, or the error in its annotation.
    pub treatment: Result<Treatment, String>,
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Files with this extension below a folder, sorted.
pub fn below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

impl Page {
    /// README.md and the documents beside it, and everything in docs/.
    pub fn all() -> Vec<Page> {
        let beside = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> =
            beside.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
        paths.sort();
        paths.extend(below(&root().join("docs"), "md"));
        paths.iter().map(|path| Page::read(path)).collect()
    }

    fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let (mut blocks, mut files) = (vec![], vec![]);
        let mut annotations: Vec<Annotation> = vec![];
        for part in parts(&text) {
            if let Part::Code { language, first, lines } = &part
                && *language != "console"
            {
                let prompts = lines.iter().filter(|line| line.starts_with("$ ")).count();
                assert_eq!(
                    prompts, 0,
                    "{name}:{first}: a block with commands is marked `console`, so that they are executed"
                );
            }
            match part {
                Part::Text(line) => match Annotation::parse(line) {
                    Some(annotation) => annotations.push(annotation),
                    None if line.trim().is_empty() => {}
                    None => annotations.clear(),
                },
                Part::Code { language: "console", first, lines } => {
                    blocks.push(Block { commands: commands(first, &lines, &annotations) });
                    annotations.clear();
                }
                Part::Code { language: "yaml", lines, .. } => {
                    if let Some(named) = lines.iter().find_map(|line| line.strip_prefix("name: ")) {
                        files.push((format!("{named}.yaml"), lines.join("\n") + "\n"));
                    }
                    annotations.clear();
                }
                Part::Code { language: "python", lines, .. } => {
                    if let Some(name) = lines.first().and_then(|line| line.strip_prefix("# ")) {
                        files.push((name.to_owned(), lines.join("\n") + "\n"));
                    }
                    annotations.clear();
                }
                Part::Code { .. } => annotations.clear(),
            }
        }
        Page { name, blocks, files, text }
    }

    /// Scripts that the document shows, each with its position.
    pub fn scripts(&self) -> Vec<(String, String)> {
        let script = |part: Part| match part {
            Part::Code { language: "sh", first, lines } => {
                Some((format!("{}:{first}", self.name), lines.join("\n") + "\n"))
            }
            _ => None,
        };
        parts(&self.text).into_iter().filter_map(script).collect()
    }

    /// Programs that the document shows, each with its path in the repository.
    pub fn programs(&self) -> Vec<(String, String)> {
        let program = |part: Part| match part {
            Part::Code { language: "rust", lines, .. } => {
                let path = lines.first()?.strip_prefix("// ")?.to_owned();
                Some((path, lines[1..].join("\n") + "\n"))
            }
            _ => None,
        };
        parts(&self.text).into_iter().filter_map(program).collect()
    }

    /// Lines outside of code, with their numbers.
    pub fn prose(&self) -> Vec<(usize, &str)> {
        let mut inside = false;
        let mut lines = vec![];
        for (number, line) in self.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                inside = !inside;
            } else if !inside {
                lines.push((number + 1, line));
            }
        }
        lines
    }
}

enum Part<'a> {
    Text(&'a str),
    Code {
        language: &'a str,
        /// Line of the first line inside.
        first: usize,
        lines: Vec<&'a str>,
    },
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = vec![];
    let mut open: Option<(&str, usize, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(language), None) => open = Some((language.trim(), number + 2, vec![])),
            (Some(_), Some((language, first, lines))) => parts.push(Part::Code { language, first, lines }),
            (None, Some((language, first, mut lines))) => {
                lines.push(line);
                open = Some((language, first, lines));
            }
            (None, None) => parts.push(Part::Text(line)),
        }
    }
    assert!(open.is_none(), "a block of code does not end");
    parts
}

/// Lines with a prompt: `$ pubmark list`, or with the name of a machine, `coordinator$ pubmark cluster init`.
fn commands(first: usize, lines: &[&str], annotations: &[Annotation]) -> Vec<Command> {
    let mut commands: Vec<Command> = vec![];
    for (number, line) in lines.iter().enumerate() {
        let Some((prompt, typed)) = line.split_once("$ ") else { continue };
        if prompt.chars().any(|letter| !letter.is_ascii_alphanumeric() && letter != '-') {
            continue;
        }
        let place = commands.len() + 1;
        // An annotation of one command has priority over one of all commands.
        let about = annotations.iter().filter(|annotation| annotation.is_about(place));
        let chosen = about.max_by_key(|annotation| annotation.is_particular());
        let as_typed = || Ok(Treatment::Executed { options: vec![], codes: vec![0] });
        commands.push(Command {
            line: first + number,
            text: typed.trim().to_owned(),
            treatment: chosen.map_or_else(as_typed, Annotation::treatment),
        });
    }
    commands
}
