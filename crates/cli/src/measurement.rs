//! One repetition of a run: reach the system, drive it, sample what it costs, put the record together.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubmark_engine::error::EngineError;
use pubmark_engine::outcome::Outcome;
use pubmark_engine::plan::RunPlan;
use pubmark_engine::progress::Totals;
use pubmark_engine::run::{self, Observer, Phase, Sides};
use pubmark_engine::sections;
use pubmark_model::fleet::Fleet;
use pubmark_model::random::mix;
use pubmark_model::schedule::Timeline;
use pubmark_model::workload::Workload;
use pubmark_protocol::clock;
use pubmark_record::record::{Environment, Record};
use pubmark_systems::environment::{self, CpuTimes};

use crate::certificates;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::protocols::Spoken;
use crate::recording::{self, Surroundings};
use crate::sampling::Sampling;
use crate::target::{Target, Wanted};

/// Connections started a second, at most: what small brokers accept without refusing.
const CONNECTS_PER_S: f64 = 2_000.0;
/// Longest wait for sessions, on top of the ramp-up.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// Seconds of silence after which a client pings.
const KEEP_ALIVE_S: u16 = 60;
/// Room for topic and properties in the largest packet that a system may send us.
const PACKET_ROOM: usize = 64 * 1024;
/// Packets of others may be larger than ours; up to this size they are counted as foreign instead of ending a connection.
const FOREIGN_ROOM: usize = 1 << 20;

/// What is to be measured, the same for every repetition.
pub struct Measurement {
    /// Who sends and listens.
    pub workload: Arc<Workload>,
    /// The same counted out.
    pub fleet: Arc<Fleet>,
    /// Over what.
    pub spoken: Spoken,
    /// Against what.
    pub wanted: Wanted,
    /// Warm-up and measured window.
    pub timeline: Timeline,
    /// Longest wait for stragglers.
    pub drain_limit: Duration,
    /// Addresses that connections come from, in turn; the kernel's choice if empty.
    pub sources: Arc<[IpAddr]>,
    /// Seed of every draw.
    pub seed: u64,
    /// Threads on each side.
    pub shards: usize,
    /// SCHED_FIFO asked for.
    pub realtime: bool,
    /// Least time of each send, for tests.
    pub handicap: Option<Duration>,
    /// Repetitions of the call.
    pub repetitions: u32,
    /// Address of the node_exporter of the system's machine.
    pub node_exporter: Option<String>,
}

/// What a repetition came to.
pub struct Measured {
    /// The record, judged.
    pub record: Record,
    /// Histograms by name, in HdrHistogram's V2 format.
    pub histograms: Vec<(&'static str, Vec<u8>)>,
    /// No session of one side could be established.
    pub unreachable: bool,
    /// How a system that we started ended before we stopped it, with the end of its log.
    pub system_ended: Option<String>,
}

/// Watches the engine: shows progress, samples at the edges of the window.
struct Watch<'a> {
    progress: Progress<'a>,
    sampling: &'a Sampling,
    cpu_before: Option<CpuTimes>,
    steal: Option<f64>,
}

impl Observer for Watch<'_> {
    fn phase(&mut self, phase: Phase) {
        self.progress.phase(phase);
    }

    fn progress(&mut self, phase: Phase, elapsed: Duration, length: Option<Duration>, totals: &Totals) {
        self.progress.update(phase, elapsed, length, totals);
    }

    fn window_began(&mut self) {
        self.sampling.edge();
        self.cpu_before = CpuTimes::read();
    }

    fn window_ended(&mut self) {
        self.sampling.edge();
        let now = CpuTimes::read();
        self.steal = self.cpu_before.zip(now).and_then(|(before, now)| now.steal_since(&before));
    }
}

impl Measurement {
    /// Does repetition `number` (from 1) of that name.
    pub fn repeat(&self, number: u32, name: &str, printer: &Printer, stop: &AtomicBool) -> Result<Measured, Failure> {
        let mut target = self.wanted.reach(self.spoken)?;
        let plan = self.plan(&target);
        let mut environment = environment::read();
        let sampling = Sampling::start(&target, self.node_exporter.as_deref())?;
        let progress = Progress::new(printer);
        let mut watch = Watch { progress, sampling: &sampling, cpu_before: None, steal: None };
        let sides = Sides { publish: self.spoken.publish.shard, subscribe: self.spoken.subscribe.shard };
        let outcome = run::run(&plan, sides, stop, &mut watch);
        environment.steal = watch.steal;
        drop(watch);
        environment.load_after = environment::load();
        let outcome = outcome.map_err(not_carried_out)?;
        let system_ended = target.running.as_mut().and_then(|running| {
            let status = running.ended()?;
            Some(format!("{status}; its log ends with:\n{}", running.log_tail()))
        });
        let record = self.record(&plan, &outcome, &target, environment, sampling, number, name);
        let histograms = sections::histograms(&outcome);
        Ok(Measured { record, histograms, unreachable: outcome.unreachable, system_ended })
    }

    fn plan(&self, target: &Target) -> RunPlan {
        let largest = self.workload.devices.iter().map(|group| group.size.upper_bound()).max().unwrap_or(0) as usize;
        let shards = |sessions: usize| self.shards.min(sessions).max(1);
        RunPlan {
            workload: Arc::clone(&self.workload),
            fleet: Arc::clone(&self.fleet),
            seed: self.seed,
            run_id: run_id(),
            timeline: self.timeline,
            drain_limit: self.drain_limit,
            publish_at: target.publish_at.clone(),
            subscribe_at: target.subscribe_at.clone(),
            sources: Arc::clone(&self.sources),
            publisher_shards: shards(self.fleet.devices().len()),
            subscriber_shards: shards(self.fleet.subscribers().len()),
            connects_per_s: CONNECTS_PER_S,
            connect_limit: CONNECT_LIMIT,
            realtime: self.realtime,
            handicap: self.handicap,
            receive_stamps: true,
            maximum_packet_bytes: (largest + PACKET_ROOM).max(FOREIGN_ROOM),
            keep_alive_s: KEEP_ALIVE_S,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "each is a thing of its own that only the record brings together")]
    fn record(
        &self,
        plan: &RunPlan,
        outcome: &Outcome,
        target: &Target,
        environment: Environment,
        sampling: Sampling,
        repetition: u32,
        run: &str,
    ) -> Record {
        let (resources, resource_series) = sampling.finish(outcome.window_ns);
        recording::record(
            plan,
            outcome,
            Surroundings {
                run: run.to_owned(),
                spoken: self.spoken,
                system: target.info.clone(),
                deviations: target.deviations.clone(),
                resources,
                resource_series,
                environment,
                repetition,
                repetitions: self.repetitions,
            },
        )
    }
}

/// What the user wrote cannot be used, or pubmark itself failed.
fn not_carried_out(error: EngineError) -> Failure {
    match &error {
        EngineError::Open(open) if certificates::hint(open).is_some() => certificates::unusable(open),
        EngineError::Unsupported(_) => Failure::from_error(ExitCode::Usage, &error),
        _ => Failure::from_error(ExitCode::Internal, &error),
    }
}

/// A number that tells this run's messages from those of others: of the time and the process, mixed.
fn run_id() -> u32 {
    (mix(clock::realtime_ns() ^ mix(u64::from(std::process::id()))) >> 32) as u32
}
