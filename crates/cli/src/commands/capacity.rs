//! `pubmark capacity`: the highest load that a system carries within objectives.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pubmark_experiment::capacity::objectives;
use pubmark_experiment::capacity::planning::{self, Outline, Range};
use pubmark_experiment::capacity::search::Bounds;
use pubmark_experiment::capacity::trial::{Trials, WARMUP};
use pubmark_model::fault::choice::FaultChoice;
use pubmark_preflight::dry_run;
use pubmark_record::capacity::Knob;
use pubmark_record::conclusion::Conclusion;
use pubmark_record::store::RunFolder;
use pubmark_report::terminal;
use pubmark_runner::save::{self, no_folder};
use pubmark_runner::spec::Window;
use pubmark_runner::stream::EventStream;
use pubmark_runner::{ErrorKind, Host, RunError, RunSpec, now, target};

use crate::commands::machines::JoinOptions;
use crate::commands::setup::Setup;
use crate::events::Events;
use crate::exit_code::ExitCode;
use crate::experiments::Watcher;
use crate::failure::Outcome;
use crate::printer::Printer;
use crate::signals;
use crate::values::{Word, duration, one_of, positive_duration, rate_factor};
use crate::watching::{Watchers, Watching};

/// Find the highest load that a system carries within objectives.
///
/// Short runs, each with a fresh system: the load is doubled until an objective is missed, then the gap is halved. A
/// missed trial is repeated before it counts, and the result has held twice. The result states whether pubmark itself
/// was the limit. A system that already runs (`--endpoint`) is not started afresh.
#[derive(Clone, Debug, Args)]
#[command(max_term_width = 80)]
pub struct Capacity {
    /// A built-in workload (`pubmark list workloads`) or the path of a workload file
    pub workload: String,

    /// Objectives that must hold, separated by commas: `p99<50ms,loss=0`
    #[arg(long, value_name = "OBJECTIVES", default_value = "p99<50ms,loss=0")]
    pub slo: String,

    /// What is varied: the rate of the devices, or their number
    #[arg(long, value_parser = one_of(KNOBS), default_value = "rate", help_heading = "Search")]
    pub vary: Knob,

    /// Stop when the capacity is known to this many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = percent,
          help_heading = "Search", hide_short_help = true)]
    pub precision: f64,

    /// Start no further trial after this time
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "10m", help_heading = "Search")]
    pub within: Duration,

    /// Factor of the workload to begin with [default: 1, or the factor that gives 1,000 messages a second]
    #[arg(long, value_name = "FACTOR", value_parser = rate_factor, help_heading = "Search", hide_short_help = true)]
    pub first: Option<f64>,

    /// Largest factor of the workload to try
    #[arg(long, value_name = "FACTOR", value_parser = rate_factor, help_heading = "Search", hide_short_help = true)]
    pub most: Option<f64>,

    #[command(flatten)]
    pub setup: Setup,

    #[command(flatten)]
    pub join: JoinOptions,

    /// Length of each trial's window [default: 3 s, longer where few messages are sent]
    #[arg(long, value_name = "TIME", value_parser = positive_duration, help_heading = "Load")]
    pub duration: Option<Duration>,

    /// Load before each window that is not measured [default: 1s, or what the system's definition asks for]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Load", hide_short_help = true)]
    pub warmup: Option<Duration>,

    /// Inject a fault in each trial, in place of the workload's faults: `kill:at=1s,for=1s`, `none`; may be repeated
    /// (docs/how-to/inject-faults.md)
    #[arg(long, value_name = "KIND:KEY=VALUE,…", value_parser = FaultChoice::parse,
          help_heading = "Load", hide_short_help = true)]
    pub fault: Vec<FaultChoice>,

    /// Longest wait for late messages after each window
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s",
          help_heading = "Load", hide_short_help = true)]
    pub drain: Duration,

    /// Print the planned trials, and whether this machine can generate the first load; start nothing
    #[arg(long, conflicts_with = "json", help_heading = "Instead of searching")]
    pub dry_run: bool,

    /// Folder in which the folder of the search is created
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub out: PathBuf,

    /// Print only the record of the search, as JSON, to standard output
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    #[command(flatten)]
    pub events: Events,

    #[command(flatten)]
    pub watching: Watching,

    /// No progress and no notes on standard error
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// Quantities that a search can vary.
const KNOBS: &[Word<Knob>] = &[
    ("rate", "Messages per second, at the same number of devices", Knob::Rate),
    ("scale", "Number of devices, at the same rate each", Knob::Scale),
];

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if (0.1..=50.0).contains(&value) => Ok(value),
        _ => Err("a precision from 0.1 to 50 percent is expected".to_owned()),
    }
}

impl Capacity {
    /// Searches, and shows the result.
    pub fn perform(self: Box<Self>, printer: &Printer) -> Outcome {
        let watching = if self.dry_run { Watching::default() } else { self.watching.clone() };
        watching.during(&self.events, self.json, printer, |stream, watchers| self.search(stream, watchers, printer))
    }

    fn search(&self, stream: &EventStream, watchers: &mut Watchers, printer: &Printer) -> Outcome {
        let objectives = objectives("`--slo`", &self.slo)?;
        // Every trial has the same workload, even if its file is changed meanwhile.
        let spec = self.spec()?.self_contained();
        let knob = self.vary;
        let range = Range { first: self.first, most: self.most, precision_percent: self.precision };
        let bounds = range.bounds(&spec, knob)?;
        let host = self.events.host();
        // Before any thread is started: only a process with a single thread can create a user namespace (unshare(2)).
        let host = if self.dry_run { host } else { spec.claim_links(&spec.load()?, host)? };
        let host = Host { stop: signals::watch()?, scratch: self.out.clone(), ..host };
        let trials = Trials { spec, knob, objectives: &objectives, duration: self.duration, host: &host };
        if self.dry_run {
            return self.plan(&bounds, &trials, printer);
        }
        // Why a trial is not possible is said by the search itself.
        let notes = planning::first_trial(&trials, &bounds).map(|first| first.notes()).unwrap_or_default();
        notes.iter().for_each(|note| printer.note(note));
        watchers.start(&host.stop, printer)?;
        let workload = trials.spec.load()?.name;
        let name = format!("capacity-{workload}");
        let folder = RunFolder::create(&self.out, &name, now()).map_err(|error| no_folder(&error))?;
        stream.begins(folder.path(), &workload);
        let capacity = pubmark_experiment::capacity::Capacity {
            trials,
            bounds,
            within: self.within,
            objectives: self.slo.clone(),
            folder: &folder,
            candidate: None,
        };
        let (record, failure) = capacity.perform(&mut Watcher { printer, stream }).inspect_err(|_| {
            // A search that did not begin leaves no folder: `remove_dir` removes empty folders only.
            let _ = std::fs::remove_dir(folder.path());
        })?;
        let is_written = failure.as_ref().is_none_or(|error| error.kind != ErrorKind::NotWritten);
        let marked = if is_written { folder.mark_latest() } else { Ok(()) };
        let failure = failure.or(marked.err().map(|error| save::unwritten(&error)));
        stream.ends(folder.path(), record.status);
        self.events.show(self.json, (&record, folder.path()), terminal::capacity, printer)?;
        failure.map_or_else(|| Ok(Conclusion::of_search(&record).into()), |error| Err(error.into()))
    }

    /// Prints the planned trials.
    fn plan(&self, bounds: &Bounds, trials: &Trials<'_>, printer: &Printer) -> Outcome {
        let first = planning::first_trial(trials, bounds)?;
        first.notes().iter().for_each(|note| printer.note(note));
        let (objectives, within, knob) = (self.slo.as_str(), self.within, trials.knob);
        let rows = Outline { objectives, within, bounds, knob, first: &first }.rows();
        printer.result(&dry_run::capacity::text(&rows, &first, true)?)?;
        Ok(ExitCode::Ok)
    }

    /// The run of a trial at factor 1.
    fn spec(&self) -> Result<RunSpec, RunError> {
        let mut spec = RunSpec::new(&self.workload);
        self.setup.clone().apply(&mut spec);
        spec.load.faults.clone_from(&self.fault);
        self.join.apply(&mut spec.nodes);
        let warmup = self.warmup.map_or_else(|| target::warm_up(&spec, WARMUP), Ok)?;
        spec.window = Window { warmup, drain: self.drain, ..Window::default() };
        Ok(spec)
    }
}
