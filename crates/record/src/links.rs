//! Emulated links in a record: the requested conditions, the results of probes before the run, and the traffic during
//! the measurement.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::Summary;

/// Links of a run. Figures that only the emulator in user space provides are `null` with the kernel's netem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkFigures {
    /// Back end of the emulation.
    pub back_end: LinkBackEnd,
    /// The emulator ran with real-time priority.
    pub realtime: bool,
    /// TCP congestion control in the links' networks, as the kernel names it; that of both ends where clients were
    /// configured with another.
    pub congestion_control: String,
    /// Links by group of devices or subscribers, in the order of the workload.
    pub groups: Vec<LinkGroup>,
    /// Where the back end differs from the description of the links, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Relay from the links to a system that was already running; `null` for a system that was started in the links'
    /// network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayFigures>,
    /// Time from a packet being due until the emulator forwarded it: part of the latency, and caused by pubmark. For packets
    /// that a link delayed; the time that a packet waited until the emulator read it is not included (`read_wait`).
    pub lateness: Option<Summary>,
    /// Time that packets waited for the emulator to read them, at most: from when the queue of their interface, or of the
    /// trunk's socket, was last known to be empty. If the emulator slept, the time counts from its wake-up: how long it took to wake up is not known. Part of
    /// the latency, and caused by pubmark.
    pub read_wait: Option<Summary>,
    /// CPU time of the emulator in the measured window, s. It includes the IP and TCP input processing of the
    /// receivers. `null` where the kernel emulated the links (`back_end`), and if it is not known.
    pub cpu_s: Option<f64>,
    /// Packets that the kernel dropped at an interface, because a queue to the emulator was full or a receiver did not
    /// accept them.
    pub queue_drops: u64,
    /// Packets that the emulator dropped because its buffer reached the maximum number of bytes.
    pub overflowed: Option<u64>,
    /// Packets without a receiver: of no group, or not of IP.
    #[serde(alias = "strays")]
    pub unroutable_packets: Option<u64>,
    /// The trunk between the links of several processes; `null` for clients that meet a broker, or in one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trunk: Option<TrunkFigures>,
    /// Why the emulation of the links ended before the run did. The other figures are then those until its end, without what
    /// interfaces dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
}

/// The trunk between the links of several processes, in a run without a broker on several nodes: a packet that has passed its
/// sender's link goes to its receiver's link in one UDP datagram, over the network of the nodes. Packets are those of IP, without
/// the trunk's own headers. Latencies include the trunk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrunkFigures {
    /// Packets sent in the measured window.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets received in the measured window.
    pub received_packets: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Packets that were sent and did not arrive, from the start of the run to its end: lost in the network or in the buffer of
    /// the receiver's socket, or received after more than 63 later ones. Those that were lost after the last one from the same
    /// sender to the same receiver are not known.
    pub missing: u64,
    /// Packets that the kernel of the sender did not accept, from the start of the run to its end.
    pub unsent: u64,
    /// Last error of the kernel for one of these, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent_error: Option<String>,
    /// Datagrams from the start of the run to its end that were refused: those of others, and those that came twice or too late.
    pub refused: u64,
    /// Time from the hand-over to the trunk until the receiver's emulator read the packet, µs, by the run's clock: each is
    /// wrong by up to the clock bounds of both nodes. A negative time counts as 0, and in `negative`.
    pub transit: Option<Summary>,
    /// Why the trunk has no figures: a process did not report its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
}

/// The relay between links and a system that was already running: a process that accepts clients' connections in the
/// links' network and opens its own connections in the machine's network. Latencies include it; their lower bounds are
/// reduced by the time for which it held a byte, in both directions. Requests of pubmark's own that pass it, those to a
/// node_exporter, are in none of the figures except `cpu_s`. Records of earlier versions count them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayFigures {
    /// Connections accepted, and peers that sent datagrams, since the start of the run.
    pub connections: u64,
    /// Connections that the system or the network on the way to it refused.
    pub refused: u64,
    /// Connections, and peers that sent datagrams, for which the relay had no descriptor, port or memory, since the start of
    /// the run. The system knows nothing of them. Records of versions before this field count connections of this kind in
    /// `refused`.
    #[serde(default)]
    pub exhausted: u64,
    /// Peers silent for 5 min whose socket the relay closed because others needed one, since the start of the run.
    #[serde(default)]
    pub closed: u64,
    /// Traffic from clients to the system, in the measured window.
    pub up: RelayTraffic,
    /// Traffic from the system to clients, in the measured window.
    pub down: RelayTraffic,
    /// Longest time that the relay held a byte in the measured window and the drain, µs. Time during which the
    /// receiver's buffer was full is excluded.
    pub longest_held_us: f64,
    /// CPU time of the relay in the measured window, s.
    pub cpu_s: f64,
    /// The relay ran with real-time priority.
    pub realtime: bool,
    /// Why the relay has no figures: it ended before the run did, or did not respond for 3 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
}

/// One direction through the relay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayTraffic {
    /// Number of bytes.
    pub bytes: u64,
    /// Time from the kernel's receipt of bytes to the write to the other side's socket, by read.
    pub added: Option<Summary>,
    /// Datagrams that the relay dropped in the measured window and the drain: its receive buffer had no room for them, it had
    /// no socket for their client, or the other side's kernel did not accept them.
    pub dropped: u64,
}

/// Back end that emulates links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkBackEnd {
    /// pubmark's emulator in user space.
    #[default]
    UserSpace,
    /// The kernel's netem.
    KernelNetem,
}

impl fmt::Display for LinkBackEnd {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl LinkBackEnd {
    /// Name for people.
    pub fn words(self) -> &'static str {
        match self {
            LinkBackEnd::UserSpace => "user space",
            LinkBackEnd::KernelNetem => "kernel netem",
        }
    }
}

/// The link of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkGroup {
    /// Name of the group.
    pub group: String,
    /// Name of the link.
    pub link: String,
    /// Source of the link's figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// From the group to the system.
    pub up: LinkDirection,
    /// From the system to the group.
    pub down: LinkDirection,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkDirection {
    /// Requested conditions in words; one entry for each step of a series.
    #[serde(alias = "asked")]
    pub requested: Vec<String>,
    /// Results of the probes before the run, for the first step of a series.
    pub checks: Vec<LinkCheck>,
    /// Traffic in the measured window.
    pub traffic: LinkTraffic,
}

/// Result of the probes for one condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkCheck {
    /// The condition: `delay`, `loss`, `rate`.
    pub name: String,
    /// Requested value.
    #[serde(alias = "asked")]
    pub requested: String,
    /// Measured value, or why it was not measured.
    pub measured: String,
    /// Whether the measured value is the requested one, within the tolerance; `null` where it was not measured.
    #[serde(alias = "as_asked")]
    pub as_requested: Option<bool>,
}

/// IP packets, with their headers, in one direction. The kernel's netem does not provide the fields that are `null`:
/// all its losses are in `lost`. `entered_packets + duplicated = left_packets + lost + lost_down + queue_full + those
/// overflowed + packets in transit at the end − packets in transit at the start`; those of all links that overflowed are in
/// `overflowed` of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkTraffic {
    /// Packets that entered the link.
    pub entered_packets: u64,
    /// Bytes of these packets.
    pub entered_bytes: u64,
    /// Packets lost as requested; with the kernel's netem, all packets that its queue dropped.
    pub lost: u64,
    /// Packets lost because the link was down.
    pub lost_down: Option<u64>,
    /// Packets dropped because the queue of the bottleneck was full.
    pub queue_full: Option<u64>,
    /// Packets duplicated as requested.
    pub duplicated: Option<u64>,
    /// Packets sent ahead, without their delay, as requested.
    #[serde(alias = "sent_ahead")]
    pub reordered: Option<u64>,
    /// Packets that left after a packet that had entered later. A packet and its copy are one packet in this; records of
    /// earlier versions count one that left after its own copy.
    pub out_of_order: Option<u64>,
    /// Packets that left the link.
    pub left_packets: u64,
    /// Bytes of these packets.
    pub left_bytes: u64,
    /// Most bytes that waited at the bottleneck at once, in the measured window. Records of earlier versions include the
    /// probes before the run.
    pub queue_peak_bytes: Option<u64>,
}

impl LinkTraffic {
    /// Packets that were not transmitted: lost, or dropped because the queue was full.
    pub fn gone(&self) -> u64 {
        // Saturating, because another machine may have reported any value.
        [self.lost_down, self.queue_full].into_iter().flatten().fold(self.lost, u64::saturating_add)
    }
}

impl LinkFigures {
    /// Packets that were lost although no loss was requested for their link.
    pub fn unexpected_drops(&self) -> u64 {
        let by_relay = self.relay.iter().flat_map(|relay| [relay.up.dropped, relay.down.dropped]);
        let by_trunk = self.trunk.iter().flat_map(|trunk| [trunk.missing, trunk.unsent]);
        self.overflowed.into_iter().chain(by_relay).chain(by_trunk).fold(self.queue_drops, u64::saturating_add)
    }

    /// Later steps of all series, whose conditions are not probed.
    pub fn steps_not_probed(&self) -> u64 {
        let sides = self.groups.iter().flat_map(|group| [&group.up, &group.down]);
        sides.map(|side| side.requested.len().saturating_sub(1) as u64).sum()
    }

    /// All checks, with group and direction.
    pub fn checks(&self) -> impl Iterator<Item = (&LinkGroup, &'static str, &LinkCheck)> {
        self.groups.iter().flat_map(|group| {
            let up = group.up.checks.iter().map(move |check| (group, "up", check));
            up.chain(group.down.checks.iter().map(move |check| (group, "down", check)))
        })
    }
}
