//! Why a workload cannot be loaded.

use std::path::PathBuf;

use super::diagnostic::Diagnostic;
use crate::adjust::AdjustError;

/// Why there is no workload.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LoadError {
    /// Neither a built-in workload nor a file.
    #[error("there is no workload `{name}`")]
    #[diagnostic(code(workload::not_found), help("{hint}"))]
    NotFound {
        /// The name asked for.
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
    /// The file cannot be read.
    #[error("failed to read the workload `{}`", path.display())]
    #[diagnostic(code(workload::unreadable))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A scale of zero.
    #[error("a scale of 0 leaves no devices")]
    #[diagnostic(code(workload::scale), help("the scale multiplies device counts; it is at least 1"))]
    NoScale,
    /// The rates cannot be multiplied so.
    #[error(transparent)]
    #[diagnostic(code(workload::rate))]
    Rate(#[from] AdjustError),
    /// A size chosen for the run that holds no body of a group's.
    #[error("{message}")]
    #[diagnostic(code(workload::payload), help("{hint}"))]
    Payload {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// A link chosen for the run that cannot be.
    #[error("{message}")]
    #[diagnostic(code(workload::link), help("{hint}"))]
    Link {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// A group chosen for the run that is not there.
    #[error("{message}")]
    #[diagnostic(code(workload::group), help("{hint}"))]
    Group {
        /// What is wrong.
        message: String,
        /// What to type instead.
        hint: String,
    },
    /// Something in the file, or in a `--set` option, is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Wrong(#[from] Box<Diagnostic>),
}
