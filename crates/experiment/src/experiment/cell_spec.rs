//! The run specification of a cell.

use std::path::Path;

use pubmark_model::experiment::{EndpointChoice, Experiment, Settings};
use pubmark_model::topology::Topology;
use pubmark_model::workload::Variant;
use pubmark_runner::spec::{BackEnd, Netem, Nodes, Reading};
use pubmark_runner::{ErrorKind, RunError, RunSpec};
use pubmark_systems::limits;

use crate::machines::Machines;

/// The run specification of a cell. Paths are relative to `folder`.
///
/// # Errors
/// The limits or the back end cannot be read.
pub fn of(
    experiment: &Experiment,
    settings: &Settings,
    protocol: &str,
    folder: &Path,
    machines: &Machines,
) -> Result<RunSpec, RunError> {
    let mut spec = RunSpec::new(&in_folder(&settings.workload, folder));
    spec.repetitions = experiment.repeat;
    spec.target.system = settings.system.as_deref().map(|system| in_folder(system, folder));
    match &settings.endpoint {
        Some(endpoint) => at_endpoint(&mut spec, endpoint, folder),
        None => started(&mut spec, experiment, settings, machines)?,
    }
    spec.protocols.protocol = Some(protocol.to_owned());
    spec.protocols.client.clone_from(&settings.client);
    let load = &mut spec.load;
    load.variant = match experiment.variant {
        Variant::Published => Reading::Published,
        Variant::Corrected => Reading::Corrected,
    };
    load.qos = settings.qos;
    load.scale = settings.scale;
    load.rate = settings.rate;
    load.payload = settings.payload_bytes;
    load.links = settings.link.iter().cloned().collect();
    load.faults = settings.fault.iter().cloned().collect();
    load.set.clone_from(&settings.set);
    load.seed = experiment.seed;
    let own = &experiment.generator;
    load.netem = if own.kernel_netem { Netem::Kernel } else { Netem::User };
    let generator = &mut spec.generator;
    (generator.shards, generator.realtime, generator.awake) = (own.shards, own.realtime, own.awake);
    generator.pin = experiment.pin.words();
    if settings.endpoint.is_some() && experiment.axes.system.iter().any(|choice| choice.endpoint.is_none()) {
        // These cores are those of the systems that other cells start.
        generator.pin.retain(|pin| !pin.starts_with("system="));
    }
    match machines.count() {
        Some(all) => spec.nodes = Nodes { nodes: Some(settings.nodes.unwrap_or(all)), ..machines.nodes.clone() },
        None => {
            spec.nodes = machines.nodes.clone();
            spec.nodes.local_nodes = settings.nodes.filter(|nodes| *nodes != 1);
        }
    }
    // Observers watch a system that is already running.
    spec.nodes.observers = machines.nodes.observers.filter(|_| settings.endpoint.is_some());
    let joins = spec.nodes.nodes.is_some() || spec.nodes.observers.is_some() || spec.target.node.is_some();
    if !joins {
        // The nodes that join are used by other cells.
        let Nodes { local_nodes, .. } = spec.nodes;
        spec.nodes = Nodes { local_nodes, ..Nodes::default() };
    }
    let window = &mut spec.window;
    (window.warmup, window.duration, window.drain) = (experiment.warmup, experiment.duration, experiment.drain);
    Ok(spec)
}

/// A target that pubmark starts.
fn started(
    spec: &mut RunSpec,
    experiment: &Experiment,
    settings: &Settings,
    machines: &Machines,
) -> Result<(), RunError> {
    let target = &mut spec.target;
    if let Some(profile) = &settings.profile {
        target.profile.clone_from(profile);
    }
    target.back_end = settings.back_end.as_deref().map(back_end).transpose()?;
    target.image.clone_from(&settings.image);
    let limit = settings.limit.as_deref().map(limits::parse).transpose();
    target.limit = limit.map_err(|error| RunError::from_error(ErrorKind::TooLarge, &error))?;
    target.topology = (settings.topology != Topology::ONE).then_some(settings.topology);
    target.strict_defaults = experiment.strict_defaults;
    target.node = settings.node.clone().or_else(|| machines.system_node.clone());
    target.system_host = machines.system_host.filter(|_| target.node.is_none());
    spec.connection.tls = settings.tls;
    Ok(())
}

/// A target that is already running. `strict_defaults` always holds for it, because its limits are not changed.
fn at_endpoint(spec: &mut RunSpec, endpoint: &EndpointChoice, folder: &Path) {
    let target = &mut spec.target;
    target.endpoint = Some(endpoint.url.clone());
    target.subscribe_endpoint.clone_from(&endpoint.subscribe_endpoint);
    target.node_exporter.clone_from(&endpoint.node_exporter);
    let file = |name: &Option<String>| name.as_ref().map(|name| folder.join(name));
    let connection = &mut spec.connection;
    connection.user.clone_from(&endpoint.user);
    connection.password_env.clone_from(&endpoint.password_env);
    connection.password_file = file(&endpoint.password_file);
    connection.tls_ca = file(&endpoint.tls_ca);
    connection.tls_insecure = endpoint.tls_insecure;
    connection.tls_cert = file(&endpoint.tls_cert);
    connection.tls_key = file(&endpoint.tls_key);
}

fn back_end(word: &str) -> Result<BackEnd, RunError> {
    match word {
        "process" => Ok(BackEnd::Process),
        "container" => Ok(BackEnd::Container),
        _ => Err(RunError::input(format!("there is no back end `{word}`: there are `process` and `container`"))),
    }
}

/// Whether the name of a workload or a system is the path of its file.
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".yaml")
}

/// A name is unchanged; a path is relative to the experiment's folder.
pub fn in_folder(name: &str, folder: &Path) -> String {
    if is_path(name) { folder.join(name).display().to_string() } else { name.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_model::experiment::{Pins, SystemChoice, cells, parse};
    use pubmark_runner::WorkloadSource;

    use super::*;

    #[test]
    fn a_cell_is_the_run_that_it_says() {
        let text = "{name: t, workload: ./w.yaml, seed: 7, duration: 2s, warmup: 0s, generator: {shards: 2, realtime: true, netem: kernel}, set: {every: 1s}, \
                    axes: {system: {system: mosquitto, profile: tuned}, qos: 2, scale: 3, rate: 0.5, nodes: 5, payload: 1KB, link: all=lte, fault: 'kill:at=1s,for=100ms', tls: true}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let (settings, folder) = (&cells(&experiment)[0].settings, Path::new("/folder"));
        let spec = of(&experiment, settings, "mqtt311", folder, &Machines::default()).unwrap();
        assert_eq!(spec.workload, WorkloadSource::Named("/folder/./w.yaml".to_owned()));
        let load = &spec.load;
        assert_eq!((load.seed, load.scale, load.qos, load.rate, load.payload), (7, 3, Some(2), 0.5, Some(1_000)));
        assert_eq!(
            (load.faults[0].to_string(), load.links[0].to_string()),
            ("kill:at=1s,for=100ms".into(), "all=lte".into())
        );
        assert_eq!((load.netem, &load.set[..]), (Netem::Kernel, &[("every".to_owned(), "1s".to_owned())][..]));
        assert_eq!((spec.target.system.as_deref(), spec.target.profile.as_str()), (Some("mosquitto"), "tuned"));
        assert_eq!(spec.protocols.protocol.as_deref(), Some("mqtt311"));
        assert!(spec.connection.tls && !spec.target.strict_defaults && spec.generator.realtime);
        assert_eq!((spec.nodes.local_nodes, spec.generator.shards), (Some(5), 2));
        assert_eq!((spec.window.duration.as_secs(), spec.window.warmup.as_secs()), (2, 0));
        assert_eq!(RunSpec::parse(&spec.to_yaml(&[]).unwrap()).unwrap(), spec);
    }

    #[test]
    fn a_cell_at_an_endpoint_has_its_log_in_and_uses_as_many_machines_as_it_says() {
        let text = "{name: t, workload: hello, strict_defaults: true, axes: {nodes: 2, system: {label: ours, system: emqx, \
                    endpoint: 'mqtts://host', user: ann, password_env: PW, tls_ca: ca.pem}}}";
        let experiment = parse("t.yaml", text, &|_, _| Ok(())).unwrap();
        let mut machines = Machines { system_host: Some([10, 0, 0, 1].into()), ..Machines::default() };
        (machines.nodes.nodes, machines.nodes.observers) = (Some(5), Some(1));
        let (settings, folder) = (&cells(&experiment)[0].settings, Path::new("/folder"));
        let spec = of(&experiment, settings, "mqtt5", folder, &machines).unwrap();
        let target = &spec.target;
        assert_eq!((target.system.as_deref(), target.endpoint.as_deref()), (Some("emqx"), Some("mqtts://host")));
        assert!(target.system_host.is_none() && !target.strict_defaults, "nothing is started");
        assert_eq!((spec.nodes.observers, &target.node), (Some(1), &None), "nor by a node");
        let connection = &spec.connection;
        assert_eq!((connection.user.as_deref(), connection.password_env.as_deref()), (Some("ann"), Some("PW")));
        assert_eq!(connection.tls_ca.as_deref(), Some(Path::new("/folder/ca.pem")));
        assert_eq!((spec.nodes.nodes, spec.nodes.local_nodes), (Some(2), None));
        let pinned = Experiment { pin: Pins { system: Some("0".to_owned()), generator: None }, ..experiment.clone() };
        let pins = |experiment: &Experiment| {
            let spec = of(experiment, settings, "mqtt5", folder, &machines).unwrap();
            spec.generator.pin
        };
        assert_eq!(pins(&pinned), ["system=0"], "which no cell can use, so it is refused");
        let mut beside = pinned;
        beside.axes.system.push(SystemChoice::default());
        assert!(pins(&beside).is_empty(), "another cell starts the system that has them");
        let all = Settings { nodes: None, endpoint: None, ..settings.clone() };
        let spec = of(&experiment, &all, "mqtt5", folder, &machines).unwrap();
        assert_eq!((spec.nodes.nodes, spec.target.system_host), (Some(5), machines.system_host));
        assert_eq!(spec.nodes.observers, None, "what is started is measured where it runs");
        machines.system_node = Some("broker-1".to_owned());
        let by_node = of(&experiment, &all, "mqtt5", folder, &machines).unwrap().target;
        assert_eq!((by_node.node.as_deref(), by_node.system_host), (Some("broker-1"), None));
        let of_its_own = Settings { node: Some("broker-2".to_owned()), ..all };
        let by_node = of(&experiment, &of_its_own, "mqtt5", folder, &machines).unwrap().target;
        assert_eq!(by_node.node.as_deref(), Some("broker-2"));
    }
}
