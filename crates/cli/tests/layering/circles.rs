//! Files that import each other, directly or in a ring: none of them can be read, tested or moved without the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Largest circle of files that a crate may have. One file alone is none.
const LARGEST: usize = 5;
/// Crates that may have no circle.
const BUT: &[(&str, usize)] = &[("cli", 1)];

/// The files of a crate by their module paths (`shard::sending`; the crate's root is empty).
type Modules = BTreeMap<String, (PathBuf, String)>;

fn modules(source: &Path) -> Modules {
    let mut found = Modules::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = without_tests(&std::fs::read_to_string(&path).unwrap());
                let inside = path.strip_prefix(source).unwrap().with_extension("");
                let mut words: Vec<&str> = inside.iter().map(|word| word.to_str().unwrap()).collect();
                if matches!(words.last(), Some(&("mod" | "lib" | "main"))) {
                    words.pop();
                }
                found.insert(words.join("::"), (path, text));
            }
        }
    }
    found
}

/// A file's text up to its tests, comments left out.
fn without_tests(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    lines.filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect()
}

/// The paths within the crate that a file of this module names, as words from the crate's root; braces are multiplied out.
fn paths(module: &str, text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let own: Vec<String> = module.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let mut rest = text;
    while let Some((at, keyword)) =
        ["crate::", "super::"].iter().filter_map(|word| Some((rest.find(word)?, *word))).min()
    {
        let begins = !rest[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$');
        let mut path = if keyword == "crate::" { vec![] } else { own.clone() };
        if keyword == "super::" {
            path.pop();
        }
        rest = &rest[at + keyword.len()..];
        while let Some(further) = rest.strip_prefix("super::") {
            path.pop();
            rest = further;
        }
        if begins {
            expand(&path, rest, &mut found);
        }
    }
    found
}

/// Adds what `text` begins with: names joined by `::`, or a list of such in braces.
fn expand(before: &[String], text: &str, found: &mut Vec<Vec<String>>) {
    if let Some(list) = text.strip_prefix('{') {
        let (mut depth, mut begin) = (0, 0);
        for (at, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    let part = list[begin..at].trim();
                    if !part.is_empty() {
                        expand(before, part, found);
                    }
                    begin = at + 1;
                    if letter == '}' {
                        return;
                    }
                }
                _ => {}
            }
        }
        return;
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    let mut path = before.to_vec();
    path.push(text[..end].to_owned());
    match text[end..].strip_prefix("::") {
        Some(rest) => expand(&path, rest, found),
        None => found.push(path),
    }
}

/// The file that a path leads to: the deepest module on it, or where that takes the name from (`pub use`).
fn home(modules: &Modules, path: &[String], hops: usize) -> Option<String> {
    let deepest = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length].join("::")))?;
    let module = path[..deepest].join("::");
    let Some(name) = path.get(deepest).filter(|_| hops > 0) else { return Some(module) };
    for statement in modules[&module].1.split("pub use ").chain(modules[&module].1.split("pub(crate) use ")).skip(1) {
        let statement = statement.split(';').next().unwrap();
        let mut named = Vec::new();
        let (from, text) = match statement.strip_prefix("crate::") {
            Some(text) => (vec![], text),
            None => (path[..deepest].to_vec(), statement.strip_prefix("self::").unwrap_or(statement)),
        };
        expand(&from, text, &mut named);
        if let Some(path) = named.iter().find(|path| path.last() == Some(name))
            && let Some(home) = home(modules, path, hops - 1).filter(|home| *home != module)
        {
            return Some(home);
        }
    }
    Some(module)
}

/// What each module imports. A module that only lists others (`mod.rs`, `lib.rs`) does not import what it hands on.
fn imports(modules: &Modules) -> BTreeMap<String, BTreeSet<String>> {
    let of = |(module, (_, text)): (&String, &(PathBuf, String))| {
        let named = paths(module, text);
        let homes = named.iter().filter_map(|path| home(modules, path, 4)).filter(|home| home != module);
        (module.clone(), homes.collect())
    };
    modules.iter().map(of).collect()
}

/// Modules that can be reached from one, over one import or more.
fn reached(imports: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = next.pop() {
        for imported in &imports[&module] {
            if found.insert(imported.clone()) {
                next.push(imported.clone());
            }
        }
    }
    found
}

/// The circles, each once.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (module, reached(imports, module))).collect();
    let of = |module: &&String| {
        let others = reach[*module].iter().filter(|other| reach[other].contains(*module));
        others.cloned().collect::<Vec<_>>()
    };
    reach.keys().map(of).filter(|circle| circle.len() > 1).collect()
}

/// The imports within a circle.
fn arrows(imports: &BTreeMap<String, BTreeSet<String>>, circle: &[String]) -> Vec<String> {
    let of = |module: &String| {
        let inside: Vec<&str> =
            imports[module].iter().filter(|other| circle.contains(other)).map(String::as_str).collect();
        format!("{module} -> {}", inside.join(", "))
    };
    circle.iter().map(of).collect()
}

#[test]
fn no_crate_has_a_large_circle_of_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(crates).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        let name = entry.file_name().into_string().unwrap();
        let modules = modules(&entry.path().join("src"));
        seen += modules.len();
        let most = BUT.iter().find(|(other, _)| *other == name).map_or(LARGEST, |(_, most)| *most);
        let imports = imports(&modules);
        for circle in circles(&imports).into_iter().filter(|circle| circle.len() > most) {
            wrong.push(format!("{name}: {} files, at most {most}: {:#?}", circle.len(), arrows(&imports, &circle)));
        }
    }
    assert!(seen > 300, "too few files to be this workspace: {seen}");
    assert!(wrong.is_empty(), "circles of files:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_found_through_braces_and_names_that_are_handed_on() {
    let file = |text: &str| (PathBuf::new(), text.to_owned());
    let modules: Modules = [
        ("", file("mod net;\nmod shard;\nuse crate::shard::Shard;")),
        ("net", file("mod poll;\npub use poll::{Poll, Ready};")),
        ("net::poll", file("use crate::shard::{self, inner::{Deep, Other}};")),
        ("shard", file("use crate::net::Poll;")),
        ("shard::inner", file("use super::super::leaf::Leaf;")),
        ("leaf", file("")),
    ]
    .into_iter()
    .map(|(name, file)| (name.to_owned(), file))
    .collect();
    let imports = imports(&modules);
    assert_eq!(imports["shard"], BTreeSet::from(["net::poll".to_owned()]));
    assert_eq!(imports["shard::inner"], BTreeSet::from(["leaf".to_owned()]));
    let found = circles(&imports);
    assert_eq!(found, BTreeSet::from([vec!["net::poll".to_owned(), "shard".to_owned()]]));
}
