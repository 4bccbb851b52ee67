//! What commands that make runs have in common: what is measured, by what load, over which connections.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use pubmark_model::link::choice::LinkChoice;
use pubmark_model::secret::Secret;
use pubmark_model::topology::Topology;
use pubmark_model::workload::{Placement, Variant, Workload};
use pubmark_systems::BackEndChoice;
use pubmark_systems::limits::ResourceLimits;

use crate::placement::{limits, payload_bytes};
use crate::protocols::{self, known::KNOWN};
use crate::sources::Sources;
use crate::units::positive_duration;

/// What is measured, by what load, over which connections; how much of the load and how long is the command's own.
#[derive(Clone, Debug, Args)]
pub struct Setup {
    /// System to start and measure (`pubmark list systems`) [default: builtin]
    #[arg(long, value_name = "SYSTEM", help_heading = "What is measured")]
    pub system: Option<String>,

    // Not as a doc comment, which would take the brackets for links.
    #[arg(
        long,
        value_name = "URL",
        help_heading = "What is measured",
        help = "System that runs already: scheme://[user[:password]@]host[:port] (`pubmark list protocols`)"
    )]
    pub endpoint: Option<String>,

    /// node_exporter of the endpoint's machine, for what the whole machine used: `http://host:9100`
    #[arg(long, value_name = "URL", requires = "endpoint", help_heading = "What is measured")]
    pub node_exporter: Option<String>,

    /// Protocol that clients speak [default: by the endpoint's scheme, or the first of these that the system offers]
    #[arg(long, value_parser = protocol_names(), help_heading = "What is measured")]
    pub protocol: Option<String>,

    /// Client library, where a protocol has several [default: the first that is there of, for DDS, `cyclone` and `rustdds`]
    #[arg(long, value_name = "LIBRARY", help_heading = "What is measured")]
    pub client: Option<String>,

    /// Protocol of devices alone, where the system hands messages on between two
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol_names(), hide_possible_values = true,
          help_heading = "What is measured")]
    pub publish_protocol: Option<String>,

    /// Protocol of subscribers alone
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol_names(), hide_possible_values = true,
          help_heading = "What is measured")]
    pub subscribe_protocol: Option<String>,

    /// Where subscribers connect, if their protocol has an endpoint of its own
    #[arg(long, value_name = "URL", requires = "endpoint", help_heading = "What is measured")]
    pub subscribe_endpoint: Option<String>,

    /// Configuration of a system that pubmark starts: `default` is what the package ships, `tuned` set for the load, each change
    /// named in the record; `pubmark list systems` shows each system's
    #[arg(long, value_name = "PROFILE", default_value = "default", help_heading = "What is measured")]
    pub profile: String,

    /// What carries the protocol to a system that pubmark starts; an endpoint says it with its scheme (`ws://`)
    #[arg(long, value_enum, default_value = "tcp", conflicts_with = "endpoint", help_heading = "What is measured")]
    pub transport: Transport,

    /// What runs a system that pubmark starts: a program of this machine, or a container
    #[arg(long, value_enum, conflicts_with = "endpoint", help_heading = "What is measured")]
    pub back_end: Option<BackEnd>,

    /// Address of this machine at which a system that pubmark starts listens, for nodes on others [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "endpoint", help_heading = "What is measured")]
    pub system_host: Option<Ipv4Addr>,

    /// Image of the container, in place of the system's own
    #[arg(long, value_name = "IMAGE", conflicts_with = "endpoint", help_heading = "What is measured")]
    pub image: Option<String>,

    /// Several brokers as one system: `3:bridge`, `3:cluster`, or `5:shard` for independent ones
    #[arg(long, value_name = "N:MODE", value_parser = Topology::parse, conflicts_with = "endpoint",
          help_heading = "What is measured")]
    pub topology: Option<Topology>,

    /// What each broker may use: `cpu=0.5,memory=256MB,cores=1`, or a set such as `mq-bench-1`
    #[arg(long, value_name = "LIMITS", value_parser = limits, conflicts_with = "endpoint",
          help_heading = "What is measured")]
    pub limit: Option<ResourceLimits>,

    /// Cores for one side: `system=0`, `generator=1-3`; once for each
    #[arg(long, value_name = "SIDE=CORES", num_args = 1..=2, help_heading = "What is measured")]
    pub pin: Vec<String>,

    /// Leave limits of the system as they are, even if the workload's messages are too large for it
    #[arg(long, conflicts_with = "endpoint", help_heading = "What is measured")]
    pub strict_defaults: bool,

    /// Delivery level of all devices and subscribers, in place of the workload's
    #[arg(long, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2), help_heading = "Load")]
    pub qos: Option<u8>,

    /// Reading of a published workload: with the errors its figures were made with, or as its text means it
    #[arg(long, value_enum, default_value = "corrected", help_heading = "Load")]
    pub variant: Reading,

    /// Size of every payload, in place of the workload's: `16`, `1KB`
    #[arg(long, value_name = "SIZE", value_parser = payload_bytes, help_heading = "Load")]
    pub payload: Option<u32>,

    /// Change a value of the workload: a parameter, or a dotted path into its file
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Load")]
    pub set: Vec<(String, String)>,

    /// Emulated network of all groups, or of one, in place of the workload's: `lte`, `sensors=lte`, `none`
    /// (`pubmark list links`), `{delay: 20ms, loss: 1%}`; once for each
    #[arg(long, value_name = "LINK|GROUP=LINK", value_parser = LinkChoice::parse, help_heading = "Load")]
    pub link: Vec<LinkChoice>,

    /// What emulates links: pubmark itself in user space, or the kernel's netem, where the kernel has it
    #[arg(long, value_enum, default_value = "user", help_heading = "Load")]
    pub netem: Netem,

    /// Seed of the schedule: the same seed and workload give the same schedule
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub seed: u64,

    /// Encrypt: a system that pubmark starts gets a certificate made for the run; an endpoint says it with its scheme (`mqtts://`)
    #[arg(long, conflicts_with = "endpoint", help_heading = "Connection")]
    pub tls: bool,

    /// Each client keeps the TLS session of its last connection and takes it up when it connects again [default: on]
    #[arg(long, value_enum, value_name = "SWITCH", help_heading = "Connection")]
    pub tls_resumption: Option<Switch>,

    /// Authorities (PEM) that the server's certificate is checked against [default: the machine's]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "tls_insecure",
        requires = "endpoint",
        help_heading = "Connection"
    )]
    pub tls_ca: Option<PathBuf>,

    /// Accept any certificate of the server; the record says so
    #[arg(long, requires = "endpoint", help_heading = "Connection")]
    pub tls_insecure: bool,

    /// Certificate (PEM, its chain behind it) that clients show to a server that asks who they are
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "endpoint"], help_heading = "Connection")]
    pub tls_cert: Option<PathBuf>,

    /// Key (PEM, not encrypted) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Connection")]
    pub tls_key: Option<PathBuf>,

    /// User name of all clients that have none of their own
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub user: Option<String>,

    /// Environment variable that holds the password
    #[arg(long, value_name = "VARIABLE", requires = "user", conflicts_with_all = ["password", "password_file"],
          help_heading = "Connection")]
    pub password_env: Option<String>,

    /// File that holds the password in its first line
    #[arg(long, value_name = "FILE", requires = "user", conflicts_with = "password", help_heading = "Connection")]
    pub password_file: Option<PathBuf>,

    /// The password. Others on this machine see it in the list of processes, as they see what `--set` gives: `--password-env`
    /// and `--password-file` hide it
    #[arg(long, value_name = "PASSWORD", requires = "user", help_heading = "Connection")]
    pub password: Option<Secret>,

    /// Addresses of this machine that connections come from, in turn: `127.0.0.1-127.0.0.8`, `10.0.0.0/28`, or a list with
    /// commas; each has about 28,000 ports
    #[arg(long, value_name = "ADDRESSES", value_parser = Sources::parse, help_heading = "Connection")]
    pub source_addresses: Option<Sources>,

    /// TCP congestion control of pubmark's own sockets, in place of the machine's: `cubic`, `reno`, `bbr`
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub congestion_control: Option<String>,

    /// Threads for publishers, and as many for subscribers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256),
          help_heading = "Generator")]
    pub shards: u16,

    /// Deal the load out over N worker processes of this machine, as over N machines; behind links each has networks of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=200), help_heading = "Nodes")]
    pub local_nodes: Option<u16>,

    /// On several nodes: deal the devices out, or let every node have all of them [default: the workload's]
    #[arg(long, value_enum, value_name = "WAY", help_heading = "Nodes")]
    pub devices: Option<Devices>,

    /// On several nodes: each subscriber is there once, or on every node [default: the workload's]
    #[arg(long, value_enum, value_name = "WAY", help_heading = "Nodes")]
    pub subscribers: Option<Subscribers>,

    /// Run the clients of a group in a process of their own, so that what they cost is told apart; once for each group, or `all`
    #[arg(long, value_name = "GROUP|all", help_heading = "Generator")]
    pub isolate: Vec<String>,

    /// Run the generator's threads under SCHED_FIFO, where the machine allows it
    #[arg(long, help_heading = "Generator")]
    pub realtime: bool,

    /// Keep this machine's cores from sleeping, where it may be asked for: what is due is several times less late, above all in virtual
    /// machines; a system on this machine wakes up faster, too
    #[arg(long, help_heading = "Generator")]
    pub awake: bool,

    /// Make each send take this long at least: a generator of known capacity
    #[arg(long, value_name = "TIME", value_parser = positive_duration, hide = true)]
    pub handicap: Option<Duration>,
}

/// Devices on several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Devices {
    /// Each device is on one node
    Split,
    /// Every node has all devices
    Replicate,
}

/// Subscribers on several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subscribers {
    /// Each subscriber is on one node
    Once,
    /// Every node has all subscribers
    EveryNode,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

/// What carries a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// TCP alone
    Tcp,
    /// WebSocket over TCP
    Websocket,
}

/// What emulates links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Netem {
    /// pubmark's emulator
    User,
    /// The kernel's netem
    Kernel,
}

impl From<Netem> for pubmark_links::network::BackEnd {
    fn from(netem: Netem) -> pubmark_links::network::BackEnd {
        match netem {
            Netem::User => pubmark_links::network::BackEnd::UserSpace,
            Netem::Kernel => pubmark_links::network::BackEnd::KernelNetem,
        }
    }
}

/// What runs a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackEnd {
    /// A program of this machine
    Process,
    /// A container, by podman or docker
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

/// [`Variant`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reading {
    /// With the errors the paper's figures were made with
    Published,
    /// As the paper's text means it
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

impl Setup {
    /// Puts the fleet on nodes as asked for.
    pub fn place(&self, workload: &mut Workload) {
        if let Some(devices) = self.devices {
            workload.placement = match devices {
                Devices::Split => Placement::Split,
                Devices::Replicate => Placement::Replicate,
            };
        }
        if let Some(subscribers) = self.subscribers {
            workload.subscribers_on_every_node = subscribers == Subscribers::EveryNode;
        }
    }
}

/// Names of protocols. Those that this build leaves out are taken, too, so that the answer says what to build.
pub fn protocol_names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        KNOWN.iter().map(|known| PossibleValue::new(known.name).hide(protocols::find(known.name).is_none())),
    )
}

/// Reads `KEY=VALUE`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("a setting is written KEY=VALUE, for instance `interval=10ms`".to_owned()),
    }
}
