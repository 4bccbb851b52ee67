//! One repetition of a run: reach the system, drive it, sample what it costs, put the record together.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use pubmark_engine::error::EngineError;
use pubmark_engine::outcome::{Followed, Outcome};
use pubmark_engine::plan::{Networks, RunPlan};
use pubmark_engine::progress::Totals;
use pubmark_engine::remote::Launcher;
use pubmark_engine::run::{self, Observer, Phase, Sides};
use pubmark_engine::sections;
use pubmark_links::network::BackEnd;
use pubmark_links::star::Snapshot;
use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::fault::Occurrence;
use pubmark_model::fleet::Fleet;
use pubmark_model::random::mix;
use pubmark_model::schedule::{Summary, Timeline};
use pubmark_model::workload::Workload;
use pubmark_protocol::clock;
use pubmark_protocol::sampling;
use pubmark_record::record::{Environment, Record};
use pubmark_systems::RunningSystem;
use pubmark_systems::awake::Awake;
use pubmark_systems::environment::{self, CpuTimes};
use pubmark_systems::meter::Workers;
use pubmark_systems::sockets;

use crate::certificates;
use crate::cluster::{Joined, Observed};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::faults::{self, Conductor};
use crate::life::Life;
use crate::linked::Linked;
use crate::nodes;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::protocols::Spoken;
use crate::recording::{self, Surroundings};
use crate::residence;
use crate::sampling::{Sampled, Sampling};
use crate::target::{Target, Wanted};
use crate::workers;

/// Connections started a second, at most: what small brokers accept without refusing.
const CONNECTS_PER_S: f64 = 2_000.0;
/// Longest wait for sessions, on top of the ramp-up; and how long those that failed are tried again, where others are up.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
const HOPELESS_AFTER: Duration = Duration::from_secs(5);
/// The same for both behind links, which the probes have just crossed: where half of the packets are lost, three attempts of ten
/// seconds in a hundred fail one after the other.
const LINKED_CONNECT_LIMIT: Duration = Duration::from_secs(60);
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
    /// What its schedule comes to, worked out once for all repetitions.
    pub schedule: Summary,
    /// What is broken, in order of time.
    pub faults: Arc<[Occurrence]>,
    /// Longest wait for stragglers.
    pub drain_limit: Duration,
    /// Addresses that connections come from, in turn; the kernel's choice if empty.
    pub sources: Arc<[IpAddr]>,
    /// Seed of every draw.
    pub seed: u64,
    /// Threads on each side.
    pub shards: usize,
    /// Clients take their own last TLS session up again.
    pub resumes_tls: bool,
    /// Congestion control of our sockets; the machine's if `None`.
    pub congestion_control: Option<Arc<str>>,
    /// SCHED_FIFO asked for.
    pub realtime: bool,
    /// Keep the machine's cores from sleeping?
    pub awake: bool,
    /// What emulates links.
    pub netem: BackEnd,
    /// Least time of each send, for tests.
    pub handicap: Option<Duration>,
    /// Repetitions of the call.
    pub repetitions: u32,
    /// Nodes that the fleet is dealt out over: worker processes of this machine, or those that joined.
    pub nodes: u16,
    /// Machines that joined to send and listen.
    pub joined: Option<Arc<Joined>>,
    /// Machines that joined to look at what the system takes there.
    pub observers: Option<Arc<Joined>>,
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

/// What a run behind links hands over besides.
struct Crossed {
    /// What links had carried at the edges of the window.
    carried: [Option<Snapshot>; 2],
    /// Deliveries of the messages that were followed.
    followed: Followed,
}

/// Watches the engine: shows progress, samples at the edges of the window.
struct Watch<'a> {
    progress: Progress<'a>,
    sampling: &'a Sampling,
    cpu_before: Option<CpuTimes>,
    steal: Option<f64>,
    busy_cores: Option<f64>,
    life: Life,
    linked: Option<&'a Linked>,
    /// What links had carried at the edges of the window.
    carried: [Option<Snapshot>; 2],
    /// Ports of a system that was started here, and what its kernel held for clients when the drain was over.
    ports: BTreeSet<u16>,
    held: Option<u64>,
    /// Told when the window starts.
    breaker: Sender<u64>,
    joined: Option<&'a Joined>,
}

impl Watch<'_> {
    fn end(self) -> ([Option<Snapshot>; 2], Option<u64>, Life) {
        (self.carried, self.held, self.life)
    }
}

impl Observer for Watch<'_> {
    fn phase(&mut self, phase: Phase) {
        self.progress.phase(phase);
        self.joined.inspect(|joined| joined.phase(phase));
    }

    fn progress(&mut self, phase: Phase, elapsed: Duration, length: Option<Duration>, totals: &Totals) {
        self.life.look(phase, totals);
        self.progress.update(phase, elapsed, length, totals);
    }

    fn schedule_begins(&mut self, start_ns: u64) {
        self.life.schedule_begins();
        self.linked.inspect(|linked| linked.begin(start_ns));
        // Nobody listens in a run without faults.
        let _ = self.breaker.send(start_ns);
    }

    fn window_began(&mut self) {
        self.sampling.edge();
        self.joined.inspect(|joined| joined.edge(0));
        self.carried[0] = self.linked.map(Linked::snapshot);
        self.cpu_before = CpuTimes::read();
    }

    fn window_ended(&mut self) {
        self.sampling.edge();
        self.joined.inspect(|joined| joined.edge(1));
        self.carried[1] = self.linked.map(Linked::snapshot);
        let now = CpuTimes::read();
        let times = self.cpu_before.zip(now);
        self.steal = times.and_then(|(before, now)| now.steal_since(&before));
        self.busy_cores = times.and_then(|(before, now)| now.busy_cores_since(&before));
    }

    fn system_has_ended(&mut self) -> bool {
        self.life.has_ended()
    }

    fn system_waits(&mut self) -> bool {
        self.sampling.system_waits()
    }

    fn drained(&mut self) {
        self.sampling.drained();
        // This thread is in the system's network, behind links too.
        self.held = (!self.ports.is_empty()).then(|| sockets::bytes_on_their_way(&self.ports)).flatten();
    }
}

/// Where a system listens that was started here; none of another's.
fn ports_started(target: &Target) -> BTreeSet<u16> {
    let endpoints = target.publish_at.endpoints().iter().chain(target.subscribe_at.endpoints().iter());
    let ports = endpoints.map(|endpoint| endpoint.address.port());
    if target.running.is_some() { ports.collect() } else { BTreeSet::new() }
}

impl Measurement {
    /// Does repetition `number` (from 1) of that name.
    pub fn repeat(&self, number: u32, name: &str, printer: &Printer, stop: &AtomicBool) -> Result<Measured, Failure> {
        // Held until the repetition is over.
        let awake = self.awake.then(Awake::hold).transpose();
        let mut measured = self.repeat_so(number, name, printer, stop)?;
        recording::add_awake(&mut measured.record, &awake);
        Ok(measured)
    }

    /// The same on a machine as it is.
    fn repeat_so(&self, number: u32, name: &str, printer: &Printer, stop: &AtomicBool) -> Result<Measured, Failure> {
        let Some(linked) = Linked::start(&self.workload, self.seed, self.netem, self.nodes)? else {
            return self.measure(number, name, printer, stop, None).map(|(measured, _)| measured);
        };
        let (mut measured, crossed) = linked.within(|| self.measure(number, name, printer, stop, Some(&linked)))?;
        let networks = linked.networks();
        let carried = linked.figures(crossed.carried)?;
        let (workload, fleet) = (&self.workload, &self.fleet);
        let sampling = self.followed();
        // Where several nodes have networks, one number of a network means several.
        let seen = carried.seen.as_ref().filter(|_| self.nodes == 1);
        let residence =
            seen.map(|seen| residence::figures(workload, fleet, &networks, sampling, &crossed.followed, seen));
        recording::add_links(&mut measured.record, carried, residence);
        Ok(measured)
    }

    /// Messages that are followed on their way.
    fn followed(&self) -> sampling::Sampling {
        residence::sampling(&self.workload, &self.fleet, self.timeline.duration_ns as f64 / 1e9)
    }

    /// The same where the system is to run; with what it takes to say what crossed the links.
    fn measure(
        &self,
        number: u32,
        name: &str,
        printer: &Printer,
        stop: &AtomicBool,
        linked: Option<&Linked>,
    ) -> Result<(Measured, Crossed), Failure> {
        let mut target = self.wanted.reach(self.spoken)?;
        let plan = self.plan(&target, linked);
        let started = Workers::default();
        let launcher = self.launcher(&plan, linked, &started);
        if let (Some(linked), Some(sampling)) = (linked, plan.follows) {
            linked.follow(residence::orders(&plan, sampling));
        }
        let mut environment = environment::read();
        let sampling =
            Sampling::start(&target, self.node_exporter.as_deref(), self.observe()?, started, linked.is_none())?;
        let progress = Progress::new(printer);
        let sides = Sides { publish: self.spoken.publish.shard, subscribe: self.spoken.subscribe.shard };
        let ports = ports_started(&target);
        let life = Life::new(&target, &self.workload, &self.faults);
        let (outcome, done, carried, held, life) = thread::scope(|scope| {
            let conductor = Conductor::start(scope, &self.workload, &self.faults, target.running.as_mut(), linked);
            let mut watch = Watch {
                progress,
                sampling: &sampling,
                cpu_before: None,
                steal: None,
                busy_cores: None,
                life,
                linked,
                carried: [None, None],
                ports,
                held: None,
                breaker: conductor.begin(),
                joined: self.joined.as_deref(),
            };
            let outcome = run::run(&plan, sides, launcher.as_deref(), stop, &mut watch);
            (environment.steal, environment.busy_cores) = (watch.steal, watch.busy_cores);
            // The conductor ends when nobody can tell it anything any more: the rest of the watch goes before.
            let (carried, held, life) = watch.end();
            (outcome, conductor.finish(), carried, held, life)
        });
        environment.load_after = environment::load();
        let mut outcome = outcome.map_err(|error| not_carried_out(error, self.joined.as_deref()))?;
        let (window_ns, known) = (outcome.window_ns, target.running.as_mut().and_then(RunningSystem::own_end));
        let end = life.end(known, (window_ns.0 > 0).then_some(window_ns.0));
        let log_of = |running: &RunningSystem| format!("; its log ends with:\n{}", running.log_tail());
        let system_ended =
            end.as_ref().map(|end| format!("{}{}", end.how, target.running.as_ref().map(log_of).unwrap_or_default()));
        let mut record = self.record(&plan, &outcome, &target, environment, sampling, number, name);
        recording::add_held(&mut record, held);
        recording::add_end(&mut record, end);
        if let Some(faults) = faults::figures(&plan, &outcome, &self.faults, &done) {
            recording::add_faults(&mut record, faults);
        }
        let histograms = sections::histograms(&outcome);
        let crossed = Crossed { carried, followed: std::mem::take(&mut outcome.followed) };
        Ok((Measured { record, histograms, unreachable: outcome.unreachable, system_ended }, crossed))
    }

    /// Lets observers look, where there are some.
    fn observe(&self) -> Result<Option<Observed>, Failure> {
        self.observers.as_ref().map_or(Ok(None), |observers| observers.observe())
    }

    /// What starts processes of their own for clients, where the plan wants some.
    fn launcher(&self, plan: &RunPlan, linked: Option<&Linked>, started: &Workers) -> Option<Box<dyn Launcher>> {
        if let Some(joined) = &self.joined {
            return Some(joined.launcher(workers::words(self.spoken)));
        }
        let has_isolated = ConnectionGroups::of(&plan.workload).has_isolated();
        (plan.by_network || plan.nodes > 1 || has_isolated).then(|| {
            let namespaces = linked.map(Linked::namespaces).unwrap_or_default();
            let workers = workers::Workers::new(plan, namespaces, self.spoken, started.clone());
            Box::new(workers) as Box<dyn Launcher>
        })
    }

    fn plan(&self, target: &Target, linked: Option<&Linked>) -> RunPlan {
        let largest = self.workload.devices.iter().map(|group| group.size.upper_bound()).max().unwrap_or(0);
        let largest = largest.max(self.workload.largest_answer_bytes()) as usize;
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
            networks: linked.map_or_else(Networks::none, Linked::networks),
            nodes: self.nodes,
            on_nodes: self.joined.is_some(),
            by_network: linked.is_some() && (self.nodes > 1 || workers::are_needed(self.spoken)),
            follows: linked.filter(|linked| linked.shows_packets() && self.nodes == 1).map(|_| self.followed()),
            sources: Arc::clone(&self.sources),
            publisher_shards: shards(self.fleet.devices().len()),
            subscriber_shards: shards(self.fleet.subscribers().len()),
            connects_per_s: CONNECTS_PER_S,
            connect_limit: if linked.is_some() { LINKED_CONNECT_LIMIT } else { CONNECT_LIMIT },
            hopeless_after: if linked.is_some() { LINKED_CONNECT_LIMIT } else { HOPELESS_AFTER },
            realtime: self.realtime,
            handicap: self.handicap,
            receive_stamps: true,
            faults: faults::planned(&self.workload, &self.faults),
            maximum_packet_bytes: (largest + PACKET_ROOM).max(FOREIGN_ROOM),
            keep_alive_s: KEEP_ALIVE_S,
            resumes_tls: self.resumes_tls,
            congestion_control: self.congestion_control.clone(),
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
        let Sampled { resources, rows, drain_wait_ns } = sampling.finish(outcome.window_ns, outcome.drain_ns);
        recording::record(
            plan,
            outcome,
            Surroundings {
                run: run.to_owned(),
                spoken: self.spoken,
                schedule: self.schedule.clone(),
                system: target.info.clone(),
                deviations: target.deviations.clone(),
                resources,
                resource_series: rows,
                drain_wait_ns,
                environment,
                repetition,
                repetitions: self.repetitions,
                nodes: nodes::rows(plan, outcome, self.joined.as_deref()),
            },
        )
    }
}

/// What the user wrote cannot be used, or pubmark itself failed.
fn not_carried_out(error: EngineError, joined: Option<&Joined>) -> Failure {
    match &error {
        EngineError::Lost(_) | EngineError::Launch { .. } | EngineError::Worker(_) if joined.is_some() => {
            let mut failure = Failure::from_error(ExitCode::InvalidRun, &error);
            failure.chain.extend(joined.map(Joined::lost).unwrap_or_default());
            failure.hint("the node's own output says what ended it; run again with all nodes")
        }
        EngineError::Open(open) if certificates::hint(open).is_some() => certificates::unusable(open),
        EngineError::Unsupported(_) => Failure::from_error(ExitCode::Usage, &error),
        _ => Failure::from_error(ExitCode::Internal, &error),
    }
}

/// A number that tells this run's messages from those of others: of the time and the process, mixed.
fn run_id() -> u32 {
    (mix(clock::realtime_ns() ^ mix(u64::from(std::process::id()))) >> 32) as u32
}
