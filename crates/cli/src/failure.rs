//! The reason why a call failed: an exit code, a message with its causes, and a hint with something to type.

use std::error::Error;

use pubmark_runner::stream::EventStream;
use pubmark_runner::{ErrorKind, RunError};

use crate::exit_code::ExitCode;

/// The result of a verb.
pub type Outcome = Result<ExitCode, Failure>;

/// An error that is reported to the user.
#[derive(Debug)]
pub struct Failure {
    /// The code that the process ends with.
    pub exit: ExitCode,
    /// What was tried and on what, then the causes, outermost first; lowercase, without full stops.
    pub chain: Vec<String>,
    /// What to do, as a command where possible.
    pub hint: Option<String>,
    /// A finding in a file, shown with its position instead of the chain.
    pub diagnostic: Option<Box<dyn miette::Diagnostic + Send + Sync>>,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        let RunError { kind, chain, hint, diagnostic } = error;
        Failure { exit: exit_of(kind), chain, hint, diagnostic }
    }
}

fn exit_of(kind: ErrorKind) -> ExitCode {
    match kind {
        ErrorKind::Input | ErrorKind::Unsupported | ErrorKind::TooLarge => ExitCode::Usage,
        ErrorKind::NotInstalled | ErrorKind::System => ExitCode::SystemFailed,
        ErrorKind::NodeLost | ErrorKind::RelayLost => ExitCode::InvalidRun,
        ErrorKind::NotWritten => ExitCode::NotWritten,
        ErrorKind::Interrupted => ExitCode::Interrupted,
        ErrorKind::Internal => ExitCode::Internal,
    }
}

impl Failure {
    /// A failure with a message of its own, without a cause.
    pub fn new(exit: ExitCode, message: impl Into<String>) -> Failure {
        Failure { exit, chain: vec![message.into()], hint: None, diagnostic: None }
    }

    /// A failure because of unusable input.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(ExitCode::Usage, message)
    }

    /// A failure with the message of an error and of all its causes.
    pub fn from_error(exit: ExitCode, error: &(dyn Error + 'static)) -> Failure {
        Failure { exit, ..RunError::from_error(ErrorKind::Internal, error).into() }
    }

    /// Writes it as an event for programs.
    pub fn write(&self, stream: &EventStream) {
        stream.fails(self.exit.number(), &self.chain, self.hint.as_deref());
    }

    /// Puts what was being done in front of the chain.
    pub fn during(mut self, what: impl Into<String>) -> Failure {
        self.chain.insert(0, what.into());
        self
    }

    /// Adds a hint, as a command where possible.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}
