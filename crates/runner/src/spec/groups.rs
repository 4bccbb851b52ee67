//! The groups of a specification's fields.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use pubmark_links::network;
use pubmark_model::fault::choice::FaultChoice;
use pubmark_model::link::choice::LinkChoice;
use pubmark_model::pace::Pace;
use pubmark_model::placement::{LabelsInTurn, Placement, PlacementChoice};
use pubmark_model::secret::Secret;
use pubmark_model::topology::Topology;
use pubmark_model::workload::Variant;
use pubmark_record::record::{Deviation, LimitInfo};
use pubmark_systems::BackEndChoice;
use pubmark_systems::limits::ResourceLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::connect_rate::ConnectRate;
use super::source_addresses::SourceAddresses;
use super::text;

/// Changes of the workload, and the seed of the schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// Reading of a published workload.
    pub variant: Reading,
    /// Multiplier of the number of devices, at least 1.
    pub scale: u32,
    /// Multiplier of the rate of every device.
    pub rate: f64,
    /// Delivery level of all devices and subscribers: 0, 1 or 2; the workload's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// Size of every payload, bytes; the workload's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<u32>,
    /// Values of the workload to change, in order, as `KEY=VALUE`: parameters, and dotted paths into its file.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub set: Vec<(String, String)>,
    /// Links in place of the workload's, in order: `lte`, `sensors=lte`, `none`.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub links: Vec<LinkChoice>,
    /// Implementation that emulates links.
    pub netem: Netem,
    /// Faults in place of the workload's: `kill:at=30s,for=5s`, `none`.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub faults: Vec<FaultChoice>,
    /// Seed of the schedule.
    pub seed: u64,
    /// Contents of the files of sizes that the workload names, by name. `run.yaml` stores them, so that it can be
    /// moved; files that are not listed are read from disk.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Default for Load {
    fn default() -> Load {
        Load {
            variant: Reading::default(),
            scale: 1,
            rate: 1.0,
            qos: None,
            payload: None,
            set: vec![],
            links: vec![],
            netem: Netem::default(),
            faults: vec![],
            seed: 1,
            files: BTreeMap::new(),
        }
    }
}

/// The system under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TargetSpec {
    /// System to start: a built-in definition or the path of one; the built-in broker if left out. With an endpoint:
    /// which system it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// URL of a system that already runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// URL for subscribers, if it is a different one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe_endpoint: Option<String>,
    /// URL of the node_exporter of the endpoint's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_exporter: Option<String>,
    /// Configuration of a system that is started: `default` or `tuned`.
    pub profile: String,
    /// Transport of the protocol to a system that is started.
    pub transport: Transport,
    /// How a system that is started is run; the first back end of its definition if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_end: Option<BackEnd>,
    /// Address of this machine on which the system listens; 127.0.0.1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_host: Option<Ipv4Addr>,
    /// Name of the node that starts the system (`pubmark node --start-systems`); this machine if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Image of the system's container, in place of the definition's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Several brokers as one system: `3:bridge`.
    #[serde(with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub topology: Option<Topology>,
    /// Resources that each broker may use: `cpu=0.5,memory=256MB,cores=1`, or the name of a set.
    #[serde(with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub limit: Option<ResourceLimits>,
    /// Leave the system's limits as they are, even if the workload's messages are too large for it.
    pub strict_defaults: bool,
    /// How an orchestrator started the system at `endpoint`. This is stored in the record and changes nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedSystem>,
}

/// How an orchestrator started the system at an endpoint: `pubmark deploy` writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlacedSystem {
    /// Image of the system's container.
    pub image: String,
    /// Configuration: `default` or `tuned`.
    pub profile: String,
    /// Resources that the container may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitInfo>,
    /// Differences from the system's defaults.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<Deviation>,
    /// Text of its first configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
}

impl Default for TargetSpec {
    fn default() -> TargetSpec {
        TargetSpec {
            system: None,
            endpoint: None,
            subscribe_endpoint: None,
            node_exporter: None,
            profile: pubmark_systems::definition::DEFAULT_PROFILE.to_owned(),
            transport: Transport::default(),
            back_end: None,
            system_host: None,
            node: None,
            image: None,
            topology: None,
            limit: None,
            strict_defaults: false,
            placed: None,
        }
    }
}

/// Protocols of clients; by the endpoint's scheme, or the first that the system offers, if left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Protocols {
    /// Protocol of all clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Client library, where the protocol has several; or the command of a program that is the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Protocol of devices only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_protocol: Option<String>,
    /// Protocol of subscribers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe_protocol: Option<String>,
}

/// How clients connect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Connection {
    /// Encrypt connections to a system that is started, with certificates made for the run.
    pub tls: bool,
    /// Clients resume their last TLS session; on if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_resumption: Option<bool>,
    /// Authorities (PEM) with which an endpoint's certificate is verified; the machine's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    /// Accept any certificate of an endpoint.
    pub tls_insecure: bool,
    /// Client certificate (PEM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// Key (PEM) of the client certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// User name of all clients for which the workload has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Environment variable that holds the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// File that holds the password in its first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The password itself. It is written as `…`, which is refused when it is read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// Addresses of this machine from which clients connect, in turn.
    #[serde(with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub source_addresses: Option<SourceAddresses>,
    /// TCP congestion control of pubmark's own sockets; the machine's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Largest number of connections started each second, such as `5000/s`; `2000/s` if left out.
    #[serde(with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub connects: Option<ConnectRate>,
}

/// When messages are sent and measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Window {
    /// Load before the window that is not measured.
    #[serde(with = "text::one")]
    #[schemars(with = "String")]
    pub warmup: Duration,
    /// Length of the measured window, longer than zero.
    #[serde(with = "text::one")]
    #[schemars(with = "String")]
    pub duration: Duration,
    /// Longest wait for late messages after the window.
    #[serde(with = "text::one")]
    #[schemars(with = "String")]
    pub drain: Duration,
}

impl Default for Window {
    fn default() -> Window {
        Window { warmup: Duration::from_secs(5), duration: Duration::from_secs(60), drain: Duration::from_secs(10) }
    }
}

/// How pubmark generates the load on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Generator {
    /// Threads for publishers, and as many for subscribers: 1 to 256.
    #[schemars(range(min = 1, max = 256))]
    pub shards: u16,
    /// Groups whose clients run in separate processes, in addition to those of the workload; `all` for every group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub isolate: Vec<String>,
    /// Run the generator's threads under SCHED_FIFO, where the machine allows it.
    pub realtime: bool,
    /// Prevent CPU idle states on this machine, where the machine allows it.
    pub awake: bool,
    /// Cores for one side: `system=0`, `generator=1-3`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<String>,
    /// How exactly devices send at their due times: `exact`, `auto`, or a time within which due messages are sent together: 10 µs to
    /// 10 ms.
    #[serde(with = "text::one")]
    #[schemars(with = "String")]
    pub pace: Pace,
    /// Shortest time of each send: a generator of known capacity, for tests.
    #[serde(with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub handicap: Option<Duration>,
}

impl Default for Generator {
    fn default() -> Generator {
        Generator {
            shards: 1,
            isolate: vec![],
            realtime: false,
            awake: false,
            pin: vec![],
            pace: Pace::default(),
            handicap: None,
        }
    }
}

impl Generator {
    /// Whether cores are given to the system.
    pub(crate) fn pins_system(&self) -> bool {
        self.pin.iter().any(|pin| pin.trim_start().starts_with("system"))
    }
}

/// Name of the worker process that represents the node with this number.
pub fn local_name(node: u16) -> String {
    format!("local {}", node + 1)
}

/// Nodes among which the fleet is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Nodes {
    /// Machines that join with `pubmark node`: 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub nodes: Option<u16>,
    /// Worker processes of this machine in place of machines: 1 to 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 200))]
    pub local_nodes: Option<u16>,
    /// Machines that join with `pubmark node --observe`: 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub observers: Option<u16>,
    /// Address where nodes join; 0.0.0.0:7700 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Announce the run on local networks while it waits for nodes.
    pub announce: bool,
    /// The coordinator's folder that `pubmark cluster init` created; `cluster/coordinator` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<PathBuf>,
    /// Longest wait for nodes to join; 1 min if left out.
    #[serde(with = "text::maybe", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub join_limit: Option<Duration>,
    /// Divide the devices among the nodes, or run all of them on every node; the workload's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<DevicePlacement>,
    /// Run each subscriber once, or on every node; the workload's if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribers: Option<SubscriberPlacement>,
    /// On which nodes groups run, in place of the workload's `placement`, in order: `cameras=site=edge-1`, `dashboards=each site`,
    /// `default=split`, `none`.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub placement: Vec<PlacementChoice>,
    /// Labels of the worker processes of `local_nodes`, in turn: `site=edge-1,edge-2,cloud`.
    #[serde(with = "text::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub node_labels: Vec<LabelsInTurn>,
}

/// Reading of a published workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// With the errors that the paper's figures were measured with.
    Published,
    /// As the paper's text means it.
    #[default]
    Corrected,
}

impl From<Reading> for Variant {
    fn from(reading: Reading) -> Variant {
        match reading {
            Reading::Published => Variant::Published,
            Reading::Corrected => Variant::Corrected,
        }
    }
}

/// Implementation of emulated links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Netem {
    /// pubmark's emulator in user space.
    #[default]
    User,
    /// The kernel's netem.
    Kernel,
}

impl From<Netem> for network::BackEnd {
    fn from(netem: Netem) -> network::BackEnd {
        match netem {
            Netem::User => network::BackEnd::UserSpace,
            Netem::Kernel => network::BackEnd::KernelNetem,
        }
    }
}

/// Transport of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Plain TCP.
    #[default]
    Tcp,
    /// WebSocket over TCP.
    Websocket,
}

/// How a system is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackEnd {
    /// As a program of this machine.
    Process,
    /// In a container, with podman or docker.
    Container,
}

impl From<BackEnd> for BackEndChoice {
    fn from(back_end: BackEnd) -> BackEndChoice {
        match back_end {
            BackEnd::Process => BackEndChoice::Process,
            BackEnd::Container => BackEndChoice::Container,
        }
    }
}

/// Placement of devices on several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DevicePlacement {
    /// Each device runs on one node.
    Split,
    /// Every node runs all devices.
    Replicate,
}

impl From<DevicePlacement> for Placement {
    fn from(devices: DevicePlacement) -> Placement {
        match devices {
            DevicePlacement::Split => Placement::Split,
            DevicePlacement::Replicate => Placement::Replicate,
        }
    }
}

/// Placement of subscribers on several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubscriberPlacement {
    /// Each subscriber runs on one node.
    Once,
    /// Every node runs all subscribers.
    EveryNode,
}

impl From<SubscriberPlacement> for Placement {
    fn from(subscribers: SubscriberPlacement) -> Placement {
        match subscribers {
            SubscriberPlacement::Once => Placement::Split,
            SubscriberPlacement::EveryNode => Placement::Replicate,
        }
    }
}
