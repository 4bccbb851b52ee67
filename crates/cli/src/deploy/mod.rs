//! Files by which an orchestrator places a run: who leads, who sends and listens, and the system.

pub mod apply;
mod compose;
mod helm;
mod kubernetes;
mod yaml;

use pubmark_cluster::credentials::Files;
use pubmark_systems::launch::Rendered;
use pubmark_systems::limits::ResourceLimits;

/// Port of the coordinator.
const COORDINATOR_PORT: u16 = 7700;
/// Where things are in our own containers.
pub const CREDENTIALS: &str = "/pubmark/credentials";
const WORKLOAD: &str = "/pubmark/workload/workload.yaml";
/// Whom our own containers run as: nobody that a machine knows.
const USER: u32 = 65_532;
/// Longest wait of the coordinator for nodes: images are fetched meanwhile.
const JOIN_LIMIT: &str = "10m";

/// What is placed.
#[derive(Clone)]
pub struct Deployment {
    /// Name of the run: letters, digits and `-`.
    pub name: String,
    /// The workload: a built-in one by its name, or the text of a file.
    pub workload: Workload,
    /// The system; none if it is at an endpoint.
    pub system: Option<Rendered>,
    /// What the system may use.
    pub system_limits: Option<ResourceLimits>,
    /// What each node may use.
    pub node_limits: Option<ResourceLimits>,
    /// Image of pubmark.
    pub image: String,
    /// Nodes.
    pub nodes: u16,
    /// Options of `pubmark run`, besides those that say where things are.
    pub options: Vec<String>,
    /// By what they know each other: the coordinator's files, and those of nodes.
    pub credentials: [Files; 2],
}

/// What devices and subscribers do.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Its name; the image has it.
    BuiltIn(String),
    /// The text of its file.
    File(String),
}

impl Workload {
    /// The text, where there is one to be handed over.
    fn text(&self) -> Option<&String> {
        match self {
            Workload::BuiltIn(_) => None,
            Workload::File(text) => Some(text),
        }
    }
}

/// A file and its text.
pub type File = (String, String);

/// What reads the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// `docker compose` or `podman-compose`: all on one machine.
    Compose,
    /// `kubectl apply`.
    Kubernetes,
    /// `helm install`.
    Helm,
}

impl Deployment {
    /// Its files for an orchestrator.
    pub fn files(&self, kind: Kind) -> Vec<File> {
        match kind {
            Kind::Compose => compose::files(self),
            Kind::Kubernetes => kubernetes::files(self),
            Kind::Helm => helm::files(self),
        }
    }

    /// What the coordinator is told, behind the name of the program.
    fn coordinator_words(&self) -> Vec<String> {
        let workload = match &self.workload {
            Workload::BuiltIn(name) => name.as_str(),
            Workload::File(_) => WORKLOAD,
        };
        let nodes = self.nodes.to_string();
        let listen = format!("0.0.0.0:{COORDINATOR_PORT}");
        let words = [
            "run",
            workload,
            "--nodes",
            &nodes,
            "--listen",
            &listen,
            "--credentials",
            CREDENTIALS,
            "--join-limit",
            JOIN_LIMIT,
            "--out",
            "/tmp/runs",
            "--json",
            "--quiet",
        ];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if let Some(system) = &self.system {
            words.extend(["--endpoint".to_owned(), format!("{}://system:{}", system.scheme, system.port)]);
        }
        words.extend(self.options.iter().cloned());
        words
    }

    /// What a node is told.
    fn node_words(&self, coordinator: &str, name: Option<&str>) -> Vec<String> {
        let join = format!("{coordinator}:{COORDINATOR_PORT}");
        let words = ["node", "--join", &join, "--credentials", CREDENTIALS, "--once"];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(name.map(|name| ["--name".to_owned(), name.to_owned()]).into_iter().flatten());
        words
    }
}
