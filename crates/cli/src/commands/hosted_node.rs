//! `pubmark hosted-node`: supervises a node on a host for the `pubmark deploy ssh` at the other end of standard input.

use std::path::PathBuf;

use clap::Args;
use pubmark_deploy::ssh::on_host;

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::signals;

/// Runs a node until it ends, or standard input does; called on hosts by `pubmark deploy ssh`.
#[derive(Debug, Args)]
pub struct HostedNode {
    /// Folder of this program, which is removed at the end
    folder: PathBuf,
}

impl HostedNode {
    /// Runs the node and returns its exit code.
    pub fn perform(self) -> Outcome {
        let stop = signals::watch()?;
        let code = on_host::attend(&self.folder, &stop)?;
        Ok(ExitCode::of(code).unwrap_or(ExitCode::Internal))
    }
}
