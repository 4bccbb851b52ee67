//! `pubmark run`: a workload against a system.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pubmark_model::fleet::{Fleet, TooLarge};
use pubmark_model::load::{self, LoadError, LoadOptions};
use pubmark_model::qos::Qos;
use pubmark_model::schedule::{self, Timeline};
use pubmark_model::workload::Workload;
use pubmark_record::record::{Record, VerdictStatus};
use pubmark_record::reserve::{RESERVED_BYTES, Reserve};
use pubmark_record::store::{self, RunFolder, StoreError};
use pubmark_report::exports;
use pubmark_systems::descriptors;

use crate::cluster::Joined;
use crate::commands::run_arguments::Run;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, Outcome};
use crate::measurement::{Measured, Measurement};
use crate::printer::Printer;
use crate::protocols::{self, Protocol, Spoken, known};
use crate::target::{self, Wanted};
use crate::{
    certificates, dry_run, faults, linked, links, placement, recording, rendering, signals, sockets, sources,
    suggestion, suitability, unbuilt,
};

/// Descriptors that pubmark needs besides its connections.
const OTHER_DESCRIPTORS: u64 = 64;

impl Run {
    /// Runs, or does what was asked for instead.
    pub fn perform(self, printer: &Printer) -> Outcome {
        let spoken = self.spoken()?;
        let workload = Arc::new(self.load()?);
        if let Some(file) = &self.dump_schedule {
            return self.dump(&workload, file);
        }
        if !self.dry_run {
            linked::claim(&workload)?;
        }
        let signals = signals::watch_preparation()?;
        let stop = Arc::clone(signals.stop());
        let wanted = Wanted::of(&self, spoken, &workload, &stop)?;
        self.note_protocol(spoken, printer);
        self.note_client(spoken, printer);
        if self.dry_run {
            suitability::lacking(&workload, spoken).map_or(Ok(()), |lacks| Err(unsuitable(lacks)))?;
            printer.result(&dry_run::text(&self, &workload, spoken, &wanted)?)?;
            return Ok(ExitCode::Ok);
        }
        let fleet = self.fleet(&workload, spoken)?;
        placement::pin_generator(&placement::pins(&self.setup.pin)?)?;
        let mut measurement = self.measurement(workload, fleet, spoken, wanted, &stop)?;
        signals.end_preparation();
        let joined = Joined::of(&self, &measurement, printer, &stop)?.map(Arc::new);
        measurement.joined = joined.clone().filter(|joined| joined.drives());
        measurement.observers = joined;
        self.measure(&measurement, printer, &stop)
    }

    /// What clients speak.
    pub fn spoken(&self) -> Result<Spoken, Failure> {
        let setup = &self.setup;
        let publish = self.protocol(setup.publish_protocol.as_deref(), setup.endpoint.as_deref())?;
        let at = setup.subscribe_endpoint.as_deref().or(setup.endpoint.as_deref());
        let subscribe = self.protocol(setup.subscribe_protocol.as_deref(), at)?;
        Ok(Spoken { publish, subscribe })
    }

    /// What one side speaks: what was asked for, otherwise the first of our protocols that the system offers.
    fn protocol(&self, own: Option<&str>, endpoint: Option<&str>) -> Result<&'static Protocol, Failure> {
        let protocol = match (own.or(self.setup.protocol.as_deref()), endpoint) {
            (Some(name), _) => protocols::find(name).ok_or_else(|| unbuilt::no_protocol(name)),
            (None, Some(endpoint)) => protocol_of(endpoint),
            (None, None) => target::first_protocol(self),
        }?;
        let Some(client) = &self.setup.client else { return Ok(protocol) };
        let title = protocol.capabilities.title;
        let found = protocol.with_client(client).map_err(|known| {
            Failure::usage(format!("`--client {client}` is no client library for {title}")).hint(match known[..] {
                [] => "it has one client only: leave `--client` out".to_owned(),
                _ => suggestion::choices(client, known),
            })
        })?;
        match found.client.and_then(|client| (client.missing)()) {
            Some(why) => Err(Failure::usage(why).hint("leave `--client` out for one that is there")),
            None => Ok(found),
        }
    }

    /// Says which protocol was chosen where it is not the one that most runs speak.
    fn note_protocol(&self, spoken: Spoken, printer: &Printer) {
        let usual = protocols::PROTOCOLS[0].capabilities.name;
        let Some(system) = &self.setup.system else { return };
        let chosen = spoken.publish.capabilities.name;
        let is_asked = self.setup.protocol.is_some() || self.setup.publish_protocol.is_some();
        if !is_asked && self.setup.endpoint.is_none() && chosen != usual {
            printer.note(&format!("`{system}` does not speak {usual}: clients speak {chosen}"));
        }
    }

    /// Says which client library is used because the usual one is not there.
    fn note_client(&self, spoken: Spoken, printer: &Printer) {
        let stands_in = spoken.publish.stands_in_for();
        if let (None, Some(why), Some(version)) = (&self.setup.client, stands_in, spoken.publish.client_version()) {
            printer.note(&format!("clients are {version}: {why}"));
        }
    }

    /// Who sends and listens.
    pub fn load(&self) -> Result<Workload, Failure> {
        let options = LoadOptions {
            variant: self.setup.variant.into(),
            scale: self.scale,
            qos: self.setup.qos.and_then(Qos::from_level),
            set: self.setup.set.clone(),
            payload: self.setup.payload,
            rate: self.rate,
            links: self.setup.link.clone(),
            faults: self.fault.clone(),
            isolate: self.setup.isolate.clone(),
        };
        let mut workload = load::load(&self.workload, &options).map_err(|error| match error {
            LoadError::NotFound { ref name, ref hint } => {
                Failure::usage(format!("there is no workload `{name}`")).hint(hint.clone())
            }
            LoadError::Link { message, hint } | LoadError::Group { message, hint } => {
                Failure::usage(message).hint(hint)
            }
            LoadError::Unreadable { .. } => Failure::from_error(ExitCode::Usage, &error)
                .hint("give a workload file, or a built-in one: `pubmark list workloads`"),
            found => Failure::in_file(found).during(format!("failed to load the workload `{}`", self.workload)),
        })?;
        self.setup.place(&mut workload);
        Ok(workload)
    }

    /// Nodes that the fleet is dealt out over.
    pub fn node_count(&self) -> u16 {
        self.nodes.or(self.setup.local_nodes).unwrap_or(1)
    }

    fn timeline(&self) -> Timeline {
        Timeline { warmup_ns: self.warmup.as_nanos() as u64, duration_ns: self.duration.as_nanos() as u64 }
    }

    /// The fleet on all nodes, if its publishers can be told apart.
    pub fn counted(&self, workload: &Workload) -> Result<Fleet, Failure> {
        Fleet::checked_on_nodes(workload, self.node_count().into()).map_err(too_large)
    }

    fn dump(&self, workload: &Workload, file: &Path) -> Outcome {
        let fleet = self.counted(workload)?;
        let dumped = if file == Path::new("-") {
            let mut out = BufWriter::new(std::io::stdout().lock());
            schedule::dump(workload, &fleet, self.setup.seed, &self.timeline(), &mut out)
        } else {
            std::fs::File::create(file).and_then(|file| {
                let mut out = BufWriter::new(file);
                schedule::dump(workload, &fleet, self.setup.seed, &self.timeline(), &mut out).and_then(|()| out.flush())
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

    /// The workload counted out. Says at once what the protocol cannot carry.
    pub fn fleet(&self, workload: &Workload, spoken: Spoken) -> Result<Arc<Fleet>, Failure> {
        suitability::fleet(workload, spoken, self.counted(workload)?).map_err(unsuitable)
    }

    /// What each repetition measures. Says at once what cannot be carried out or exceeds the limit of open files; `stop` gives up
    /// what takes long.
    pub fn measurement(
        &self,
        workload: Arc<Workload>,
        fleet: Arc<Fleet>,
        spoken: Spoken,
        wanted: Wanted,
        stop: &AtomicBool,
    ) -> Result<Measurement, Failure> {
        self.carried_out(&workload, spoken, &wanted)?;
        let occurrences = faults::occurrences(&workload, self.setup.seed, self.duration)?;
        self.room(&fleet, &wanted)?;
        let sources = self.setup.source_addresses.clone();
        let timeline = self.timeline();
        if let Some(sentence) = suitability::too_many_messages(&workload, self.warmup.saturating_add(self.duration)) {
            let hint = "use more devices of a lower rate each, or a shorter `--duration`";
            return Err(Failure::usage(sentence).hint(hint));
        }
        let schedule = schedule::summary_unless(&workload, &fleet, self.setup.seed, &timeline, stop)
            .ok_or_else(|| Failure::new(ExitCode::Interrupted, "interrupted while the schedule was worked out"))?;
        Ok(Measurement {
            timeline,
            schedule,
            faults: occurrences,
            workload,
            fleet,
            spoken,
            wanted,
            drain_limit: self.drain,
            sources: sources.map_or_else(|| [].into(), |sources| sources.0),
            seed: self.setup.seed,
            shards: usize::from(self.setup.shards),
            resumes_tls: sockets::resume_tls(&self.setup),
            congestion_control: self.setup.congestion_control.as_deref().map(Into::into),
            realtime: self.setup.realtime,
            awake: self.setup.awake,
            netem: self.setup.netem.into(),
            handicap: self.setup.handicap,
            repetitions: self.repeat,
            nodes: self.node_count(),
            joined: None,
            observers: None,
            node_exporter: self.setup.node_exporter.clone(),
        })
    }

    /// Refuses what the system, its protocol or its links cannot have, before anything starts.
    pub fn carried_out(&self, workload: &Workload, spoken: Spoken, wanted: &Wanted) -> Result<(), Failure> {
        links::carried_out(workload, wanted, &self.setup)?;
        sockets::carried_out(&self.setup, spoken, wanted)?;
        faults::carried_out(workload, spoken, wanted)
    }

    /// Has this machine the open files and the ports for so many connections?
    pub fn room(&self, fleet: &Fleet, wanted: &Wanted) -> Result<(), Failure> {
        raise_descriptors(wanted.sockets(fleet).div_ceil(self.node_count().into()))?;
        sources::check_ports(self.setup.source_addresses.as_ref(), sources::connections_to_one(fleet, wanted))
    }

    fn measure(&self, measurement: &Measurement, printer: &Printer, stop: &AtomicBool) -> Outcome {
        let mut worst = ExitCode::Ok;
        let mut records = Vec::new();
        for number in 1..=self.repeat {
            if self.repeat > 1 {
                printer.note(&format!("repetition {number} of {}", self.repeat));
            }
            // One that was lost in a repetition may be back for the next.
            measurement.observers.as_ref().map_or(Ok(()), |joined| joined.gather(printer, stop))?;
            let folder = RunFolder::create(&self.out, &measurement.workload.name, recording::now())
                .map_err(|error| rendering::unstored(&error))?;
            let begun = folder.reserve(RESERVED_BYTES).map_err(|error| rendering::unstored(&error));
            let begun = begun.and_then(|reserve| {
                let measured = measurement.repeat(number, folder.name(), printer, stop)?;
                Ok((reserve, measured))
            });
            let (reserve, measured) = begun.inspect_err(|_| {
                // A run that never began leaves no folder; one with something in it stays.
                let _ = std::fs::remove_dir(folder.path());
            })?;
            let Kept { record, unwritten } = keep(measured.record.clone(), &measured.histograms, &folder, reserve);
            let unwritten = unwritten.or_else(|| folder.mark_latest().err().map(|error| rendering::unwritten(&error)));
            if self.json {
                records.push(record);
            } else {
                printer.result(&rendering::summary(&record, printer, Some(folder.path())))?;
            }
            worst = worse(worst, exit_of(&measured, printer));
            if let Some(failure) = unwritten {
                printer.failure(&failure);
                worst = worse(worst, failure.exit);
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        if self.json {
            printer.result(&json(&records, self.repeat)?)?;
        }
        Ok(worst)
    }
}

/// The protocol cannot carry the workload.
/// A fleet that cannot be told apart.
pub fn too_large(found: TooLarge) -> Failure {
    Failure::from_error(ExitCode::Usage, &found).hint(found.hint())
}

fn unsuitable(lacks: String) -> Failure {
    Failure::usage(lacks)
        .hint("`pubmark list protocols` shows what each can do; `--qos` sets the level of all devices and subscribers")
}

/// The protocol whose endpoints have this one's scheme; an endpoint without any is the endpoint's own error to tell.
fn protocol_of(endpoint: &str) -> Result<&'static Protocol, Failure> {
    let Some((scheme, _)) = endpoint.split_once("://") else { return Ok(&protocols::PROTOCOLS[0]) };
    let scheme = scheme.to_ascii_lowercase();
    protocols::of_scheme(&scheme).ok_or_else(|| {
        if let Some(known) = known::left_out_of_scheme(&scheme) {
            return unbuilt::failure(known);
        }
        let schemes = protocols::PROTOCOLS.iter().flat_map(|protocol| protocol.capabilities.schemes);
        let all: BTreeSet<String> = schemes.map(|scheme| format!("`{scheme}`")).collect();
        Failure::usage(format!("endpoint scheme `{scheme}` is none that pubmark speaks"))
            .hint(format!("there are: {}", Vec::from_iter(all).join(", ")))
    })
}

/// Raises the limit of open files, and says at once if it is too low for the fleet.
fn raise_descriptors(sockets: u64) -> Result<(), Failure> {
    let needed = sockets + OTHER_DESCRIPTORS;
    let limit = descriptors::raise_for(needed).map_err(|error| {
        Failure::from_error(ExitCode::Internal, &error).during("failed to raise the limit of open files")
    })?;
    if needed > limit.soft {
        return Err(Failure::usage(format!(
            "{sockets} connections need {needed} open files, the limit is {}",
            limit.soft
        ))
        .hint(format!("`ulimit -Hn {needed}` as root, or fewer devices")));
    }
    Ok(())
}

/// A record as it is kept.
pub struct Kept {
    /// The record, which names its files.
    pub record: Record,
    /// What could not be written, if something could not.
    pub unwritten: Option<Failure>,
}

impl Kept {
    /// The record, if all of it was written.
    pub fn whole(self) -> Result<Record, Failure> {
        self.unwritten.map_or(Ok(self.record), Err)
    }
}

/// Writes the run's folder: the record, which names its files, then those, made from the record as it is kept.
pub fn keep(mut record: Record, histograms: &[(&str, Vec<u8>)], folder: &RunFolder, reserve: Reserve) -> Kept {
    let file_of = |name: &str| format!("{name}.hdr");
    record.files = exports::all(&record).into_iter().map(|(name, _)| (name.clone(), name)).collect();
    for (name, _) in histograms {
        record.files.insert(format!("{name} histogram (HdrHistogram V2, ns)"), file_of(name));
    }
    let write = || -> Result<(), Failure> {
        let unwritten = |error: StoreError| rendering::unwritten(&error);
        reserve.write_record(&record).map_err(unwritten)?;
        for (name, bytes) in histograms {
            folder.write_file(&file_of(name), bytes).map_err(unwritten)?;
        }
        let written = rendering::write_exports(&record, folder.path());
        // The folder was writable when the run began: what fails here is the disk's doing, not the call's.
        written.map_err(|failure| Failure { exit: ExitCode::NotWritten, ..failure })
    };
    let unwritten = write().err();
    Kept { record, unwritten }
}

/// One record, or a list if several repetitions were asked for, however many it came to.
fn json(records: &[Record], repetitions: u32) -> Result<String, Failure> {
    match records {
        [record] if repetitions == 1 => store::to_json(record).map_err(|error| rendering::unstored(&error)),
        records => {
            serde_json::to_string_pretty(records).map_err(|error| Failure::from_error(ExitCode::Internal, &error))
        }
    }
}

/// The code that a repetition alone would end with; what is not in the summary is said.
fn exit_of(measured: &Measured, printer: &Printer) -> ExitCode {
    let record = &measured.record;
    if let Some(ended) = &measured.system_ended {
        let failure =
            Failure::new(ExitCode::SystemFailed, format!("`{}` ended during the run: {ended}", record.system.name));
        printer.failure(&failure);
        return failure.exit;
    }
    let is_lost = record.nodes.iter().any(|node| node.lost.is_some()) || !record.lost_workers.is_empty();
    if record.status == pubmark_record::record::Status::Interrupted && !is_lost {
        return ExitCode::Interrupted;
    }
    if measured.unreachable {
        let mut failure = Failure::new(
            ExitCode::SystemFailed,
            format!("failed to connect to `{}`: nothing was measured", record.system.endpoint),
        );
        if let Some(first) = record.connections.causes.first() {
            failure.chain.push(first.cause.clone());
            failure.hint = certificates::hint_for_cause(&first.cause).map(str::to_owned);
        }
        printer.failure(&failure);
        return failure.exit;
    }
    if record.verdict.status == VerdictStatus::Invalid { ExitCode::InvalidRun } else { ExitCode::Ok }
}

/// Of two codes the one that says more: results that were not written, an interruption, a failed system, an invalid run.
fn worse(one: ExitCode, other: ExitCode) -> ExitCode {
    let rank = |code: ExitCode| match code {
        ExitCode::NotWritten => 4,
        ExitCode::Interrupted => 3,
        ExitCode::SystemFailed => 2,
        ExitCode::InvalidRun => 1,
        _ => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}
