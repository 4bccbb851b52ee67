//! What `pubmark run` takes from the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pubmark_model::fault::choice::FaultChoice;

use crate::commands::setup::Setup;
use crate::placement::rate_factor;
use crate::units::{duration, positive_duration};

/// Run a workload against a system and record what happened.
///
/// Starts the system (or connects to an endpoint), brings the fleet up, measures, waits for stragglers, stops what it
/// started, and writes a folder with record.json and report.html. The summary goes to standard output, progress and
/// warnings to standard error.
#[derive(Clone, Debug, Args)]
#[command(max_term_width = 80)]
pub struct Run {
    /// A built-in workload (`pubmark list workloads`) or the path of a workload file
    pub workload: String,

    #[command(flatten)]
    pub setup: Setup,

    /// Multiply the number of devices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Load")]
    pub scale: u32,

    /// Multiply the rate of every device
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = rate_factor, help_heading = "Load")]
    pub rate: f64,

    /// Length of the measured window
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = positive_duration, default_value = "60s",
          help_heading = "Load")]
    pub duration: Duration,

    /// Load before the window that is not measured
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "5s",
          help_heading = "Load")]
    pub warmup: Duration,

    /// Longest wait for stragglers after the window
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "10s",
          help_heading = "Load")]
    pub drain: Duration,

    /// Repeat the run, each time with a fresh system; one folder for each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000),
          help_heading = "Load")]
    pub repeat: u32,

    /// Break something, in place of what the workload breaks: `kill:at=30s,for=5s`, `reset:at=10s,share=20%`,
    /// `pause:mttf=30s,mttr=5s`, `none`; once for each (docs/guide/faults.md)
    #[arg(long, value_name = "KIND:KEY=VALUE,…", value_parser = FaultChoice::parse, help_heading = "Load")]
    pub fault: Vec<FaultChoice>,

    /// Print what the run would need, and whether this machine can give it; start nothing
    #[arg(long, conflicts_with_all = ["dump_schedule", "json"], help_heading = "Instead of running")]
    pub dry_run: bool,

    /// Run on N machines, once so many have joined with `pubmark node`; with --dry-run, count for them
    #[arg(long, value_name = "N", conflicts_with = "local_nodes", value_parser = clap::value_parser!(u16).range(1..=1000),
          help_heading = "Nodes")]
    pub nodes: Option<u16>,

    /// Look at what the system takes on its own machines, once N nodes have joined with `pubmark node --observe`
    #[arg(long, value_name = "N", requires = "endpoint", conflicts_with = "node_exporter",
          value_parser = clap::value_parser!(u16).range(1..=100), help_heading = "Nodes")]
    pub observers: Option<u16>,

    /// Where nodes join [default: 0.0.0.0:7700]
    #[arg(long, value_name = "ADDRESS", help_heading = "Nodes")]
    pub listen: Option<SocketAddr>,

    /// Say on local networks where nodes join, while they are waited for: `pubmark node --join mdns` finds it
    #[arg(long, help_heading = "Nodes")]
    pub announce: bool,

    /// The coordinator's folder that `pubmark cluster init` made [default: cluster/coordinator]
    #[arg(long, value_name = "DIR", help_heading = "Nodes")]
    pub credentials: Option<PathBuf>,

    /// Longest wait for nodes to join [default: 1m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, help_heading = "Nodes")]
    pub join_limit: Option<Duration>,

    /// Write the schedule to FILE, or to standard output: a line for each message
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "json",
          help_heading = "Instead of running")]
    pub dump_schedule: Option<PathBuf>,

    /// Folder in which the folder of the run is made
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub out: PathBuf,

    /// Print the record as JSON to standard output, and nothing else there
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// No progress and no notes on standard error
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

impl Run {
    /// The arguments of `pubmark run WORKLOAD` without options.
    pub fn of(workload: &str) -> Run {
        use clap::{Args as _, FromArgMatches as _};
        let command = Run::augment_args(clap::Command::new("run"));
        let matches = command.get_matches_from(["run", workload]);
        Run::from_arg_matches(&matches).expect("a workload is all that is required")
    }
}
