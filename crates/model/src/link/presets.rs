//! Links that can be used without a definition. The file `links/presets.yaml` is embedded and is its own documentation:
//! every figure has a source. To add a preset, add an entry there.

use serde::Deserialize;

use super::Link;
use crate::load::diagnostic::{Problem, ProblemKind, Sources};
use crate::load::links;
use crate::load::raw_links::RawLink;
use crate::load::reader::Reader;
use crate::load::shape::Named;
use crate::load::{LoadError, yaml};

const FILE: &str = "links/presets.yaml";
const TEXT: &str = include_str!("../../../../links/presets.yaml");

/// All presets, in the order in which they are listed.
///
/// # Errors
/// The embedded file has an error; the diagnostic shows it.
pub fn all() -> Result<Vec<Link>, LoadError> {
    let mut sources = Sources::default();
    sources.add(FILE, TEXT);
    parse().map_err(|problem| Box::new(problem.into_diagnostic(&sources)).into())
}

/// As [`all`], for the loader, whose positions refer to another text.
pub(crate) fn read() -> Result<Vec<Link>, Problem> {
    parse().map_err(|problem| Problem::new(ProblemKind::Syntax, format!("{FILE}: {problem}")))
}

fn parse() -> Result<Vec<Link>, Problem> {
    definitions(TEXT)
}

fn definitions(text: &str) -> Result<Vec<Link>, Problem> {
    let root = yaml::parse(text)?;
    links::definitions(&Named::<RawLink>::deserialize(Reader(&root))?)
}

/// A link that is defined where it is chosen: `{delay: 20ms, loss: 1%}`. Its name is the text of the definition.
///
/// # Errors
/// The definition has an error; the diagnostic shows it.
pub(super) fn defined_here(text: &str) -> Result<Link, LoadError> {
    let definition = format!("link: {text}");
    let mut sources = Sources::default();
    sources.add("--link", definition.as_str());
    let shown = |problem: Problem| LoadError::from(Box::new(problem.into_diagnostic(&sources)));
    let mut found = definitions(&definition).map_err(shown)?;
    match (found.pop(), found.is_empty()) {
        (Some(link), true) => Ok(Link { name: text.to_owned(), ..link }),
        _ => Err(shown(Problem::new(ProblemKind::Syntax, "one link is defined here"))),
    }
}
