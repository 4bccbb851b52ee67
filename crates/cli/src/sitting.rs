//! An experiment on the command line: carried out, and its results shown.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pubmark_experiment::experiment::Sitting;
use pubmark_experiment::experiment::pace::about;
use pubmark_experiment::experiment::planning::{Plan, absolute};
use pubmark_experiment::{End, Event, Machines, Observer, RunPlace};
use pubmark_model::experiment::Experiment;
use pubmark_preflight::dry_run;
use pubmark_record::by_reason::named;
use pubmark_record::experiment::{CellFailure, ExperimentRecord, FailureKind};
use pubmark_record::record::VerdictStatus;
use pubmark_report::terminal;
use pubmark_report::{numbers, words};
use pubmark_runner::stream::{EventStream, RunBegins, StreamEvent, TrialBegins};
use pubmark_runner::{Host, RunObserver};

use crate::events::{self, Events};
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::watching::Watching;
use crate::{host, signals};

/// How an experiment is carried out, and what is printed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder in which its folder is made.
    pub out: PathBuf,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
    /// Print the record as JSON.
    pub json: bool,
    /// Where events go.
    pub events: Events,
    /// Who looks on.
    pub watching: Watching,
    /// Machines that join.
    pub machines: Machines,
}

/// This machine, with what runs keep on the disk while they go on beside their results.
fn host_beside(results: &Path) -> Result<Host, Failure> {
    Ok(Host { stop: signals::watch()?, scratch: results.to_owned(), ..host::this() })
}

/// Carries an experiment out. Its paths count from `folder`.
pub fn begin(experiment: Experiment, folder: Option<&Path>, options: &Options, printer: &Printer) -> Outcome {
    let host = host_beside(&options.out)?;
    let machines = &options.machines;
    if options.dry_run {
        let plan = Plan::new(experiment, &absolute(folder)?, &host, machines)?;
        printer.result(&dry_run::experiment::on_this_machine(&plan, machines, &host.stop)?)?;
        return Ok(ExitCode::Ok);
    }
    options.watching.during(&options.events, options.json, printer, |stream, watchers| {
        watchers.start(&host.stop, printer)?;
        let mut watcher = Watcher { printer, stream };
        let sitting = Sitting::begin(experiment, folder, &options.out, &host, machines, &mut watcher)?;
        perform(sitting, options, &mut watcher)
    })
}

/// Goes on with the experiment in a folder.
pub fn resume(folder: &Path, options: &Options, printer: &Printer) -> Outcome {
    let host = host_beside(folder)?;
    options.watching.during(&options.events, options.json, printer, |stream, watchers| {
        watchers.start(&host.stop, printer)?;
        let mut watcher = Watcher { printer, stream };
        let sitting = Sitting::resume(folder, &host, &options.machines, &mut watcher)?;
        perform(sitting, options, &mut watcher)
    })
}

fn perform(sitting: Sitting, options: &Options, watcher: &mut Watcher<'_>) -> Outcome {
    let (printer, stream) = (watcher.printer, watcher.stream);
    let place = sitting.folder().to_owned();
    let folder = place.display().to_string();
    events::write_begin(stream, &place, sitting.name(), None);
    let finished = sitting.perform(watcher)?;
    let record = &finished.record;
    events::write_end(stream, &place, record.status, None);
    if options.json {
        let text =
            serde_json::to_string_pretty(record).map_err(|error| Failure::from_error(ExitCode::Internal, &error))?;
        printer.result(&text)?;
    } else if !options.events.take_output() {
        let shown = printer.summary_options(Some(&folder));
        printer.result(&terminal::experiment(record, &shown))?;
    }
    if let Some(error) = finished.unwritten {
        return Err(error.into());
    }
    let resume = format!("pubmark experiment --resume {folder}{}", options.machines.options());
    if let Some(stopped) = &finished.no_progress {
        return Err(Failure::new(
            ExitCode::InvalidRun,
            format!("every run of the last two blocks was invalid for the same reason: {}", stopped.reason),
        )
        .hint(match (stopped.help.as_str(), finished.complete) {
            ("", _) => format!("to go on all the same: `{resume}`"),
            (help, true) => help.to_owned(),
            (help, false) => format!("{help}; to go on all the same: `{resume}`"),
        }));
    }
    if !finished.complete {
        printer.note(&format!("stopped before its end; to go on: {resume}"));
        return Ok(ExitCode::Interrupted);
    }
    Ok(exit_of(record))
}

/// The code of an experiment that came to its end: it failed only if no run of it counts wholly.
fn exit_of(record: &ExperimentRecord) -> ExitCode {
    let verdicts = || record.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.verdict);
    if verdicts().any(|verdict| verdict != VerdictStatus::Invalid) {
        return ExitCode::Ok;
    }
    let is_ours = |failure: &CellFailure| matches!(failure.kind, FailureKind::GeneratorLimited | FailureKind::Invalid);
    let was_late = verdicts().next().is_some();
    match was_late || record.cells.iter().flat_map(|cell| &cell.failures).any(is_ours) {
        true => ExitCode::InvalidRun,
        false => ExitCode::SystemFailed,
    }
}

/// Shows how an experiment or a search goes on.
pub struct Watcher<'a> {
    /// Where it is shown.
    pub printer: &'a Printer,
    /// Where it is written for programs.
    pub stream: Option<&'a EventStream>,
}

impl Observer for Watcher<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(stream) = self.stream {
            write(stream, event);
        }
        // Where progress cannot be redrawn, one line a run is enough.
        let is_watched = self.printer.is_watched();
        let text = match event {
            Event::RunBegins(run) if is_watched => {
                format!("{} (repetition {}; about {} left)", heading(run), run.repetition, about(run.left))
            }
            Event::WaitsForQuiet { share, below } if is_watched => {
                let percent = |share: f64| (share * 100.0).round();
                let (used, limit) = (percent(*share), percent(*below));
                format!("  waiting for a quiet machine: others use {used} % of it, more than {limit} %")
            }
            Event::RunEnded { run, end, p99_us, took, busy } => {
                let line = ended(end, *p99_us, is_watched);
                let busy = if *busy { "; the machine was busy" } else { "" };
                match is_watched {
                    true => format!("  {line}{busy}"),
                    false => {
                        format!("{}: {line}{busy}; about {} left", heading(run), about(run.left.saturating_sub(*took)))
                    }
                }
            }
            event => match text(event) {
                Some(text) => text,
                None => return,
            },
        };
        self.printer.note(&text);
    }

    fn run(&mut self) -> Box<dyn RunObserver + '_> {
        let progress = self.printer.is_watched().then(|| Progress::new(self.printer));
        Box::new((progress, self.stream.map(EventStream::observer)))
    }
}

/// What is shown of an event wherever it is shown; `None` for what is not shown everywhere.
fn text(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::LooksForImage { system } => format!("{system}: looking for its image"),
        Event::Nodes(event) => event.to_string(),
        Event::CellsRefused { cells, refusal } => {
            format!("{}: {}: {}", named(cells), refusal.kind.words(), refusal.text)
        }
        Event::Caution(text) => (*text).to_owned(),
        Event::Reruns(count) => format!(
            "{} in place of those that could not be measured",
            numbers::counted(*count as u64, "more run", "more runs")
        ),
        Event::StaysBusy { share, waited } => stays_busy(*share, *waited),
        Event::RunEnded { run, end, p99_us, .. } => format!("{}: {}", heading(run), ended(end, *p99_us, false)),
        Event::TrialEnded { number, trial } => terminal::trial_line(*number, trial),
        Event::RunBegins(_) | Event::TrialBegins { .. } | Event::WaitsForQuiet { .. } => return None,
    })
}

/// Writes an event for programs. Waits for a quiet machine are not: there are several a second, and nothing changes.
fn write(stream: &EventStream, event: &Event<'_>) {
    let t_s = stream.now_s();
    if let Event::RunBegins(run) = event {
        stream.write(&StreamEvent::RunBegins(RunBegins {
            t_s,
            number: run.number as u64,
            of: run.of as u64,
            cell: run.cell.to_owned(),
            repetition: run.repetition,
            left_s: run.left.as_secs_f64(),
        }));
    } else if let Event::TrialBegins { number, offered_per_s, attempt, left } = event {
        stream.write(&StreamEvent::TrialBegins(TrialBegins {
            t_s,
            number: *number as u64,
            offered_per_s: *offered_per_s,
            attempt: *attempt,
            left_s: left.as_secs_f64(),
        }));
    } else if let Event::Nodes(event) = event {
        stream.observer().event(event);
    } else if let Some(text) = text(event) {
        stream.write(&StreamEvent::Note { t_s, text });
    }
}

/// Said once: what it means for the runs, and what to do.
fn stays_busy(share: Option<f64>, waited: Duration) -> String {
    let used = match share {
        Some(share) => format!("others use {} % of it", (share * 100.0).round()),
        None => "how much others use of it cannot be read".to_owned(),
    };
    let waited = numbers::seconds(waited.as_secs_f64().round());
    format!(
        "the machine did not become quiet within {waited} ({used}): runs go on without waiting, and those on a busy machine \
         are marked; end other programs, or give the systems cores of their own with `--pin`"
    )
}

fn heading(run: &RunPlace<'_>) -> String {
    format!("run {} of {}: {}", run.number, run.of, run.cell)
}

fn ended(end: &End, p99_us: Option<f64>, on_terminal: bool) -> String {
    match end {
        End::Counts(verdict) => format!("{}, p99 {}", words::verdict_word(*verdict), numbers::time(p99_us)),
        End::Fails { kind, text } => format!("{}: {}", kind.words(), shown(text, on_terminal)),
        End::Stopped => "stopped".to_owned(),
    }
}

/// Most characters of a failure's text in a line on a terminal; the record has all of it.
const SHOWN: usize = 80;

/// A failure in a line on the way. In redirected output nothing is cut: the text ends with the path of a log.
fn shown(text: &str, on_terminal: bool) -> String {
    match text.char_indices().nth(SHOWN).filter(|_| on_terminal) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirected_output_has_the_whole_of_a_failure() {
        let text = format!("`mosquitto` did not start: its log is {}/system.log", "/tmp/measurements".repeat(5));
        assert_eq!(shown(&text, false), text);
        assert!(shown(&text, true).ends_with('…'));
        assert_eq!(shown("no", true), "no");
    }
}
