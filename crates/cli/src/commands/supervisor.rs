//! `pubmark supervisor`: supervises one broker for the pubmark process that started it, and cleans up when that has ended.

use clap::Args;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};

/// Supervises a broker; started by pubmark itself and controlled over standard input and output.
#[derive(Debug, Args)]
pub struct Supervisor {}

impl Supervisor {
    /// Serves until standard input ends.
    pub fn perform(self) -> Outcome {
        pubmark_systems::supervisor::serve().map(|()| ExitCode::Ok).map_err(|error| {
            Failure::from_error(ExitCode::SystemFailed, &error).during("failed to hold a system".to_owned())
        })
    }
}
