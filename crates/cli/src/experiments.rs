//! Runs an experiment for the command line, and shows its results.

use std::path::{Path, PathBuf};
use std::slice;

use pubmark_experiment::experiment::planning::{Plan, absolute, warmed_up};
use pubmark_experiment::experiment::{PreparedExperiment, definition, links};
use pubmark_experiment::{Event, Machines, Observer};
use pubmark_model::experiment::Experiment;
use pubmark_preflight::dry_run;
use pubmark_record::conclusion::Conclusion;
use pubmark_report::terminal;
use pubmark_runner::stream::EventStream;
use pubmark_runner::{Host, RunObserver};

use crate::events::Events;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::signals;
use crate::watching::Watching;

/// How an experiment is run, and what is printed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder in which the experiment's folder is created.
    pub out: PathBuf,
    /// Print what would be done, and do nothing.
    pub dry_run: bool,
    /// Print the record as JSON.
    pub json: bool,
    /// Where events are written.
    pub events: Events,
    /// Live view and metrics endpoint.
    pub watching: Watching,
    /// Machines that join the runs.
    pub machines: Machines,
}

/// This machine, with the files that runs write to disk in addition to their results.
fn host_beside(host: Host, results: &Path) -> Result<Host, Failure> {
    Ok(Host { stop: signals::watch()?, scratch: results.to_owned(), ..host })
}

/// The same for an experiment whose runs follow, with their links; its paths are relative to `folder`.
fn host_of(experiment: &Experiment, folder: Option<&Path>, results: &Path, options: &Options) -> Result<Host, Failure> {
    // Before any thread is started: only a process with a single thread can create a user namespace (unshare(2)).
    let host = links::claim(slice::from_ref(experiment), folder, options.events.host(), &options.machines)?;
    host_beside(host, results)
}

/// Runs an experiment. Its paths are relative to `folder`.
pub fn begin(experiment: Experiment, folder: Option<&Path>, options: &Options, printer: &Printer) -> Outcome {
    let machines = &options.machines;
    let warm = |experiment: Experiment, host: &Host| -> Result<Experiment, Failure> {
        let (experiment, note) = warmed_up(experiment, &absolute(folder)?, host, machines)?;
        note.iter().for_each(|note| printer.note(note));
        Ok(experiment)
    };
    if options.dry_run {
        let host = host_beside(options.events.host(), &options.out)?;
        let plan = Plan::new(warm(experiment, &host)?, &absolute(folder)?, &host, machines)?;
        printer.result(&dry_run::experiment::on_this_machine(&plan, machines, &host.stop)?)?;
        return Ok(ExitCode::Ok);
    }
    options.watching.during(&options.events, options.json, printer, |stream, watchers| {
        let host = host_of(&experiment, folder, &options.out, options)?;
        let experiment = warm(experiment, &host)?;
        watchers.start(&host.stop, printer)?;
        let mut watcher = Watcher { printer, stream };
        let prepared = PreparedExperiment::begin(experiment, folder, &options.out, &host, machines, &mut watcher)?;
        perform(prepared, options, &mut watcher)
    })
}

/// Resumes the experiment in a folder.
pub fn resume(folder: &Path, options: &Options, printer: &Printer) -> Outcome {
    options.watching.during(&options.events, options.json, printer, |stream, watchers| {
        let host = host_of(&definition::in_experiment(folder)?, Some(folder), folder, options)?;
        watchers.start(&host.stop, printer)?;
        let mut watcher = Watcher { printer, stream };
        let prepared = PreparedExperiment::resume(folder, &host, &options.machines, &mut watcher)?;
        perform(prepared, options, &mut watcher)
    })
}

fn perform(prepared: PreparedExperiment, options: &Options, watcher: &mut Watcher<'_>) -> Outcome {
    let (printer, stream) = (watcher.printer, watcher.stream);
    let folder = prepared.folder().to_owned();
    stream.begins(&folder, prepared.name());
    let finished = prepared.perform(watcher)?;
    let record = &finished.record;
    stream.ends(&folder, record.status);
    options.events.show(options.json, (record, &folder), terminal::experiment, printer)?;
    if let Some(error) = finished.unwritten {
        return Err(error.into());
    }
    let resume = format!("pubmark experiment --resume {}{}", folder.display(), options.machines.options());
    if let Some(stopped) = &finished.no_progress {
        return Err(
            Failure::new(ExitCode::InvalidRun, stopped.sentence()).hint(stopped.hint(finished.complete, &resume))
        );
    }
    if !finished.complete {
        printer.note(&format!("{}; to go on: {resume}", finished.unfinished()));
        return Ok(ExitCode::Interrupted);
    }
    Ok(Conclusion::of_experiment(record).into())
}

/// Shows the progress of an experiment or a search.
pub struct Watcher<'a> {
    /// Prints progress for people.
    pub printer: &'a Printer,
    /// Writes progress for programs.
    pub stream: &'a EventStream,
}

impl Observer for Watcher<'_> {
    fn event(&mut self, event: &Event<'_>) {
        event.write(self.stream);
        if let Some(line) = event.line(self.printer.is_watched()) {
            self.printer.note(&line);
        }
    }

    fn run(&mut self) -> Box<dyn RunObserver + '_> {
        let progress = self.printer.is_watched().then(|| Progress::new(self.printer));
        Box::new((progress, self.stream.observer()))
    }
}
