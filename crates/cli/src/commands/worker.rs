//! `pubmark worker`: runs a part of a run's clients for the pubmark process that started it.

use clap::Args;
use pubmark_runner::workers;
use pubmark_systems::awake::Awake;

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};

/// Runs clients inside an emulated network; started by pubmark itself, which controls it over standard input.
#[derive(Debug, Args)]
pub struct Worker {
    /// Instead, measure the resource usage of the processes with this name or number
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "PROCESS")]
    pub observe: Option<String>,

    /// Instead, start a system and measure its resource usage
    #[cfg(feature = "cluster")]
    #[arg(long)]
    pub start_system: bool,

    /// Prevent CPU idle states on this machine meanwhile
    #[arg(long)]
    pub awake: bool,
}

impl Worker {
    /// Serves until standard input ends.
    pub fn perform(self) -> Outcome {
        self.serve().map(|()| ExitCode::Ok).map_err(|error| {
            Failure::from_error(ExitCode::Internal, &error)
                .during("failed to serve a run: `pubmark worker` is started by pubmark itself")
        })
    }

    fn serve(&self) -> std::io::Result<()> {
        // The setting stays in effect until this process ends.
        let _awake = self.awake.then(|| Awake::hold(None)).transpose().map_err(std::io::Error::other)?;
        #[cfg(feature = "cluster")]
        if let Some(process) = &self.observe {
            return pubmark_runner::observe(process);
        }
        #[cfg(feature = "cluster")]
        if self.start_system {
            return pubmark_runner::host_system();
        }
        workers::serve()
    }
}
