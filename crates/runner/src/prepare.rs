//! From a specification to a prepared run: everything is checked, the fleet and the schedule are computed, nothing is
//! started.

use std::sync::Arc;

use pubmark_model::experiment;
use pubmark_model::fault::Occurrence;
use pubmark_model::fleet::Fleet;
use pubmark_model::load::{self, LoadError, LoadOptions};
use pubmark_model::metric::MetricProgram;
use pubmark_model::placement::{self, NodeLabels, PlacementChoice, Placements};
use pubmark_model::plan::{Plan, PlanOptions};
use pubmark_model::qos::Qos;
use pubmark_model::schedule::{self, Timeline};
use pubmark_model::workload::Workload;
use pubmark_protocols::ProtocolPair;
use pubmark_record::threshold::Objectives;

use crate::error::{ErrorKind, RunError};
use crate::host::Host;
use crate::machine_limits::ClientNeeds;
use crate::prepared::PreparedRun;
use crate::relay::RelayProcess;
use crate::spec::{Netem, RunSpec, WorkloadSource};
use crate::target::CheckedTarget;
use crate::{
    brokerless, custom_metrics, faults, identities, labels, linked, links, machine_limits, message_log, nodes,
    objectives, offers, pins, protocol_pair, sockets, suitability, system_node,
};

/// A specification that can be run, as far as this can be decided without enumerating the fleet.
pub struct CheckedRun {
    /// The specification.
    pub spec: RunSpec,
    /// The workload.
    pub workload: Arc<Workload>,
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
    host: Host,
}

impl RunSpec {
    /// Loads the workload, with the changes of the specification.
    ///
    /// # Errors
    /// The workload cannot be found or read, or a change does not fit; with the position in the file.
    pub fn load(&self) -> Result<Workload, RunError> {
        self.check_fields()?;
        let load = &self.load;
        let options = LoadOptions {
            variant: load.variant.into(),
            scale: load.scale,
            qos: load.qos.and_then(Qos::from_level),
            set: load.set.clone(),
            payload: load.payload,
            rate: load.rate,
            links: load.links.clone(),
            faults: load.faults.clone(),
            isolate: self.generator.isolate.clone(),
            contents: load.files.clone(),
        };
        let loaded = match &self.workload {
            WorkloadSource::Named(name) => load::load(name, &options),
            WorkloadSource::Inline { file_name, text, .. } => load::parse(file_name, text, &options),
        };
        let mut workload = loaded.map_err(|error| not_loaded(error, self.workload.name()))?;
        // `none` removes the workload's placement, and keeps that of this call.
        let choices = &self.nodes.placement;
        let chosen = choices.iter().rposition(|choice| *choice == PlacementChoice::None).map_or(0, |last| last + 1);
        if chosen > 0 {
            workload.placement = Placements::default();
        }
        if let Some(devices) = self.nodes.devices {
            workload.placement.devices = devices.into();
        }
        if let Some(subscribers) = self.nodes.subscribers {
            workload.placement.subscribers = subscribers.into();
        }
        placement::apply(&mut workload, &choices[chosen..]).map_err(|error| not_loaded(error, self.workload.name()))?;
        Ok(workload)
    }

    /// Lets a user without root privileges create the links of the run, as root of a user namespace: from then on this
    /// process is in a separate network namespace. Call it before any thread is started; it does nothing for root, and
    /// for a run without links. Returns the host with the relay process that reaches a system on the machine's network.
    ///
    /// # Errors
    /// What this machine lacks, or a refusal of observers, which would have to reach this process.
    pub fn claim_links(&self, workload: &Workload, mut host: Host) -> Result<Host, RunError> {
        if !linked::are_here(self, workload) || !linked::leaves_network() {
            return Ok(host);
        }
        if self.nodes.observers.is_some() {
            return Err(RunError::unsupported(
                "without root, a run with links leaves the network on which observers join",
            )
            .hint("as root, or without `--observers`"));
        }
        if self.target.endpoint.is_some() {
            host.relay = Some(Arc::new(RelayProcess::start(host.program.as_deref())?));
        }
        linked::claim().map(|()| host)
    }

    /// Checks everything that can be checked without enumerating the fleet; starts nothing.
    ///
    /// # Errors
    /// The first thing that is not possible, with the reason; see [`ErrorKind`].
    pub fn check(&self, host: &Host) -> Result<CheckedRun, RunError> {
        let spec = self.self_contained();
        spec.check_loaded(Arc::new(spec.load()?), host)
    }

    /// As [`RunSpec::check`], for a workload that [`RunSpec::load`] returned.
    ///
    /// # Errors
    /// As [`RunSpec::check`].
    pub fn check_loaded(&self, workload: Arc<Workload>, host: &Host) -> Result<CheckedRun, RunError> {
        let protocol_pair = protocol_pair::of(self, &workload)?;
        nodes::validate(self)?;
        system_node::check(self, &workload)?;
        labels::check(self, &workload)?;
        let wanted = CheckedTarget::of(self, protocol_pair, &workload, host)?;
        suitability::lacking(&workload, protocol_pair).map_or(Ok(()), |lacks| Err(unsuitable(lacks)))?;
        identities::check_one_copy(&workload, &wanted)?;
        let metrics = custom_metrics::of(self, &workload)?;
        let message_log = custom_metrics::log_format(self.message_log, &metrics);
        message_log::check(message_log)?;
        links::validate(&workload, &wanted, protocol_pair, self)?;
        sockets::validate(&self.connection, protocol_pair, &wanted)?;
        faults::validate(&workload, protocol_pair, &wanted)?;
        if let Unmatched { subscribers, all: true, .. } = unmatched(&workload) {
            return Err(no_subscriber_matches(&workload, &subscribers));
        }
        let faults = faults::occurrences(&workload, self.load.seed, self.window.duration)?;
        let objectives = objectives::of(self, &workload, &metrics)?;
        let spec = RunSpec { message_log, ..self.clone() };
        Ok(CheckedRun { spec, workload, protocol_pair, wanted, faults, objectives, metrics, host: host.clone() })
    }

    /// Checks everything and computes the schedule; starts nothing.
    ///
    /// # Errors
    /// As [`RunSpec::check`] and [`CheckedRun::prepare`].
    pub fn prepare(&self, host: &Host) -> Result<PreparedRun, RunError> {
        self.check(host)?.prepare()
    }

    /// Warm-up and measured window.
    pub fn timeline(&self) -> Timeline {
        Timeline {
            warmup_ns: self.window.warmup.as_nanos() as u64,
            duration_ns: self.window.duration.as_nanos() as u64,
        }
    }

    /// The fleet on all nodes, if its publishers can be distinguished. Before machines have joined, each counts as a
    /// separate site.
    ///
    /// # Errors
    /// The fleet is too large, of kind [`ErrorKind::TooLarge`].
    pub fn fleet(&self, workload: &Workload) -> Result<Fleet, RunError> {
        let nodes = NodeLabels { nodes: self.node_count(), labels: &self.node_labels() };
        Fleet::checked_on_nodes(workload, nodes).map_err(|error| RunError::fleet_too_large(&error))
    }
}

/// Largest fleet, in clients, in which every topic is matched against every filter before the run: more would take
/// seconds. For larger fleets, `--dry-run` names the groups that no topic matches.
const MATCHED_CLIENTS: u64 = 2_000;

/// Groups that do not meet: subscriber groups whose filters match no device's topic, whether these are all groups, and device
/// groups with devices whose topics match no filter, with their number. With wills the lists are empty: wills have separate
/// topics, to which a message is sent when a device fails.
#[derive(Default)]
struct Unmatched {
    subscribers: Vec<String>,
    all: bool,
    devices: Vec<(String, u64)>,
}

fn unmatched(workload: &Workload) -> Unmatched {
    let devices = workload.devices.iter().map(|group| u64::from(group.count));
    let clients: u64 = devices.chain(workload.subscribers.iter().map(|group| u64::from(group.count))).sum();
    if clients > MATCHED_CLIENTS || workload.devices.iter().any(|group| group.will.is_some()) {
        return Unmatched::default();
    }
    let plan = Plan::new(workload, &PlanOptions::default());
    let subscribers = plan.subscribers_without_devices;
    let all = !subscribers.is_empty() && subscribers.len() == workload.subscribers.len();
    Unmatched { subscribers, all, devices: plan.devices_without_subscribers }
}

/// The error if no filter of any subscriber matches a topic.
fn no_subscriber_matches(workload: &Workload, unmatched: &[String]) -> RunError {
    let topics = workload.devices.iter().map(|group| format!("`{}`", group.topic.0)).collect::<Vec<_>>();
    RunError::input(no_topic(workload, &unmatched[0])).hint(format!("devices publish to {}", topics.join(", ")))
}

/// The filters of a group that match no topic, in a sentence.
fn no_topic(workload: &Workload, group: &str) -> String {
    let asked = workload.subscribers.iter().find(|subscribers| subscribers.name == group);
    let filters = asked.map_or_else(String::new, |subscribers| {
        subscribers.filters.iter().map(|filter| format!("`{}`", filter.0)).collect::<Vec<_>>().join(", ")
    });
    format!("subscriber group `{group}` receives nothing: no device's topic matches its filters {filters}")
}

impl CheckedRun {
    /// Notes for the user about choices that the specification did not make.
    pub fn notes(&self) -> Vec<String> {
        let unmatched = unmatched(&self.workload);
        let mut notes = protocol_pair::notes(&self.spec, &self.workload, self.protocol_pair);
        notes.extend(self.wanted.too_cold(self.spec.window.warmup));
        notes.extend(unmatched.subscribers.iter().map(|group| no_topic(&self.workload, group)));
        notes.extend(unmatched.devices.iter().map(|(group, devices)| {
            let plural = if *devices == 1 { "" } else { "s" };
            format!(
                "no subscriber receives the messages of {devices} device{plural} of group `{group}`: no filter matches their topics"
            )
        }));
        notes
    }

    /// Checks whether the back end that starts the system is on this machine.
    ///
    /// # Errors
    /// What is missing, of kind [`ErrorKind::NotInstalled`].
    pub fn check_installed(&self) -> Result<(), RunError> {
        match &self.wanted {
            // The node that starts the system checks it.
            CheckedTarget::Started { .. } if self.spec.target.node.is_some() => Ok(()),
            CheckedTarget::Started { definition, options } => offers::check_installed(definition, options),
            CheckedTarget::External { .. } | CheckedTarget::Brokerless { .. } => Ok(()),
        }
    }

    /// Checks whether this machine has enough open files, ports and memory for the clients, and whether sequence
    /// numbers suffice for the messages. Clients are counted by group; [`CheckedRun::prepare`] also enumerates the
    /// messages that reactions add. Starts nothing, and leaves the limits of this process unchanged.
    ///
    /// # Errors
    /// The resource that is insufficient.
    pub fn check_limits(&self) -> Result<(), RunError> {
        let CheckedRun { spec, workload, protocol_pair, wanted, .. } = self;
        let nodes = NodeLabels { nodes: spec.node_count(), labels: &spec.node_labels() };
        Fleet::check_counts_on_nodes(workload, nodes).map_err(|error| RunError::fleet_too_large(&error))?;
        check_messages(spec, workload)?;
        machine_limits::check(spec, workload, nodes, wanted, *protocol_pair, machine_limits::look_at_descriptors)?;
        // With nodes on other machines the memory is theirs.
        if spec.nodes.nodes.is_some() { Ok(()) } else { machine_limits::check_memory(spec, workload, *protocol_pair) }
    }

    /// Checks for a run on other machines what [`CheckedRun::prepare`] checks, without the limits of this machine: whether its
    /// clients can be numbered, distinguished and carried, and whether sequence numbers suffice for the messages.
    ///
    /// # Errors
    /// The first thing that is not possible.
    pub fn check_for_other_machines(&self) -> Result<(), RunError> {
        let CheckedRun { spec, workload, protocol_pair, wanted, .. } = self;
        let known = labels::sites_are_known(spec, workload);
        checked_fleet(workload, *protocol_pair, wanted, spec.fleet(workload)?, known)?;
        check_messages(spec, workload)
    }

    /// Open files and ports that the clients need, as [`CheckedRun::prepare`] checks them.
    pub fn needs(&self) -> ClientNeeds {
        let nodes = NodeLabels { nodes: self.spec.node_count(), labels: &self.spec.node_labels() };
        ClientNeeds::of(&self.spec, &self.workload, nodes, &self.wanted, self.protocol_pair)
    }

    /// Enumerates the fleet, checks that this machine can run it, and computes the schedule, which takes time if there
    /// are many messages; [`Host::stop`] ends it.
    ///
    /// # Errors
    /// The machine is too small, the protocols cannot carry this fleet, or the preparation was stopped.
    pub fn prepare(self) -> Result<PreparedRun, RunError> {
        let CheckedRun { spec, workload, protocol_pair, wanted, faults, objectives, metrics, host } = self;
        if spec.load.netem == Netem::Kernel && linked::are_here(&spec, &workload) {
            linked::by_kernel(&workload)?;
        }
        let known = labels::sites_are_known(&spec, &workload);
        let fleet = spec.fleet(&workload)?;
        // What the labels of nodes decide is checked again in [`PreparedRun::gather`].
        let labels = NodeLabels { nodes: spec.node_count(), labels: &spec.node_labels() };
        machine_limits::check(&spec, &workload, labels, &wanted, protocol_pair, machine_limits::raise_descriptors)?;
        let fleet = checked_fleet(&workload, protocol_pair, &wanted, fleet, known)?;
        check_messages(&spec, &workload)?;
        let schedule = schedule::summary_unless(&workload, &fleet, spec.load.seed, &spec.timeline(), &host.stop)
            .ok_or_else(|| RunError::new(ErrorKind::Interrupted, "interrupted while the schedule was worked out"))?;
        let pins = pins::pins(&spec.generator.pin, &host)?;
        let joined = None;
        let node_labels = spec.node_labels();
        Ok(PreparedRun {
            spec,
            workload,
            fleet,
            protocol_pair,
            wanted,
            faults,
            objectives,
            metrics,
            schedule,
            pins,
            host,
            joined,
            node_labels,
        })
    }
}

fn check_messages(spec: &RunSpec, workload: &Workload) -> Result<(), RunError> {
    let length = spec.window.warmup.saturating_add(spec.window.duration);
    suitability::too_many_messages(workload, length).map_or(Ok(()), |sentence| {
        Err(RunError::input(sentence).hint("use more devices of a lower rate each, or a shorter `--duration`"))
    })
}

/// A fleet that its protocols can carry, and whose clients can be distinguished. The number of clients at sites of nodes that
/// have not joined is unknown: then these are checked in [`PreparedRun::gather`].
pub(crate) fn checked_fleet(
    workload: &Workload,
    protocol_pair: ProtocolPair,
    wanted: &CheckedTarget,
    fleet: Fleet,
    sites_are_known: bool,
) -> Result<Arc<Fleet>, RunError> {
    let fleet = suitability::fleet(workload, protocol_pair, fleet).map_err(unsuitable)?;
    if !sites_are_known {
        return Ok(fleet);
    }
    if matches!(wanted, CheckedTarget::Brokerless { .. }) {
        brokerless::check_listeners(&protocol_pair.subscribe.capabilities, fleet.subscribers().len())?;
    }
    if let CheckedTarget::Started { definition, options } = wanted {
        offers::check_sessions(definition, options, suitability::sessions(workload, &fleet))?;
    }
    identities::check(workload, &fleet, wanted)?;
    Ok(fleet)
}

/// The error for a workload that the protocol cannot carry.
fn unsuitable(lacks: String) -> RunError {
    RunError::unsupported(lacks).hint(
        "`pubmark list protocols NAME` shows what one can do; `--qos` sets the level of all devices and subscribers",
    )
}

fn not_loaded(error: LoadError, name: &str) -> RunError {
    match error {
        LoadError::NotFound { ref name, .. } if experiment::names().contains(&name.as_str()) => {
            RunError::input(format!("`{name}` is an experiment, not a workload"))
                .hint(format!("`pubmark experiment {name}`; `pubmark list workloads`"))
        }
        LoadError::NotFound { ref name, ref hint } => {
            RunError::input(format!("there is no workload `{name}`")).hint(hint.clone())
        }
        LoadError::Link { message, hint } | LoadError::Group { message, hint } => RunError::input(message).hint(hint),
        LoadError::Unreadable { .. } => RunError::from_error(ErrorKind::Input, &error)
            .hint("give a workload file, or a built-in one: `pubmark list workloads`"),
        found => RunError::in_file(found).during(format!("failed to load the workload `{name}`")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::target;

    #[test]
    fn a_warm_up_that_is_shorter_than_the_systems_is_noted_and_can_be_raised() {
        let spec = |system: &str, warmup_s: u64| {
            let mut spec = RunSpec::new("hello");
            spec.target.system = Some(system.to_owned());
            spec.window.warmup = Duration::from_secs(warmup_s);
            spec
        };
        let note = |system: &str, warmup_s: u64| {
            let checked = spec(system, warmup_s).check(&Host::with_program("pubmark")).unwrap();
            checked.notes().into_iter().find(|note| note.contains("until it is warm"))
        };
        assert_eq!(
            note("artemis", 5).as_deref(),
            Some(
                "`Apache ActiveMQ Artemis` needs 20 s of load until it is warm, and the warm-up has 5 s: the run measures it cold \
                 (`--warmup 20s`)"
            )
        );
        assert_eq!((note("artemis", 20), note("mosquitto", 0)), (None, None));
        let warm = |system: &str| target::warm_up(&spec(system, 0), Duration::from_secs(1)).unwrap().as_secs();
        assert_eq!((warm("artemis"), warm("mosquitto")), (20, 1));
    }
}
