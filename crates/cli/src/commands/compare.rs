//! `pubmark compare`: systems under one workload, or records of several runs side by side.

use std::path::{Path, PathBuf};

use clap::Args;
use pubmark_experiment::Machines;
use pubmark_record::comparison;
use pubmark_record::experiment::EXPERIMENT_FILE;
use pubmark_report::html;
use pubmark_report::terminal;

use crate::commands::grid::Grid;
use crate::commands::machines::MachineOptions;
use crate::events::Events;
use crate::exit_code::ExitCode;
use crate::experiments::{self, Options};
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::rendering;
use crate::watching::Watching;

/// Compare systems under a workload, or put records of runs side by side.
///
/// With a workload and `--systems`, `--endpoint` or both, every combination of the varied values is run, each
/// repetition in a random order, each run on a quiet machine with a fresh system; the report says which system is
/// better and how certain that is. An endpoint is a system that already runs: it is not started afresh. With folders of
/// runs, their records are put side by side; they must have the same schedule. The built-in broker is shown and never
/// ranked.
#[derive(Debug, Args)]
#[command(max_term_width = 80)]
pub struct Compare {
    /// A workload (`pubmark list workloads`, or a file); or 2 to 8 folders of runs
    #[arg(required = true, num_args = 1.., value_name = "WORKLOAD|RUN")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub grid: Grid,

    #[command(flatten)]
    pub machines: MachineOptions,

    /// Print the planned runs, their duration and what is not possible; start nothing
    #[arg(long, requires = "compared", conflicts_with = "json", help_heading = "Instead of running")]
    pub dry_run: bool,

    /// With runs: also write the comparison as one offline HTML file
    #[arg(long, value_name = "FILE", conflicts_with = "compared", help_heading = "Output")]
    pub html: Option<PathBuf>,

    /// Folder in which the folder of the experiment is created
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub out: PathBuf,

    /// Print only the experiment's record, as JSON, to standard output
    #[arg(long, requires = "compared", help_heading = "Output")]
    pub json: bool,

    #[command(flatten)]
    pub watching: Watching,

    /// No progress and no notes on standard error
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

impl Compare {
    /// Runs the experiment, or compares the records.
    pub fn perform(self: Box<Self>, printer: &Printer) -> Outcome {
        self.grid.check_log_in()?;
        if !self.grid.is_given() {
            return self.records(printer);
        }
        let [workload] = self.what.as_slice() else {
            return Err(Failure::usage(format!("one workload is compared at a time, not {}", self.what.len()))
                .hint(format!("`pubmark compare {} --systems …`", self.what[0])));
        };
        let experiment = self.grid.experiment(workload)?;
        let machines = Machines::from(&self.machines);
        let (out, dry_run, json) = (self.out, self.dry_run, self.json);
        let (events, watching) = (Events::default(), self.watching);
        let options = Options { out, dry_run, json, events, watching, machines };
        experiments::begin(experiment, None, &options, printer)
    }

    fn records(&self, printer: &Printer) -> Outcome {
        if self.watching.is_wanted() {
            return Err(Failure::usage(
                "`--live` and `--metrics` show runs that are made, and no system is named to run",
            )
            .hint("`pubmark compare smart-home --systems mosquitto,nats --live`"));
        }
        let runs: Vec<&Path> = self.what.iter().map(Path::new).collect();
        if let Some(path) = runs.iter().find(|path| is_experiment(path)) {
            let path = path.display();
            return Err(Failure::usage(format!("`{path}` is an experiment, not a run"))
                .hint(format!("its runs are in `{path}/runs`; `pubmark report {path}` shows the experiment")));
        }
        if let [workload] = self.what.as_slice()
            && !runs[0].exists()
        {
            return Err(Failure::usage(format!("no system is named to run `{workload}` on"))
                .hint(format!("`pubmark compare {workload} --systems mosquitto,nats`; or give folders of two runs")));
        }
        if !(2..=comparison::MOST_RUNS).contains(&runs.len()) {
            return Err(Failure::usage(format!(
                "a comparison takes 2 to {} runs, not {}",
                comparison::MOST_RUNS,
                runs.len()
            ))
            .hint("give the folders of two runs, for instance `runs/*-smart-home`"));
        }
        let records = runs.iter().map(|run| rendering::load(run)).collect::<Result<Vec<_>, Failure>>()?;
        let compared = comparison::compare(&records).map_err(|error| {
            Failure::from_error(ExitCode::Usage, &error).hint("run each with the same workload, `--seed`, `--duration`")
        })?;
        let options = printer.summary_options(None);
        if let Some(path) = &self.html {
            rendering::write(path, &html::comparison(&compared))?;
        }
        printer.result(&terminal::comparison(&compared, &options))?;
        Ok(ExitCode::Ok)
    }
}

/// Whether the path is the folder or the record of an experiment.
fn is_experiment(path: &Path) -> bool {
    path.join(EXPERIMENT_FILE).is_file() || path.file_name().is_some_and(|name| name == EXPERIMENT_FILE)
}
