//! What coordinator and nodes say to each other. Tags are never used again for something else; `Join` is understood by every version.

/// Number of this protocol; both ends have to have the same.
pub const SCHEMA: u32 = 7;

/// Largest message that either end takes, bytes: a piece of the tunnel and what surrounds it.
pub const LARGEST_BYTES: usize = 1 << 20;

/// Largest piece of a worker's control stream, bytes: on a line of 100 kbit/s a heartbeat waits 1.3 s behind one.
pub const PIECE_BYTES: usize = 16 << 10;

/// From a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FromNode {
    /// The message.
    #[prost(oneof = "NodeMessage", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9")]
    pub message: Option<NodeMessage>,
}

/// Message from a node.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum NodeMessage {
    /// The node wants to join; sent once, first.
    #[prost(message, tag = "1")]
    Join(Join),
    /// Request for the time. Also the node's heartbeat.
    #[prost(message, tag = "2")]
    Ask(Ask),
    /// A worker was started, or not.
    #[prost(message, tag = "3")]
    Began(Began),
    /// A piece of a worker's output.
    #[prost(message, tag = "4")]
    Piece(Piece),
    /// Counters of its shards.
    #[prost(message, tag = "5")]
    Rows(Rows),
    /// A worker has ended; sent after all of its output.
    #[prost(message, tag = "6")]
    Ended(Ended),
    /// Results of a run on this machine.
    #[prost(message, tag = "7")]
    Report(Report),
    /// The node leaves; the reason.
    #[prost(string, tag = "8")]
    Goodbye(String),
    /// Ports that are free on its machine.
    #[prost(message, tag = "9")]
    FreePorts(FreePorts),
}

/// To a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToNode {
    /// The message.
    #[prost(oneof = "CoordinatorMessage", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub message: Option<CoordinatorMessage>,
}

/// Message from the coordinator.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum CoordinatorMessage {
    /// The node has joined.
    #[prost(message, tag = "1")]
    Welcome(Welcome),
    /// The node has to leave; the reason.
    #[prost(string, tag = "2")]
    Goodbye(String),
    /// The time.
    #[prost(message, tag = "3")]
    Time(Time),
    /// Start a worker.
    #[prost(message, tag = "4")]
    Begin(Begin),
    /// A piece of a worker's input.
    #[prost(message, tag = "5")]
    Piece(Piece),
    /// Send counters from now on, or no more.
    #[prost(bool, tag = "6")]
    Watch(bool),
    /// End a worker and report.
    #[prost(message, tag = "7")]
    End(Run),
    /// Which of these ports are free?
    #[prost(message, tag = "8")]
    WantedPorts(WantedPorts),
}

/// A node introduces itself.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Join {
    /// [`SCHEMA`] of the node.
    #[prost(uint32, tag = "1")]
    pub schema: u32,
    /// Its version of pubmark.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Shared token, checked in addition to certificates.
    #[prost(string, tag = "3")]
    pub token: String,
    /// Its name.
    #[prost(string, tag = "4")]
    pub name: String,
    /// Name of its machine.
    #[prost(string, tag = "5")]
    pub host: String,
    /// Release of its kernel.
    #[prost(string, tag = "6")]
    pub kernel: String,
    /// Cores that it may use.
    #[prost(uint32, tag = "7")]
    pub cores: u32,
    /// Memory, bytes.
    #[prost(uint64, tag = "8")]
    pub memory_bytes: u64,
    /// Boot id of its kernel: nodes with the same boot id share a clock. Empty if the node is to count as another machine.
    #[prost(string, tag = "9")]
    pub boot: String,
    /// State of its time service, as its kernel reports it.
    #[prost(string, tag = "10")]
    pub discipline: String,
    /// The node neither sends nor receives: it measures what a system uses on its machine.
    #[prost(bool, tag = "11")]
    pub observes: bool,
    /// CPU idle states of its machine are disabled while a worker runs.
    #[prost(bool, tag = "12")]
    pub awake: bool,
    /// Address at which clients of other machines reach its clients; empty: that from which it joined.
    #[prost(string, tag = "13")]
    pub address: String,
    /// Its labels, KEY=VALUE.
    #[prost(string, repeated, tag = "14")]
    pub labels: Vec<String>,
    /// Why links cannot be emulated on its machine; empty if they can.
    #[prost(string, tag = "15")]
    pub no_links: String,
    /// The same of links by the kernel's netem.
    #[prost(string, tag = "16")]
    pub no_kernel_netem: String,
    /// The node neither sends nor receives: it starts systems that a run requires on its machine.
    #[prost(bool, tag = "17")]
    pub starts_systems: bool,
}

/// The coordinator accepts a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    /// The coordinator's version.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Boot id of its kernel.
    #[prost(string, tag = "2")]
    pub boot: String,
    /// The run's time − its `CLOCK_MONOTONIC_RAW`, ns, for nodes with the same clock.
    #[prost(sint64, tag = "3")]
    pub run_less_raw_ns: i64,
    /// Address at which clients of other machines reach those of the node.
    #[prost(string, tag = "4")]
    pub clients_at: String,
}

/// A node requests the time.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Ask {
    /// Its `CLOCK_MONOTONIC_RAW` when it sent the request, ns.
    #[prost(fixed64, tag = "1")]
    pub asked_ns: u64,
}

/// The time.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Time {
    /// As in the request.
    #[prost(fixed64, tag = "1")]
    pub asked_ns: u64,
    /// When the request arrived, ns of the run's time; 0 if there was none, and this is only the coordinator's heartbeat.
    #[prost(fixed64, tag = "2")]
    pub came_ns: u64,
    /// When this was sent, ns of the run's time.
    #[prost(fixed64, tag = "3")]
    pub sent_ns: u64,
}

/// A worker, by its number at the coordinator.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Run {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
}

/// A worker has ended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ended {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Why its node ended it; empty if it ended by itself, or at the coordinator's request.
    #[prost(string, tag = "2")]
    pub why: String,
}

/// A worker is to be started.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Begin {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Shards of the whole run.
    #[prost(uint32, tag = "2")]
    pub shards: u32,
    /// Those of this node, by index.
    #[prost(uint32, repeated, tag = "3")]
    pub own: Vec<u32>,
}

/// A worker was started.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Began {
    /// Its number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Why it was not; empty if it was.
    #[prost(string, tag = "2")]
    pub failure: String,
}

/// Ports at which clients on a node could listen.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WantedPorts {
    /// Number of the question.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// The address at which they would.
    #[prost(string, tag = "2")]
    pub address: String,
    /// The ports, at most [`crate::limits::PORTS`].
    #[prost(uint32, repeated, tag = "3")]
    pub ports: Vec<u32>,
}

/// Those of them that are free.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FreePorts {
    /// Number of the question.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// In the order of the question.
    #[prost(uint32, repeated, tag = "2")]
    pub ports: Vec<u32>,
    /// Why clients cannot listen at the address at all; empty if they can.
    #[prost(string, tag = "3")]
    pub failure: String,
}

/// A piece of a worker's control stream.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Piece {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// At most [`PIECE_BYTES`].
    #[prost(bytes = "vec", tag = "2")]
    pub bytes: Vec<u8>,
}

/// Counters of a node's shards.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Rows {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Those of its shards, one after the other in their order.
    #[prost(uint64, repeated, tag = "2")]
    pub counters: Vec<u64>,
}

/// What a run came to on a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Report {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// The clock's part; none where there is one clock.
    #[prost(message, optional, tag = "2")]
    pub clock: Option<Clock>,
    /// Processor time of the worker while nothing was watched, ns.
    #[prost(uint64, tag = "3")]
    pub cpu_ns: u64,
    /// How long that was, ns; 0 if the run never came to it.
    #[prost(uint64, tag = "4")]
    pub measured_ns: u64,
    /// Largest resident set of the worker, bytes; 0 if its kernel does not say.
    #[prost(uint64, tag = "5")]
    pub peak_rss_bytes: u64,
    /// The whole machine meanwhile; none where its kernel does not say.
    #[prost(message, optional, tag = "6")]
    pub machine: Option<MachineUsage>,
    /// Processor time of the node itself meanwhile, whose workers share it, ns.
    #[prost(uint64, tag = "7")]
    pub node_cpu_ns: u64,
}

impl Report {
    /// What a run came to with another worker of the same node.
    pub fn and(self, other: &Report) -> Report {
        Report {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            node_cpu_ns: self.node_cpu_ns.max(other.node_cpu_ns),
            measured_ns: self.measured_ns.max(other.measured_ns),
            peak_rss_bytes: self.peak_rss_bytes.saturating_add(other.peak_rss_bytes),
            clock: self.clock.or(other.clock),
            machine: self.machine.or(other.machine),
            number: self.number,
        }
    }
}

/// What a whole machine took while a run measured.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MachineUsage {
    /// Processor time of all that ran there, ns.
    #[prost(uint64, tag = "1")]
    pub cpu_ns: u64,
    /// Memory in use, the larger of both edges, bytes; none where its kernel does not say.
    #[prost(uint64, optional, tag = "2")]
    pub used_bytes: Option<u64>,
    /// Bytes received by the interface that has the node's address; none where that is not known for the whole time.
    #[prost(uint64, optional, tag = "3")]
    pub received_bytes: Option<u64>,
    /// Bytes sent by it.
    #[prost(uint64, optional, tag = "4")]
    pub sent_bytes: Option<u64>,
}

/// A node's clock over a run.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Clock {
    /// The run's time − the node's clock when the worker began, ns.
    #[prost(sint64, tag = "1")]
    pub offset_ns: i64,
    /// A second of the node is longer in the run by this, ns.
    #[prost(double, tag = "2")]
    pub drift_ppb: f64,
    /// Largest error that stamps can have had, ns.
    #[prost(double, tag = "3")]
    pub bound_ns: f64,
    /// Shortest round trip, ns.
    #[prost(uint64, tag = "4")]
    pub minimum_round_trip_ns: u64,
    /// Responses that it is based on.
    #[prost(uint64, tag = "5")]
    pub samples: u64,
    /// How often it had to begin anew, as no straight line fitted what it had seen.
    #[prost(uint64, tag = "6")]
    pub restarts: u64,
    /// Largest true error, ns, where an error was put into the clock of a node on the coordinator's machine to see whether it is found.
    #[prost(uint64, optional, tag = "7")]
    pub true_error_ns: Option<u64>,
    /// The node's clock is the coordinator's: nothing was estimated.
    #[prost(bool, tag = "8")]
    pub is_the_same: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use prost::Message as _;

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            // Either is right; neither may panic.
            let read = (FromNode::decode(&bytes[..]).is_ok(), ToNode::decode(&bytes[..]).is_ok());
            prop_assert!(!bytes.is_empty() || read == (true, true), "an empty message is one");
        }

        #[test]
        fn what_is_said_is_understood(number in any::<u32>(), bytes in prop::collection::vec(any::<u8>(), 0..100), asked_ns in any::<u64>()) {
            for said in [NodeMessage::Piece(Piece { number, bytes: bytes.clone() }), NodeMessage::Ask(Ask { asked_ns }), NodeMessage::Ended(Ended { number, why: String::new() })] {
                let message = FromNode { message: Some(said) };
                prop_assert_eq!(FromNode::decode(&message.encode_to_vec()[..]), Ok(message));
            }
        }
    }
}
