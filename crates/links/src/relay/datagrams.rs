//! Datagrams: each client that sends some gets a socket of its own towards the system, so that responses find their way back.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pubmark_protocol::datagram::{self, AT_A_TIME, Datagrams};
use pubmark_protocol::receive;

use super::RECEIVE_BYTES;
use super::turn::{RelayCounters, Turn};
use super::unserved::Unserved;

/// Clients of one socket; more get none.
const MOST_PEERS: usize = 65_536;

/// The socket that clients send to, and those towards the system.
#[derive(Debug)]
pub struct Exchange {
    socket: CountedSocket,
    to: SocketAddr,
    by_client: HashMap<SocketAddr, usize>,
    peers: Vec<(SocketAddr, CountedSocket)>,
    /// Clients that got no socket and are counted as such.
    without: HashSet<SocketAddr>,
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
        let (by_client, without) = (HashMap::new(), HashSet::new());
        Ok(Exchange { socket, to, by_client, peers: vec![], without, read: Datagrams::default() })
    }

    /// Where clients send to.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket.as_fd()
    }

    /// Memory of the datagrams that the kernel has received and the relay has not read, bytes: more than their payload, because
    /// it contains the kernel's own overhead for each. It says whether some wait, not how much they carry.
    pub fn waiting_bytes(&self) -> u64 {
        let towards_system = self.peers.iter().map(|(_, socket)| socket);
        towards_system.chain([&self.socket]).map(CountedSocket::received_memory_bytes).sum()
    }

    /// Forwards datagrams of clients, as many as one call reads; a new client's socket must be polled, and a client that gets
    /// none is counted once. Returns whether there may be more.
    pub fn up(
        &mut self,
        counters: &mut RelayCounters,
        turn: &mut Turn,
        unserved: &mut Unserved,
        watch: Watch<'_>,
    ) -> bool {
        let count = self.socket.read(&mut self.read, counters);
        for index in 0..count {
            let Some((client, stamp)) = self.read.get(index).and_then(|one| Some((one.from?, one.stamp_realtime_ns)))
            else {
                continue;
            };
            let peer = match self.peer_of(client, watch) {
                Ok(peer) => peer,
                Err(error) => {
                    // A client counts once, however many datagrams it sends.
                    if self.without.insert(client) {
                        unserved.count(&error);
                    }
                    counters.dropped += 1;
                    continue;
                }
            };
            let bytes = self.read.get(index).map_or(&[][..], |one| one.bytes);
            let sent = send(&self.peers[peer].1.socket, bytes);
            record_forwarded(counters, turn, bytes, stamp, sent);
        }
        count == AT_A_TIME
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

    fn peer_of(&mut self, client: SocketAddr, watch: Watch<'_>) -> io::Result<usize> {
        if let Some(known) = self.by_client.get(&client) {
            return Ok(*known);
        }
        let number = self.peers.len();
        if number >= MOST_PEERS {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let socket = towards(self.to)?;
        watch(number, socket.as_fd())?;
        self.peers.push((client, CountedSocket { socket, overflowed: 0 }));
        self.by_client.insert(client, number);
        Ok(number)
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

/// Sends to the system. The kernel reports the ICMP error of an earlier datagram here and does not send this one: the second call
/// sends it. Another such error, of one sent a moment before, means that nobody is there to receive this one either: it counts as
/// sent, because a system that is down is not a relay that drops.
fn send(socket: &UdpSocket, bytes: &[u8]) -> io::Result<usize> {
    let has_no_receiver = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    match socket.send(bytes) {
        Err(error) if has_no_receiver(&error) => match socket.send(bytes) {
            Err(error) if has_no_receiver(&error) => Ok(bytes.len()),
            sent => sent,
        },
        sent => sent,
    }
}

impl CountedSocket {
    /// Memory of received datagrams, bytes; 0 if the kernel does not report it.
    fn received_memory_bytes(&self) -> u64 {
        datagram::received_memory_bytes(self.socket.as_fd()).unwrap_or(0)
    }

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn bound() -> UdpSocket {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    /// Of a relay that leads to this address, with the address for clients.
    fn exchange(to: SocketAddr) -> (Exchange, SocketAddr) {
        let socket = bound();
        let at = socket.local_addr().unwrap();
        (Exchange::new(socket.into(), to).unwrap(), at)
    }

    fn wait_until(mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(10), "it never happened");
            std::thread::yield_now();
        }
    }

    #[test]
    fn datagrams_wait_until_the_relay_reads_them() {
        let system = bound();
        let (mut exchange, at) = exchange(system.local_addr().unwrap());
        let (mut counters, mut turn, mut unserved) = (RelayCounters::new(true), Turn::new(), Unserved::default());
        assert_eq!(exchange.waiting_bytes(), 0);
        bound().send_to(b"there", at).unwrap();
        wait_until(|| exchange.waiting_bytes() > 0);
        exchange.up(&mut counters, &mut turn, &mut unserved, &mut |_: usize, _: BorrowedFd<'_>| Ok(()));
        assert_eq!(exchange.waiting_bytes(), 0);
        let (_, from) = system.recv_from(&mut [0; 5]).unwrap();
        system.send_to(b"back", from).unwrap();
        wait_until(|| exchange.waiting_bytes() > 0);
        exchange.down(0, &mut counters, &mut turn);
        assert_eq!(exchange.waiting_bytes(), 0);
        assert_eq!(unserved, Unserved::default());
    }

    #[test]
    fn a_client_without_a_socket_counts_once_and_each_of_its_datagrams_is_dropped() {
        let system = bound();
        let (mut exchange, at) = exchange(system.local_addr().unwrap());
        let (mut counters, mut turn, mut unserved) = (RelayCounters::new(true), Turn::new(), Unserved::default());
        let client = bound();
        for _ in 0..3 {
            client.send_to(b"there", at).unwrap();
        }
        let mut fail =
            |_: usize, _: BorrowedFd<'_>| -> io::Result<()> { Err(io::Error::from_raw_os_error(libc::EMFILE)) };
        wait_until(|| {
            exchange.up(&mut counters, &mut turn, &mut unserved, &mut fail);
            counters.dropped == 3
        });
        assert_eq!(unserved, Unserved { refused: 0, exhausted: 1 });
    }

    #[test]
    fn datagrams_to_a_system_that_is_gone_are_not_dropped_by_the_relay() {
        let gone = bound().local_addr().unwrap();
        let (mut exchange, at) = exchange(gone);
        let (mut counters, mut turn, mut unserved) = (RelayCounters::new(true), Turn::new(), Unserved::default());
        let client = bound();
        for _ in 0..10 {
            client.send_to(b"there", at).unwrap();
        }
        wait_until(|| {
            exchange.up(&mut counters, &mut turn, &mut unserved, &mut |_: usize, _: BorrowedFd<'_>| Ok(()));
            counters.reads == 10
        });
        assert_eq!((counters.dropped, unserved), (0, Unserved::default()));
    }
}
