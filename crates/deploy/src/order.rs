//! The settings of a deployment, as a user gives them, and the conversion of a run to one that can be deployed.

use pubmark_model::placement::keys;
use pubmark_model::units;
use pubmark_model::workload::Workload;
use pubmark_runner::spec::TargetSpec;
use pubmark_runner::{ErrorKind, RunError, RunSpec, brokerless, protocol_pair, target};
use pubmark_systems::launch::{Rendered, rendered};
use pubmark_systems::limits::ResourceLimits;
use pubmark_systems::{Definition, StartOptions, SystemError};

use crate::{Deployment, Kind, Scheduling, SystemContainer};

/// Longest name of a deployment. Names of cluster objects append an ID and a part, and have at most 63 characters.
const LONGEST_NAME: usize = 40;

/// Protocol of the clients if none is given.
const USUAL_PROTOCOL: &str = "mqtt5";

/// The settings of a deployment around a run.
#[derive(Clone, Debug)]
pub struct Order {
    /// The orchestrator that reads the files.
    pub kind: Kind,
    /// Name of the run: lower-case letters, digits and `-`.
    pub name: String,
    /// Image of pubmark.
    pub image: String,
    /// Number of nodes.
    pub nodes: u16,
    /// The system to run in a container, or middleware without a broker; unused if the run has an endpoint.
    pub system: String,
    /// Protocol of devices and subscribers, unused if the run has an endpoint. Default: the run's; if it has none, MQTT 5 if the
    /// system supports it, otherwise its first protocol.
    pub protocol: Option<String>,
    /// Image of the system, instead of the one in its definition.
    pub system_image: Option<String>,
    /// Configuration profile of the system.
    pub profile: String,
    /// An observer container measures CPU and memory of the system.
    pub observed: bool,
    /// Resource limits of the system.
    pub system_limits: Option<ResourceLimits>,
    /// Resource limits of each node.
    pub node_limits: Option<ResourceLimits>,
    /// Resource limits of the coordinator.
    pub coordinator_limits: Option<ResourceLimits>,
    /// Namespace of the cluster; the one of `kubectl`, if none.
    pub namespace: Option<String>,
    /// On which machines of the cluster its pods are.
    pub scheduling: Scheduling,
}

impl Order {
    /// Refuses a name that an orchestrator does not accept (RFC 1123).
    ///
    /// # Errors
    /// The name is not valid.
    pub fn check_name(&self) -> Result<(), RunError> {
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = |c: char| edge(c) || c == '-';
        let name = &self.name;
        if name.len() <= LONGEST_NAME && name.chars().all(fits) && name.starts_with(edge) && name.ends_with(edge) {
            return Ok(());
        }
        Err(RunError::input(format!("`{name}` cannot be the name of a deployment"))
            .hint(format!("up to {LONGEST_NAME} small letters, digits and `-`, for instance `--name home-qos1`")))
    }

    /// The deployment of this run.
    ///
    /// # Errors
    /// The run cannot be deployed this way, or the system cannot run in a container.
    pub fn deployment(&self, spec: RunSpec) -> Result<Deployment, RunError> {
        self.check_name()?;
        self.check_limits()?;
        self.scheduling.check()?;
        let (spec, workload) = self.placeable(spec)?;
        let system = match spec.target.endpoint {
            Some(_) => None,
            None => self.container(&target::definition(&self.system)?, &spec, &workload)?,
        };
        if system.is_none() && !self.scheduling.system_node_selector.is_empty() {
            return Err(RunError::input(
                "`--system-node-selector` selects the system's machine, and no system is deployed",
            )
            .hint("leave it out; `--node-selector` is for the nodes"));
        }
        let mut deployment = Deployment::new(self.kind, &self.name, &self.image, self.nodes, &spec, system)?;
        let some = |limits: &Option<ResourceLimits>| limits.clone().filter(|limits| !limits.is_empty());
        deployment.namespace = self.namespace.clone();
        deployment.scheduling = self.scheduling.clone();
        deployment.coordinator_limits = some(&self.coordinator_limits);
        deployment.node_limits = some(&self.node_limits);
        Ok(deployment)
    }

    /// Refuses a number of cores: a manifest limits CPU time and memory, and which cores a machine has is not known here.
    fn check_limits(&self) -> Result<(), RunError> {
        let given = [
            ("--limit", &self.system_limits),
            ("--node-limit", &self.node_limits),
            ("--coordinator-limit", &self.coordinator_limits),
        ];
        for (option, limits) in given {
            let Some((limits, cores)) = limits.as_ref().and_then(|limits| Some((limits, limits.cores?))) else {
                continue;
            };
            let cpu = limits.cpu.unwrap_or(f64::from(cores));
            let memory = limits.memory_bytes.map(|bytes| format!(",memory={}", units::written_size(bytes)));
            return Err(RunError::unsupported(format!(
                "`{option} {}` limits the number of cores to {cores}, and a deployed container can only be limited in CPU time and \
                 memory",
                limits.requested
            ))
            .hint(format!("`{option} cpu={cpu}{}` limits its CPU time", memory.unwrap_or_default())));
        }
        Ok(())
    }

    /// The run in a form that can be deployed, and its workload: with the system of this order, unless it has an endpoint.
    fn placeable(&self, mut spec: RunSpec) -> Result<(RunSpec, Workload), RunError> {
        if spec.target.placed.take().is_some() {
            // The `run.yaml` of an earlier deployment names a system and an observer that no longer exist.
            (spec.target.endpoint, spec.target.subscribe_endpoint) = (None, None);
            spec.nodes.observers = None;
        }
        let workload = spec.load()?;
        if self.kind == Kind::Kubernetes && !(spec.nodes.node_labels.is_empty() && keys(&workload).is_empty()) {
            return Err(RunError::input("nodes of one Kubernetes Job are alike, and groups are placed by labels of nodes")
                .hint("`deploy compose -- --node-label site=edge-1,cloud`; or start the nodes with `pubmark node --label`; or `-- --placement none`"));
        }
        if spec.target.endpoint.is_some() {
            brokerless::refuse_endpoint(self.nodes, protocol_pair::of(&spec, &workload)?)?;
        } else {
            // The settings in `run.yaml` for a system that pubmark starts do not apply: those of this order replace them.
            let TargetSpec { profile, image, limit, back_end, system_host, node, .. } = TargetSpec::default();
            let system = Some(self.system.clone());
            spec.target = TargetSpec { system, profile, image, limit, back_end, system_host, node, ..spec.target };
            spec.protocols.protocol = Some(self.protocol_of(&spec, &target::definition(&self.system)?));
        }
        Ok((spec, workload))
    }

    fn protocol_of(&self, spec: &RunSpec, definition: &Definition) -> String {
        let usual = || match definition.protocols.contains_key(USUAL_PROTOCOL) {
            true => USUAL_PROTOCOL.to_owned(),
            false => definition.protocols.keys().next().cloned().unwrap_or_default(),
        };
        self.protocol.clone().or_else(|| spec.protocols.protocol.clone()).unwrap_or_else(usual)
    }

    /// The system's container; `None` for middleware without a broker.
    fn container(
        &self,
        definition: &Definition,
        spec: &RunSpec,
        workload: &Workload,
    ) -> Result<Option<SystemContainer>, RunError> {
        let limits = self.system_limits.clone().filter(|limits| !limits.is_empty());
        if brokerless::has_no_broker(definition) {
            let given = [("--limit", limits.is_some()), ("--system-image", self.system_image.is_some())];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((option, _)) => Err(RunError::input(format!(
                    "`{option}` is for the container of a system, and clients of `{}` meet without one",
                    definition.name
                ))
                .hint("leave it out; `--node-limit` is for the nodes")),
                None => Ok(None),
            };
        }
        let (profile, observed) = (self.profile.clone(), self.observed);
        Ok(Some(SystemContainer { rendered: self.rendered(definition, spec, workload)?, profile, limits, observed }))
    }

    /// The system as a container that accepts the workload's largest message.
    fn rendered(&self, definition: &Definition, spec: &RunSpec, workload: &Workload) -> Result<Rendered, RunError> {
        let usual = self.protocol_of(spec, definition);
        let protocols = &spec.protocols;
        let publish = protocols.publish_protocol.as_ref().unwrap_or(&usual);
        let subscribe = protocols.subscribe_protocol.as_ref().unwrap_or(&usual);
        let start = StartOptions {
            second_protocol: (subscribe != publish).then(|| subscribe.clone()),
            profile: self.profile.clone(),
            image: self.system_image.clone(),
            packet_bytes: Some(target::largest_packet_bytes(workload)),
            ..StartOptions::new(publish)
        };
        rendered(definition, &start).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error).hint(match error {
                SystemError::Packet { .. } => "smaller payloads (`-- --payload 1KB`), or another system",
                SystemError::Protocol { .. } => "`--protocol` names one of them",
                SystemError::ProfileOfOthers { .. } => "`--protocol` names one of them; or another `--profile`",
                _ => "`pubmark list systems NAME` says whether one runs in a container; or `-- --endpoint URL`",
            })
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::SPEC_FILE;
    use pubmark_runner::WorkloadSource;
    use pubmark_runner::spec::{DevicePlacement, PlacedSystem};

    /// An order of Mosquitto and two nodes.
    pub(crate) fn order() -> Order {
        Order {
            kind: Kind::Kubernetes,
            name: "home".to_owned(),
            image: "pubmark:test".to_owned(),
            nodes: 2,
            system: "mosquitto".to_owned(),
            protocol: None,
            system_image: None,
            profile: "default".to_owned(),
            observed: true,
            system_limits: None,
            node_limits: None,
            coordinator_limits: None,
            namespace: None,
            scheduling: Scheduling::default(),
        }
    }

    #[test]
    fn a_name_is_one_that_an_orchestrator_takes() {
        for (name, fits) in [("home-qos1", true), ("a", true), ("", false), ("-a", false), ("Home", false)] {
            assert_eq!(Order { name: name.to_owned(), ..order() }.check_name().is_ok(), fits, "{name}");
        }
        assert!(Order { name: "a".repeat(41), ..order() }.check_name().is_err());
    }

    #[test]
    fn machines_of_a_system_that_is_not_deployed_cannot_be_selected() {
        let selected = vec![("pool".to_owned(), "broker".to_owned())];
        let scheduling = Scheduling { system_node_selector: selected, ..Scheduling::default() };
        let order = Order { scheduling, ..order() };
        assert!(order.deployment(RunSpec::new("hello")).is_ok());
        let mut elsewhere = RunSpec::new("hello");
        elsewhere.target.endpoint = Some("mqtt://broker.example".to_owned());
        let peers = Order { system: "zeromq-peers".to_owned(), ..order.clone() };
        let mut among_peers = RunSpec::new("hello");
        among_peers.load.qos = Some(0);
        for (order, spec) in [(&order, elsewhere), (&peers, among_peers)] {
            let Err(error) = order.deployment(spec) else { panic!("{order:?} is not refused") };
            assert!(error.to_string().contains("no system is deployed"), "{error}");
        }
    }

    #[test]
    fn a_run_that_was_placed_is_placed_again_with_the_system_of_the_order() {
        let mut spec = RunSpec::new("hello");
        spec.target.placed = Some(PlacedSystem::default());
        spec.target.endpoint = Some("mqtt://gone:1883".to_owned());
        spec.nodes.observers = Some(1);
        let (placeable, _) = order().placeable(spec).unwrap();
        assert_eq!((placeable.target.system.as_deref(), placeable.target.endpoint), (Some("mosquitto"), None));
        assert_eq!((placeable.target.placed, placeable.nodes.observers), (None, None));
        assert_eq!(placeable.protocols.protocol.as_deref(), Some("mqtt5"));
    }

    #[test]
    fn a_fleet_or_a_load_that_the_run_would_refuse_is_refused() {
        let refused = |spec: RunSpec| match order().deployment(spec) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it is deployed"),
        };
        let mut many = RunSpec::new("hello");
        (many.load.scale, many.nodes.devices) = (9_000_000, Some(DevicePlacement::Replicate));
        assert!(refused(many).starts_with("18000000 publishers are more than"));
        let mut fast = RunSpec::new("fast");
        fast.workload = WorkloadSource::Inline {
            file_name: "fast.yaml".to_owned(),
            text: "name: fast\ndevices: [{name: a, every: 1us, payload: 30B, topic: a}]\nsubscribers: [{name: b, filters: [a]}]\n"
                .to_owned(),
            passwords_left_out: false,
        };
        fast.window.duration = Duration::from_secs(7_200);
        assert!(refused(fast).contains("sequence numbers tell apart"));
    }

    #[test]
    fn a_number_of_cores_is_refused_as_no_manifest_can_limit_it() {
        let set = ResourceLimits {
            requested: "mq-bench-1".to_owned(),
            cpu: None,
            memory_bytes: Some(2 << 30),
            cores: Some(1),
        };
        let hint = |order: Order| {
            let Err(error) = order.deployment(RunSpec::new("hello")) else { panic!("{order:?} is not refused") };
            assert!(error.to_string().contains("limits the number of cores to 1"), "{error}");
            error.hint.unwrap()
        };
        for kind in [Kind::Compose, Kind::Kubernetes] {
            let system = hint(Order { kind, system_limits: Some(set.clone()), ..order() });
            assert_eq!(system, "`--limit cpu=1,memory=2GiB` limits its CPU time");
            assert!(hint(Order { kind, node_limits: Some(set.clone()), ..order() }).starts_with("`--node-limit cpu=1"));
        }
        let cpu = ResourceLimits { cores: None, cpu: Some(0.5), ..set };
        assert!(Order { system_limits: Some(cpu), ..order() }.deployment(RunSpec::new("hello")).is_ok());
    }

    #[test]
    fn the_protocol_is_that_of_the_order_then_that_of_the_run() {
        let with = |order: Option<&str>, run: Option<&str>| {
            let mut spec = RunSpec::new("hello");
            spec.protocols.protocol = run.map(str::to_owned);
            let order = Order { protocol: order.map(str::to_owned), ..self::order() };
            order.placeable(spec).unwrap().0.protocols.protocol.unwrap()
        };
        assert_eq!(with(None, None), "mqtt5");
        assert_eq!(with(None, Some("mqtt311")), "mqtt311");
        assert_eq!(with(Some("mqtt5"), Some("mqtt311")), "mqtt5");
        let mut spec = RunSpec::new("hello");
        spec.protocols.protocol = Some("nats".to_owned());
        let Err(error) = order().deployment(spec) else { panic!("the run's protocol was replaced") };
        assert!(error.to_string().contains("`mosquitto` does not speak nats"), "{error}");
    }

    /// A run of messages of this size.
    fn run_of(payload_bytes: u32) -> RunSpec {
        let mut spec = RunSpec::new("hello");
        spec.load.payload = Some(payload_bytes);
        spec
    }

    #[test]
    fn a_deployed_system_accepts_the_largest_message_or_is_refused() {
        let emqx = Order { system: "emqx".to_owned(), ..order() };
        let deviations = |spec: RunSpec| -> Vec<String> {
            let rendered = emqx.deployment(spec).unwrap().system.unwrap().rendered;
            rendered.deviations.into_iter().map(|deviation| deviation.name).collect()
        };
        let (small, large) = (deviations(run_of(100)), deviations(run_of(2_000_000)));
        assert_eq!(large.len(), small.len() + 1, "its limit of 1 MiB is raised, and recorded: {large:?}");
        let Err(error) = order().deployment(run_of(268_435_000)) else { panic!("no header fits into its packets") };
        assert!(error.to_string().contains("`mosquitto` takes 268435455 at most"), "{error}");
    }

    #[test]
    fn settings_of_a_profile_for_its_clients_are_in_their_endpoint() {
        let over = |protocol: &str| {
            let (protocol, profile) = (Some(protocol.to_owned()), "memory".to_owned());
            Order { kind: Kind::Compose, system: "nats".to_owned(), protocol, profile, ..order() }
                .deployment(RunSpec::new("hello"))
        };
        let deployment = over("jetstream").unwrap();
        let (_, spec) = deployment.secrets[0].iter().find(|(name, _)| *name == SPEC_FILE).unwrap();
        let endpoint = RunSpec::parse(spec).unwrap().target.endpoint;
        assert_eq!(endpoint.as_deref(), Some("nats://system:4222?storage=memory"));
        let Err(error) = over("mqtt311") else { panic!("clients over MQTT create no streams") };
        assert!(error.to_string().contains("is for clients over jetstream only"), "{error}");
        assert!(error.hint.unwrap().contains("`--protocol`"));
    }

    #[test]
    fn devices_and_subscribers_of_two_protocols_have_an_endpoint_each() {
        let endpoints = |system: &str, profile: &str, [publish, subscribe]: [&str; 2]| {
            let (protocol, profile) = (Some(publish.to_owned()), profile.to_owned());
            let order = Order { kind: Kind::Compose, system: system.to_owned(), protocol, profile, ..order() };
            let mut spec = RunSpec::new("hello");
            spec.load.qos = Some(0);
            spec.protocols.subscribe_protocol = Some(subscribe.to_owned());
            let deployment = order.deployment(spec).unwrap();
            let (_, spec) = deployment.secrets[0].iter().find(|(name, _)| *name == SPEC_FILE).unwrap();
            let target = RunSpec::parse(spec).unwrap().target;
            [target.endpoint, target.subscribe_endpoint].map(Option::unwrap_or_default)
        };
        let (plain, stored) = ("nats://system:4222", "nats://system:4222?storage=memory");
        assert_eq!(endpoints("nats", "memory", ["jetstream", "nats"]), [stored, plain]);
        assert_eq!(endpoints("nats", "memory", ["nats", "jetstream"]), [plain, stored]);
        assert_eq!(endpoints("nats", "default", ["mqtt311", "nats"]), ["mqtt://system:1883", plain]);
        assert_eq!(endpoints("nats", "default", ["nats", "nats"]), [plain, ""]);
    }

    #[test]
    fn settings_that_the_profile_changes_are_recorded() {
        let tuned = Order { profile: "tuned".to_owned(), ..order() };
        let deployment = tuned.deployment(RunSpec::new("hello")).unwrap();
        let (_, spec) = deployment.secrets[0].iter().find(|(name, _)| *name == SPEC_FILE).unwrap();
        let placed = RunSpec::parse(spec).unwrap().target.placed.unwrap();
        assert!(placed.deviations.iter().any(|deviation| deviation.name == "mosquitto-nodelay"), "{placed:?}");
        assert!(placed.configuration.unwrap().contains("set_tcp_nodelay true"));
    }
}
