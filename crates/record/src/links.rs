//! Emulated links in a record: what was asked of each, what probes found before the run, what went through while it measured.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::Summary;

/// The links of a run. What only the emulator in user space can tell is `null` with the kernel's netem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkFigures {
    /// What emulates them.
    pub back_end: LinkBackEnd,
    /// It ran with real-time priority.
    pub realtime: bool,
    /// TCP's congestion control in their networks, as the kernel names it; of both ends where clients were given another.
    pub congestion_control: String,
    /// By group of devices or subscribers, in the workload's order.
    pub groups: Vec<LinkGroup>,
    /// What the back end does in another way than links say, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// The way from the links to a system that runs already; `null` for one that was started in the links' network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayFigures>,
    /// Time from a packet being due until the emulator handed it on: part of the latency, and ours.
    pub lateness: Option<Summary>,
    /// CPU time of the emulator in the measured window, s. It holds the receivers' IP and TCP input.
    pub cpu_s: Option<f64>,
    /// Packets that the kernel dropped at an interface, because a queue to the emulator was full or a receiver did not take them.
    pub queue_drops: u64,
    /// Packets that the emulator dropped because it held as many bytes as it may.
    pub overflowed: Option<u64>,
    /// Packets that went to nobody: of no group, or not of IP.
    pub strays: Option<u64>,
}

/// The relay between links and a system that runs already: a process that takes clients' connections in the links' network and opens
/// its own on the machine's. Latencies are measured through it; their lower bounds are less by as long as it held a byte, both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayFigures {
    /// Connections that it took since the run began, and peers that sent datagrams.
    pub connections: u64,
    /// Connections that the system did not take, or for which the relay had no descriptor or port.
    pub refused: u64,
    /// From clients to the system, in the measured window.
    pub up: RelayTraffic,
    /// From the system to clients, in the measured window.
    pub down: RelayTraffic,
    /// Longest that a byte was held in the measured window and the drain, µs. Time for which the receiver had no room is not in it.
    pub longest_held_us: f64,
    /// Its CPU time in the measured window, s.
    pub cpu_s: f64,
    /// It ran with real-time priority.
    pub realtime: bool,
    /// Why nothing is known of it: it ended before the run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
}

/// One way through the relay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelayTraffic {
    /// Bytes.
    pub bytes: u64,
    /// Time from the kernel's receipt of bytes to their hand-over to the other side's kernel, by read.
    pub added: Option<Summary>,
    /// Datagrams that the other side's kernel did not take.
    pub dropped: u64,
}

/// What emulates links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkBackEnd {
    /// pubmark's emulator.
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
    /// For people.
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
    /// The group.
    pub group: String,
    /// The link's name.
    pub link: String,
    /// Where its figures come from.
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
    /// Its conditions in words; one entry for each step of a series.
    pub asked: Vec<String>,
    /// What probes found before the run.
    pub checks: Vec<LinkCheck>,
    /// What went through in the measured window.
    pub traffic: LinkTraffic,
}

/// What probes found of one condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkCheck {
    /// The condition: `delay`, `loss`, `rate`.
    pub name: String,
    /// What was asked for.
    pub asked: String,
    /// What was measured, or why nothing was.
    pub measured: String,
    /// Is it as asked, within the bounds? `null` where it was not measured.
    pub as_asked: Option<bool>,
}

/// Packets of IP, with their headers, in one direction.
/// What is `null` the kernel's netem does not tell: all its losses are in `lost`.
/// `entered_packets + duplicated = left_packets + lost + lost_down + queue_full + what was under way at the end - at the begin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkTraffic {
    /// Packets that came to the link.
    pub entered_packets: u64,
    /// Their bytes.
    pub entered_bytes: u64,
    /// Lost as asked; with the kernel's netem everything that its queue dropped.
    pub lost: u64,
    /// Lost because the link was down.
    pub lost_down: Option<u64>,
    /// Dropped because the bottleneck's queue was full.
    pub queue_full: Option<u64>,
    /// Sent twice as asked.
    pub duplicated: Option<u64>,
    /// Sent ahead, without their delay, as asked.
    pub sent_ahead: Option<u64>,
    /// Left after one that had come later.
    pub out_of_order: Option<u64>,
    /// Packets that left the link.
    pub left_packets: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Most bytes that waited for the bottleneck, since the start.
    pub queue_peak_bytes: Option<u64>,
}

impl LinkTraffic {
    /// Packets that did not get through: lost, or without room in the queue.
    pub fn gone(&self) -> u64 {
        // Another machine may have reported anything.
        [self.lost_down, self.queue_full].into_iter().flatten().fold(self.lost, u64::saturating_add)
    }
}

impl LinkFigures {
    /// Packets that were lost though no link was asked to lose them.
    pub fn unasked_drops(&self) -> u64 {
        let by_relay = self.relay.iter().flat_map(|relay| [relay.up.dropped, relay.down.dropped]);
        self.overflowed.into_iter().chain(by_relay).fold(self.queue_drops, u64::saturating_add)
    }

    /// Every check that was made, with its group and direction.
    pub fn checks(&self) -> impl Iterator<Item = (&LinkGroup, &'static str, &LinkCheck)> {
        self.groups.iter().flat_map(|group| {
            let up = group.up.checks.iter().map(move |check| (group, "up", check));
            up.chain(group.down.checks.iter().map(move |check| (group, "down", check)))
        })
    }
}
