//! `pubmark paper`: a publication's experiments in one call, and its tables with the results of this machine.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use pubmark_experiment::experiment::links;
use pubmark_experiment::{Machines, Observer};
use pubmark_model::experiment::Changes;
use pubmark_paper::{Progress, Repetition, Selection, Step, definition};
use pubmark_preflight::dry_run;
use pubmark_runner::{Host, suggestion};

use crate::commands::lengths::Lengths;
use crate::commands::machines::MachineOptions;
use crate::events::Events;
use crate::exit_code::ExitCode;
use crate::experiments::Watcher;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::{host, signals};

/// Repeat a publication: all its experiments, and its tables with the results of this machine.
///
/// Runs the experiments one after the other in one folder. The same call again continues where the last one stopped;
/// one with further values of `--only` adds these.
/// Systems and features that this machine lacks are named in their cells and left out. With `--nodes`, machines that join
/// make the load.
#[derive(Clone, Debug, Args)]
pub struct Paper {
    /// The publication
    #[arg(value_name = "PAPER", value_parser = PossibleValuesParser::new(definition::names()))]
    pub paper: String,

    /// One of its experiments, or some values of an axis in all that have it: `combench-loss`, `system=mosquitto,nats`;
    /// may be repeated
    #[arg(long, value_name = "EXPERIMENT|AXIS=VALUE,…")]
    pub only: Vec<String>,

    #[command(flatten)]
    pub lengths: Lengths,

    /// Prevent CPU idle states on this machine; needs root (`pubmark doctor` says whether it is worth it)
    #[arg(long)]
    pub awake: bool,

    /// Folder of the publication [default: `runs/paper-NAME`, with `-quick` and `-N-nodes` behind it for these options]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print the planned runs, their duration and what is not possible; start nothing
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,

    /// Print only the record, as JSON, to standard output
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub machines: MachineOptions,

    #[command(flatten)]
    pub events: Events,

    /// No progress and no notes on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

impl Paper {
    /// Runs the experiments and shows the results.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let paper = definition::find(&self.paper).ok_or_else(|| {
            Failure::usage(format!("there is no publication `{}`", self.paper))
                .hint(suggestion::choices(&self.paper, definition::names()))
        })?;
        let folder = self.folder();
        let host = Host { scratch: folder.clone(), ..host::this() };
        let machines = Machines::from(&self.machines);
        let repetition = Repetition::new(paper, &self.selection()?, &folder, &host, machines)?;
        repetition.notes().iter().for_each(|note| printer.note(note));
        if self.dry_run {
            repetition.check()?;
            printer.result(&dry_run::paper::text(&repetition, &host)?)?;
            return Ok(ExitCode::Ok);
        }
        // Before any thread is started: only a process with a single thread can create a user namespace (unshare(2)).
        let host = links::claim(repetition.experiments(), None, host, repetition.machines())?;
        let host = Host { stop: signals::watch()?, ..host };
        self.events.during(self.json, None, printer, |stream| {
            stream.begins(&folder, &self.paper);
            let mut progress = Shown { watcher: Watcher { printer, stream }, stopped: false };
            let record = repetition.perform(&host, &mut progress)?;
            stream.ends(&folder, record.status);
            self.events.show(self.json, (&record, &folder), pubmark_paper::summary, printer)?;
            Ok(record.conclusion(progress.stopped).into())
        })
    }

    fn folder(&self) -> PathBuf {
        let kind = if self.lengths.quick { "-quick" } else { "" };
        // Runs on other nodes have a folder of their own, as they are not averaged with these.
        let nodes = self.machines.join.nodes.map_or_else(String::new, |nodes| format!("-{nodes}-nodes"));
        self.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/paper-{}{kind}{nodes}", self.paper)))
    }

    fn selection(&self) -> Result<Selection, Failure> {
        let changes = Changes { awake: self.awake, ..Changes::from(&self.lengths) };
        let mut selection = Selection { changes, ..Selection::default() };
        for only in &self.only {
            selection.add(only).map_err(Failure::usage)?;
        }
        Ok(selection)
    }
}

/// Shows the progress of the experiments.
struct Shown<'a> {
    watcher: Watcher<'a>,
    /// An experiment ended without progress.
    stopped: bool,
}

impl Progress for Shown<'_> {
    fn step(&mut self, step: Step<'_>) {
        self.stopped |= matches!(step, Step::Stopped { .. });
        self.watcher.printer.note(&step.to_string());
        self.watcher.stream.note(step.to_string());
    }

    fn observer(&mut self) -> &mut dyn Observer {
        &mut self.watcher
    }
}
