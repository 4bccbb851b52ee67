//! Ways to run a system, as its definition says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::Change;
use crate::condition::When;

/// Ways to run a system. A system without any is brokerless, or runs elsewhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackEnds {
    /// As a program of this machine.
    #[serde(default)]
    pub process: Option<ProcessBackEnd>,
    /// In a container.
    #[serde(default)]
    pub container: Option<ContainerBackEnd>,
    /// Nothing runs: clients find each other. Its cost is that of the clients.
    #[serde(default)]
    pub brokerless: Option<BrokerlessBackEnd>,
}

/// A system without a process of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerlessBackEnd {
    /// What takes the broker's place, one phrase.
    pub how: String,
    /// Ports by which its clients can meet, where its protocol has rules for them; any free one otherwise.
    #[serde(default)]
    pub ports: Option<MeetingPorts>,
    /// What is different where its clients are in networks of their own.
    #[serde(default)]
    pub across_links: AcrossLinks,
    /// What is different where its clients are on several machines.
    #[serde(default)]
    pub across_nodes: AcrossNodes,
}

/// How clients without a broker meet across emulated links.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossLinks {
    /// Where they meet.
    #[serde(default)]
    pub meet: Meet,
    /// Settings that their endpoints say besides.
    #[serde(default)]
    pub settings: String,
    /// What differs from the system's defaults, in place of the system's own list.
    #[serde(default)]
    pub deviations: Vec<Change>,
}

/// How clients without a broker meet on several machines.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossNodes {
    /// What differs from the system's defaults, in place of the system's own list.
    #[serde(default)]
    pub deviations: Vec<Change>,
}

/// Where clients meet that have networks of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meet {
    /// At the address of their subscribers: behind links all in one network, on several machines one address for each.
    #[default]
    AtSubscribers,
    /// Everywhere: each takes its own address, and they find each other.
    Everywhere,
}

/// Ports of which each stands for a place to meet.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeetingPorts {
    /// The first.
    pub first: u16,
    /// From one to the next.
    pub step: u16,
    /// How many there are.
    pub count: u16,
    /// The UDP port so far above one is taken where clients have met already.
    pub taken_at: u16,
}

/// How a system is run as a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessBackEnd {
    /// Program: a name looked up in `search` and `PATH`, a path, or `{self}` for the running program.
    pub program: String,
    /// Folders to look in before `PATH`; `{programs}` is where `pubmark install` puts what no package manager places.
    #[serde(default)]
    pub search: Vec<PathBuf>,
    /// Shell commands that install it, as `pubmark install` runs them. `$PROGRAMS` is the folder for programs.
    pub install: String,
    /// How to learn its version.
    #[serde(default)]
    pub version: Option<VersionCommand>,
    /// Its command line.
    #[serde(default)]
    pub arguments: Vec<ArgumentPart>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Commands run before the start.
    #[serde(default)]
    pub prepare: Vec<PrepareCommand>,
    /// Commands run after its end, whatever ended it: what it leaves running elsewhere (RabbitMQ's epmd).
    #[serde(default)]
    pub clean_up: Vec<PrepareCommand>,
    /// Longest time from start to readiness, seconds.
    #[serde(default = "ten")]
    pub ready_within_s: f64,
    /// Longest time from SIGTERM to its end, seconds; then SIGKILL.
    #[serde(default = "five")]
    pub stop_within_s: f64,
}

/// How a system is run in a container, on the host's network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerBackEnd {
    /// The image, pinned to a version.
    pub image: String,
    /// Entry point, where the image's own does not do.
    #[serde(default)]
    pub entrypoint: Option<String>,
    /// User in the container, where the image's own does not do.
    #[serde(default)]
    pub user: Option<String>,
    /// Folder in the container where the private directory with the files is mounted; `{directory}` stands for it.
    #[serde(default = "pubmark")]
    pub directory: String,
    /// What follows the image on the command line.
    #[serde(default)]
    pub arguments: Vec<ArgumentPart>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How to learn its version: arguments of the entry point.
    #[serde(default)]
    pub version: Option<VersionCommand>,
    /// Longest time from start to readiness, seconds.
    #[serde(default = "sixty")]
    pub ready_within_s: f64,
    /// Longest time from the stop signal to its end, seconds; then SIGKILL.
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

    /// Longest time from SIGTERM to its end.
    pub fn stop_within(&self) -> Duration {
        seconds(self.stop_within_s)
    }
}

impl ContainerBackEnd {
    /// Longest time from start to readiness.
    pub fn ready_within(&self) -> Duration {
        seconds(self.ready_within_s)
    }

    /// Longest time from the stop signal to its end.
    pub fn stop_within(&self) -> Duration {
        seconds(self.stop_within_s)
    }
}

/// The definition's check has seen that the value is above 0 and at most 600.
fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::from_secs(10))
}

/// A command whose output names the version.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionCommand {
    /// Program, where it is not the system's own; looked up as that is.
    #[serde(default)]
    pub program: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The version is the word after the first occurrence of this text.
    pub after: String,
}

/// Some arguments of a command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentPart {
    /// When they are given.
    #[serde(default)]
    pub when: When,
    /// The arguments, placeholders filled in.
    pub add: Vec<String>,
}

/// A command beside the system's own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareCommand {
    /// When it is run.
    #[serde(default)]
    pub when: When,
    /// The program, looked up as the system's is.
    pub program: String,
    /// Its arguments, placeholders filled in.
    #[serde(default)]
    pub arguments: Vec<String>,
}
