//! Links between documents: whether the file exists, and the heading in it.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::pages::{Page, root};

/// Every link of the documents to another file, with its position.
pub fn all() -> Vec<(String, String)> {
    let mut found = vec![];
    for page in Page::all() {
        for (line, text) in page.prose() {
            found.extend(targets(text).map(|target| (format!("{}:{line}", page.name), target.to_owned())));
        }
    }
    found
}

/// Why a link leads nowhere; `None` if it resolves.
pub fn fault(at: &str, target: &str) -> Option<String> {
    let (page, _) = at.rsplit_once(':')?;
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let path = match file {
        "" => root().join(page),
        _ => normal(&root().join(page).parent()?.join(file)),
    };
    if !path.exists() {
        return Some(format!("`{target}` does not exist"));
    }
    let heading = heading?;
    let text = fs::read_to_string(&path).ok()?;
    (!headings(&text).contains(&heading.to_owned())).then(|| format!("`{target}`: there is no such heading"))
}

/// Targets of links and pictures; web addresses are left out, because nothing is downloaded.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let without_code = line.split('`').step_by(2);
    without_code
        .flat_map(|text| text.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

/// Anchors of headings as GitHub makes them: lower-case letters, no punctuation, hyphens for spaces, numbered if they
/// repeat.
fn headings(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut inside = false;
    let mut names = vec![];
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        }
        let Some(title) = line.strip_prefix('#').filter(|_| !inside) else { continue };
        let title = title.trim_start_matches('#').trim();
        let name: String = title
            .to_lowercase()
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect();
        let count = seen.entry(name.clone()).or_default();
        names.push(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    names
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_links_and_not_of_code_or_the_web() {
        let found: Vec<_> = targets("see [a](b.md#c), ![d](e.svg), `[f](g.md)`, [h](https://i.example)").collect();
        assert_eq!(found, ["b.md#c", "e.svg"]);
    }

    #[test]
    fn headings_are_named_as_addresses_name_them() {
        let text = "# With `--realtime` a shard wakes\n## The kernel's emulation\n```sh\n# no heading\n```\n## Levels\n### Levels\n";
        assert_eq!(headings(text), ["with---realtime-a-shard-wakes", "the-kernels-emulation", "levels", "levels-1"]);
    }

    #[test]
    fn a_dead_link_is_found() {
        assert!(fault("README.md:1", "docs/no-such-page.md").is_some());
        assert!(fault("README.md:1", "STYLE.md#no-such-heading").is_some());
        assert_eq!(fault("docs/reference/cli.md:1", "../../STYLE.md#names"), None);
    }
}
