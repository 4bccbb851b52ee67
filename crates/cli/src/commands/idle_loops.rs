//! `pubmark idle-loops`: prevents CPU idle states for the pubmark process that started it.

use clap::Args;
use pubmark_systems::awake;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};

/// Runs a loop at idle priority on each core (`--awake`); started by pubmark itself, which ends it.
#[derive(Debug, Args)]
pub struct IdleLoops {}

impl IdleLoops {
    /// Runs until it is killed.
    pub fn perform(self) -> Outcome {
        awake::serve().map(|()| ExitCode::Ok).map_err(|error| {
            Failure::from_error(ExitCode::Internal, &error).during("failed to prevent CPU idle states".to_owned())
        })
    }
}
