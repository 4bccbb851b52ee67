//! Files by which an orchestrator deploys a run: the coordinator, the nodes that send and receive, and the system.
//!
//! An [`Order`] and a run make a [`Deployment`], which holds the specification of the run that its coordinator makes. The specification is
//! one of the coordinator's secrets, as a workload may have passwords in it.

mod apply;
mod archive;
mod compose;
mod kubectl;
mod kubernetes;
mod order;
pub mod pod;
mod pods;
pub mod ssh;
mod writing;
mod yaml;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pubmark_cluster::credentials::{self, Files};
use pubmark_model::load::{has_keys, names_other_files};
use pubmark_model::placement::Labels;
use pubmark_model::secret::Secret;
use pubmark_model::workload::Workload;
use pubmark_record::record::LimitInfo;
use pubmark_runner::spec::{Netem, PlacedSystem};
use pubmark_runner::{ErrorKind, Host, RunError, RunSpec, WorkloadSource, labels_in_turn, log_in};
use pubmark_systems::Definition;
use pubmark_systems::launch::Rendered;
use pubmark_systems::limits::ResourceLimits;

pub use apply::{Applied, Collected};
pub use kubectl::Cluster;
pub use order::Order;

/// Port of the coordinator.
const COORDINATOR_PORT: u16 = 7700;
/// Where its secrets are in our own containers.
const CREDENTIALS: &str = "/pubmark/credentials";
/// Files among the coordinator's secrets: the specification, and the password of the run's log-in.
const SPEC_FILE: &str = "run.yaml";
const PASSWORD_FILE: &str = "password";
/// Whom our own containers run as: nobody that a machine knows.
const USER: u32 = 65_532;
/// What a node needs to emulate links: namespaces, interfaces in them, and real-time priority for the emulator.
const LINK_CAPABILITIES: [&str; 3] = ["NET_ADMIN", "SYS_ADMIN", "SYS_NICE"];
/// What the emulator in user space takes its packets from.
const TUNNELS: &str = "/dev/net/tun";
/// Where the coordinator's results are in its pod.
const RESULTS: &str = "/pubmark/results";
/// Longest wait of the coordinator for nodes: images are fetched meanwhile.
const JOIN_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait of the coordinator for the system, for the same reason.
const SYSTEM_LIMIT: Duration = Duration::from_secs(600);
/// Longest wait of a coordinator until its results are collected.
const COLLECT_LIMIT: Duration = Duration::from_secs(600);
/// What a repetition may take beside its phases: connecting a large fleet, merging its results, writing them.
const BESIDE_PHASES: Duration = Duration::from_secs(300);

/// A system as a container of a deployment.
#[derive(Clone)]
pub struct SystemContainer {
    /// Its image, arguments and files.
    pub rendered: Rendered,
    /// Its configuration, as recorded: `default` or `tuned`.
    pub profile: String,
    /// What it may use.
    pub limits: Option<ResourceLimits>,
    /// In a pod, an observer container beside it measures its CPU and memory.
    pub observed: bool,
}

/// What is placed.
#[derive(Clone)]
pub struct Deployment {
    /// Name of the run: letters, digits and `-`.
    pub name: String,
    /// The name with an id that no other run has: what objects of a cluster are called.
    pub instance: String,
    /// Namespace of a cluster; the one of `kubectl`, if none.
    pub namespace: Option<String>,
    /// The system; none if it is at an endpoint.
    pub system: Option<SystemContainer>,
    /// What each node may use.
    pub node_limits: Option<ResourceLimits>,
    /// What the coordinator may use.
    pub coordinator_limits: Option<ResourceLimits>,
    /// Image of pubmark.
    pub image: String,
    /// Nodes.
    pub nodes: u16,
    /// Labels of each, which the placement of groups looks at.
    labels: Vec<Labels>,
    /// What emulates links on nodes; `None` if no client is behind a link.
    links: Option<Netem>,
    /// The coordinator's secrets, its specification among them, and those of nodes.
    secrets: [Files; 2],
    /// Time of all repetitions.
    length: Duration,
    kind: Kind,
}

/// A file and its text.
pub type File = (String, String);

/// What reads the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `docker compose` or `podman-compose`: all on one machine.
    Compose,
    /// `kubectl create`.
    Kubernetes,
}

impl Deployment {
    /// A run on N nodes, with certificates made for it. `spec` says what the run is; where things are is filled in here: the
    /// nodes, and the endpoint of `system`, if one is placed.
    ///
    /// # Errors
    /// The log-in cannot be read, or the specification cannot be written.
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
        let asked = &spec.connection;
        let has_password = asked.password.is_some() || asked.password_env.is_some() || asked.password_file.is_some();
        if let Some(log_in) = log_in::of(asked)?.filter(|_| has_password) {
            let connection = &mut spec.connection;
            (connection.password, connection.password_env) = (None, None);
            connection.password_file = Some(Path::new(CREDENTIALS).join(PASSWORD_FILE));
            secrets[0].push((PASSWORD_FILE, format!("{}\n", log_in.password.expose())));
        }
        spec.nodes.nodes = Some(nodes);
        spec.nodes.listen = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, COORDINATOR_PORT)));
        spec.nodes.credentials = Some(CREDENTIALS.into());
        spec.nodes.join_limit = Some(JOIN_LIMIT);
        let instance = format!("{name}-{}", id());
        let mut is_observed = false;
        if let Some(system) = &system {
            let host = if kind == Kind::Kubernetes { format!("{instance}-system") } else { "system".to_owned() };
            let SystemContainer { rendered, profile, limits, observed } = system;
            spec.target.endpoint = Some(format!("{}://{host}:{}", rendered.scheme, rendered.port));
            let limits = limits.as_ref().map(|limits| LimitInfo {
                asked: limits.asked.clone(),
                cpu: limits.cpu,
                memory_bytes: limits.memory_bytes,
                held_by: "container".to_owned(),
                ..LimitInfo::default()
            });
            spec.target.placed = Some(PlacedSystem { image: rendered.image.clone(), profile: profile.clone(), limits });
            is_observed = *observed && kind == Kind::Kubernetes;
        }
        spec.nodes.observers = is_observed.then_some(1);
        // A definition's file is not in the image: the record then has the endpoint alone.
        spec.target.system = spec.target.system.filter(|system| Definition::names().contains(&system.as_str()));
        let workload = Arc::new(spec.load()?);
        let labels = labels_in_turn(&std::mem::take(&mut spec.nodes.node_labels), &workload, nodes)?;
        let links = (!workload.links_in_use().is_empty()).then_some(spec.load.netem);
        check(&spec, workload)?;
        secrets[0].push((SPEC_FILE, spec.to_yaml_with_passwords()?));
        let window = &spec.window;
        let phases = [window.warmup, window.duration, window.drain, BESIDE_PHASES];
        let repetition = phases.into_iter().fold(Duration::ZERO, Duration::saturating_add);
        Ok(Deployment {
            name: name.to_owned(),
            instance,
            namespace: None,
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

    /// The time after which all of it has ended, whatever happens: every wait of the run, one after the other.
    pub fn deadline(&self) -> Duration {
        [SYSTEM_LIMIT, JOIN_LIMIT, COLLECT_LIMIT].into_iter().fold(self.length, Duration::saturating_add)
    }

    /// What is removed with the coordinator's Job: the other objects of a cluster, as `kind/name`.
    pub fn owned(&self) -> Vec<String> {
        kubernetes::owned(self)
    }

    /// Its files for an orchestrator.
    pub fn files(&self) -> Vec<File> {
        match self.kind {
            Kind::Compose => compose::files(self),
            Kind::Kubernetes => kubernetes::files(self),
        }
    }

    /// Arguments of the coordinator in a pod, which waits until its results are collected.
    fn pod_words(&self) -> Vec<String> {
        let spec = format!("{CREDENTIALS}/{SPEC_FILE}");
        let seconds = |time: Duration| format!("{}s", time.as_secs());
        let mut words = ["pod", "run", &spec, "--results", RESULTS, "--collect-limit", &seconds(COLLECT_LIMIT)]
            .map(str::to_owned)
            .to_vec();
        if let Some(system) = &self.system {
            let address = format!("{}:{}", self.part("system"), system.rendered.port);
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

/// Six digits that hardly any other run has; where one has them, the cluster refuses the second.
fn id() -> String {
    format!("{:06x}", RandomState::new().build_hasher().finish() & 0xff_ffff)
}

/// Refuses what the coordinator would refuse, except host names that cannot be resolved: only its machine knows which ones can.
fn check(spec: &RunSpec, workload: Arc<Workload>) -> Result<(), RunError> {
    let mut here = spec.clone();
    for url in [&mut here.target.endpoint, &mut here.target.subscribe_endpoint].into_iter().flatten() {
        *url = with_host(url, &Ipv4Addr::LOCALHOST.to_string());
    }
    // The password is among the coordinator's secrets by now.
    here.connection.password_file = None;
    here.connection.password = here.connection.user.as_ref().map(|_| Secret::new("checked elsewhere"));
    here.check_loaded(workload, &Host::this()).map(drop)
}

/// A URL with another host: what stands between its log-in and its port.
fn with_host(url: &str, host: &str) -> String {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..].find(['/', '?']).map_or(url.len(), |at| begin + at);
    let begin = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    let port = match url[begin..end].rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => end - port.len() - 1,
        _ => end,
    };
    format!("{}{host}{}", &url[..begin], &url[port..])
}

/// Certificates and keys of this machine are not in the coordinator's container.
fn refuse_local_files(spec: &RunSpec) -> Result<(), RunError> {
    let connection = &spec.connection;
    let given = [
        ("--tls-ca", connection.tls_ca.is_some()),
        ("--tls-cert", connection.tls_cert.is_some()),
        ("--tls-key", connection.tls_key.is_some()),
    ];
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
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(RunError::unsupported(format!("`{option}` names a file of this machine, and the run is on others"))
                .hint("add the file to the written manifest, or `--tls-insecure`"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
