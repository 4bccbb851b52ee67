//! The settings of a deployment, as a user gives them, and the conversion of a run to one that can be deployed.

use pubmark_model::placement::keys;
use pubmark_runner::spec::TargetSpec;
use pubmark_runner::{ErrorKind, RunError, RunSpec, brokerless, protocol_pair, target};
use pubmark_systems::launch::{Rendered, rendered};
use pubmark_systems::limits::ResourceLimits;
use pubmark_systems::{Definition, StartOptions};

use crate::{Deployment, Kind, SystemContainer};

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
    /// Protocol of devices and subscribers, unused if the run has an endpoint. Default: MQTT 5 if the system supports it,
    /// otherwise its first protocol.
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
        let spec = self.placeable(spec)?;
        let has_endpoint = spec.target.endpoint.is_some();
        let system = if has_endpoint { None } else { self.container(&target::definition(&self.system)?)? };
        let mut deployment = Deployment::new(self.kind, &self.name, &self.image, self.nodes, &spec, system)?;
        let some = |limits: &Option<ResourceLimits>| limits.clone().filter(|limits| !limits.is_empty());
        deployment.namespace = self.namespace.clone();
        deployment.coordinator_limits = some(&self.coordinator_limits);
        deployment.node_limits = some(&self.node_limits);
        Ok(deployment)
    }

    /// The run in a form that can be deployed: with the system of this order, unless it has an endpoint.
    fn placeable(&self, mut spec: RunSpec) -> Result<RunSpec, RunError> {
        if spec.target.placed.take().is_some() {
            // The `run.yaml` of an earlier deployment names a system and an observer that no longer exist.
            spec.target.endpoint = None;
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
            spec.protocols.protocol = Some(self.protocol_of(&target::definition(&self.system)?));
        }
        Ok(spec)
    }

    fn protocol_of(&self, definition: &Definition) -> String {
        let first = || match definition.protocols.contains_key(USUAL_PROTOCOL) {
            true => USUAL_PROTOCOL.to_owned(),
            false => definition.protocols.keys().next().cloned().unwrap_or_default(),
        };
        self.protocol.clone().unwrap_or_else(first)
    }

    /// The system's container; `None` for middleware without a broker.
    fn container(&self, definition: &Definition) -> Result<Option<SystemContainer>, RunError> {
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
        Ok(Some(SystemContainer { rendered: self.rendered(definition)?, profile, limits, observed }))
    }

    /// The system as a container.
    fn rendered(&self, definition: &Definition) -> Result<Rendered, RunError> {
        let start = StartOptions {
            profile: self.profile.clone(),
            image: self.system_image.clone(),
            ..StartOptions::new(&self.protocol_of(definition))
        };
        rendered(definition, &start).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error)
                .hint("`pubmark list systems NAME` says whether one runs in a container; or `-- --endpoint URL`")
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;
    use pubmark_runner::spec::PlacedSystem;

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
    fn a_run_that_was_placed_is_placed_again_with_the_system_of_the_order() {
        let mut spec = RunSpec::new("hello");
        spec.target.placed = Some(PlacedSystem::default());
        spec.target.endpoint = Some("mqtt://gone:1883".to_owned());
        spec.nodes.observers = Some(1);
        let placeable = order().placeable(spec).unwrap();
        assert_eq!((placeable.target.system.as_deref(), placeable.target.endpoint), (Some("mosquitto"), None));
        assert_eq!((placeable.target.placed, placeable.nodes.observers), (None, None));
        assert_eq!(placeable.protocols.protocol.as_deref(), Some("mqtt5"));
    }
}
