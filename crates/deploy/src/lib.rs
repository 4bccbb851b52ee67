//! Files by which an orchestrator deploys a run: the coordinator, the nodes that send and receive, and the system.
//!
//! An [`Order`] and a run make a [`Deployment`], which contains the specification of the run for its coordinator. The
//! specification is one of the coordinator's secrets, as a workload may contain passwords.

mod apply;
mod archive;
mod compose;
mod kubectl;
mod kubernetes;
mod order;
pub mod pod;
mod pods;
pub mod scheduling;
pub mod ssh;
mod transfer;
mod writing;
mod yaml;

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pubmark_cluster::credentials::{self, Files};
use pubmark_model::fleet::ConnectionsOnNodes;
use pubmark_model::load::{has_keys, names_other_files};
use pubmark_model::placement::{Labels, NodeLabels};
use pubmark_model::secret::{Secret, without_password};
use pubmark_model::workload::Workload;
use pubmark_record::record::LimitInfo;
use pubmark_runner::spec::{Connection, Netem, PlacedSystem};
use pubmark_runner::{CheckedRun, ErrorKind, Host, POD, RunError, RunSpec, WorkloadSource, labels_in_turn, log_in};
use pubmark_systems::Definition;
use pubmark_systems::launch::Rendered;
use pubmark_systems::limits::ResourceLimits;

pub use apply::{Applied, Collected};
pub use kubectl::Cluster;
pub use order::Order;
pub use scheduling::Scheduling;

/// Port of the coordinator.
const COORDINATOR_PORT: u16 = 7700;
/// Folder of the credentials in pubmark's containers.
const CREDENTIALS: &str = "/pubmark/credentials";
/// Files among the coordinator's secrets: the specification of the run, and the password of its log-in.
const SPEC_FILE: &str = "run.yaml";
const PASSWORD_FILE: &str = "password";
/// User ID of pubmark's containers; no machine has an account with this ID.
const USER: u32 = 65_532;
/// User ID of the observer; no other container uses it.
const OBSERVER: u32 = USER - 1;
/// Capabilities that a node needs to emulate links: to create namespaces and interfaces in them, and real-time priority for
/// the emulator.
const LINK_CAPABILITIES: [&str; 3] = ["NET_ADMIN", "SYS_ADMIN", "SYS_NICE"];
/// Device from which the emulator in user space reads its packets.
const TUNNELS: &str = "/dev/net/tun";
/// Folder of the coordinator's results in its pod.
const RESULTS: &str = "/pubmark/results";
/// Longest wait of the coordinator for nodes; it includes the time to pull images.
const JOIN_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait of the coordinator for the system; it includes the time to pull images.
const SYSTEM_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait of a coordinator until its results are collected, from the end of its run or from the last bytes that it sent.
const COLLECT_LIMIT: Duration = Duration::from_secs(600);
/// Time of a repetition beside its phases and the start of its connections: to wait for the last ones, to merge its results, and to
/// write them.
const BESIDE_PHASES: Duration = Duration::from_secs(300);

/// A system as a container of a deployment.
#[derive(Clone)]
pub struct SystemContainer {
    /// Its image, arguments and files.
    pub rendered: Rendered,
    /// Its configuration profile, as recorded: `default` or `tuned`.
    pub profile: String,
    /// Its resource limits.
    pub limits: Option<ResourceLimits>,
    /// An observer container beside it measures its CPU and memory.
    pub observed: bool,
}

/// A run with everything that an orchestrator deploys for it.
#[derive(Clone)]
pub struct Deployment {
    /// Name of the run: letters, digits and `-`.
    pub name: String,
    /// The name with an ID that is unique to the run; names of cluster objects begin with it.
    pub instance: String,
    /// Namespace of the cluster; the one of `kubectl`, if none.
    pub namespace: Option<String>,
    /// On which machines of the cluster its pods are.
    pub scheduling: Scheduling,
    /// The system; `None` if it is not part of the deployment but at an endpoint.
    pub system: Option<SystemContainer>,
    /// Resource limits of each node.
    pub node_limits: Option<ResourceLimits>,
    /// Resource limits of the coordinator.
    pub coordinator_limits: Option<ResourceLimits>,
    /// Image of pubmark.
    pub image: String,
    /// Number of nodes.
    pub nodes: u16,
    /// Labels of each node, which the placement of groups uses.
    labels: Vec<Labels>,
    /// How nodes emulate links; `None` if no client is behind a link.
    links: Option<Netem>,
    /// The secrets of the coordinator, with the specification of the run, and the secrets of the nodes.
    secrets: [Files; 2],
    /// Length of all repetitions together.
    length: Duration,
    kind: Kind,
}

/// Name and text of a file.
pub type File = (String, String);

/// The orchestrator that reads the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `docker compose` or `podman-compose`: all containers run on one machine.
    Compose,
    /// Kubernetes, by `kubectl create`.
    Kubernetes,
}

impl Deployment {
    /// A deployment of a run on N nodes, with new certificates. `spec` specifies the run. This function fills in its nodes,
    /// and the endpoint of `system` if the deployment includes one.
    ///
    /// # Errors
    /// The password of the log-in cannot be read, or the specification cannot be serialized.
    pub(crate) fn new(
        kind: Kind,
        name: &str,
        image: &str,
        nodes: u16,
        spec: &RunSpec,
        system: Option<SystemContainer>,
    ) -> Result<Deployment, RunError> {
        let mut secrets = credentials::fresh(credentials::VALID_DAYS)
            .map_err(|error| RunError::from_error(ErrorKind::Internal, &error))?;
        let mut spec = spec.self_contained();
        refuse_local_files(&spec)?;
        refuse_loopback(&spec)?;
        let asked = &spec.connection;
        let has_password = asked.password.is_some() || asked.password_env.is_some() || asked.password_file.is_some();
        if let Some(log_in) = log_in::of(asked)?.filter(|_| has_password) {
            let connection = &mut spec.connection;
            (connection.password, connection.password_env) = (None, None);
            connection.password_file = Some(Path::new(CREDENTIALS).join(PASSWORD_FILE));
            secrets[0].push((PASSWORD_FILE, format!("{}\n", log_in.password.expose())));
        }
        let local = spec.connection.clone();
        secrets[0].extend(move_tls_files(&mut spec.connection)?);
        spec.nodes.nodes = Some(nodes);
        spec.nodes.listen = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, COORDINATOR_PORT)));
        spec.nodes.credentials = Some(CREDENTIALS.into());
        spec.nodes.join_limit = Some(JOIN_LIMIT);
        let instance = format!("{name}-{}", id());
        let mut is_observed = false;
        if let Some(system) = &system {
            let host = if kind == Kind::Kubernetes { format!("{instance}-system") } else { "system".to_owned() };
            let SystemContainer { rendered, profile, limits, observed } = system;
            spec.target.endpoint = Some(rendered.endpoint.url(&host));
            let of_subscribers = rendered.second_endpoint.as_ref().map(|endpoint| endpoint.url(&host));
            spec.target.subscribe_endpoint = spec.target.subscribe_endpoint.or(of_subscribers);
            let limits = limits.as_ref().map(|limits| LimitInfo {
                requested: limits.requested.clone(),
                cpu: limits.cpu,
                memory_bytes: limits.memory_bytes,
                held_by: "container".to_owned(),
                ..LimitInfo::default()
            });
            spec.target.placed = Some(PlacedSystem {
                image: rendered.image.clone(),
                profile: profile.clone(),
                limits,
                deviations: rendered.deviations.clone(),
                configuration: rendered.configuration().map(str::to_owned),
            });
            is_observed = *observed;
        }
        spec.nodes.observers = is_observed.then_some(1);
        // The image does not contain the file of a definition: the record then has the endpoint only.
        spec.target.system = spec.target.system.filter(|system| Definition::names().contains(&system.as_str()));
        let workload = Arc::new(spec.load()?);
        refuse_unusable_outputs(kind, &spec, &workload)?;
        let labels = labels_in_turn(&std::mem::take(&mut spec.nodes.node_labels), &workload, nodes)?;
        let links = (!workload.links_in_use().is_empty()).then_some(spec.load.netem);
        let checked = check(&spec, &local, workload)?;
        secrets[0].push((SPEC_FILE, spec.to_yaml_with_passwords()?));
        let window = &spec.window;
        let phases = [connecting(&checked, &labels), window.warmup, window.duration, window.drain, BESIDE_PHASES];
        let repetition = phases.into_iter().fold(Duration::ZERO, Duration::saturating_add);
        Ok(Deployment {
            name: name.to_owned(),
            instance,
            namespace: None,
            scheduling: Scheduling::default(),
            system,
            node_limits: None,
            coordinator_limits: None,
            image: image.to_owned(),
            nodes,
            labels,
            links,
            secrets,
            length: repetition.saturating_mul(spec.repetitions),
            kind,
        })
    }

    /// Name of an object of a cluster.
    pub fn part(&self, part: &str) -> String {
        format!("{}-{part}", self.instance)
    }

    /// Time after which the whole run must have ended: the sum of the limits of all its waits, and of its repetitions.
    pub fn deadline(&self) -> Duration {
        [SYSTEM_LIMIT, JOIN_LIMIT, COLLECT_LIMIT].into_iter().fold(self.length, Duration::saturating_add)
    }

    /// Cluster objects, as `kind/name`, that are removed together with the coordinator's Job.
    pub fn owned(&self) -> Vec<String> {
        kubernetes::owned(self)
    }

    /// The files for the orchestrator.
    pub fn files(&self) -> Vec<File> {
        match self.kind {
            Kind::Compose => compose::files(self),
            Kind::Kubernetes => kubernetes::files(self),
        }
    }

    /// Arguments of the coordinator in a pod. It waits until its results are collected.
    fn pod_words(&self) -> Vec<String> {
        let spec = format!("{CREDENTIALS}/{SPEC_FILE}");
        let seconds = |time: Duration| format!("{}s", time.as_secs());
        let mut words = ["pod", "run", &spec, "--results", RESULTS, "--collect-limit", &seconds(COLLECT_LIMIT)]
            .map(str::to_owned)
            .to_vec();
        if let Some(system) = &self.system {
            let address = format!("{}:{}", self.part("system"), system.rendered.endpoint.port);
            words.extend(["--system", &address, "--system-limit", &seconds(SYSTEM_LIMIT)].map(str::to_owned));
            words.extend(system.rendered.datagrams.then(|| "--datagrams".to_owned()));
        }
        words
    }

    /// Arguments of the coordinator.
    fn coordinator_words(&self) -> Vec<String> {
        let spec = format!("{CREDENTIALS}/{SPEC_FILE}");
        ["run", &spec, "--out", "/tmp/runs", "--json", "--quiet"].map(str::to_owned).to_vec()
    }

    /// Arguments of an observer of the system, in a container that shares the system's process namespace.
    fn observer_words(&self, coordinator: &str) -> Vec<String> {
        let mut words = self.join_words(coordinator);
        words.extend(["--name", "observer", "--observe", POD].map(str::to_owned));
        words
    }

    /// Arguments of a node or an observer.
    fn join_words(&self, coordinator: &str) -> Vec<String> {
        let join = format!("{coordinator}:{COORDINATOR_PORT}");
        ["node", "--join", &join, "--credentials", CREDENTIALS].map(str::to_owned).to_vec()
    }

    /// Arguments of a node.
    fn node_words(&self, coordinator: &str, name: Option<&str>) -> Vec<String> {
        let mut words = self.join_words(coordinator);
        words.push("--once".to_owned());
        words.extend(name.map(|name| ["--name".to_owned(), name.to_owned()]).into_iter().flatten());
        words
    }
}

/// A random ID of six digits. If another run has the same one, the cluster refuses the second.
fn id() -> String {
    format!("{:06x}", RandomState::new().build_hasher().finish() & 0xff_ffff)
}

/// Makes the files of certificates and keys that a run names secrets of the coordinator, from which its nodes get them.
fn move_tls_files(connection: &mut Connection) -> Result<Files, RunError> {
    let named = [
        ("--tls-ca", "tls-ca.pem", &mut connection.tls_ca),
        ("--tls-cert", "tls-cert.pem", &mut connection.tls_cert),
        ("--tls-key", "tls-key.pem", &mut connection.tls_key),
    ];
    let mut secrets = vec![];
    for (option, name, path) in named {
        let Some(path) = path else { continue };
        let text = fs::read_to_string(&*path).map_err(|error| {
            RunError::from_error(ErrorKind::Input, &error)
                .during(format!("failed to read `{}` ({option})", path.display()))
                .hint("the path of a PEM file on this machine")
        })?;
        secrets.push((name, text));
        *path = Path::new(CREDENTIALS).join(name);
    }
    Ok(secrets)
}

/// Longest time that a deadline has for connections: the cluster counts seconds, and clocks end.
const LONGEST_CONNECT: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Time in which a run starts its connections: those of all clients at the run's rate.
fn connecting(checked: &CheckedRun, labels: &[Labels]) -> Duration {
    let nodes = NodeLabels { nodes: labels.len() as u16, labels };
    let second = checked.protocol_pair.second_connection();
    let ConnectionsOnNodes { all, .. } = ConnectionsOnNodes::of(&checked.workload, nodes, second);
    let per_s = checked.spec.connection.connects.unwrap_or_default().per_s();
    let seconds = (all.devices + all.subscribers) as f64 / per_s;
    Duration::try_from_secs_f64(seconds).map_or(LONGEST_CONNECT, |needed| needed.min(LONGEST_CONNECT))
}

/// Refuses what the coordinator would refuse, except host names that cannot be resolved and limits of machines: only its machine knows
/// them.
/// `local` has the files of certificates and keys on this machine.
fn check(spec: &RunSpec, local: &Connection, workload: Arc<Workload>) -> Result<CheckedRun, RunError> {
    let mut here = spec.clone();
    here.connection.tls_ca.clone_from(&local.tls_ca);
    here.connection.tls_cert.clone_from(&local.tls_cert);
    here.connection.tls_key.clone_from(&local.tls_key);
    for url in [&mut here.target.endpoint, &mut here.target.subscribe_endpoint].into_iter().flatten() {
        *url = with_host(url, &Ipv4Addr::LOCALHOST.to_string());
    }
    // The password is among the coordinator's secrets by now, so its file is not needed.
    here.connection.password_file = None;
    here.connection.password = here.connection.user.as_ref().map(|_| Secret::new("checked elsewhere"));
    let checked = here.check_loaded(workload, &Host::this())?;
    checked.check_for_other_machines()?;
    Ok(checked)
}

/// Refuses an endpoint at a loopback address, which leads each container to itself.
fn refuse_loopback(spec: &RunSpec) -> Result<(), RunError> {
    let target = &spec.target;
    let urls = [
        ("--endpoint", &target.endpoint),
        ("--subscribe-endpoint", &target.subscribe_endpoint),
        ("--node-exporter", &target.node_exporter),
    ];
    let is_loopback = |url: &str| {
        let host = url[host_of(url)].trim_start_matches('[').trim_end_matches(']');
        let is_own = |address: IpAddr| address.to_canonical().is_loopback() || address.is_unspecified();
        host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_own)
    };
    let found =
        urls.into_iter().find_map(|(option, url)| Some((option, url.as_deref().filter(|url| is_loopback(url))?)));
    match found {
        Some((option, url)) => {
            Err(RunError::input(format!("`{option} {}` leads each container to itself", without_password(url)))
                .hint(format!("`{option}` with an address of the system's machine that the containers reach")))
        }
        None => Ok(()),
    }
}

/// Where a URL has its host, without the port.
fn host_of(url: &str) -> Range<usize> {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |at| begin + at);
    let begin = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    let port = match url[begin..end].rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => end - port.len() - 1,
        _ => end,
    };
    begin..port
}

/// A URL with another host; its scheme, log-in and port stay.
fn with_host(url: &str, host: &str) -> String {
    let Range { start, end } = host_of(url);
    format!("{}{host}{}", &url[..start], &url[end..])
}

/// Refuses a message log that stays in a container, and metrics whose programs no container has.
fn refuse_unusable_outputs(kind: Kind, spec: &RunSpec, workload: &Workload) -> Result<(), RunError> {
    if kind == Kind::Compose && spec.message_log.is_some() {
        return Err(RunError::unsupported("the message log would stay in the coordinator's container, which ends")
            .hint("`pubmark deploy kubernetes --apply --wait` collects it, `pubmark deploy ssh` writes it here"));
    }
    if !spec.metrics.is_empty() || !workload.metrics.is_empty() {
        return Err(RunError::unsupported("metrics of your own start programs, which no container has")
            .hint("compute them from the message log (`--message-log`) that a run in Kubernetes leaves; or leave the metrics out"));
    }
    Ok(())
}

/// Refuses a workload that names files or variables of this machine, as the coordinator's container does not have them.
fn refuse_local_files(spec: &RunSpec) -> Result<(), RunError> {
    let text = match &spec.workload {
        WorkloadSource::Inline { text, .. } => text,
        WorkloadSource::Named(_) => "",
    };
    let settings = || spec.load.set.iter().map(|(path, value)| (path.as_str(), value.as_str()));
    if names_other_files(text, &spec.load.set, &spec.load.files) {
        return Err(RunError::unsupported("the workload names a file of this machine, and the run is on others").hint(
            "write log-ins into the workload itself; certificates for each client, and files of sizes above 1 MB, cannot be deployed",
        ));
    }
    if has_keys(&["password_env", "key_env"], text, settings()) {
        return Err(RunError::unsupported("the workload names a variable of this machine, and the run is on others")
            .hint("`--user` and `--password-env` of this call become a secret of the deployment"));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pubmark_runner::spec::ConnectRate;

    use super::*;
    use crate::order::tests::order;

    #[test]
    fn the_deadline_has_time_for_the_connections_of_each_repetition() {
        let text = "name: w\ndevices: [{name: a, count: 7, every: 1s, payload: 30B, topic: 'a/{index}'}]\n\
                    subscribers: [{name: b, filters: ['#']}]\nplacement: {subscribers: once}\n";
        let deadline = |connects: &str, repetitions: u32| {
            let mut spec = RunSpec::new("w");
            spec.workload = WorkloadSource::Inline {
                file_name: "w.yaml".to_owned(),
                text: text.to_owned(),
                passwords_left_out: false,
            };
            spec.connection.connects = Some(ConnectRate::parse(connects).unwrap());
            spec.repetitions = repetitions;
            order().deployment(spec).unwrap().deadline()
        };
        // Eight connections take 16 s at this rate and 8 s at the other one.
        for repetitions in [1, 3] {
            let longer = deadline("0.5/s", repetitions) - deadline("1/s", repetitions);
            assert_eq!(longer, Duration::from_secs(8) * repetitions);
        }
    }

    #[test]
    fn the_host_of_a_url_is_replaced_and_nothing_else() {
        for (url, expected) in [
            ("mqtt://mqtt", "mqtt://H"),
            ("mqtt://mqtt:1883", "mqtt://H:1883"),
            ("mqtts://ann:w:o@broker.example:8883/x", "mqtts://ann:w:o@H:8883/x"),
            ("ws://[2001:db8::1]/mqtt", "ws://H/mqtt"),
            ("ws://[2001:db8::1]:80/mqtt", "ws://H:80/mqtt"),
        ] {
            assert_eq!(with_host(url, "H"), expected, "{url}");
        }
    }

    #[test]
    fn an_endpoint_of_this_machine_is_refused() {
        let refused = |url: &str| {
            let mut spec = RunSpec::new("hello");
            spec.target.endpoint = Some(url.to_owned());
            refuse_loopback(&spec).map_err(|error| error.to_string())
        };
        for url in
            ["mqtt://localhost:1883", "mqtt://127.0.0.1", "ws://[::1]:80/mqtt", "mqtt://0.0.0.0", "mqtt://LOCALHOST"]
        {
            assert_eq!(refused(url), Err(format!("`--endpoint {url}` leads each container to itself")));
        }
        assert!(!refused("mqtt://ann:word@localhost").unwrap_err().contains("word"));
        for url in ["mqtt://broker.example", "mqtt://10.0.0.5:1883", "ws://[2001:db8::1]/mqtt"] {
            assert_eq!(refused(url), Ok(()));
        }
    }

    #[test]
    fn a_file_of_this_machine_is_refused_wherever_it_is_named() {
        assert_eq!(refuse_local_files(&RunSpec::new("hello")).map_err(|error| error.to_string()), Ok(()));
        let mut by_setting = RunSpec::new("hello");
        by_setting.load.set = vec![("devices.0.credentials.file".to_owned(), "devices.csv".to_owned())];
        let mut in_text = RunSpec::new("hello");
        in_text.workload = WorkloadSource::Inline {
            file_name: "w.yaml".to_owned(),
            text: "devices: [{name: a, payload: {sizes: {file: s.csv}}}]".to_owned(),
            passwords_left_out: false,
        };
        for spec in [by_setting, in_text] {
            let error = refuse_local_files(&spec).unwrap_err().to_string();
            assert!(error.contains("the workload names a file of this machine"), "{error}");
        }
    }
}
