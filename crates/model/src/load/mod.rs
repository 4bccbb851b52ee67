//! Workload files: from YAML to a validated [`Workload`], or one [`Diagnostic`] that says what is wrong and what to write
//! instead.
//!
//! The steps: `yaml` parses the file into a tree of nodes (`node`) with positions; `overlay` applies the published variant,
//! `--set` and parameters; `reader` deserialises the tree into the structs of `raw`, which define its shape; the other
//! modules validate values. Start with [`load`].

use std::path::Path;

use serde::Deserialize;

use crate::adjust;
use crate::builtin::{self, Parameter};
use crate::fault::choice as fault_choice;
use crate::link::choice;
use crate::workload::{Variant, Workload};

mod arrival;
mod clients;
mod content;
mod credentials;
pub mod csv;
mod device;
pub(crate) mod diagnostic;
mod error;
pub(crate) mod faults;
mod files;
pub mod isolation;
mod link_conditions;
pub(crate) mod links;
mod load_options;
pub(crate) mod names;
mod node;
mod options;
mod overlay;
pub(crate) mod payload;
mod placement;
mod policies;
pub(crate) mod raw;
mod raw_credentials;
pub(crate) mod raw_faults;
pub(crate) mod raw_links;
mod raw_policies;
mod raw_requests;
pub(crate) mod reader;
mod requests;
pub(crate) mod shape;
pub(crate) mod suggest;
mod tokens;
mod topics;
mod transform;
pub(crate) mod value;
mod workload;
pub(crate) mod yaml;

pub use diagnostic::{Diagnostic, ProblemKind};
pub use error::LoadError;
pub use files::{has_keys, names_files, names_other_files, read_regular, size_files, with_absolute_files};
pub use load_options::LoadOptions;

use diagnostic::{Problem, Sources};
use files::Files;
use raw::{RawParameter, RawWorkload};
use reader::Reader;
use shape::{AnyText, Form, Text};

/// Loads a built-in workload by its name, or a file by its path.
///
/// A name that is both is the built-in workload; `./name` is the file.
pub fn load(name_or_path: &str, options: &LoadOptions) -> Result<Workload, LoadError> {
    if let Some(found) = builtin::find(name_or_path) {
        let options = LoadOptions { scale: options.scale.saturating_mul(found.scale), ..options.clone() };
        let mut workload = parse(&found.file_name(), found.text(), &options)?;
        workload.name = found.name.to_owned();
        return Ok(workload);
    }
    let path = Path::new(name_or_path);
    let looks_like_a_path = name_or_path.contains(['/', '\\']) || path.extension().is_some();
    if !looks_like_a_path && !path.is_file() {
        let hint = suggest::among(name_or_path, &builtin::names());
        return Err(LoadError::NotFound {
            name: name_or_path.to_owned(),
            hint: format!("{hint}; or give the path of a file"),
        });
    }
    let text = read(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    parse(name_or_path, &text, options)
}

/// Reads a file, at most one byte more than the maximum, so that reading an endless file ends.
pub(crate) fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(yaml::LARGEST_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

/// Loads a workload from the text of a file; `file_name` is shown in diagnostics.
pub fn parse(file_name: &str, text: &str, options: &LoadOptions) -> Result<Workload, LoadError> {
    if options.scale == 0 {
        return Err(LoadError::NoScale);
    }
    let mut sources = Sources::default();
    sources.add(file_name, text);
    // Syntax errors are reported below.
    let secret_parameters = yaml::parse(text).map(|root| overlay::secret_parameters(&root)).unwrap_or_default();
    let settings: Vec<(String, String, u16)> = options
        .set
        .iter()
        .take(usize::from(u16::MAX) - 1)
        .map(|(key, value)| {
            let hidden = secret_parameters.contains(key);
            let shown = if hidden { "*".repeat(value.len()) } else { value.clone() };
            (key.clone(), value.clone(), sources.add("--set", format!("{key}={shown}")))
        })
        .collect();
    let files = Files::beside(file_name).with_contents(options.contents.clone());
    let mut workload = build(text, options, &settings, &files)
        .map_err(|problem| LoadError::from(Box::new(problem.into_diagnostic(&sources))))?;
    workload.secret_parameters = secret_parameters;
    if let Some(bytes) = options.payload {
        adjust::set_payload(&mut workload, bytes);
        check_templates(&workload, bytes)?;
    }
    adjust::multiply_rate(&mut workload, options.rate)?;
    choice::apply(&mut workload, &options.links)?;
    fault_choice::apply(&mut workload, &options.faults)?;
    isolation::apply(&mut workload, &options.isolate)?;
    Ok(workload)
}

/// Checks that templates fit into a payload size that the run sets.
fn check_templates(workload: &Workload, bytes: u32) -> Result<(), LoadError> {
    if let Some(group) = content::cut(workload) {
        return Err(LoadError::Payload {
            message: format!(
                "a payload of {bytes} B cuts the JSON of device group `{}`, which a subscriber's `where` asks about",
                group.name
            ),
            hint: format!("give {} B or more", group.json_document_needs().unwrap_or_default()),
        });
    }
    let group = workload.devices.iter().find(|group| !group.template_fits());
    group.map_or(Ok(()), |group| {
        Err(LoadError::Payload {
            message: format!(
                "a payload of {bytes} B does not hold the body of device group `{}`, which can become {} B",
                group.name,
                group.template_needs().unwrap_or_default()
            ),
            hint: "give a larger size, or none: then each message has the size that its body becomes".to_owned(),
        })
    })
}

/// Properties of a file besides the workload itself.
pub(crate) struct Outline {
    /// Whether it has a published variant.
    pub has_published: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// Reads the outline of a file.
pub(crate) fn outline(file_name: &str, text: &str) -> Result<Outline, LoadError> {
    let mut sources = Sources::default();
    sources.add(file_name, text);
    let read = || {
        let mut root = yaml::parse(text)?;
        overlay::substitute(&mut root)?;
        let raw = RawWorkload::deserialize(Reader(&root))?;
        let parameter = |(name, value): &(shape::Spanned<String>, Form<Text<AnyText>, RawParameter>)| {
            let (default, about) = match value {
                Form::Short(default) => (&default.text, ""),
                Form::Full(full) => (&full.default.text, full.about.as_str()),
            };
            Parameter { name: name.value.clone(), default: default.clone(), about: about.to_owned() }
        };
        let parameters = raw.parameters.0.iter().map(parameter).collect();
        Ok(Outline { has_published: raw.published.is_some(), parameters })
    };
    read().map_err(|problem: Problem| Box::new(problem.into_diagnostic(&sources)).into())
}

fn build(
    text: &str,
    options: &LoadOptions,
    settings: &[(String, String, u16)],
    files: &Files,
) -> Result<Workload, Problem> {
    let root = yaml::parse(text)?;
    let has_published = root.get("published").is_some();
    if has_published {
        // The other variant must be valid too, without the settings, which are meant for the chosen one.
        let other = match options.variant {
            Variant::Published => Variant::Corrected,
            Variant::Corrected => Variant::Published,
        };
        let other_options = LoadOptions { variant: other, ..LoadOptions::default() };
        workload::checked(&workload::prepared(root.clone(), other, &[])?, &other_options, 1, true, files)?;
    }
    let prepared = workload::prepared(root, options.variant, settings)?;
    workload::checked(&prepared, options, options.scale, has_published, files)
}
