//! The command-line arguments of `pubmark run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, FromArgMatches as _};
use pubmark_model::fault::choice::FaultChoice;
use pubmark_model::metric::MetricProgram;
use pubmark_record::message_log::LogFormat;
use pubmark_record::objectives::Undecided;
use pubmark_runner::{RunError, RunSpec};

use crate::commands::machines::JoinOptions;
use crate::commands::setup::{Setup, replace, replace_some};
use crate::events::Events;
use crate::values::{UNDECIDED, duration, one_of, positive_duration, rate_factor};
use crate::watching::Watching;

/// Run a workload against a system and record what happened.
///
/// Starts the system (or connects to an endpoint), connects the fleet, measures, waits for late messages, stops what it
/// started, and writes a folder with record.json and report.html. The summary goes to standard output, progress and
/// warnings to standard error.
#[derive(Clone, Debug, Args)]
#[command(max_term_width = 80)]
pub struct Run {
    /// A built-in workload (`pubmark list workloads`), the path of a workload file, or the run.yaml of a run to repeat
    pub workload: String,

    #[command(flatten)]
    pub setup: Setup,

    /// Multiply the number of devices [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Load")]
    pub scale: Option<u32>,

    /// Multiply the rate of every device [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = rate_factor, help_heading = "Load")]
    pub rate: Option<f64>,

    /// Length of the measured window [default: 60s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = positive_duration,
          help_heading = "Load")]
    pub duration: Option<Duration>,

    /// Load before the window that is not measured [default: 5s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration,
          help_heading = "Load", hide_short_help = true)]
    pub warmup: Option<Duration>,

    /// Longest wait for late messages after the window [default: 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration,
          help_heading = "Load", hide_short_help = true)]
    pub drain: Option<Duration>,

    /// Repeat the run, each time with a fresh system; one folder for each [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000),
          help_heading = "Load")]
    pub repeat: Option<u32>,

    /// Inject a fault, in place of the workload's: `kill:at=30s,for=5s`, `reset:at=10s,share=20%`,
    /// `pause:mttf=30s,mttr=5s`, `none`; may be repeated (docs/how-to/inject-faults.md)
    #[arg(long, value_name = "KIND:KEY=VALUE,…", value_parser = FaultChoice::parse, help_heading = "Load")]
    pub fault: Vec<FaultChoice>,

    /// Limits, for instance `p99<50ms,loss=0`, in place of the workload's: passed, missed (exit code 3) or undecided
    /// (8)
    #[arg(long, value_name = "LIMITS", help_heading = "Limits")]
    pub slo: Option<String>,

    /// Exit code 0 (`pass`) or 3 (`fail`) if a limit is undecided
    #[arg(long, value_name = "pass|fail", value_parser = one_of(UNDECIDED), help_heading = "Limits", hide_short_help = true)]
    pub undecided: Option<Undecided>,

    /// Print the resources that the run would need, and whether this machine has them; start nothing
    #[arg(long, conflicts_with_all = ["dump_schedule", "json"], help_heading = "Instead of running")]
    pub dry_run: bool,

    #[command(flatten)]
    pub join: JoinOptions,

    /// Write the schedule to FILE, or to standard output: a line for each message
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "json",
          help_heading = "Instead of running", hide_short_help = true)]
    pub dump_schedule: Option<PathBuf>,

    /// Folder in which the folder of the run is created
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub out: PathBuf,

    /// Write a row for each message and each subscriber beside the record: messages.parquet, or as `csv` or `ndjson`
    /// (docs/reference/message-log.md)
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "parquet",
          value_parser = LogFormat::read, help_heading = "Output", hide_short_help = true)]
    pub message_log: Option<LogFormat>,

    /// Compute a metric of your own from the message log, with a program that prints its value; `custom.NAME` in `--slo`. Implies
    /// `--message-log` (docs/how-to/metrics-of-your-own.md)
    #[arg(long, value_name = "NAME[:UNIT]=COMMAND", value_parser = pubmark_runner::custom_metrics::read,
          help_heading = "Output", hide_short_help = true)]
    pub metric: Vec<MetricProgram>,

    /// Print only the record, as JSON, to standard output
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    #[command(flatten)]
    pub events: Events,

    #[command(flatten)]
    pub watching: Watching,

    /// Print all details, not only the first screen
    #[arg(long, short, help_heading = "Output")]
    pub verbose: bool,

    /// No progress and no notes on standard error
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

impl Run {
    /// The specification that the arguments describe: a specification's file with changes, or a workload with options.
    pub fn spec(&self) -> Result<RunSpec, RunError> {
        let path = Path::new(&self.workload);
        let mut spec = if RunSpec::is_one(path) { RunSpec::read(path)? } else { RunSpec::new(&self.workload) };
        self.setup.clone().apply(&mut spec);
        replace(&mut spec.load.scale, self.scale);
        replace(&mut spec.load.rate, self.rate);
        if !self.fault.is_empty() {
            spec.load.faults = self.fault.clone();
        }
        replace(&mut spec.window.warmup, self.warmup);
        replace(&mut spec.window.duration, self.duration);
        replace(&mut spec.window.drain, self.drain);
        replace(&mut spec.repetitions, self.repeat);
        replace_some(&mut spec.objectives, self.slo.clone());
        replace_some(&mut spec.message_log, self.message_log);
        spec.metrics.retain(|metric| self.metric.iter().all(|own| own.name != metric.name));
        spec.metrics.extend(self.metric.iter().cloned());
        self.join.apply(&mut spec.nodes);
        Ok(spec)
    }

    /// The arguments of `pubmark run WORKLOAD` without options.
    pub fn of(workload: &str) -> Run {
        Run::read(&[workload.to_owned()]).expect("a workload is all that is required")
    }

    /// Parses the words after `pubmark run`.
    ///
    /// # Errors
    /// Clap's message, its first line only.
    pub fn read(words: &[String]) -> Result<Run, RunError> {
        let command = Run::augment_args(clap::Command::new("pubmark run").no_binary_name(true));
        let matches = command.try_get_matches_from(words).and_then(|matches| Run::from_arg_matches(&matches));
        matches.map_err(|error| {
            // Clap's text has its own heading and hint; the first line has the reason.
            let text = error.to_string();
            let line = text.lines().next().unwrap_or("unusable arguments");
            RunError::input(line.strip_prefix("error: ").unwrap_or(line).to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_runner::spec::PlacedSystem;

    #[test]
    fn another_endpoint_is_not_the_system_that_was_placed() {
        let mut spec = RunSpec::new("hello");
        spec.target.placed = Some(PlacedSystem::default());
        Run::of("hello").setup.apply(&mut spec);
        assert!(spec.target.placed.is_some());
        let words = ["hello", "--endpoint", "mqtt://localhost"].map(str::to_owned);
        Run::read(&words).expect("an endpoint").setup.apply(&mut spec);
        assert_eq!(spec.target.placed, None);
    }

    #[test]
    fn options_that_run_lacks_are_refused_with_its_words() {
        let error = Run::read(&["hello", "--qos", "9"].map(str::to_owned)).expect_err("QoS 9");
        assert!(error.chain[0].contains("--qos"), "{error:?}");
    }
}
