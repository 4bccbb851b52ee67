//! One repetition of a run: reach the system, drive it, sample its resource usage, put the record together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use pubmark_engine::endpoints::Endpoints;
use pubmark_engine::error::EngineError;
use pubmark_engine::losses::LossWatch;
use pubmark_engine::outcome::{FollowedDeliveries, Outcome};
use pubmark_engine::plan::RunPlan;
use pubmark_engine::remote::Launcher;
use pubmark_engine::run::{self, Sides};
use pubmark_engine::sections;
use pubmark_engine::shares::WorkerLocation;
use pubmark_model::connection_groups::ConnectionGroups;
use pubmark_model::fault::{Occurrence, Scope};
use pubmark_model::fleet::Fleet;
use pubmark_model::metric::MetricProgram;
use pubmark_model::placement::Labels;
use pubmark_model::schedule::Summary;
use pubmark_model::workload::Workload;
use pubmark_protocol::clients::OpenError;
use pubmark_protocol::sampling;
use pubmark_record::record::{Environment, Record, SystemEnd};
use pubmark_record::threshold::Objectives;
use pubmark_systems::RunningSystem;
use pubmark_systems::affinity::Pins;
use pubmark_systems::awake::Awake;
use pubmark_systems::environment;
use pubmark_systems::meter::Workers;
use pubmark_systems::sampler::LiveUsage;

use crate::certificates;
use crate::cluster::JoinedNodes;
use crate::custom_metrics::CustomMetrics;
use crate::error::{ErrorKind, RunError};
use crate::faults::{self, FaultInjector, FaultProgress};
use crate::host::Host;
use crate::latency_breakdown;
use crate::life::Life;
use crate::linked::{self, Carried, Extent, LinkReport, Linked};
use crate::message_log::MessageLog;
use crate::node_links::{LinksOnNodes, Reported};
use crate::nodes;
use crate::observer::RunObserver;
use crate::recording::{self, RecordInputs};
use crate::relay::RelayProcess;
use crate::relayed::{self, Relayed};
use crate::sampling::{Sampled, Sampling};
use crate::spec::RunSpec;
use crate::target::{CheckedTarget, Target};
use crate::watch::Watch;
use crate::{contention, pins, workers};
use pubmark_protocols::ProtocolPair;

/// A prepared run: checked, its fleet and its schedule computed, nothing started.
pub struct PreparedRun {
    /// The specification.
    pub spec: RunSpec,
    /// The workload.
    pub workload: Arc<Workload>,
    /// The workload's clients, enumerated.
    pub fleet: Arc<Fleet>,
    /// Protocols of the clients.
    pub protocol_pair: ProtocolPair,
    /// The system.
    pub wanted: CheckedTarget,
    /// Faults, in order of time.
    pub faults: Arc<[Occurrence]>,
    /// Limits that the run has to meet.
    pub objectives: Option<Objectives>,
    /// Metrics of the user's own.
    pub metrics: Vec<MetricProgram>,
    /// Summary of the schedule, computed once for all repetitions.
    pub schedule: Summary,
    pub(crate) pins: Pins,
    pub(crate) host: Host,
    /// Machines that joined; all repetitions use the same ones.
    pub(crate) joined: Option<Arc<JoinedNodes>>,
    /// Labels of the nodes, as far as they are known.
    pub(crate) node_labels: Vec<Labels>,
}

/// The result of a repetition.
pub struct RunOutcome {
    /// The specification as a file that repeats the run, without passwords.
    pub spec: String,
    /// The record, with its verdict.
    pub record: Record,
    /// Histograms by name, in HdrHistogram's V2 format.
    pub histograms: Vec<(&'static str, Vec<u8>)>,
    /// The message log, if it was requested.
    pub message_log: Option<MessageLog>,
    /// Metrics of the user's own; [`RunOutcome::save`] computes them.
    pub custom: Option<CustomMetrics>,
    /// No session of one side could be established.
    pub unreachable: bool,
    /// How a system that we started ended before we stopped it, with the end of its log.
    pub system_ended: Option<String>,
}

/// Observations of the links of a run.
struct LinkObservations {
    /// Traffic of the links at the edges of the window, and what they held at the end of the drain.
    carried: Carried,
    /// Deliveries of the messages that were followed on the links.
    followed: FollowedDeliveries,
    /// Longest time that a message spent in the relay, all its passes together, ns; 0 without one, and `u64::MAX` if it
    /// is unknown.
    relay_ns: u64,
}

/// The end of the system, if something shows it: the report of its supervisor (`is_reported`), or otherwise lost connections. These show
/// nothing where links, or the relay behind them, were lost as well, here or on a node.
fn end_of_system(
    end: Option<SystemEnd>,
    is_reported: bool,
    are_lost_here: bool,
    on_nodes: &[(WorkerLocation, LinkReport)],
) -> Option<SystemEnd> {
    let is_way_lost = are_lost_here || on_nodes.iter().any(|(_, report)| report.is_lost());
    end.filter(|_| is_reported || !is_way_lost)
}

/// Ports of a system that was started here; empty for any other system.
fn ports_started(target: &Target) -> BTreeSet<u16> {
    let endpoints = target.publish_at.endpoints().iter().chain(target.subscribe_at.endpoints().iter());
    let ports = endpoints.map(|endpoint| endpoint.address.port());
    if target.running.is_some() { ports.collect() } else { BTreeSet::new() }
}

impl PreparedRun {
    /// Name of the system in the record.
    pub fn system_name(&self) -> &str {
        match &self.wanted {
            CheckedTarget::External { definition, .. } => {
                definition.as_ref().map_or("external", |definition| &definition.name)
            }
            CheckedTarget::Brokerless { definition, .. } | CheckedTarget::Started { definition, .. } => {
                &definition.name
            }
        }
    }

    /// Runs once, and gives the record the workload's name.
    ///
    /// # Errors
    /// As [`PreparedRun::repeat`].
    pub fn run(&mut self, observer: &mut dyn RunObserver) -> Result<RunOutcome, RunError> {
        self.gather(observer)?;
        let name = self.workload.name.clone();
        self.repeat(1, &name, observer)
    }

    /// Runs repetition `number` (from 1), whose record gets this name. Nodes have to be [gathered](PreparedRun::gather)
    /// before.
    ///
    /// # Errors
    /// The system could not be started or reached, the machine lacks something, or a node was lost before anything was
    /// measured. Later failures are in the record.
    pub fn repeat(&self, number: u32, name: &str, observer: &mut dyn RunObserver) -> Result<RunOutcome, RunError> {
        if self.joined.is_none() && self.wants_nodes() {
            return Err(RunError::input("the run needs nodes, and none were gathered")
                .hint("`PreparedRun::gather` before each repetition, or `PreparedRun::run`"));
        }
        pins::pin_generator(&self.pins)?;
        // Stays in effect until the repetition is over.
        let awake = self.spec.generator.awake.then(|| Awake::hold(self.host.program.as_deref())).transpose();
        let mut outcome = self.repeat_on_links(number, name, observer)?;
        recording::add_awake(&mut outcome.record, &awake);
        recording::judge(&mut outcome.record);
        if let Some(limits) = &self.objectives {
            pubmark_record::objectives::assess(&mut outcome.record, limits);
        }
        Ok(outcome)
    }

    /// Runs the repetition, behind links if the workload has some.
    fn repeat_on_links(&self, number: u32, name: &str, observer: &mut dyn RunObserver) -> Result<RunOutcome, RunError> {
        let (load, extent) = (&self.spec.load, Extent::All { nodes: self.spec.node_count() });
        let linked = match self.driven() {
            Some(_) => None,
            None => Linked::start(&self.workload, load.seed, load.netem.into(), extent, None)?,
        };
        let Some(mut linked) = linked else {
            return self.measure(number, name, observer, None).map(|(measured, _)| measured);
        };
        if let Some([publish_at, subscribe_at]) = self.wanted.external_endpoints() {
            let node_exporter = self.spec.target.node_exporter.as_deref();
            let start = || RelayProcess::start(self.host.program.as_deref()).map(Arc::new);
            let relay = self.host.relay.clone().map_or_else(start, Ok)?;
            let [publish_at, subscribe_at] = [publish_at, subscribe_at].map(|at| Endpoints::one(at.clone()));
            let connects = linked::connect(self.protocol_pair);
            let sides = [&publish_at, &subscribe_at];
            let relayed = Relayed::of(sides, connects, node_exporter, linked.core(), relay);
            linked.lead_to(relayed.map_err(|error| self.relay_failure(error))?);
        }
        let (mut measured, observed) = linked.within(|| self.measure(number, name, observer, Some(&linked)))?;
        let networks = linked.networks();
        let held_ns = observed.carried.held_ns();
        let (report, seen) = linked.finish(observed.carried, held_ns)?;
        let (workload, fleet) = (&self.workload, &self.fleet);
        let sampling = self.followed();
        // If several nodes have networks, one network number means several networks.
        let seen = seen.filter(|_| self.spec.node_count() == 1);
        let (followed, relay_ns) = (&observed.followed, observed.relay_ns);
        let breakdown = seen
            .map(|seen| latency_breakdown::figures(workload, fleet, &networks, sampling, followed, &seen, relay_ns));
        recording::add_links(&mut measured.record, &[report]);
        recording::add_breakdown(&mut measured.record, breakdown);
        Ok(measured)
    }

    /// The error for links that could not be connected to the endpoint. No process can be started on a network that this one has left:
    /// if its relay is lost, later runs have none either.
    fn relay_failure(&self, error: RunError) -> RunError {
        if error.kind != ErrorKind::NodeLost || self.host.relay.is_none() {
            return error;
        }
        RunError { kind: ErrorKind::RelayLost, ..error }.hint(
            "a relay outside this network cannot be started again: repeat the command (`pubmark choose` goes on with the runs that it \
             has); as root, each run starts a relay of its own",
        )
    }

    /// The error for an engine failure: the user's input cannot be used, or pubmark itself failed.
    fn engine_failure(&self, error: EngineError) -> RunError {
        match (&error, self.driven()) {
            (EngineError::Worker { node, why }, Some(_)) => {
                let names = self.node_names();
                let name = names.get(usize::from(*node)).map_or("a node", String::as_str);
                RunError::new(ErrorKind::System, format!("`{name}` could not begin: {why}"))
            }
            (EngineError::Lost(_) | EngineError::Launch { .. }, Some(joined)) => {
                let mut failure = RunError::from_error(ErrorKind::NodeLost, &error);
                failure.chain.extend(joined.lost(self.spec.node_count()));
                failure.hint("the output of the lost node contains the reason for its end; run again with all nodes")
            }
            (EngineError::LongOrder { .. }, _) => RunError::from_error(ErrorKind::Input, &error).hint(
                "an order contains the whole workload: shorten its longest lists, such as traces; or leave out `--nodes`, \
                 `--local-nodes` and `--isolate`, so that no order is sent",
            ),
            (EngineError::Unprepared { .. }, _) => RunError::from_error(ErrorKind::TooLarge, &error)
                .hint("run again with fewer devices, or on a machine with free cores: a thread of pubmark did not run"),
            (EngineError::Stuck { shard, .. }, _) => {
                let ProtocolPair { publish, subscribe } = self.protocol_pair;
                let side = if shard.starts_with("subscriber") { subscribe } else { publish };
                let library = side.program.map(str::to_owned).or_else(|| side.client_version());
                let client = library.unwrap_or_else(|| format!("the client for {}", self.protocol_pair.title()));
                let other = if side.client.is_some() { "another client library (`--client`)" } else { "fewer devices" };
                RunError::from_error(ErrorKind::Internal, &error)
                    .hint(format!("run again, or with {other}: a call of {client} did not return"))
            }
            (EngineError::Open(open), _) if certificates::hint(open).is_some() => certificates::unusable(open),
            // A program that could describe itself before, and was ended or broke since.
            (EngineError::Open(OpenError::Program { .. }), _) | (EngineError::Unsupported(_), _) => {
                RunError::from_error(ErrorKind::Input, &error)
            }
            _ => RunError::from_error(ErrorKind::Internal, &error),
        }
    }

    /// Messages that are followed on the links.
    pub(crate) fn followed(&self) -> sampling::Sampling {
        let window = &self.spec.window;
        latency_breakdown::sampling(&self.workload, &self.fleet, window.warmup, window.duration)
    }

    /// Measures the repetition in the network where the system runs; also returns the observations of the links.
    fn measure(
        &self,
        number: u32,
        name: &str,
        observer: &mut dyn RunObserver,
        linked: Option<&Linked>,
    ) -> Result<(RunOutcome, LinkObservations), RunError> {
        let spec = self.spec.to_yaml(&self.workload.secret_parameters)?;
        let mut hosted = self.start_on_node()?;
        let (mut target, trunk) = match &hosted {
            Some(hosted) => (hosted.target(), None),
            None => {
                let (endpoints, trunk) = self.endpoints_on_nodes()?.unzip();
                (self.wanted.reach(self.protocol_pair, endpoints)?, trunk.flatten())
            }
        };
        let relay = linked.and_then(Linked::relayed);
        if let Some(relayed) = relay {
            target.deviations.push(relayed::deviation(target.publish_at.shown(), "this machine"));
            [target.publish_at, target.subscribe_at] = relayed.endpoints();
        }
        let node_exporter = relay.map_or(&self.spec.target.node_exporter, |relayed| &relayed.node_exporter);
        let plan = self.plan(&target, linked);
        let netem = self.spec.load.netem;
        let on_nodes = self.driven().and_then(|_| LinksOnNodes::of(&plan, self.protocol_pair, netem, trunk));
        if let Some(links) = &on_nodes {
            target.deviations.push(links.deviation(target.publish_at.shown()));
        }
        let started = match &plan.connections.program {
            Some(_) => Workers::with_programs(pubmark_protocol::client_program::MARK),
            None => Workers::default(),
        };
        let launcher = self.launcher(&plan, linked, on_nodes.clone(), &started);
        if let (Some(linked), Some(sampling)) = (linked, plan.follows) {
            linked.follow(latency_breakdown::watch_spec(&plan, sampling));
        }
        // This thread may be pinned.
        let cores = self.host.cores.len() as u32;
        let mut environment = Environment { cores, ..environment::read() };
        let mut sampling =
            Sampling::start(&target, node_exporter.as_deref(), self.observe()?, started, linked.is_none())?;
        let sides = Sides { publish: self.protocol_pair.publish.shard, subscribe: self.protocol_pair.subscribe.shard };
        let ports = ports_started(&target);
        let life = Life::new(&target, &self.workload, &self.faults);
        let is_hosted = hosted.is_some();
        let (outcome, mut done, carried, in_transit, mut life, pressure) = thread::scope(|scope| {
            let is_here = |fault: &Occurrence| match fault.kind.scope() {
                Scope::Links => on_nodes.is_none(),
                Scope::System => !is_hosted,
                Scope::Connections => true,
            };
            let running = target.running.as_mut();
            let conductor = FaultInjector::start(scope, &self.workload, &self.faults, is_here, running, linked);
            let mut watch = Watch {
                observer,
                sampling: &sampling,
                cpu_before: None,
                pressure: [None, None],
                steal: None,
                busy_cores: None,
                life,
                linked,
                hosted: hosted.as_ref(),
                carried: Carried::default(),
                ports,
                in_transit: None,
                fault_start: conductor.begin(),
                joined: self.driven().map(Arc::as_ref),
                faults: FaultProgress::new(&self.workload, &self.faults),
                latency: None,
                window_latency: None,
                losses: LossWatch::default(),
                usage: (u64::MAX, LiveUsage::default()),
            };
            let outcome = run::run(&plan, sides, launcher.as_deref(), &self.host.stop, &mut watch);
            let pressure = watch.cpu_pressure();
            (environment.steal, environment.busy_cores) = (watch.steal, watch.busy_cores);
            // The fault injector ends when its last sender is dropped: the remaining parts of the watch are dropped
            // first.
            let (carried, in_transit, life) = watch.end();
            (outcome, conductor.finish(), carried, in_transit, life, pressure)
        });
        environment.load_after = environment::load();
        let mut outcome = outcome.map_err(|error| self.engine_failure(error))?;
        // The time that a relay held bytes is not the system's; it is unknown for a run that ended early.
        let reported = on_nodes
            .as_ref()
            .map(|links| Reported::read(links, &outcome.access, &self.workload, &self.node_names(), self.faults.len()));
        let is_unknown = relay.is_some() && carried.edges[1].is_none();
        let held_here_ns = if is_unknown { u64::MAX } else { carried.held_ns() };
        let held_ns = reported.as_ref().map_or(held_here_ns, Reported::held_ns);
        let passes = relayed::passes(&self.workload);
        outcome.lower_by(held_ns, passes);
        let logged_relay_ns = held_ns.saturating_mul(passes);
        let window_ns = outcome.window_ns;
        let finished = hosted.as_mut().map(|hosted| hosted.finish(window_ns, outcome.drain_ns));
        let known = target.running.as_mut().and_then(|running| life.reported_end(running, !outcome.unreachable));
        let is_reported = known.is_some();
        let end = life.end(known, (window_ns.0 > 0).then_some(window_ns.0));
        // The relay may have ended since it was checked last.
        let are_lost_here =
            relay.is_some_and(|relayed| relayed.counts().is_err()) || linked.is_some_and(Linked::are_lost);
        let links_of_nodes = reported.as_ref().map(|reported| reported.links.as_slice()).unwrap_or_default();
        let end = end_of_system(end, is_reported, are_lost_here, links_of_nodes);
        let end_of_hosted = finished.as_ref().and_then(|finished| finished.end.clone());
        let log = match &end_of_hosted {
            Some((_, log)) => Some(log.clone()).filter(|log| !log.is_empty()),
            None => target.running.as_ref().map(RunningSystem::log_tail),
        };
        let end = end.or(end_of_hosted.map(|(end, _)| end));
        let log = log.map(|log| format!("; its log ends with:\n{log}")).unwrap_or_default();
        let system_ended = end.as_ref().map(|end| format!("{}{log}", end.how));
        if let Some(finished) = finished {
            let of_system = self.faults.iter().zip(&mut done).zip(&finished.done);
            let of_system = of_system.filter(|((fault, _), _)| fault.kind.scope() == Scope::System);
            of_system.for_each(|((_, done), theirs)| done.clone_from(theirs));
            sampling.measured_elsewhere(finished);
        }
        let mut record = self.record(&plan, &mut outcome, &target, environment, sampling, number, name);
        recording::add_in_transit(&mut record, in_transit, outcome.faults.as_ref());
        contention::add(&mut record, pressure, plan.on_nodes);
        recording::add_end(&mut record, end);
        if let Some(reported) = &reported {
            reported.add_done(&self.faults, &mut done);
            let groups = ConnectionGroups::of(&self.workload).names;
            recording::add_links_of_nodes(&mut record, &reported.links, &groups);
        }
        if let Some(faults) = faults::figures(&plan, &outcome, &self.faults, &done) {
            recording::add_faults(&mut record, faults);
        }
        let histograms = sections::histograms(&outcome, sections::clock_error_ns(&record.tables.nodes));
        let log = outcome.log.take().zip(self.spec.message_log);
        let message_log = log.map(|(log, format)| {
            let log = MessageLog::new(log, &plan, format, outcome.window_ns.0, &record.tables.nodes);
            log.through_relay(logged_relay_ns)
        });
        record.message_log = message_log.as_ref().map(MessageLog::info);
        let relay_ns = held_here_ns.saturating_mul(passes);
        let observed = LinkObservations { carried, followed: std::mem::take(&mut outcome.followed), relay_ns };
        let unreachable = outcome.unreachable;
        let custom = self.custom_metrics();
        Ok((RunOutcome { spec, record, histograms, message_log, custom, unreachable, system_ended }, observed))
    }

    fn custom_metrics(&self) -> Option<CustomMetrics> {
        let (objectives, stop) = (self.objectives.clone(), Arc::clone(&self.host.stop));
        (!self.metrics.is_empty()).then(|| CustomMetrics { programs: self.metrics.clone(), objectives, stop })
    }

    /// The launcher of separate processes for clients, if the plan needs some.
    fn launcher(
        &self,
        plan: &RunPlan,
        linked: Option<&Linked>,
        on_nodes: Option<LinksOnNodes>,
        started: &Workers,
    ) -> Option<Box<dyn Launcher>> {
        if let Some(joined) = self.driven() {
            return Some(joined.launcher(workers::words(self.protocol_pair), on_nodes));
        }
        let has_isolated = ConnectionGroups::of(&plan.workload).has_isolated();
        (plan.by_network || plan.nodes > 1 || has_isolated).then(|| {
            let namespaces = linked.map(Linked::namespaces).unwrap_or_default();
            let workers = workers::Workers::new(plan, namespaces, self.protocol_pair, started.clone(), &self.host);
            Box::new(workers) as Box<dyn Launcher>
        })
    }

    #[allow(clippy::too_many_arguments, reason = "each is a thing of its own that only the record brings together")]
    fn record(
        &self,
        plan: &RunPlan,
        outcome: &mut Outcome,
        target: &Target,
        environment: Environment,
        sampling: Sampling,
        repetition: u32,
        run: &str,
    ) -> Record {
        let Sampled { mut resources, rows, drain_wait_ns } = sampling.finish(outcome.window_ns, outcome.drain_ns);
        let (nodes, groups) = nodes::rows(plan, outcome, self.driven().map(Arc::as_ref));
        outcome.lower_by_clock_error(sections::clock_error_ns(&nodes), self.fleet.links());
        // A group has its processes either here or on nodes.
        resources.groups.extend(groups);
        recording::record(
            plan,
            outcome,
            RecordInputs {
                command: self.host.command.clone(),
                run: run.to_owned(),
                protocol_pair: self.protocol_pair,
                schedule: self.schedule.clone(),
                system: target.info.clone(),
                deviations: target.deviations.clone(),
                cost: resources,
                resource_series: rows,
                drain_wait_ns,
                environment,
                repetition,
                repetitions: self.spec.repetitions,
                nodes,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_lost_relay_ends_later_runs_only_where_none_can_be_started() {
        let mut run = RunSpec::new("hello").prepare(&Host::this()).expect("a run that can be prepared");
        let lost = |run: &PreparedRun| run.relay_failure(RunError::new(ErrorKind::NodeLost, "silent"));
        assert_eq!(lost(&run).kind, ErrorKind::NodeLost);
        run.host.relay = Some(Arc::new(RelayProcess::start(Some(Path::new("/bin/true"))).expect("a process")));
        let error = lost(&run);
        assert_eq!(error.kind, ErrorKind::RelayLost);
        assert!(error.hint.is_some_and(|hint| hint.contains("cannot be started again")), "{:?}", error.chain);
        let refused = run.relay_failure(RunError::new(ErrorKind::System, "refused"));
        assert_eq!(refused.kind, ErrorKind::System);
    }

    #[test]
    fn a_client_that_does_not_return_is_named_with_what_to_do() {
        let mut run = RunSpec::new("hello").prepare(&Host::this()).expect("a run that can be prepared");
        let failure = |run: &PreparedRun| {
            let (shard, what) = ("publisher 0".to_owned(), "end its sessions");
            run.engine_failure(EngineError::Stuck { shard, what, within_s: 100.0 })
        };
        let error = failure(&run);
        assert_eq!(error.chain, ["shard `publisher 0` did not end its sessions within 100 s"]);
        let hint = error.hint.expect("a hint");
        assert!(hint.contains("with fewer devices") && hint.contains(&run.protocol_pair.title()), "{hint}");
        let rust = pubmark_protocols::find("dds").and_then(|dds| dds.with_client("rustdds").ok());
        run.protocol_pair.publish = rust.expect("a build with DDS");
        let hint = failure(&run).hint.expect("a hint");
        assert!(hint.contains("(`--client`)") && hint.contains("RustDDS 0."), "{hint}");
    }

    #[test]
    fn connections_that_end_with_links_or_a_relay_are_not_the_systems_end() {
        let end = || Some(SystemEnd { how: "every connection was lost".to_owned(), ..SystemEnd::default() });
        let why = || "it was OOM-killed".to_owned();
        let of_nodes = |reports: Vec<LinkReport>| -> Vec<(WorkerLocation, LinkReport)> {
            let at = |node| WorkerLocation { node, network: None, group: None };
            (0..).map(at).zip(reports).collect()
        };
        let fine = LinkReport::default;
        let without_relay = of_nodes(vec![fine(), LinkReport { relay: Some(Err(why())), ..fine() }]);
        let without_links = of_nodes(vec![LinkReport { gone: Some(why()), ..fine() }, fine()]);
        for lost in [&without_relay, &without_links] {
            assert_eq!(end_of_system(end(), false, false, lost), None);
            assert_eq!(end_of_system(end(), true, false, lost), end(), "a process of it was seen to end");
        }
        assert_eq!(end_of_system(end(), false, true, &[]), None);
        assert_eq!(end_of_system(end(), false, false, &of_nodes(vec![fine(), fine()])), end());
        assert_eq!(end_of_system(None, false, false, &[]), None);
    }

    #[test]
    fn a_run_on_nodes_is_not_made_before_they_have_joined() {
        let mut spec = RunSpec::new("hello");
        spec.nodes.nodes = Some(2);
        let run = spec.prepare(&Host::this()).expect("a run that can be prepared");
        let error = run.repeat(1, "alone", &mut ()).map(|_| ()).expect_err("no node has joined");
        assert_eq!(error.kind, ErrorKind::Input);
    }
}
