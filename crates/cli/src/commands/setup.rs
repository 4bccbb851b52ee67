//! Common options of commands that make runs: what is measured, with what load, over which connections.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use pubmark_model::link::choice::LinkChoice;
use pubmark_model::pace::Pace;
use pubmark_model::placement::{LabelsInTurn, PlacementChoice};
use pubmark_model::secret::Secret;
use pubmark_model::topology::Topology;
use pubmark_protocols::{self as protocols, known::KNOWN};
use pubmark_runner::spec::{
    BackEnd, ConnectRate, DevicePlacement, Netem, Reading, SourceAddresses, SubscriberPlacement, Transport,
};
use pubmark_runner::{RunError, RunSpec, log_in};
use pubmark_systems::limits::ResourceLimits;

use crate::commands::endpoint_options::EndpointOptions;
use crate::values::{Word, limits, one_of, payload_bytes, positive_duration, setting};

/// What is measured, with what load, over which connections. Each command has its own options for the length of the run
/// and for how much load there is.
#[derive(Clone, Debug, Args)]
pub struct Setup {
    /// System to start and measure (`pubmark list systems`), or with `--endpoint` the system that runs there, by whose
    /// name results rank it [default: builtin]
    #[arg(long, value_name = "SYSTEM", help_heading = "What is measured")]
    pub system: Option<String>,

    // Not a doc comment: rustdoc would read the brackets as links.
    #[arg(
        long,
        value_name = "URL",
        help_heading = "What is measured",
        help = "System that runs already: scheme://[user[:password]@]host[:port] (`pubmark list protocols`)"
    )]
    pub endpoint: Option<String>,

    /// node_exporter of the endpoint's machine, for the resource usage of the whole machine: `http://host:9100`
    #[arg(long, value_name = "URL", help_heading = "What is measured", hide_short_help = true)]
    pub node_exporter: Option<String>,

    /// Protocol of the clients [default: by the endpoint's scheme, or the first of these that the system offers]
    #[arg(long, value_parser = protocol_names(), help_heading = "What is measured")]
    pub protocol: Option<String>,

    /// Client library, where a protocol has several [default for DDS: the first of `cyclone` and `rustdds` that this
    /// build has]; or a client program by name: `paho`, `mqttjs` (`pubmark install paho`), or one of the system's
    /// definition; or the command of a program of yours: `'python3 my/client.py'`
    #[arg(long, value_name = "NAME|COMMAND", help_heading = "What is measured", hide_short_help = true)]
    pub client: Option<String>,

    /// Protocol of devices only, where the system forwards messages between two protocols
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol_names(), hide_possible_values = true,
          help_heading = "What is measured", hide_short_help = true)]
    pub publish_protocol: Option<String>,

    /// Protocol of subscribers only
    #[arg(long, value_name = "PROTOCOL", value_parser = protocol_names(), hide_possible_values = true,
          help_heading = "What is measured", hide_short_help = true)]
    pub subscribe_protocol: Option<String>,

    /// Address where subscribers connect, if their protocol has a separate endpoint
    #[arg(long, value_name = "URL", help_heading = "What is measured", hide_short_help = true)]
    pub subscribe_endpoint: Option<String>,

    /// Configuration of a system that pubmark starts: `default` is what the package ships, `tuned` is set for the load,
    /// and the record names each change; `pubmark list systems NAME` shows each system's [default: default]
    #[arg(long, value_name = "PROFILE", help_heading = "What is measured", hide_short_help = true)]
    pub profile: Option<String>,

    /// Transport of the protocol to a system that pubmark starts; the scheme of an endpoint implies it (`ws://`)
    /// [default: tcp]
    #[arg(long, value_parser = one_of(TRANSPORTS), help_heading = "What is measured", hide_short_help = true)]
    pub transport: Option<Transport>,

    /// How a system that pubmark starts is run: as a program of this machine, or in a container
    #[arg(long, value_parser = one_of(BACK_ENDS), help_heading = "What is measured", hide_short_help = true)]
    pub back_end: Option<BackEnd>,

    /// Address of this machine on which a system that pubmark starts listens, for nodes on other machines [default:
    /// 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "What is measured", hide_short_help = true)]
    pub system_host: Option<Ipv4Addr>,

    /// Name of the node that starts the system: it joined with `pubmark node --start-systems`
    #[arg(long, value_name = "NAME", help_heading = "What is measured", hide_short_help = true)]
    pub system_node: Option<String>,

    /// Image of the container, in place of that of the system's definition
    #[arg(long, value_name = "IMAGE", help_heading = "What is measured", hide_short_help = true)]
    pub image: Option<String>,

    /// Several brokers as one system: `3:bridge`, `3:cluster`, or `5:shard` for independent ones
    #[arg(long, value_name = "N:MODE", value_parser = Topology::parse,
          help_heading = "What is measured", hide_short_help = true)]
    pub topology: Option<Topology>,

    /// Resources that each broker may use: `cpu=0.5,memory=256MB,cores=1`, or a set such as `mq-bench-1`
    #[arg(long, value_name = "LIMITS", value_parser = limits,
          help_heading = "What is measured")]
    pub limit: Option<ResourceLimits>,

    /// Cores for one side: `system=0`, `generator=1-3`; may be repeated, once for each side
    #[arg(long, value_name = "SIDE=CORES", num_args = 1..=2, help_heading = "What is measured", hide_short_help = true)]
    pub pin: Vec<String>,

    /// Keep the system's limits unchanged, even if the workload's messages are too large for it
    #[arg(long, help_heading = "What is measured", hide_short_help = true)]
    pub strict_defaults: bool,

    /// Delivery level of all devices and subscribers, instead of the workload's
    #[arg(long, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2), help_heading = "Load")]
    pub qos: Option<u8>,

    /// Reading of a published workload: with the errors that its figures were measured with, or as its text means it
    /// [default: corrected]
    #[arg(long, value_parser = one_of(READINGS), help_heading = "Load", hide_short_help = true)]
    pub variant: Option<Reading>,

    /// Size of every payload, instead of the workload's: `16`, `1KB`
    #[arg(long, value_name = "SIZE", value_parser = payload_bytes, help_heading = "Load")]
    pub payload: Option<u32>,

    /// Change a value of the workload: a parameter, or a dotted path into its file
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Load")]
    pub set: Vec<(String, String)>,

    /// Emulated network of all groups, or of one, in place of the workload's: `lte`, `sensors=lte`, `none` (`pubmark
    /// list links`), `{delay: 20ms, loss: 1%}`; may be repeated
    #[arg(long, value_name = "LINK|GROUP=LINK", value_parser = LinkChoice::parse, help_heading = "Load")]
    pub link: Vec<LinkChoice>,

    /// Emulator of links: pubmark itself in user space, or the kernel's netem, if the kernel has it [default: user]
    #[arg(long, value_parser = one_of(NETEMS), help_heading = "Load", hide_short_help = true)]
    pub netem: Option<Netem>,

    /// Seed of the schedule: the same seed and workload give the same schedule [default: 1]
    #[arg(long, value_name = "N", help_heading = "Load", hide_short_help = true)]
    pub seed: Option<u64>,

    /// Encrypt: a system that pubmark starts gets a certificate that is made for the run; the scheme of an endpoint
    /// implies it (`mqtts://`)
    #[arg(long, help_heading = "Connection")]
    pub tls: bool,

    /// Each client stores the TLS session of its last connection and resumes it when it reconnects [default: on]
    #[arg(long, value_name = "SWITCH", value_parser = one_of(SWITCH), help_heading = "Connection", hide_short_help = true)]
    pub tls_resumption: Option<bool>,

    #[command(flatten)]
    pub at_endpoint: EndpointOptions,

    /// The password. Others on this machine see it in the list of processes, as they see values of `--set`;
    /// `--password-env` and `--password-file` avoid that
    #[arg(long, value_name = "PASSWORD", help_heading = "Connection", hide_short_help = true)]
    pub password: Option<Secret>,

    /// File with the password in its first line, which is read at once. Results have `…` in place of the password, not the
    /// path of the file: `pubmark serve` removes it at the end
    #[arg(long, value_name = "FILE", value_parser = password_in, hide = true)]
    pub password_from: Option<Secret>,

    /// Largest number of connections that all clients together start each second [default: 2000/s]
    #[arg(long, value_name = "RATE", value_parser = ConnectRate::parse, help_heading = "Connection", hide_short_help = true)]
    pub connects: Option<ConnectRate>,

    /// Addresses of this machine from which clients connect, in turn: `127.0.0.1-127.0.0.8`, `10.0.0.0/28`, or a list
    /// with commas; each has about 28,000 ports
    #[arg(long, value_name = "ADDRESSES", value_parser = SourceAddresses::parse,
          help_heading = "Connection", hide_short_help = true)]
    pub source_addresses: Option<SourceAddresses>,

    /// TCP congestion control of pubmark's own sockets, instead of the machine's: `cubic`, `reno`, `bbr`
    #[arg(long, value_name = "NAME", help_heading = "Connection", hide_short_help = true)]
    pub congestion_control: Option<String>,

    /// Threads for publishers, and as many for subscribers [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256),
          help_heading = "Generator", hide_short_help = true)]
    pub shards: Option<u16>,

    /// Divide the load among N worker processes of this machine, as among N machines; with links, each has separate
    /// networks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=200),
          help_heading = "Nodes", hide_short_help = true)]
    pub local_nodes: Option<u16>,

    /// On several nodes: divide the devices among the nodes, or run all of them on every node [default: the workload's]
    #[arg(long, value_name = "WAY", value_parser = one_of(DEVICES), help_heading = "Nodes", hide_short_help = true)]
    pub devices: Option<DevicePlacement>,

    /// On several nodes: run each subscriber once, or on every node [default: the workload's]
    #[arg(long, value_name = "WAY", value_parser = one_of(SUBSCRIBERS), help_heading = "Nodes", hide_short_help = true)]
    pub subscribers: Option<SubscriberPlacement>,

    /// On several nodes: where a group runs, in place of the workload's placement: on all nodes (`GROUP=split`), on
    /// those with a label (`cameras=site=edge-1`), a copy on every node (`GROUP=replicate`) or, for subscribers, at
    /// every site (`'dashboards=each site'`); `default` for groups that are not named, `none` to ignore the workload's
    /// placement; may be repeated
    #[arg(long, value_name = "GROUP=WHERE", value_parser = PlacementChoice::parse,
          help_heading = "Nodes", hide_short_help = true)]
    pub placement: Vec<PlacementChoice>,

    /// Labels of the processes of `--local-nodes`, in turn: `site=edge-1,edge-2,cloud`; may be repeated, once for each
    /// key
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = LabelsInTurn::parse,
          help_heading = "Nodes", hide_short_help = true)]
    pub node_label: Vec<LabelsInTurn>,

    /// Run the clients of a group in a separate process, so that their cost is measured separately; may be repeated,
    /// once for each group, or `all`
    #[arg(long, value_name = "GROUP|all", help_heading = "Generator", hide_short_help = true)]
    pub isolate: Vec<String>,

    /// Run the generator's threads under SCHED_FIFO, where the machine allows it
    #[arg(long, help_heading = "Generator")]
    pub realtime: bool,

    /// Prevent CPU idle states on this machine, where that is allowed: messages are sent several times closer to
    /// their due times; a system on this machine wakes up faster, too
    #[arg(long, help_heading = "Generator", hide_short_help = true)]
    pub awake: bool,

    /// Send each message exactly when it is due, or send together the messages that become due within a time (`0.2ms`),
    /// which needs much less CPU; `auto` chooses the time from the latencies of the warm-up. Intervals of latencies
    /// include it [default: exact]
    #[arg(long, value_name = "exact|auto|TIME", value_parser = Pace::parse, help_heading = "Generator", hide_short_help = true)]
    pub pace: Option<Pace>,

    /// Make each send last at least this long: a generator of known capacity
    #[arg(long, value_name = "TIME", value_parser = positive_duration, hide = true)]
    pub handicap: Option<Duration>,
}

/// Placement of devices on several nodes.
const DEVICES: &[Word<DevicePlacement>] = &[
    ("split", "Each device is on one node", DevicePlacement::Split),
    ("replicate", "Every node has all devices", DevicePlacement::Replicate),
];

/// Placement of subscribers on several nodes.
const SUBSCRIBERS: &[Word<SubscriberPlacement>] = &[
    ("once", "Each subscriber is on one node", SubscriberPlacement::Once),
    ("every-node", "Every node has all subscribers", SubscriberPlacement::EveryNode),
];

/// Values of an on/off option.
const SWITCH: &[Word<bool>] = &[("on", "Yes", true), ("off", "No", false)];

/// Transports.
const TRANSPORTS: &[Word<Transport>] =
    &[("tcp", "TCP alone", Transport::Tcp), ("websocket", "WebSocket over TCP", Transport::Websocket)];

/// Implementations of emulated links.
pub const NETEMS: &[Word<Netem>] =
    &[("user", "pubmark's emulator", Netem::User), ("kernel", "The kernel's netem", Netem::Kernel)];

/// Ways to run a system.
const BACK_ENDS: &[Word<BackEnd>] = &[
    ("process", "A program of this machine", BackEnd::Process),
    ("container", "A container, by podman or docker", BackEnd::Container),
];

/// Readings of a published workload.
pub const READINGS: &[Word<Reading>] = &[
    ("published", "With the errors the paper's figures were made with", Reading::Published),
    ("corrected", "As the paper's text means it", Reading::Corrected),
];

/// Replaces `value` if an option was given.
pub fn replace<Value, Given: Into<Value>>(value: &mut Value, given: Option<Given>) {
    if let Some(given) = given {
        *value = given.into();
    }
}

/// As [`replace`], for an optional value.
pub fn replace_some<Value, Given: Into<Value>>(value: &mut Option<Value>, given: Option<Given>) {
    if let Some(given) = given {
        *value = Some(given.into());
    }
}

/// The password in the first line of a file.
fn password_in(file: &str) -> Result<Secret, RunError> {
    log_in::password_in(Path::new(file))
}

impl Setup {
    /// Writes the given options into a specification.
    pub fn apply(self, spec: &mut RunSpec) {
        let target = &mut spec.target;
        replace_some(&mut target.system, self.system);
        if self.endpoint.is_some() {
            // It belongs to the endpoint of the file.
            target.placed = None;
        }
        replace_some(&mut target.endpoint, self.endpoint);
        replace_some(&mut target.subscribe_endpoint, self.subscribe_endpoint);
        replace_some(&mut target.node_exporter, self.node_exporter);
        replace(&mut target.profile, self.profile);
        replace(&mut target.transport, self.transport);
        replace_some(&mut target.back_end, self.back_end);
        replace_some(&mut target.system_host, self.system_host);
        replace_some(&mut target.node, self.system_node);
        replace_some(&mut target.image, self.image);
        replace_some(&mut target.topology, self.topology);
        replace_some(&mut target.limit, self.limit);
        target.strict_defaults |= self.strict_defaults;
        let protocols = &mut spec.protocols;
        replace_some(&mut protocols.protocol, self.protocol);
        replace_some(&mut protocols.client, self.client);
        replace_some(&mut protocols.publish_protocol, self.publish_protocol);
        replace_some(&mut protocols.subscribe_protocol, self.subscribe_protocol);
        let load = &mut spec.load;
        replace(&mut load.variant, self.variant);
        replace_some(&mut load.qos, self.qos);
        replace_some(&mut load.payload, self.payload);
        load.set.extend(self.set);
        load.links.extend(self.link);
        replace(&mut load.netem, self.netem);
        replace(&mut load.seed, self.seed);
        let connection = &mut spec.connection;
        connection.tls |= self.tls;
        replace_some(&mut connection.tls_resumption, self.tls_resumption);
        let EndpointOptions { tls_ca, tls_insecure, tls_cert, tls_key, user, password_env, password_file } =
            self.at_endpoint;
        replace_some(&mut connection.tls_ca, tls_ca);
        connection.tls_insecure |= tls_insecure;
        replace_some(&mut connection.tls_cert, tls_cert);
        replace_some(&mut connection.tls_key, tls_key);
        replace_some(&mut connection.user, user);
        let password = self.password.or(self.password_from);
        if password.is_some() || password_env.is_some() || password_file.is_some() {
            // Each way replaces the others, which the file of a specification may contain.
            (connection.password, connection.password_env, connection.password_file) = (None, None, None);
        }
        replace_some(&mut connection.password_env, password_env);
        replace_some(&mut connection.password_file, password_file);
        replace_some(&mut connection.password, password);
        replace_some(&mut connection.source_addresses, self.source_addresses);
        replace_some(&mut connection.congestion_control, self.congestion_control);
        replace_some(&mut connection.connects, self.connects);
        let generator = &mut spec.generator;
        replace(&mut generator.shards, self.shards);
        generator.isolate.extend(self.isolate);
        generator.realtime |= self.realtime;
        generator.awake |= self.awake;
        if !self.pin.is_empty() {
            generator.pin = self.pin;
        }
        replace(&mut generator.pace, self.pace);
        replace_some(&mut generator.handicap, self.handicap);
        let nodes = &mut spec.nodes;
        replace_some(&mut nodes.local_nodes, self.local_nodes);
        replace_some(&mut nodes.devices, self.devices);
        replace_some(&mut nodes.subscribers, self.subscribers);
        nodes.placement.extend(self.placement);
        if !self.node_label.is_empty() {
            nodes.node_labels = self.node_label;
        }
    }
}

/// Names of protocols. Names that this build leaves out are accepted, too, so that the error says what to build.
pub fn protocol_names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        KNOWN.iter().map(|known| PossibleValue::new(known.name).hide(protocols::find(known.name).is_none())),
    )
}
