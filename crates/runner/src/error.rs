//! Why a run is refused, or has no outcome: a kind for programs, a message for people, and a hint.

use std::error::Error;
use std::fmt;

use pubmark_model::fleet::TooLarge;
use serde::{Deserialize, Serialize};

/// The kind of an error. Programs that start runs use it, never the text of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The specification, or a file that it names, cannot be used as written.
    Input,
    /// The system, a protocol or a client library does not offer a requested feature.
    Unsupported,
    /// Something that the run needs is not installed on this machine.
    NotInstalled,
    /// This machine does not have enough resources for the run.
    TooLarge,
    /// The system under test could not be started, reached or kept running.
    System,
    /// A node of the run, or the relay of its links, was lost before anything was measured; the next run may have it again.
    NodeLost,
    /// The relay of the run's links was lost, and no later run of this process can have one.
    RelayLost,
    /// The results could not be written, or not all of them.
    NotWritten,
    /// The run was stopped by [`crate::Host::stop`].
    Interrupted,
    /// A fault of pubmark or of this machine.
    Internal,
}

/// An error that is reported to the user.
///
/// One type for refusals and failures: most causes can occur before and after the start, and a caller treats both alike.
/// [`crate::RunSpec::check`] and [`crate::CheckedRun::prepare`] start nothing, so their errors are refusals.
#[derive(Debug)]
pub struct RunError {
    /// The kind.
    pub kind: ErrorKind,
    /// What was tried and on what, then the causes, outermost first; lowercase, without full stops.
    pub chain: Vec<String>,
    /// What to do about the error. Options are named as on the command line of `pubmark run`; each is a field of
    /// [`crate::RunSpec`].
    pub hint: Option<String>,
    /// A finding in a file, shown with its line and column instead of the innermost message.
    pub diagnostic: Option<Box<dyn miette::Diagnostic + Send + Sync>>,
}

impl RunError {
    /// An error with this message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> RunError {
        RunError { kind, chain: vec![message.into()], hint: None, diagnostic: None }
    }

    /// A specification that cannot be used as written.
    pub fn input(message: impl Into<String>) -> RunError {
        RunError::new(ErrorKind::Input, message)
    }

    /// A fleet with more publishers than can be distinguished.
    pub fn fleet_too_large(found: &TooLarge) -> RunError {
        RunError::from_error(ErrorKind::TooLarge, found).hint(found.hint())
    }

    /// A feature that is not offered.
    pub fn unsupported(message: impl Into<String>) -> RunError {
        RunError::new(ErrorKind::Unsupported, message)
    }

    /// The message of an error and of everything that caused it.
    pub fn from_error(kind: ErrorKind, error: &(dyn Error + 'static)) -> RunError {
        let mut chain = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            chain.push(error.to_string());
            cause = error.source();
        }
        RunError { kind, chain, hint: None, diagnostic: None }
    }

    /// A finding in a file that the user wrote.
    pub fn in_file(diagnostic: impl miette::Diagnostic + Send + Sync + 'static) -> RunError {
        RunError {
            kind: ErrorKind::Input,
            chain: vec![diagnostic.to_string()],
            hint: None,
            diagnostic: Some(Box::new(diagnostic)),
        }
    }

    /// Prepends the action during which the error occurred.
    #[must_use]
    pub fn during(mut self, what: impl Into<String>) -> RunError {
        self.chain.insert(0, what.into());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> RunError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.chain.join(": "))
    }
}

impl Error for RunError {}
