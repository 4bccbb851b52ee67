//! Why a run is refused, or came to no outcome: a kind to decide by, words for people, and something to type.

use std::error::Error;
use std::fmt;

use pubmark_model::fleet::TooLarge;
use serde::{Deserialize, Serialize};

/// What was in the way. Whoever drives a run decides by this, never by the words of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The specification, or a file that it names, cannot be used as written.
    Input,
    /// The system, a protocol or a client library does not offer what is asked.
    Unsupported,
    /// Something that the run needs is not on this machine.
    NotInstalled,
    /// This machine is too small for the run.
    TooLarge,
    /// The system under test could not be started, reached or kept running.
    System,
    /// A node of the run was lost before there was anything to record.
    NodeLost,
    /// The results could not be written, or not all.
    NotWritten,
    /// The run was stopped by [`crate::Host::stop`].
    Interrupted,
    /// A fault of pubmark or of this machine.
    Internal,
}

/// An error on its way to the user.
///
/// One type for both refusals and failures: most causes can come up before anything was started and after, and a caller
/// treats them alike. [`crate::RunSpec::check`] and [`crate::CheckedRun::prepare`] start nothing, so that their errors are refusals.
#[derive(Debug)]
pub struct RunError {
    /// What was in the way.
    pub kind: ErrorKind,
    /// What was tried and on what, then why, outermost first; lowercase, without full stops.
    pub chain: Vec<String>,
    /// What to do. Options are named as on the command line of `pubmark run`; each is a field of [`crate::RunSpec`].
    pub hint: Option<String>,
    /// A finding in a file, to be shown with its place instead of the innermost message.
    pub diagnostic: Option<Box<dyn miette::Diagnostic + Send + Sync>>,
}

impl RunError {
    /// An error with a message of ours.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> RunError {
        RunError { kind, chain: vec![message.into()], hint: None, diagnostic: None }
    }

    /// A specification that cannot be used as written.
    pub fn input(message: impl Into<String>) -> RunError {
        RunError::new(ErrorKind::Input, message)
    }

    /// A fleet whose publishers cannot be told apart.
    pub fn fleet_too_large(found: &TooLarge) -> RunError {
        RunError::from_error(ErrorKind::TooLarge, found).hint(found.hint())
    }

    /// Something that is not offered.
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

    /// Puts what was being done in front.
    #[must_use]
    pub fn during(mut self, what: impl Into<String>) -> RunError {
        self.chain.insert(0, what.into());
        self
    }

    /// Adds something to type.
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
