//! Compares a plan with a machine: what is needed, what is available, and the margin.

use serde::Serialize;

use super::Plan;

/// Assumed speed of a link between machines if none is given, bytes per second: the 25 Gb/s of PSMark's test bed.
const ASSUMED_LINK_BYTES_PER_S: f64 = 25e9 / 8.0;
/// Share of the memory that a generator may use in a plan; the rest is for the system and the kernel.
const MEMORY_SHARE: f64 = 0.5;

/// The properties of a machine that limit a run. With several nodes, all are assumed to be equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Descriptors that one process may open.
    pub descriptor_limit: u64,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// CPU cores available to this process.
    pub cores: u32,
    /// Bytes per second from one socket to another over loopback, measured for about a second.
    pub calibrated_bytes_per_s: f64,
    /// Small messages per second over loopback, measured in the same way.
    pub calibrated_messages_per_s: f64,
    /// Speed of the link to the system if the system is on another machine.
    pub link_bytes_per_s: Option<f64>,
}

/// Unit of a verdict's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number without a unit.
    Count,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Messages per second.
    MessagesPerSecond,
    /// Seconds of work per second.
    Share,
}

/// Comparison of what a run needs and what the machine has, for one resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Name of the resource.
    pub what: String,
    /// Unit of the figures.
    pub unit: Unit,
    /// Amount that the run needs.
    pub needed: f64,
    /// Amount that is available.
    pub available: f64,
    /// `available / needed`: the run fits above 1; 0.5 means that twice the available amount is needed.
    pub margin: f64,
    /// Whether the run fits.
    pub ok: bool,
    /// How the figures were obtained, where this is not obvious.
    pub note: String,
}

impl Verdict {
    /// A comparison; the run fits if `needed` is not above `available`.
    pub fn new(what: impl Into<String>, unit: Unit, needed: f64, available: f64, note: impl Into<String>) -> Verdict {
        let margin = if needed > 0.0 { available / needed } else { f64::INFINITY };
        Verdict { what: what.into(), unit, needed, available, margin, ok: needed <= available, note: note.into() }
    }
}

impl Plan {
    /// Compares the plan with a machine. Unknown figures (a flood's rates, a limit that a system does not report) are left
    /// out.
    pub fn verdicts(&self, machine: &Machine) -> Vec<Verdict> {
        let node = if self.nodes > 1 { "on each node" } else { "here" };
        let mut verdicts = vec![
            Verdict::new(
                format!("descriptors {node}"),
                Unit::Count,
                self.node.descriptors as f64,
                machine.descriptor_limit as f64,
                "one a connection, and a few",
            ),
            Verdict::new(
                format!("memory of the generator {node}"),
                Unit::Bytes,
                self.node.generator_bytes as f64,
                machine.memory_bytes as f64 * MEMORY_SHARE,
                "estimate, against half the memory",
            ),
        ];
        verdicts.extend(self.packet_verdict());
        verdicts.extend(self.traffic_verdicts(machine));
        verdicts.extend(self.link_verdict(machine));
        verdicts.extend(self.processing.as_ref().map(|processing| {
            let what = format!("time of a subscriber of `{}`", processing.group);
            Verdict::new(what, Unit::Share, processing.share, 1.0, "processing of one second's messages")
        }));
        verdicts
    }

    fn packet_verdict(&self) -> Option<Verdict> {
        let limit = self.packet_limit_bytes?;
        let needed = self.largest_packet_bytes as f64;
        Some(Verdict::new("largest packet", Unit::Bytes, needed, f64::from(limit), "the system's limit"))
    }

    fn traffic_verdicts(&self, machine: &Machine) -> Vec<Verdict> {
        let (what, note) = match self.nodes {
            1 => ("through this machine", "into and out of the system, against one second of loopback"),
            _ => ("through each node", "sent and received by a node, against one second of loopback here"),
        };
        let bytes = self.node.bytes_per_s.map(|needed| {
            let what = format!("payload bytes {what}");
            Verdict::new(what, Unit::BytesPerSecond, needed, machine.calibrated_bytes_per_s, note)
        });
        let messages = self.node.messages_per_s.map(|needed| {
            let what = format!("messages {what}");
            Verdict::new(what, Unit::MessagesPerSecond, needed, machine.calibrated_messages_per_s, note)
        });
        bytes.into_iter().chain(messages).collect()
    }

    /// The link to the system, in its busier direction, if nodes are on other machines.
    fn link_verdict(&self, machine: &Machine) -> Option<Verdict> {
        if self.nodes == 1 && machine.link_bytes_per_s.is_none() {
            return None;
        }
        let needed = self.incoming?.peak_bytes_per_s.max(self.outgoing?.peak_bytes_per_s);
        let note = match machine.link_bytes_per_s {
            Some(_) => "payloads only, its busier direction",
            None => "payloads only, its busier direction, against an assumed 25 Gb/s",
        };
        let available = machine.link_bytes_per_s.unwrap_or(ASSUMED_LINK_BYTES_PER_S);
        Some(Verdict::new("link of the system", Unit::BytesPerSecond, needed, available, note))
    }
}
