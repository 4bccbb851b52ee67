//! Back ends: the ways to run a system that its definition has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::Change;
use crate::condition::When;

/// The back ends of a system. A system without any back end runs elsewhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackEnds {
    /// As a program on this machine.
    #[serde(default)]
    pub process: Option<ProcessBackEnd>,
    /// In a container.
    #[serde(default)]
    pub container: Option<ContainerBackEnd>,
    /// Without a broker: nothing is started, and clients find each other. The cost of such a system is that of its
    /// clients.
    #[serde(default)]
    pub brokerless: Option<BrokerlessBackEnd>,
}

/// A system without a process of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerlessBackEnd {
    /// How messages are delivered without a broker, in one phrase.
    pub how: String,
    /// Ports that clients use for discovery, if the protocol has rules for them; otherwise any free port is used.
    #[serde(default)]
    pub ports: Option<DiscoveryPorts>,
    /// What differs if clients are in separate networks.
    #[serde(default)]
    pub across_links: AcrossLinks,
    /// What differs if clients are on several machines.
    #[serde(default)]
    pub across_nodes: AcrossNodes,
}

/// How clients without a broker find each other across emulated links.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossLinks {
    /// Address at which they find each other.
    #[serde(default)]
    pub meet: DiscoveryAddress,
    /// Settings that are added to their endpoints.
    #[serde(default)]
    pub settings: String,
    /// Deviations from the system's defaults. They replace the system's own list.
    #[serde(default)]
    pub deviations: Vec<Change>,
}

/// How clients without a broker find each other on several machines.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossNodes {
    /// Deviations from the system's defaults. They replace the system's own list.
    #[serde(default)]
    pub deviations: Vec<Change>,
}

/// The address at which clients in separate networks find each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiscoveryAddress {
    /// At the address of the subscribers. Behind links, all subscribers are in one network; on several machines, each
    /// machine has its address.
    #[default]
    AtSubscribers,
    /// At all addresses: each client uses its own address, and they find each other.
    Everywhere,
}

/// Discovery ports. Clients that use the same one find each other.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscoveryPorts {
    /// The first port.
    pub first: u16,
    /// Distance from one port to the next.
    pub step: u16,
    /// Number of ports.
    pub count: u16,
    /// Offset of a UDP port that clients bind: if the port plus this offset is bound, clients already use that
    /// discovery port.
    pub taken_at: u16,
}

/// How a system is run as a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessBackEnd {
    /// Program: a name that is looked up in `search` and `PATH`, a path, or `{self}` for the running program.
    pub program: String,
    /// Folders that are searched before `PATH`; `{programs}` is the folder in which `pubmark install` puts programs
    /// that no package manager installs.
    #[serde(default)]
    pub search: Vec<PathBuf>,
    /// Shell commands that install the program, as `pubmark install` runs them. `$PROGRAMS` is the folder for programs.
    pub install: String,
    /// How to read its version.
    #[serde(default)]
    pub version: Option<VersionCommand>,
    /// Arguments of its command line.
    #[serde(default)]
    pub arguments: Vec<ArgumentPart>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Commands run before the start.
    #[serde(default)]
    pub prepare: Vec<PrepareCommand>,
    /// Commands that are run after the program has ended, for whatever reason. They stop what it leaves running
    /// (RabbitMQ's epmd).
    #[serde(default)]
    pub clean_up: Vec<PrepareCommand>,
    /// Longest time from start to readiness, seconds.
    #[serde(default = "ten")]
    pub ready_within_s: f64,
    /// Longest time from SIGTERM to the program's end, seconds; SIGKILL follows.
    #[serde(default = "five")]
    pub stop_within_s: f64,
}

/// How a system is run in a container, on the host's network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerBackEnd {
    /// The image, pinned to a version.
    pub image: String,
    /// Entry point, if the image's own is not suitable.
    #[serde(default)]
    pub entrypoint: Option<String>,
    /// User in the container, if the image's own is not suitable.
    #[serde(default)]
    pub user: Option<String>,
    /// Folder in the container where the private directory with the files is mounted; the placeholder `{directory}` has
    /// this value.
    #[serde(default = "pubmark")]
    pub directory: String,
    /// Arguments that follow the image on the command line.
    #[serde(default)]
    pub arguments: Vec<ArgumentPart>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How to read its version: arguments of the entry point.
    #[serde(default)]
    pub version: Option<VersionCommand>,
    /// Longest time from start to readiness, seconds.
    #[serde(default = "sixty")]
    pub ready_within_s: f64,
    /// Longest time from the stop signal to the container's end, seconds; SIGKILL follows.
    #[serde(default = "ten")]
    pub stop_within_s: f64,
}

fn five() -> f64 {
    5.0
}

fn ten() -> f64 {
    10.0
}

fn sixty() -> f64 {
    60.0
}

fn pubmark() -> String {
    "/pubmark".to_owned()
}

impl ProcessBackEnd {
    /// Longest time from start to readiness.
    pub fn ready_within(&self) -> Duration {
        seconds(self.ready_within_s)
    }

    /// Longest time from SIGTERM to the program's end.
    pub fn stop_within(&self) -> Duration {
        seconds(self.stop_within_s)
    }
}

impl ContainerBackEnd {
    /// Longest time from start to readiness.
    pub fn ready_within(&self) -> Duration {
        seconds(self.ready_within_s)
    }

    /// Longest time from the stop signal to the container's end.
    pub fn stop_within(&self) -> Duration {
        seconds(self.stop_within_s)
    }
}

/// The definition's check has verified that the value is above 0 and at most 600.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::from_secs(10))
}

/// A command that prints the version.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionCommand {
    /// Program, if it is not the system's own; it is looked up in the same way.
    #[serde(default)]
    pub program: Option<String>,
    /// Its arguments; `{self}` is the system's program that was found, whose version is wanted.
    pub arguments: Vec<String>,
    /// The version is the word after the first occurrence of this text in the output.
    pub after: String,
}

/// Some arguments of a command line, and when they apply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentPart {
    /// When they are used.
    #[serde(default)]
    pub when: When,
    /// The arguments; placeholders are filled in.
    pub add: Vec<String>,
}

/// A command in addition to the system's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareCommand {
    /// When it is run.
    #[serde(default)]
    pub when: When,
    /// The program, looked up in the same way as the system's.
    pub program: String,
    /// Its arguments; placeholders are filled in.
    #[serde(default)]
    pub arguments: Vec<String>,
}
