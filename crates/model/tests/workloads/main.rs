//! Workload files: what is accepted, what is refused with which error, and the built-in ones compared with the published
//! figures.
#![allow(clippy::unwrap_used)]

mod clients;
mod content;
mod diagnostics;
mod faults;
mod forms;
mod hostile;
mod links;
mod options;
mod payloads;
mod plans;
mod psmark;
mod requests;
mod schema;
mod settings;
mod tokens;
mod transform;

use pubmark_model::load::{self, Diagnostic, LoadError, LoadOptions};
use pubmark_model::workload::{Variant, Workload};

/// Loads a text without changes.
fn read(text: &str) -> Result<Workload, LoadError> {
    load::parse("test.yaml", text, &LoadOptions::default())
}

/// The diagnostic of a text that must be refused.
fn refused(text: &str) -> Diagnostic {
    match read(text) {
        Err(LoadError::Wrong(diagnostic)) => *diagnostic,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was taken:\n{text}"),
    }
}

/// Options for one variant.
fn variant(variant: Variant) -> LoadOptions {
    LoadOptions { variant, ..LoadOptions::default() }
}

/// Options with settings.
fn with(settings: &[(&str, &str)]) -> LoadOptions {
    let set = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    LoadOptions { set, ..LoadOptions::default() }
}

/// A small complete workload with these lines in its only device group.
fn group(lines: &str) -> String {
    format!(
        "name: test\ndevices:\n  - name: sensor\n    count: 3\n    {}\nsubscribers:\n  - filters: [\"#\"]\n",
        lines.replace('\n', "\n    ")
    )
}
