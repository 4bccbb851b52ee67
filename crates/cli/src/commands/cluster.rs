//! `pubmark cluster`: the credentials with which machines of a run authenticate each other.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pubmark_cluster::credentials::{self, COORDINATOR_FOLDER, MOST_VALID_DAYS, NODE_FOLDER, Role, VALID_DAYS};
use pubmark_cluster::{ClusterError, Credentials};
use pubmark_record::time::UtcTime;
use pubmark_runner as runner;

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

        /// Days for which the certificates are valid, from yesterday on, as clocks differ
        #[arg(long, value_name = "DAYS", default_value_t = VALID_DAYS,
              value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_VALID_DAYS)))]
        days: u32,
    },
    /// Say whose the credentials in a folder are, and until when they are valid
    Show {
        /// Folder that `pubmark cluster init` made, or a copy of one in it
        #[arg(value_name = "DIR", default_value = "cluster")]
        folder: PathBuf,
    },
}

impl Cluster {
    /// Creates the credentials, or prints their properties.
    pub fn perform(self, printer: &Printer) -> Outcome {
        match self.what {
            What::Init { folder, days } => init(&folder, days, printer),
            What::Show { folder } => show(&folder, printer),
        }
    }
}

fn init(folder: &Path, days: u32, printer: &Printer) -> Outcome {
    credentials::make(folder, days).map_err(|error| {
        let failure = Failure::from_error(ExitCode::Usage, &error);
        match error {
            ClusterError::Credentials { .. } => failure.hint("give another folder, or use the one that is there"),
            _ => failure,
        }
    })?;
    let own =
        Credentials::read(&folder.join(COORDINATOR_FOLDER), None).map_err(|error| runner::unusable(&error, folder))?;
    let until = own.validity().map(|(_, until)| day(until)).unwrap_or_default();
    let [coordinator, node] = [COORDINATOR_FOLDER, NODE_FOLDER].map(|name| folder.join(name));
    let (coordinator, node) = (coordinator.display(), node.display());
    printer.result(&format!(
        "Made {coordinator} and {node}.\n\n\
             Copy {node} to each machine that is to send and listen, and there type\n  \
             pubmark node --join THIS_MACHINE:7700 --credentials {node}\n\
             Here, with as many nodes as there are,\n  \
             pubmark run smart-home --nodes 2 --credentials {coordinator} --endpoint mqtt://BROKER\n\n\
             Whoever has {node} can join: keep it as you keep keys. Both are valid until {until}.\n"
    ))?;
    Ok(ExitCode::Ok)
}

/// Prints the owner of credentials, and their end of validity.
fn show(folder: &Path, printer: &Printer) -> Outcome {
    let is_parent = folder.join(COORDINATOR_FOLDER).exists() || folder.join(NODE_FOLDER).exists();
    let parts = [Role::Coordinator, Role::Node].map(|role| folder.join(role.folder()));
    let folders: Vec<&Path> = if is_parent {
        parts.iter().map(PathBuf::as_path).filter(|part| part.exists()).collect()
    } else {
        vec![folder]
    };
    for folder in folders {
        let credentials = Credentials::read(folder, None).map_err(|error| runner::unusable(&error, folder))?;
        let Some((role, (since, until))) = credentials.role().zip(credentials.validity()) else {
            return Err(Failure::usage(format!("{} holds no certificate of a cluster", folder.display()))
                .hint("`pubmark cluster init` makes them"));
        };
        let state = match credentials.check(role) {
            Ok(()) => "valid",
            Err(_) => "NOT valid today",
        };
        printer.result(&format!(
            "{}: of a {}, {state}: from {} to {}\n",
            folder.display(),
            role.folder(),
            day(since),
            day(until)
        ))?;
    }
    Ok(ExitCode::Ok)
}

/// A date such as `2029-02-27`.
fn day(seconds: u64) -> String {
    UtcTime::from_unix_seconds(seconds).rfc3339().chars().take(10).collect()
}
