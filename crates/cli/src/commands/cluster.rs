//! `pubmark cluster`: what machines need to trust each other.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pubmark_cluster::ClusterError;
use pubmark_cluster::credentials::{self, COORDINATOR_FOLDER, NODE_FOLDER};

use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;

/// Prepare runs on several machines
#[derive(Debug, Args)]
pub struct Cluster {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Make certificates and a token by which a coordinator and its nodes know each other
    Init {
        /// Folder to make
        #[arg(value_name = "DIR", default_value = "cluster")]
        folder: PathBuf,
    },
}

impl Cluster {
    /// Makes them and says what to type next.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let What::Init { folder } = self.what;
        credentials::make(&folder).map_err(|error| {
            let failure = Failure::from_error(ExitCode::Usage, &error);
            match error {
                ClusterError::Credentials { .. } => failure.hint("give another folder, or use the one that is there"),
                _ => failure,
            }
        })?;
        let [coordinator, node] = [COORDINATOR_FOLDER, NODE_FOLDER].map(|name| folder.join(name));
        let (coordinator, node) = (coordinator.display(), node.display());
        printer.result(&format!(
            "Made {coordinator} and {node}.\n\n\
             Copy {node} to each machine that is to send and listen, and there type\n  \
             pubmark node --join THIS_MACHINE:7700 --credentials {node}\n\
             Here, with as many nodes as there are,\n  \
             pubmark run smart-home --nodes 2 --credentials {coordinator} --endpoint mqtt://BROKER\n\n\
             Whoever has {node} can join: keep it as you keep keys.\n"
        ))?;
        Ok(ExitCode::Ok)
    }
}
