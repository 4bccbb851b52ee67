//! `pubmark run`: a workload against a system.

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pubmark_experiment::end::has_lost;
use pubmark_model::schedule;
use pubmark_model::workload::Workload;
use pubmark_preflight::dry_run;
use pubmark_protocol::events::ANSWERED;
use pubmark_record::objectives::ObjectiveOutcome;
use pubmark_record::record::{Record, Status, VerdictStatus};
use pubmark_record::reserve::RESERVED_BYTES;
use pubmark_record::store::{self, RunFolder};
use pubmark_runner::save::{Saved, no_folder, unwritten};
use pubmark_runner::stream::EventStream;
use pubmark_runner::{Host, PreparedRun, RunObserver, RunOutcome, RunSpec, hint_for_cause, now};

use crate::commands::run_arguments::Run;
use crate::exit_code::{ExitCode, Undecided};
use crate::failure::{Failure, Outcome};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::watching::{Watchers, Watching};
use crate::{events, host, protocols, rendering, signals};

/// Lets the nodes of a prepared run join that the caller starts.
pub type Gather<'a> = &'a mut dyn FnMut(&mut PreparedRun, &Host, &mut dyn RunObserver) -> Result<(), Failure>;

impl Run {
    /// Runs, or does what was asked for instead.
    pub fn perform(self, printer: &Printer) -> Outcome {
        self.perform_with(&mut |_, _, _| Ok(()), printer)
    }

    /// The same, with nodes that `gather` starts once the run is prepared.
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
        stream: Option<&EventStream>,
        watchers: &mut Watchers,
        printer: &Printer,
    ) -> Outcome {
        let spec = self.spec()?.self_contained();
        let workload = Arc::new(spec.load()?);
        if let Some(file) = &self.dump_schedule {
            return dump(&spec, &workload, file);
        }
        let host = host::this();
        // Before any thread is started.
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
        gather(&mut prepared, &host, &mut (Progress::new(printer), stream.map(EventStream::observer)))?;
        self.measure(prepared, &host, stream, printer)
    }

    fn measure(
        &self,
        mut prepared: PreparedRun,
        host: &Host,
        stream: Option<&EventStream>,
        printer: &Printer,
    ) -> Outcome {
        let observer = || (Progress::new(printer), stream.map(EventStream::observer));
        let tell = |failure: &Failure| {
            printer.failure(failure);
            events::write_failure(stream, failure);
        };
        let window = [prepared.spec.window.warmup, prepared.spec.window.duration].map(|time| time.as_secs_f64());
        let repetitions = prepared.spec.repetitions;
        let mut worst = ExitCode::Ok;
        let mut records = Vec::new();
        for number in 1..=repetitions {
            if repetitions > 1 {
                printer.note(&format!("repetition {number} of {repetitions}"));
            }
            // One that was lost in a repetition may be back for the next.
            prepared.gather(&mut observer())?;
            let folder =
                RunFolder::create(&self.out, &prepared.workload.name, now()).map_err(|error| no_folder(&error))?;
            let of_run = events::OfRun {
                system: prepared.system_name(),
                protocol: prepared.spoken.publish.capabilities.name,
                repetition: [number, repetitions],
                window_s: window,
            };
            events::write_begin(stream, folder.path(), &prepared.workload.name, Some(of_run));
            let begun = folder.reserve(RESERVED_BYTES).map_err(|error| no_folder(&error));
            let begun = begun.and_then(|reserve| {
                let outcome = prepared.repeat(number, folder.name(), &mut observer())?;
                Ok((reserve, outcome))
            });
            let (reserve, outcome) = begun.inspect_err(|_| {
                // A run that never began leaves no folder; one with something in it stays.
                let _ = std::fs::remove_dir(folder.path());
            })?;
            if never_connected(&outcome) {
                // Nothing was measured: what was measured last stays the latest.
                drop(reserve);
                let _ = std::fs::remove_dir(folder.path());
                worst = worse(worst, exit_of(&outcome, &tell));
                if self.json {
                    records.push(outcome.record);
                }
                break;
            }
            if let Some(custom) = &outcome.custom {
                let names: Vec<&str> = custom.programs.iter().map(|metric| metric.name.as_str()).collect();
                printer.note(&format!("computing {}", names.join(", ")));
            }
            let Saved { record, unwritten: error } = outcome.save(&folder, reserve);
            let limits = exit_of_limits(&record, self.undecided);
            let error = error.or_else(|| folder.mark_latest().err().map(|error| unwritten(&error)));
            events::write_end(stream, folder.path(), record.run.status, Some(&record));
            if self.json {
                records.push(record);
            } else if !self.events.take_output() {
                printer.result(&rendering::summary(&record, printer, Some(folder.path()), self.verbose))?;
            }
            worst = worse(worst, exit_of(&outcome, &tell));
            worst = worse(worst, limits);
            if let Some(error) = error {
                let failure = Failure::from(error);
                tell(&failure);
                worst = worse(worst, failure.exit);
            }
            if host.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        if self.json {
            printer.result(&json(&records, repetitions)?)?;
        }
        Ok(worst)
    }
}

fn dump(spec: &RunSpec, workload: &Workload, file: &Path) -> Outcome {
    let (fleet, seed, timeline) = (spec.fleet(workload)?, spec.load.seed, spec.timeline());
    let dumped = if file == Path::new("-") {
        let mut out = BufWriter::new(std::io::stdout().lock());
        schedule::dump(workload, &fleet, seed, &timeline, &mut out)
    } else {
        std::fs::File::create(file).and_then(|file| {
            let mut out = BufWriter::new(file);
            schedule::dump(workload, &fleet, seed, &timeline, &mut out).and_then(|()| out.flush())
        })
    };
    match dumped {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::from_error(ExitCode::Usage, &error)
                .during(format!("failed to write the schedule to `{}`", file.display())))
        }
        _ => Ok(ExitCode::Ok),
    }
}

/// One record, or a list if several repetitions were asked for, however many it came to.
fn json(records: &[Record], repetitions: u32) -> Result<String, Failure> {
    match records {
        [record] if repetitions == 1 => store::to_json(record).map_err(|error| no_folder(&error).into()),
        records => {
            serde_json::to_string_pretty(records).map_err(|error| Failure::from_error(ExitCode::Internal, &error))
        }
    }
}

/// Did no client get in, with nothing else that explains it?
fn never_connected(outcome: &RunOutcome) -> bool {
    let is_interrupted = outcome.record.run.status == Status::Interrupted;
    outcome.unreachable && outcome.system_ended.is_none() && !is_interrupted && !has_lost(&outcome.record)
}

/// No client got in: what is there instead of the system, or why not.
fn unreachable(record: &Record) -> Failure {
    let endpoint = &record.system.endpoint;
    let cause = record.connections.causes.first().map_or("", |first| first.cause.as_str());
    let mut failure = Failure::new(ExitCode::SystemFailed, "");
    failure.hint = hint_for_cause(cause).map(str::to_owned);
    let place = endpoint.split_once("://").map_or(endpoint.as_str(), |(_, place)| place);
    if let Some((_, answer)) = cause.split_once(ANSWERED) {
        let protocol = protocols::find(&record.protocol.publish).map_or("the protocol", |one| one.capabilities.title);
        failure.chain = vec![format!("`{place}` does not speak {protocol}: it answered {answer}")];
        return failure.hint("check host and port of `--endpoint`, or choose its protocol with `--protocol`");
    }
    failure.chain = vec![format!("failed to connect to `{endpoint}`: {cause}")];
    if failure.hint.is_none() && cause.starts_with("unreachable: ") {
        failure = failure.hint("start the system, or check host and port of `--endpoint`");
    }
    failure
}

/// The code that a repetition alone would end with; what is not in the summary is said.
fn exit_of(outcome: &RunOutcome, tell: &dyn Fn(&Failure)) -> ExitCode {
    let record = &outcome.record;
    if let Some(ended) = &outcome.system_ended {
        let failure =
            Failure::new(ExitCode::SystemFailed, format!("`{}` ended during the run: {ended}", record.system.name));
        tell(&failure);
        return failure.exit;
    }
    if record.run.status == Status::Interrupted && !has_lost(record) {
        return ExitCode::Interrupted;
    }
    if outcome.unreachable {
        let failure = unreachable(record);
        tell(&failure);
        return failure.exit;
    }
    if record.verdict.status == VerdictStatus::Invalid { ExitCode::InvalidRun } else { ExitCode::Ok }
}

/// What a repetition's limits alone would end with.
fn exit_of_limits(record: &Record, undecided: Option<Undecided>) -> ExitCode {
    let outcomes = || record.objectives.iter().map(|objective| objective.outcome);
    if outcomes().any(ObjectiveOutcome::is_failure) {
        ExitCode::ThresholdMissed
    } else if outcomes().any(|outcome| outcome == ObjectiveOutcome::Undecided) {
        Undecided::exit(undecided)
    } else {
        ExitCode::Ok
    }
}

/// Of two codes the one that says more: results that were not written, an interruption, a failed system, an invalid run, limits.
fn worse(one: ExitCode, other: ExitCode) -> ExitCode {
    let rank = |code: ExitCode| match code {
        ExitCode::NotWritten => 6,
        ExitCode::Interrupted => 5,
        ExitCode::SystemFailed => 4,
        ExitCode::InvalidRun => 3,
        ExitCode::ThresholdMissed => 2,
        ExitCode::Undecided => 1,
        _ => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}
