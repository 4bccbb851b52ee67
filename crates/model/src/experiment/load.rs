//! Finds and reads an experiment.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::definition::Experiment;
use super::raw::RawExperiment;
use super::{Judge, builtin, check, names};
use crate::load::diagnostic::{Diagnostic, Sources};
use crate::load::reader::Reader;
use crate::load::{suggest, yaml};

/// Reason why an experiment cannot be loaded.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LoadError {
    /// Neither a built-in experiment nor a file.
    #[error("there is no experiment `{name}`")]
    #[diagnostic(code(experiment::not_found), help("{hint}"))]
    NotFound {
        /// The requested name.
        name: String,
        /// Similar names, or all names.
        hint: String,
    },
    /// The file cannot be read.
    #[error("failed to read the experiment `{}`", path.display())]
    #[diagnostic(code(experiment::unreadable))]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: std::io::Error,
    },
    /// Something in the file is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Wrong(#[from] Box<Diagnostic>),
}

/// An experiment and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The experiment.
    pub experiment: Experiment,
    /// The folder that its paths are relative to, which is that of its file; `None` for a built-in experiment.
    pub folder: Option<PathBuf>,
}

/// Loads a built-in experiment by its name, or a file by its path. A name that is both is the built-in one.
///
/// `judge` creates the judge of names for the folder that paths are relative to.
pub fn load(
    name_or_path: &str,
    judge: impl Fn(&Path, super::Word<'_>, &str) -> Result<(), super::Objection>,
) -> Result<Loaded, LoadError> {
    if let Some((name, text)) = builtin::find(name_or_path) {
        let experiment =
            parse(&format!("experiments/{name}.yaml"), text, &|word, text| judge(Path::new(""), word, text))?;
        return Ok(Loaded { experiment, folder: None });
    }
    let path = Path::new(name_or_path);
    let looks_like_a_path = name_or_path.contains('/') || path.extension().is_some();
    if !looks_like_a_path && !path.is_file() {
        let hint = suggest::among(name_or_path, &names());
        return Err(LoadError::NotFound {
            name: name_or_path.to_owned(),
            hint: format!("{hint}; or give the path of a file"),
        });
    }
    let text = crate::load::read(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let experiment = parse(name_or_path, &text, &|word, text| judge(&folder, word, text))?;
    Ok(Loaded { experiment, folder: Some(folder) })
}

/// Parses an experiment from the text of a file; `file_name` is shown in diagnostics.
pub fn parse(file_name: &str, text: &str, judge: Judge<'_>) -> Result<Experiment, LoadError> {
    let mut sources = Sources::of("experiment");
    sources.add(file_name, text);
    let read = || {
        let root = yaml::parse(text)?;
        check::checked(&RawExperiment::deserialize(Reader(&root))?, judge)
    };
    read().map_err(|problem| Box::new(problem.into_diagnostic(&sources)).into())
}
