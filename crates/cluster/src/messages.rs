//! Messages between the coordinator and the nodes. A tag is never reused for something else. Every version can decode
//! `Join`.

/// Version of this protocol; both ends must have the same.
pub const SCHEMA: u32 = 16;

/// Largest message that either end accepts, bytes: a piece of the tunnel and its envelope.
pub const LARGEST_BYTES: usize = 1 << 20;

/// Largest piece of a worker's control stream, bytes: on a link of 100 kbit/s a heartbeat waits 1.3 s behind one.
pub const PIECE_BYTES: usize = 16 << 10;

/// Envelope of a message from a node.
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
    /// Request for the time. It is also the node's heartbeat.
    #[prost(message, tag = "2")]
    Ask(Ask),
    /// A worker was started, or could not be started.
    #[prost(message, tag = "3")]
    Began(Began),
    /// A piece of a worker's output.
    #[prost(message, tag = "4")]
    Piece(Piece),
    /// Counters of the node's shards.
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
    /// Ports that are free on the node's machine.
    #[prost(message, tag = "9")]
    FreePorts(FreePorts),
}

/// Envelope of a message to a node.
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
    /// Send counters from now on, or stop sending them.
    #[prost(bool, tag = "6")]
    Watch(bool),
    /// End a worker and report its results.
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
    /// The node's version of pubmark.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Shared token, checked in addition to certificates.
    #[prost(string, tag = "3")]
    pub token: String,
    /// The node's name.
    #[prost(string, tag = "4")]
    pub name: String,
    /// Name of the node's machine.
    #[prost(string, tag = "5")]
    pub host: String,
    /// Release of the machine's kernel.
    #[prost(string, tag = "6")]
    pub kernel: String,
    /// Cores that the node may use.
    #[prost(uint32, tag = "7")]
    pub cores: u32,
    /// Memory of the machine, bytes.
    #[prost(uint64, tag = "8")]
    pub memory_bytes: u64,
    /// Boot id of the machine's kernel: nodes with the same boot id share a clock. Empty if the node is to count as
    /// another machine.
    #[prost(string, tag = "9")]
    pub boot: String,
    /// State of the machine's time service, as the kernel reports it.
    #[prost(string, tag = "10")]
    pub discipline: String,
    /// The node neither sends nor receives: it measures what a system uses on its machine.
    #[prost(bool, tag = "11")]
    pub observes: bool,
    /// CPU idle states of the machine are prevented while a worker runs.
    #[prost(bool, tag = "12")]
    pub awake: bool,
    /// Address at which clients on other machines reach the node's clients; empty: the address from which the node
    /// joined.
    #[prost(string, tag = "13")]
    pub address: String,
    /// The node's labels, KEY=VALUE.
    #[prost(string, repeated, tag = "14")]
    pub labels: Vec<String>,
    /// Why links cannot be emulated on the machine; empty if they can.
    #[prost(string, tag = "15")]
    pub no_links: String,
    /// Why links cannot be emulated by the kernel's netem on the machine; empty if they can.
    #[prost(string, tag = "16")]
    pub no_kernel_netem: String,
    /// The node neither sends nor receives: it starts systems that a run requires on its machine.
    #[prost(bool, tag = "17")]
    pub starts_systems: bool,
    /// Fingerprint of the sources that the node's pubmark was built from ([`crate::SOURCES`]).
    #[prost(string, tag = "18")]
    pub sources: String,
}

/// The coordinator accepts a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    /// The coordinator's version.
    #[prost(string, tag = "1")]
    pub version: String,
    /// Boot id of the coordinator's kernel.
    #[prost(string, tag = "2")]
    pub boot: String,
    /// The run's time − the coordinator's `CLOCK_MONOTONIC_RAW`, ns, for nodes with the same clock.
    #[prost(sint64, tag = "3")]
    pub run_less_raw_ns: i64,
    /// Address at which clients on other machines reach the clients of the node.
    #[prost(string, tag = "4")]
    pub clients_at: String,
}

/// A node requests the time.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Ask {
    /// The node's `CLOCK_MONOTONIC_RAW` when it sent the request, ns.
    #[prost(fixed64, tag = "1")]
    pub origin_ns: u64,
    /// Largest possible error of the run's clock on the node now, ns.
    #[prost(uint64, tag = "2")]
    pub bound_ns: u64,
}

/// The run's time, as a response to a request or as the coordinator's heartbeat.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Time {
    /// The value of the request.
    #[prost(fixed64, tag = "1")]
    pub origin_ns: u64,
    /// When the request arrived, ns of the run's time; 0 if there was no request, and this is only the coordinator's
    /// heartbeat.
    #[prost(fixed64, tag = "2")]
    pub receive_ns: u64,
    /// When this message was sent, ns of the run's time.
    #[prost(fixed64, tag = "3")]
    pub transmit_ns: u64,
    /// The largest [`Ask::bound_ns`] of all nodes, ns.
    #[prost(uint64, tag = "4")]
    pub largest_bound_ns: u64,
}

/// A worker, by its number at the coordinator.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Run {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
}

/// A worker has ended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ended {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Why the node ended the worker; empty if it ended by itself, or at the coordinator's request.
    #[prost(string, tag = "2")]
    pub why: String,
}

/// Request to start a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Begin {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Number of shards of the whole run.
    #[prost(uint32, tag = "2")]
    pub shards: u32,
    /// Indices of the shards that run on this node.
    #[prost(uint32, repeated, tag = "3")]
    pub own: Vec<u32>,
}

/// Response to the request to start a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Began {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// Why the worker was not started; empty if it was.
    #[prost(string, tag = "2")]
    pub failure: String,
}

/// Request: which of these ports can clients on a node listen at?
#[derive(Clone, PartialEq, prost::Message)]
pub struct WantedPorts {
    /// Number of the request.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// The address at which the clients would listen.
    #[prost(string, tag = "2")]
    pub address: String,
    /// The ports, at most [`crate::limits::PORTS`].
    #[prost(uint32, repeated, tag = "3")]
    pub ports: Vec<u32>,
}

/// Response: the requested ports that are free.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FreePorts {
    /// Number of the request.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// The free ports, in the order of the request.
    #[prost(uint32, repeated, tag = "2")]
    pub ports: Vec<u32>,
    /// Why clients cannot listen at this address at all; empty if they can.
    #[prost(string, tag = "3")]
    pub failure: String,
}

/// A piece of a worker's control stream.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Piece {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// The bytes, at most [`PIECE_BYTES`].
    #[prost(bytes = "vec", tag = "2")]
    pub bytes: Vec<u8>,
}

/// Counters of a node's shards.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Rows {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// The counters of the shards, one after the other in their order.
    #[prost(uint64, repeated, tag = "2")]
    pub counters: Vec<u64>,
}

/// Results of a worker on a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Report {
    /// The worker's number.
    #[prost(uint32, tag = "1")]
    pub number: u32,
    /// How well the node followed the run's clock; none if the node never had an estimate of it.
    #[prost(message, optional, tag = "2")]
    pub clock: Option<Clock>,
    /// CPU time of the worker during the measurement, while no counters were sent, ns.
    #[prost(uint64, tag = "3")]
    pub cpu_ns: u64,
    /// Length of that time, ns; 0 if the run ended before the measurement.
    #[prost(uint64, tag = "4")]
    pub measured_ns: u64,
    /// Largest resident set of the worker, bytes; 0 if the kernel does not report it.
    #[prost(uint64, tag = "5")]
    pub peak_rss_bytes: u64,
    /// Usage of the whole machine during that time; none if the kernel does not report it.
    #[prost(message, optional, tag = "6")]
    pub machine: Option<MachineUsage>,
    /// CPU time of the node's process during that time, ns. The workers of a node share it.
    #[prost(uint64, tag = "7")]
    pub node_cpu_ns: u64,
}

impl Report {
    /// Combines the results of two workers of the same node. Of two judgements of its clock, the one with the larger
    /// bound is kept: a worker that ended early covers only a part of the run.
    pub fn and(self, other: &Report) -> Report {
        let clock = match (self.clock, other.clock) {
            (Some(one), Some(other)) if other.bound_ns > one.bound_ns => Some(other),
            (one, other) => one.or(other),
        };
        Report {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            node_cpu_ns: self.node_cpu_ns.max(other.node_cpu_ns),
            measured_ns: self.measured_ns.max(other.measured_ns),
            peak_rss_bytes: self.peak_rss_bytes.saturating_add(other.peak_rss_bytes),
            clock,
            machine: self.machine.or(other.machine),
            number: self.number,
        }
    }
}

/// What a whole machine used while a run measured.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MachineUsage {
    /// CPU time of all processes of the machine, ns.
    #[prost(uint64, tag = "1")]
    pub cpu_ns: u64,
    /// Memory in use, bytes: the larger of the values at the two edges; none if the kernel does not report it.
    #[prost(uint64, optional, tag = "2")]
    pub used_bytes: Option<u64>,
    /// Bytes received by the interface that has the node's address; none if that is not known for the whole time.
    #[prost(uint64, optional, tag = "3")]
    pub received_bytes: Option<u64>,
    /// Bytes sent by that interface.
    #[prost(uint64, optional, tag = "4")]
    pub sent_bytes: Option<u64>,
    /// Share of the machine's CPU time that the hypervisor took for other guests, 0 to 1; none if the kernel does not
    /// report it.
    #[prost(double, optional, tag = "5")]
    pub steal: Option<f64>,
}

/// A node's clock over a run.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Clock {
    /// The run's time − the node's clock when the worker started, ns.
    #[prost(sint64, tag = "1")]
    pub offset_ns: i64,
    /// By how much a second of the node's clock is longer than a second of the run's clock, parts per billion.
    #[prost(double, tag = "2")]
    pub drift_ppb: f64,
    /// Largest possible error of time stamps, ns.
    #[prost(double, tag = "3")]
    pub bound_ns: f64,
    /// Shortest round trip, ns.
    #[prost(uint64, tag = "4")]
    pub minimum_round_trip_ns: u64,
    /// Number of responses that the estimate is based on.
    #[prost(uint64, tag = "5")]
    pub samples: u64,
    /// How often the estimate was restarted, because no straight line fitted all readings.
    #[prost(uint64, tag = "6")]
    pub restarts: u64,
    /// Largest true error, ns. Known only if an error was put on purpose into the clock of a node on the coordinator's
    /// machine, as a test.
    #[prost(uint64, optional, tag = "7")]
    pub true_error_ns: Option<u64>,
    /// Node and coordinator have the same clock: nothing was estimated.
    #[prost(bool, tag = "8")]
    pub is_the_same: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use prost::Message as _;

    #[test]
    fn a_node_s_clock_is_as_uncertain_as_the_worker_that_saw_most_of_the_run_found_it() {
        let with = |bound_ns: Option<f64>| Report {
            clock: bound_ns.map(|bound_ns| Clock { bound_ns, ..Clock::default() }),
            ..Report::default()
        };
        let bound_ns = |one: Option<f64>, other: Option<f64>| with(one).and(&with(other)).clock.map(|it| it.bound_ns);
        assert_eq!(bound_ns(Some(5.0), Some(90.0)), Some(90.0));
        assert_eq!(bound_ns(Some(f64::INFINITY), Some(90.0)), Some(f64::INFINITY));
        assert_eq!(bound_ns(None, Some(90.0)), Some(90.0));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            // Either is right; neither may panic.
            let read = (FromNode::decode(&bytes[..]).is_ok(), ToNode::decode(&bytes[..]).is_ok());
            prop_assert!(!bytes.is_empty() || read == (true, true), "an empty message is one");
        }

        #[test]
        fn messages_are_understood(number in any::<u32>(), bytes in prop::collection::vec(any::<u8>(), 0..100), origin_ns in any::<u64>()) {
            for said in [NodeMessage::Piece(Piece { number, bytes: bytes.clone() }), NodeMessage::Ask(Ask { origin_ns, bound_ns: 1 }), NodeMessage::Ended(Ended { number, why: String::new() })] {
                let message = FromNode { message: Some(said) };
                prop_assert_eq!(FromNode::decode(&message.encode_to_vec()[..]), Ok(message));
            }
        }
    }
}
