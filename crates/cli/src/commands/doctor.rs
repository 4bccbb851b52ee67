//! `pubmark doctor`: is this machine fit to measure?

use clap::Args;

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;
use pubmark_preflight::doctor::{self, Fitness};

/// Check whether this machine is fit to measure, and print what to change.
///
/// One line for each check: ✓ good, ! limits some runs, ✗ makes runs fail; each with its fix. Ends with code 2 if there
/// is a ✗.
#[derive(Debug, Args)]
pub struct Doctor {}

impl Doctor {
    /// Executes all checks and prints their results.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let (text, worst) = doctor::examine();
        printer.result(&text)?;
        Ok(if worst == Fitness::Bad { ExitCode::Usage } else { ExitCode::Ok })
    }
}
