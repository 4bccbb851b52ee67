//! `pubmark experiment`: many runs over a grid of settings, as a file says.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pubmark_model::experiment::MOST_REPETITIONS;

use crate::experiment::conduct::{self, Options};
use crate::experiment::definition;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::units::{duration, positive_duration};

/// Run an experiment: every combination of what it varies, repeated in random order.
///
/// Waits for a quiet machine before each run, starts a fresh system each time, and writes a folder with experiment.json,
/// experiment.html and a folder for each run, after every repetition. What was interrupted, by Ctrl-C or a power cut, goes
/// on with `--resume`.
#[derive(Clone, Debug, Args)]
pub struct Experiment {
    /// A built-in experiment (`pubmark list experiments`) or the path of a file
    #[arg(required_unless_present = "resume", value_name = "EXPERIMENT")]
    pub experiment: Option<String>,

    /// Go on with the experiment in a folder: the runs that are missing, in their order
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "quick", "repeat", "duration", "warmup", "wait", "out", "dry_run"])]
    pub resume: Option<PathBuf>,

    /// Short runs and few repetitions, for a first look
    #[arg(long, conflicts_with_all = ["repeat", "duration", "warmup"])]
    pub quick: bool,

    /// Repetitions of each combination, in place of the file's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_REPETITIONS)))]
    pub repeat: Option<u32>,

    /// Length of each measured window, in place of the file's
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = positive_duration)]
    pub duration: Option<Duration>,

    /// Load before the window that is not measured, in place of the file's
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub warmup: Option<Duration>,

    /// Longest wait for a quiet machine before each run, in place of the file's
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub wait: Option<Duration>,

    /// Print what would be run, how long it would take and what is not possible; start nothing
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,

    /// Folder in which the folder of the experiment is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,

    /// Print the record as JSON to standard output, and nothing else there
    #[arg(long)]
    pub json: bool,

    /// No progress and no notes on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

impl Experiment {
    /// Runs it, or goes on with it.
    pub fn perform(self, printer: &Printer) -> Outcome {
        if let Some(folder) = &self.resume {
            return conduct::resume(folder, self.json, printer);
        }
        let name = self.experiment.as_deref().ok_or_else(|| Failure::usage("no experiment is named"))?;
        let loaded = definition::load(name)?;
        let mut experiment = loaded.experiment;
        if self.quick {
            experiment = experiment.quickly();
        }
        experiment.repeat = self.repeat.unwrap_or(experiment.repeat);
        experiment.duration = self.duration.unwrap_or(experiment.duration);
        experiment.warmup = self.warmup.unwrap_or(experiment.warmup);
        experiment.quiet_machine.within = self.wait.unwrap_or(experiment.quiet_machine.within);
        let options = Options { out: self.out, dry_run: self.dry_run, json: self.json };
        conduct::conduct(experiment, loaded.folder.as_deref(), &options, printer)
    }
}
