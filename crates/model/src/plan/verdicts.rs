//! The plan against a machine: what is needed, what there is, and by how much it fits or does not.

use serde::Serialize;

use super::Plan;

/// Speed of a link between machines where none is given, bytes per second: the 25 Gb/s of PSMark's test bed.
const ASSUMED_LINK_BYTES_PER_S: f64 = 25e9 / 8.0;
/// Share of the memory that a generator may plan with; the rest is the system's and the kernel's.
const MEMORY_SHARE: f64 = 0.5;

/// A machine, as far as it limits a run. With several nodes, each is taken to be one like it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Descriptors that one process may open.
    pub descriptor_limit: u64,
    /// Ports that connections of one source address to one endpoint can have, where the kernel says.
    pub source_ports: Option<u64>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Cores that we may use.
    pub cores: u32,
    /// Bytes per second from one socket to another over loopback, measured for about a second.
    pub calibrated_bytes_per_s: f64,
    /// Messages per second likewise, small ones.
    pub calibrated_messages_per_s: f64,
    /// Speed of the link to the system, where it is on another machine.
    pub link_bytes_per_s: Option<f64>,
}

/// In what a verdict's figures are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Things.
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

/// One thing that a run needs against what there is of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What.
    pub what: String,
    /// In what the figures are counted.
    pub unit: Unit,
    /// What the run needs.
    pub needed: f64,
    /// What there is.
    pub available: f64,
    /// `available / needed`: above 1 it fits, 0.5 means that twice as much is needed as there is.
    pub margin: f64,
    /// It fits.
    pub ok: bool,
    /// How the figures were come by, where that is not plain.
    pub note: String,
}

impl Verdict {
    fn new(what: impl Into<String>, unit: Unit, needed: f64, available: f64, note: impl Into<String>) -> Verdict {
        let margin = if needed > 0.0 { available / needed } else { f64::INFINITY };
        Verdict { what: what.into(), unit, needed, available, margin, ok: needed <= available, note: note.into() }
    }
}

impl Plan {
    /// Judges the plan against a machine. What is not known (a flood's rates, a limit that a system does not tell) is left out.
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
        verdicts.extend(machine.source_ports.map(|ports| self.port_verdict(ports, node)));
        verdicts.extend(self.packet_verdict());
        verdicts.extend(self.traffic_verdicts(machine));
        verdicts.extend(self.link_verdict(machine));
        verdicts.extend(self.processing.as_ref().map(|processing| {
            let what = format!("time of a subscriber of `{}`", processing.group);
            Verdict::new(what, Unit::Share, processing.share, 1.0, "processing of one second's messages")
        }));
        verdicts
    }

    /// Each connection takes a port of its source address.
    fn port_verdict(&self, ports_per_address: u64, node: &str) -> Verdict {
        let available = ports_per_address as f64 * f64::from(self.source_addresses);
        let note = match self.source_addresses {
            1 => "one a connection; `--source-addresses` with more addresses has more".to_owned(),
            addresses => format!("one a connection, from {addresses} source addresses"),
        };
        let needed = self.node.connections.div_ceil(u64::from(self.endpoints)) as f64;
        Verdict::new(format!("local ports {node}"), Unit::Count, needed, available, note)
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

    /// The system's link, by its busier direction, where nodes are elsewhere.
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
