//! Datagrams: each client that sends some gets a socket of its own towards the system, so that responses find their way back.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pubmark_protocol::datagram::{self, AT_A_TIME, Datagrams};
use pubmark_protocol::receive;

use super::RECEIVE_BYTES;
use super::turn::{RelayCounters, Turn};

/// Clients of one socket; more are refused.
const MOST_PEERS: usize = 65_536;

/// The socket that clients send to, and those towards the system.
#[derive(Debug)]
pub struct Exchange {
    socket: CountedSocket,
    to: SocketAddr,
    by_client: HashMap<SocketAddr, usize>,
    peers: Vec<(SocketAddr, CountedSocket)>,
    read: Datagrams,
}

/// A socket, with the number of datagrams that its buffer had no room for.
#[derive(Debug)]
struct CountedSocket {
    socket: UdpSocket,
    overflowed: u64,
}

/// Watches the socket of a new client by its number.
type Watch<'a> = &'a mut dyn FnMut(usize, BorrowedFd<'_>) -> io::Result<()>;

impl Exchange {
    /// Of a bound socket, for the system at `to`.
    ///
    /// # Errors
    /// The socket is none.
    pub fn new(socket: OwnedFd, to: SocketAddr) -> io::Result<Exchange> {
        let socket = UdpSocket::from(socket);
        socket.set_nonblocking(true)?;
        receive::enable_stamps(socket.as_fd())?;
        let socket = CountedSocket { socket, overflowed: 0 };
        Ok(Exchange { socket, to, by_client: HashMap::new(), peers: vec![], read: Datagrams::default() })
    }

    /// Where clients send to.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket.as_fd()
    }

    /// Forwards datagrams of clients, as many as one call reads; a new client's socket must be polled. Returns whether there
    /// may be more, and for how many the client got no socket.
    pub fn up(&mut self, counters: &mut RelayCounters, turn: &mut Turn, watch: Watch<'_>) -> (bool, u64) {
        let count = self.socket.read(&mut self.read, counters);
        let mut refused = 0;
        for index in 0..count {
            let Some((client, stamp)) = self.read.get(index).and_then(|one| Some((one.from?, one.stamp_realtime_ns)))
            else {
                continue;
            };
            let Some(peer) = self.peer_of(client, watch) else {
                refused += 1;
                counters.dropped += 1;
                continue;
            };
            let bytes = self.read.get(index).map_or(&[][..], |one| one.bytes);
            let socket = &self.peers[peer].1.socket;
            // The kernel reports the ICMP error of an earlier datagram here and does not send this one: the second call sends it.
            let sent = socket.send(bytes).or_else(|error| match error.kind() {
                io::ErrorKind::ConnectionRefused => socket.send(bytes),
                _ => Err(error),
            });
            record_forwarded(counters, turn, bytes, stamp, sent);
        }
        (count == AT_A_TIME, refused)
    }

    /// Forwards datagrams of the system to one client, as many as one call reads. Returns whether there may be more.
    pub fn down(&mut self, number: usize, counters: &mut RelayCounters, turn: &mut Turn) -> bool {
        let Some((client, socket)) = self.peers.get_mut(number) else { return false };
        let count = socket.read(&mut self.read, counters);
        for index in 0..count {
            if let Some(one) = self.read.get(index) {
                record_forwarded(
                    counters,
                    turn,
                    one.bytes,
                    one.stamp_realtime_ns,
                    self.socket.socket.send_to(one.bytes, *client),
                );
            }
        }
        count == AT_A_TIME
    }

    fn peer_of(&mut self, client: SocketAddr, watch: Watch<'_>) -> Option<usize> {
        if let Some(known) = self.by_client.get(&client) {
            return Some(*known);
        }
        let number = self.peers.len();
        let made = (number < MOST_PEERS).then(|| towards(self.to))?;
        let socket = made.and_then(|socket| watch(number, socket.as_fd()).map(|()| socket)).ok()?;
        self.peers.push((client, CountedSocket { socket, overflowed: 0 }));
        self.by_client.insert(client, number);
        Some(number)
    }
}

/// A socket on the machine's own network that receives from the system only.
fn towards(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    // What finds no room all the same is counted.
    let _ = datagram::enlarge_receive_buffer(socket.as_fd(), RECEIVE_BYTES);
    receive::enable_stamps(socket.as_fd())?;
    Ok(socket)
}

impl CountedSocket {
    /// Reads as many datagrams as one call does, and counts those that were dropped because the buffer was full.
    fn read(&mut self, buffers: &mut Datagrams, counters: &mut RelayCounters) -> usize {
        // An error is about one datagram that found no bound socket, and not about this socket.
        let count = buffers.read(self.socket.as_fd()).unwrap_or(0);
        // A full buffer holds several datagrams: after an overflow the next call reads more than one.
        if count > 1 {
            let overflowed = datagram::overflowed(self.socket.as_fd()).unwrap_or(self.overflowed);
            counters.dropped += overflowed.saturating_sub(self.overflowed);
            self.overflowed = overflowed;
        }
        count
    }
}

fn record_forwarded(
    counters: &mut RelayCounters,
    turn: &mut Turn,
    bytes: &[u8],
    stamp: Option<u64>,
    sent: io::Result<usize>,
) {
    counters.bytes += bytes.len() as u64;
    counters.reads += 1;
    match sent {
        Ok(sent) if sent == bytes.len() => turn.carried(counters, stamp),
        _ => counters.dropped += 1,
    }
}
