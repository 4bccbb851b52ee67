//! Why a workload cannot be loaded.

use std::path::PathBuf;

use super::diagnostic::Diagnostic;
use crate::adjust::AdjustError;

/// Reason why a workload cannot be loaded.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LoadError {
    /// Neither a built-in workload nor a file.
    #[error("there is no workload `{name}`")]
    #[diagnostic(code(workload::not_found), help("{hint}"))]
    NotFound {
        /// The requested name.
        name: String,
        /// Similar names, or all names.
        hint: String,
    },
    /// The file cannot be read.
    #[error("failed to read the workload `{}`", path.display())]
    #[diagnostic(code(workload::unreadable))]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: std::io::Error,
    },
    /// A scale of zero.
    #[error("a scale of 0 leaves no devices")]
    #[diagnostic(code(workload::scale), help("the scale multiplies device counts; it is at least 1"))]
    NoScale,
    /// The rates cannot be multiplied by this factor.
    #[error(transparent)]
    #[diagnostic(code(workload::rate))]
    Rate(#[from] AdjustError),
    /// A payload size chosen for the run is too small for the body of a group.
    #[error("{message}")]
    #[diagnostic(code(workload::payload), help("{hint}"))]
    Payload {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// A link chosen for the run is not valid.
    #[error("{message}")]
    #[diagnostic(code(workload::link), help("{hint}"))]
    Link {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// A group chosen for the run does not exist.
    #[error("{message}")]
    #[diagnostic(code(workload::group), help("{hint}"))]
    Group {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// Something in the file, or in a `--set` option, is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Wrong(#[from] Box<Diagnostic>),
}
