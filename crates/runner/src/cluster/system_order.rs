//! The part of a specification that a node needs to start the system of a run.

use std::net::Ipv4Addr;

use pubmark_model::workload::Credentials;
use pubmark_protocols::ProtocolPair;

use crate::error::RunError;
use crate::spec::{Connection, Nodes, Protocols, RunSpec, TargetSpec, WorkloadSource};
use crate::system_node;

/// What a node may start: a built-in system, with those settings that only a run has. All other parts of a specification (a program of the
/// user, an image, files and variables of this machine, certificates of clients) are removed, whatever their origin.
pub fn of_system(spec: &RunSpec, protocol_pair: [String; 2], login: Option<Credentials>, address: Ipv4Addr) -> RunSpec {
    let TargetSpec { system, profile, transport, back_end, topology, limit, strict_defaults, .. } = spec.target.clone();
    let target =
        TargetSpec { system, profile, transport, back_end, topology, limit, strict_defaults, ..TargetSpec::default() };
    let [publish, subscribe] = protocol_pair;
    let protocols =
        Protocols { publish_protocol: Some(publish), subscribe_protocol: Some(subscribe), ..Protocols::default() };
    let (user, password) = login.map(|login| (login.user, login.password)).unzip();
    let nodes = Nodes {
        listen: None,
        announce: false,
        credentials: None,
        join_limit: None,
        observers: None,
        ..spec.nodes.clone()
    };
    let mut order = RunSpec::new("");
    order.workload = spec.workload.clone();
    order.load = spec.load.clone();
    order.window = spec.window.clone();
    order.target = TargetSpec { system_host: Some(address), ..target };
    (order.protocols, order.nodes) = (protocols, nodes);
    order.connection = Connection { user, password, tls: spec.connection.tls, ..Connection::default() };
    order.generator.pin = spec.generator.pin.iter().filter(|pin| pin.starts_with("system")).cloned().collect();
    order
}

/// Names of the protocols of a run's clients.
pub fn names(protocol_pair: ProtocolPair) -> [String; 2] {
    [protocol_pair.publish, protocol_pair.subscribe].map(|side| side.capabilities.name.to_owned())
}

/// Refuses an order that names something on the machine that would execute it.
///
/// # Errors
/// A system or a workload that is not built in, or a workload that names files or variables.
pub fn check_order(order: &RunSpec) -> Result<(), RunError> {
    system_node::check_system(order.target.system.as_deref(), "this node")?;
    if let WorkloadSource::Named(name) = &order.workload
        && (name.contains('/') || name.ends_with(".yaml"))
    {
        return Err(RunError::input(format!("the workload `{name}` is a file of another machine")));
    }
    system_node::check_workload(order)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::secret::Secret;

    use super::*;

    /// An order as the node validates it after a change by its coordinator.
    fn arrived(change: impl FnOnce(&mut RunSpec)) -> RunSpec {
        let mut spec = RunSpec::new("hello");
        change(&mut spec);
        let protocol_pair = ["mqtt5".to_owned(), "mqtt5".to_owned()];
        of_system(&spec, protocol_pair, None, Ipv4Addr::new(10, 0, 0, 9))
    }

    #[test]
    fn an_order_has_nothing_of_the_clients_and_cannot_name_a_program_an_image_or_a_secret() {
        let order = arrived(|spec| {
            (spec.nodes.nodes, spec.nodes.announce) = (Some(3), true);
            spec.target.node = Some("broker-1".to_owned());
            spec.target.image = Some("evil:latest".to_owned());
            spec.target.endpoint = Some("mqtt://elsewhere".to_owned());
            spec.protocols.client = Some("sh -c 'touch /tmp/owned'".to_owned());
            spec.connection.user = Some("ann".to_owned());
            spec.connection.password_file = Some("/etc/shadow".into());
            spec.connection.password_env = Some("TOKEN".to_owned());
            spec.connection.tls = true;
            spec.generator.pin = vec!["system=0".to_owned(), "generator=1".to_owned()];
        });
        assert_eq!(order.nodes, Nodes { nodes: Some(3), ..Nodes::default() });
        let target = &order.target;
        assert_eq!((&target.node, &target.image, &target.endpoint), (&None, &None, &None));
        assert_eq!(target.system_host, Some(Ipv4Addr::new(10, 0, 0, 9)));
        let encrypted = Connection { tls: true, ..Connection::default() };
        assert_eq!((order.protocols.client, order.connection), (None, encrypted));
        assert_eq!(order.generator.pin, ["system=0"]);
    }

    #[test]
    fn a_log_in_travels_as_a_secret() {
        let login = Some(Credentials { user: "ann".to_owned(), password: Secret::new("word") });
        let order = of_system(&RunSpec::new("hello"), [String::new(), String::new()], login, Ipv4Addr::LOCALHOST);
        assert_eq!(order.connection.user.as_deref(), Some("ann"));
        assert_eq!(order.connection.password.unwrap().expose(), "word");
    }

    #[test]
    fn what_an_order_names_on_the_nodes_own_disk_is_refused() {
        let refused = |change: fn(&mut RunSpec)| check_order(&arrived(change)).unwrap_err().to_string();
        assert!(refused(|spec| spec.target.system = Some("/tmp/own.yaml".to_owned())).contains("built-in systems"));
        assert!(refused(|spec| spec.workload = WorkloadSource::Named("/etc/shadow".to_owned())).contains("a file of"));
        let set = |spec: &mut RunSpec| {
            spec.load.set = vec![("devices.0.credentials.file".to_owned(), "/etc/passwd".to_owned())];
        };
        assert!(refused(set).contains("names a file or a variable"));
        check_order(&arrived(|spec| spec.target.system = Some("mosquitto".to_owned()))).unwrap();
    }
}
