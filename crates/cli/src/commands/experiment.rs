//! `pubmark experiment`: many runs over a grid of settings that a file defines.

use std::path::PathBuf;

use clap::Args;
use pubmark_experiment::Machines;
use pubmark_experiment::experiment::comparison::labelled_endpoint;
use pubmark_experiment::experiment::definition;
use pubmark_model::experiment::{Changes, OnlyError, axis_and_values};
use pubmark_runner::suggestion;

use crate::commands::lengths::Lengths;
use crate::commands::machines::MachineOptions;
use crate::events::Events;
use crate::exit_code::ExitCode;
use crate::experiments::{self, Options};
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::watching::Watching;

/// Run an experiment: every combination of what it varies, repeated in random order.
///
/// Waits for a quiet machine before each run, starts a fresh system each time, and writes a folder with
/// experiment.json, experiment.html and a folder for each run, after every repetition. `--resume` continues an
/// experiment that was interrupted, by Ctrl-C or a power failure.
#[derive(Clone, Debug, Args)]
pub struct Experiment {
    /// A built-in experiment (`pubmark list experiments`) or the path of a file
    #[arg(required_unless_present = "resume", value_name = "EXPERIMENT")]
    pub experiment: Option<String>,

    /// Continue the experiment in a folder: the missing runs, in their order
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "endpoint", "local_nodes", "only", "realtime", "awake", "quick", "repeat", "duration", "warmup", "wait", "out", "dry_run"])]
    pub resume: Option<PathBuf>,

    /// Some values of an axis instead of all: `system=mosquitto,nats`, `payload=1024B`; may be repeated, once for each
    /// axis
    #[arg(long, value_name = "AXIS=VALUE,…", value_parser = axis_and_values)]
    pub only: Vec<(String, String)>,

    /// A system that already runs, in addition to the experiment's or in place of the one with this label:
    /// `ours=mqtt://10.0.0.5:1883`; may be repeated. User names and certificates are in the experiment's file
    #[arg(long, value_name = "LABEL=URL")]
    pub endpoint: Vec<String>,

    /// Numbers of worker processes among which the load is divided, as among that many machines: `1,5`; for an
    /// experiment without an axis `nodes`
    #[arg(long, value_name = "NODES", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=200),
          conflicts_with = "nodes")]
    pub local_nodes: Vec<u16>,

    #[command(flatten)]
    pub lengths: Lengths,

    /// Run the generator's threads under SCHED_FIFO, even if the file does not request it
    #[arg(long)]
    pub realtime: bool,

    /// Prevent CPU idle states on this machine, whatever the file says; needs root (`pubmark doctor` says whether
    /// it is worth it)
    #[arg(long)]
    pub awake: bool,

    /// Print the planned runs, their duration and what is not possible; start nothing
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,

    /// Folder in which the folder of the experiment is created
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,

    /// Print only the record, as JSON, to standard output
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub machines: MachineOptions,

    #[command(flatten)]
    pub events: Events,

    #[command(flatten)]
    pub watching: Watching,

    /// No progress and no notes on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

impl Experiment {
    /// Runs the experiment, or resumes one.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let machines = Machines::from(&self.machines);
        let (out, dry_run, json) = (self.out, self.dry_run, self.json);
        let options = Options { out, dry_run, json, events: self.events, watching: self.watching, machines };
        if let Some(folder) = &self.resume {
            return experiments::resume(folder, &options, printer);
        }
        let name = self.experiment.as_deref().ok_or_else(|| Failure::usage("no experiment is named"))?;
        let loaded = definition::load(name)?;
        let mut experiment = loaded.experiment;
        for text in &self.endpoint {
            let (label, url) = labelled_endpoint(text)?;
            experiment = experiment.with_endpoint(label, url);
        }
        if !self.local_nodes.is_empty() {
            let own = experiment.axes.nodes.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
            if !own.is_empty() {
                return Err(Failure::usage(format!("`{name}` has an axis `nodes` of its own: {own}")).hint(
                    "leave `--local-nodes` out: without `--nodes` these are worker processes of this machine; `--only nodes=N` takes some of them",
                ));
            }
            experiment.axes.nodes.clone_from(&self.local_nodes);
        }
        experiment.check_values().map_err(|error| Failure::from_error(ExitCode::Usage, &error).hint(error.hint()))?;
        let (realtime, awake) = (self.realtime, self.awake);
        experiment = experiment.changed(&Changes { realtime, awake, ..Changes::from(&self.lengths) });
        for (axis, values) in &self.only {
            experiment = experiment.only(axis, values).map_err(nothing_like_it)?;
        }
        experiments::begin(experiment, loaded.folder.as_deref(), &options, printer)
    }
}

fn nothing_like_it(error: OnlyError) -> Failure {
    match error {
        OnlyError::NoAxis { wrong, axes } => {
            Failure::usage(format!("`--only`: `{wrong}` is no axis of this experiment"))
                .hint(suggestion::choices(&wrong, axes.iter().map(String::as_str)))
        }
        OnlyError::NoValue { axis, wrong, values } => {
            Failure::usage(format!("`--only`: `{wrong}` is no value of the axis `{axis}`"))
                .hint(suggestion::choices(&wrong, values.iter().map(String::as_str)))
        }
    }
}
