//! `pubmark relay`: forwards emulated links to a system that is already running, for the pubmark process that started it.

use clap::Args;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};

/// Forwards clients' connections; started by pubmark itself and controlled over standard input.
#[derive(Debug, Args)]
pub struct Relay {}

impl Relay {
    /// Serves until standard input ends.
    pub fn perform(self) -> Outcome {
        pubmark_runner::relayed::serve().map(|()| ExitCode::Ok).map_err(|error| {
            Failure::from_error(ExitCode::Internal, &error)
                .during("failed to lead links to an endpoint: `pubmark relay` is started by pubmark itself")
        })
    }
}
