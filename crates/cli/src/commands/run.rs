//! `pubmark run`: a workload against a system.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pubmark_model::schedule;
use pubmark_model::workload::Workload;
use pubmark_preflight::dry_run;
use pubmark_record::conclusion::Conclusion;
use pubmark_record::record::Record;
use pubmark_record::store;
use pubmark_runner::save::{Saved, no_folder};
use pubmark_runner::stream::EventStream;
use pubmark_runner::{Host, PreparedRun, RunError, RunObserver, RunSpec};

use crate::commands::run_arguments::Run;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::watching::{Watchers, Watching};
use crate::{rendering, signals};

/// Function that starts the nodes of a prepared run and lets them join.
pub type Gather<'a> = &'a mut dyn FnMut(&mut PreparedRun, &Host, &mut dyn RunObserver) -> Result<(), RunError>;

impl Run {
    /// Runs, or does what `--dry-run`, `--dump-schedule` or a similar option requests instead.
    pub fn perform(self, printer: &Printer) -> Outcome {
        self.perform_with(&mut |_, _, _| Ok(()), printer)
    }

    /// As [`Run::perform`], with nodes that `gather` starts once the run is prepared.
    pub fn perform_with(&self, gather: Gather<'_>, printer: &Printer) -> Outcome {
        let makes_a_run = !self.dry_run && self.dump_schedule.is_none();
        let watching = if makes_a_run { self.watching.clone() } else { Watching::default() };
        watching.during(&self.events, self.json, printer, |stream, watchers| {
            self.perform_watched(gather, stream, watchers, printer)
        })
    }

    fn perform_watched(
        &self,
        gather: Gather<'_>,
        stream: &EventStream,
        watchers: &mut Watchers,
        printer: &Printer,
    ) -> Outcome {
        let spec = self.spec()?.self_contained();
        let workload = Arc::new(spec.load()?);
        if let Some(file) = &self.dump_schedule {
            return dump(&spec, &workload, file);
        }
        let host = self.events.host();
        // Before any thread is started: only a process with a single thread can create a user namespace (unshare(2)).
        let host = if self.dry_run { host } else { spec.claim_links(&workload, host)? };
        let signals = signals::watch_preparation()?;
        let host = Host { stop: Arc::clone(signals.stop()), scratch: self.out.clone(), ..host };
        let checked = spec.check_loaded(workload, &host)?;
        checked.notes().iter().for_each(|note| printer.note(note));
        if self.dry_run {
            printer.result(&dry_run::run::text(&checked, true)?)?;
            return Ok(ExitCode::Ok);
        }
        watchers.start(&host.stop, printer)?;
        let mut prepared = checked.prepare()?;
        signals.end_preparation();
        gather(&mut prepared, &host, &mut (Progress::new(printer), stream.observer()))?;
        self.measure(prepared, &host, stream, printer)
    }

    fn measure(&self, mut prepared: PreparedRun, host: &Host, stream: &EventStream, printer: &Printer) -> Outcome {
        let observer = || (Progress::new(printer), stream.observer());
        let tell = |error: RunError| {
            let failure = Failure::from(error);
            printer.failure(&failure);
            failure.write(stream);
        };
        let repetitions = prepared.spec.repetitions;
        let mut worst = Conclusion::Done;
        let mut records = Vec::new();
        for number in 1..=repetitions {
            if repetitions > 1 {
                printer.note(&format!("repetition {number} of {repetitions}"));
            }
            // A node that was lost in one repetition may have reconnected for the next.
            prepared.gather(&mut observer())?;
            let mut repetition = prepared.repetition(number, &self.out)?;
            stream.run_begins(&repetition);
            let outcome = repetition.measure(&mut observer())?;
            worst = worst.max(outcome.conclusion());
            if outcome.never_connected() {
                if let Some(error) = outcome.failure() {
                    tell(error);
                }
                if self.json {
                    records.push(outcome.record);
                }
                break;
            }
            if let Some(custom) = &outcome.custom {
                let names: Vec<&str> = custom.programs.iter().map(|metric| metric.name.as_str()).collect();
                printer.note(&format!("computing {}", names.join(", ")));
            }
            let folder = repetition.folder().to_owned();
            let Saved { record, unwritten } = repetition.save(&outcome);
            worst = worst.max(Conclusion::of_limits(&record, self.undecided));
            stream.run_ends(&folder, &record);
            if self.json {
                records.push(record);
            } else if !self.events.take_output() {
                printer.result(&rendering::summary(&record, printer, Some(&folder), self.verbose))?;
            }
            if let Some(error) = outcome.failure() {
                tell(error);
            }
            if let Some(error) = unwritten {
                worst = worst.max(Conclusion::NotWritten);
                tell(error);
            }
            if host.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        if self.json {
            print_json(&records, repetitions, printer)?;
        }
        Ok(worst.into())
    }
}

fn dump(spec: &RunSpec, workload: &Workload, file: &Path) -> Outcome {
    let (fleet, seed, timeline) = (spec.fleet(workload)?, spec.load.seed, spec.timeline());
    let open = || -> std::io::Result<Box<dyn Write>> {
        Ok(if file == Path::new("-") { Box::new(std::io::stdout().lock()) } else { Box::new(File::create(file)?) })
    };
    let dumped = open().and_then(|file| {
        let mut out = BufWriter::new(file);
        schedule::dump(workload, &fleet, seed, &timeline, &mut out)?;
        out.flush()
    });
    match dumped {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::from_error(ExitCode::Usage, &error)
                .during(format!("failed to write the schedule to `{}`", file.display())))
        }
        _ => Ok(ExitCode::Ok),
    }
}

/// One record, or a list if several repetitions were requested, even if fewer were run.
fn print_json(records: &[Record], repetitions: u32, printer: &Printer) -> Result<(), Failure> {
    match records {
        [record] if repetitions == 1 => {
            printer.result(&store::to_json(record).map_err(|error| Failure::from(no_folder(&error)))?)
        }
        records => printer.json(&records),
    }
}
