//! Why a call could not do its work: an exit code, a message with its causes, and something to type.

use std::error::Error;

use crate::exit_code::ExitCode;

/// What a verb answers.
pub type Outcome = Result<ExitCode, Failure>;

/// An error on its way to the user.
#[derive(Debug)]
pub struct Failure {
    /// The code that the process ends with.
    pub exit: ExitCode,
    /// What was tried and on what, then why, outermost first; lowercase, without full stops.
    pub chain: Vec<String>,
    /// What to do, as something that can be typed where possible.
    pub hint: Option<String>,
    /// A finding in a file, shown with the place instead of the chain.
    pub diagnostic: Option<Box<dyn miette::Diagnostic + Send + Sync>>,
}

impl Failure {
    /// A failure with a message of ours.
    pub fn new(exit: ExitCode, message: impl Into<String>) -> Failure {
        Failure { exit, chain: vec![message.into()], hint: None, diagnostic: None }
    }

    /// Input that cannot be used.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(ExitCode::Usage, message)
    }

    /// The message of an error and of everything that caused it.
    pub fn from_error(exit: ExitCode, error: &(dyn Error + 'static)) -> Failure {
        let mut chain = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            chain.push(error.to_string());
            cause = error.source();
        }
        Failure { exit, chain, hint: None, diagnostic: None }
    }

    /// A finding in a file that the user wrote.
    pub fn in_file(diagnostic: impl miette::Diagnostic + Send + Sync + 'static) -> Failure {
        Failure {
            exit: ExitCode::Usage,
            chain: vec![diagnostic.to_string()],
            hint: None,
            diagnostic: Some(Box::new(diagnostic)),
        }
    }

    /// Puts what was being done in front.
    pub fn during(mut self, what: impl Into<String>) -> Failure {
        self.chain.insert(0, what.into());
        self
    }

    /// Adds something to type.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}
