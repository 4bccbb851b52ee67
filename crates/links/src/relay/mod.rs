//! The relay between emulated links and a system that runs already: a pubmark process on the machine's own network. It accepts the
//! connections of clients behind links, opens a connection to the system for each, and copies bytes between the two unread.
//!
//! The sockets that clients connect to are made inside the core's namespace and handed to the process: a socket belongs to the
//! namespace that it was made in, wherever it is used. Neither side needs a way into the other's network, so this works for a plain
//! user too, and nothing of the machine's own network is changed.
//!
//! TCP ends at the relay on both sides: acknowledgements, windows and congestion control of a client's connection are those of its
//! link, and a connection that the system refuses is one that is reset. What the relay adds is measured: [`Counts`].

mod account;
mod channel;
mod connection;
mod datagrams;
mod handle;
mod listener;
mod serve;
mod turn;
mod unserved;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use channel::pair;
pub use handle::{Relay, RelayError};
pub use serve::serve;

use crate::lateness::Lateness;

/// Largest message between the relay and who uses it, bytes: counts with two histograms take some 10 KB.
const LARGEST_MESSAGE: usize = 256 * 1024;
/// Requested receive buffer of a socket of datagrams, bytes: thousands of them may come while the loop does something else.
const RECEIVE_BYTES: libc::c_int = 16 << 20;

/// A request to the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Request {
    /// The address of a host, looked up on the machine's own network.
    Resolve { host: String, port: u16 },
    /// Connect to a system once, to check whether it accepts connections.
    Try { to: SocketAddr },
    /// Carry connections to the listening socket that comes with this to `to`: the system under test, or another server.
    Stream { to: SocketAddr, is_system: bool },
    /// Carry datagrams to the socket that comes with this to `to`, the system under test.
    Datagrams { to: SocketAddr },
    /// Give up everything that is carried, listen no more, and count [`Counts::exhausted`] and [`Counts::closed`] anew.
    Forget,
    /// Respond, to show that the loop turns.
    Check,
    /// Return the counters.
    Count,
    /// Return how many bytes wait. Not one of the counters: it takes system calls for every socket, and nothing is carried meanwhile.
    Waiting,
}

/// The relay's response to a [`Request`].
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Response {
    Address(SocketAddr),
    Done,
    Counts(Box<Counts>),
    Waiting(u64),
    Failed(String),
}

/// What went one way through the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Bytes.
    pub bytes: u64,
    /// Reads that found bytes; each is a sample of [`Carried::added`] unless a write to the other side would have blocked.
    pub reads: u64,
    /// Time from the kernel's receipt of the last byte of a read to when that byte was handed to the other side's kernel.
    pub added: Lateness,
    /// Datagrams that were not forwarded: the relay's receive buffer had no room for them, their client got no socket, or the other
    /// side's kernel did not take them.
    pub dropped: u64,
}

/// What the relay has counted since it started, of clients of the system under test. Of pubmark's own connections to other servers
/// ([`Relay::listen_for_own`]) only the CPU time contains something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Connections accepted, and peers that sent datagrams.
    pub connections: u64,
    /// Connections that the system or the network on the way to it did not take.
    pub refused: u64,
    /// Connections, and peers that sent datagrams, for which this machine had no descriptor, port or memory left, since the relay
    /// last forgot what it carried ([`Relay::forget`]). They are not in `refused`: the system knows nothing of them.
    #[serde(default)]
    pub exhausted: u64,
    /// Peers that had neither sent nor received datagrams for 5 min, and whose socket was closed because others needed one, since the
    /// relay last forgot what it carried. Each is in `connections` again if it sends all the same.
    #[serde(default)]
    pub closed: u64,
    /// From clients to the system.
    pub up: Carried,
    /// From the system to clients.
    pub down: Carried,
    /// Longest time that the relay delayed a byte, ns, since the counters were last read: from the poll before which it was not there to
    /// the end of the turn that forwarded it. Time for which the receiver would block is the receiver's and not included.
    pub longest_held_ns: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// It runs with real-time priority.
    pub realtime: bool,
}
