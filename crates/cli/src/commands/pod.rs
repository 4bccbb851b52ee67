//! `pubmark pod`: the commands that are executed in the coordinator's pod of a deployment.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use pubmark_deploy::pod::{self, PodRun};

use crate::exit_code::ExitCode;
use crate::failure::Outcome;
use crate::printer::Printer;
use crate::signals;
use crate::values::positive_duration;

/// Runs in a pod and provides its results; called by the manifest that `pubmark deploy kubernetes` writes.
#[derive(Debug, Args)]
pub struct Pod {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Wait for the system, execute the run, and wait until the results are collected
    Run(RunInPod),
    /// Wait for the run's end, and write its results as a tar to standard output
    Send(Send),
    /// Mark the results as collected
    Release(Release),
}

#[derive(Debug, Args)]
struct RunInPod {
    /// Specification of the run
    spec: PathBuf,

    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    /// Longest wait until the results are collected
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    collect_limit: Duration,

    /// Host and port of the system, which may not be ready yet
    #[arg(long, value_name = "HOST:PORT", requires = "system_limit")]
    system: Option<String>,

    /// The system receives datagrams: it cannot be tested whether it listens
    #[arg(long)]
    datagrams: bool,

    /// Longest wait for the system
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    system_limit: Option<Duration>,
}

#[derive(Debug, Args)]
struct Send {
    /// Folder with the results
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    /// Longest wait for the run's end
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = positive_duration)]
    limit: Duration,
}

#[derive(Debug, Args)]
struct Release {
    /// Folder with the results
    #[arg(long, value_name = "DIR")]
    results: PathBuf,
}

impl Pod {
    /// Executes the subcommand. For a run, returns the exit code of the run.
    pub fn perform(self, printer: &Printer) -> Outcome {
        match self.verb {
            Verb::Run(run) => run.perform(printer),
            Verb::Send(send) => {
                pod::send(&send.results, send.limit, std::io::stdout().lock())?;
                Ok(ExitCode::Ok)
            }
            Verb::Release(release) => {
                pod::release(&release.results)?;
                Ok(ExitCode::Ok)
            }
        }
    }
}

impl RunInPod {
    fn perform(self, printer: &Printer) -> Outcome {
        let stop = signals::watch()?;
        let run = PodRun {
            folder: self.results,
            spec: self.spec,
            system: self.system,
            datagrams: self.datagrams,
            system_limit: self.system_limit.unwrap_or_default(),
            collect_limit: self.collect_limit,
        };
        let code = run.perform(&|text| printer.note(text), &stop)?;
        Ok(ExitCode::of(code).unwrap_or(ExitCode::Internal))
    }
}
