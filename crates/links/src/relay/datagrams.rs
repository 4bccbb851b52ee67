//! Datagrams: each client that sends some gets a socket of its own towards the system, so that responses find their way back.
//! A client ends without a word, and its socket stays. Where there is none left for a new client, those are closed whose clients
//! must have ended.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pubmark_protocol::datagram::{self, AT_A_TIME, Datagrams};
use pubmark_protocol::receive;

use super::RECEIVE_BYTES;
use super::turn::{RelayCounters, Turn};
use super::unserved::{Unserved, is_exhaustion};

/// Clients of one socket; more get none.
const MOST_PEERS: usize = 65_536;
/// A client that neither sent nor received for this long, ns, has ended. Those of pubmark ping a system that was silent for the
/// keep-alive, 60 s, and client programs receive the same `keep_alive_s`. After EXCHANGE_LIFETIME, 247 s (RFC 7252 §4.8.2), all
/// exchanges of CoAP have ended, too, and another client may send the same message identifiers from the same port.
const ENDED_AFTER_NS: u64 = 300_000_000_000;

/// The socket that clients send to, and those towards the system.
#[derive(Debug)]
pub struct Exchange {
    socket: CountedSocket,
    to: SocketAddr,
    by_client: HashMap<SocketAddr, usize>,
    /// By number; `None` for one whose socket was closed.
    peers: Vec<Option<Peer>>,
    /// Numbers without a socket.
    free: Vec<usize>,
    /// No client will have ended before this time, ns.
    all_live_until_ns: u64,
    /// Sockets that were closed.
    closed: u64,
    /// Clients that got no socket and are counted as such.
    without: HashSet<SocketAddr>,
    read: Datagrams,
}

/// A client, and its socket towards the system.
#[derive(Debug)]
struct Peer {
    client: SocketAddr,
    socket: CountedSocket,
    /// When the client last sent or received, ns.
    used_ns: u64,
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
        Ok(Exchange {
            socket,
            to,
            by_client: HashMap::new(),
            peers: vec![],
            free: vec![],
            all_live_until_ns: 0,
            closed: 0,
            without: HashSet::new(),
            read: Datagrams::default(),
        })
    }

    /// Where clients send to.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.socket.as_fd()
    }

    /// Memory of the datagrams that the kernel has received and the relay has not read, bytes: more than their payload, because
    /// it contains the kernel's own overhead for each. It says whether some wait, not how much they carry.
    pub fn waiting_bytes(&self) -> u64 {
        let towards_system = self.peers.iter().flatten().map(|peer| &peer.socket);
        towards_system.chain([&self.socket]).map(CountedSocket::received_memory_bytes).sum()
    }

    /// Sockets that were closed because their clients had ended and others needed them.
    pub fn closed(&self) -> u64 {
        self.closed
    }

    /// Forwards datagrams of clients at `now_ns`, as many as one call reads; a new client's socket must be polled, and a client that
    /// gets none is counted once. Returns whether there may be more.
    pub fn up(
        &mut self,
        now_ns: u64,
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
            let number = match self.number_of(client, now_ns, watch) {
                Ok(number) => number,
                Err(error) => {
                    // A client counts once, however many datagrams it sends.
                    if self.without.insert(client) {
                        unserved.count(&error);
                    }
                    counters.dropped += 1;
                    continue;
                }
            };
            let Some(Some(peer)) = self.peers.get_mut(number) else { continue };
            peer.used_ns = now_ns;
            let bytes = self.read.get(index).map_or(&[][..], |one| one.bytes);
            record_forwarded(counters, turn, bytes, stamp, send(&peer.socket.socket, bytes));
        }
        count == AT_A_TIME
    }

    /// Forwards datagrams of the system to one client at `now_ns`, as many as one call reads. Returns whether there may be more.
    pub fn down(&mut self, now_ns: u64, number: usize, counters: &mut RelayCounters, turn: &mut Turn) -> bool {
        // What epoll named may have been closed since, and its number may be another client's: then there is nothing to read.
        let Some(Some(peer)) = self.peers.get_mut(number) else { return false };
        let count = peer.socket.read(&mut self.read, counters);
        if count > 0 {
            peer.used_ns = now_ns;
        }
        for index in 0..count {
            if let Some(one) = self.read.get(index) {
                record_forwarded(
                    counters,
                    turn,
                    one.bytes,
                    one.stamp_realtime_ns,
                    self.socket.socket.send_to(one.bytes, peer.client),
                );
            }
        }
        count == AT_A_TIME
    }

    /// Number of a client; a new one gets a socket, if need be in place of one whose client has ended.
    fn number_of(&mut self, client: SocketAddr, now_ns: u64, watch: Watch<'_>) -> io::Result<usize> {
        if let Some(known) = self.by_client.get(&client) {
            return Ok(*known);
        }
        match self.open(client, now_ns, watch) {
            Err(error) if is_exhaustion(&error) && self.close_ended(now_ns) => self.open(client, now_ns, watch),
            opened => opened,
        }
    }

    fn open(&mut self, client: SocketAddr, now_ns: u64, watch: Watch<'_>) -> io::Result<usize> {
        let number = self.free.last().copied().unwrap_or(self.peers.len());
        if number >= MOST_PEERS {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let socket = towards(self.to)?;
        watch(number, socket.as_fd())?;
        let peer = Some(Peer { client, socket: CountedSocket { socket, overflowed: 0 }, used_ns: now_ns });
        match self.free.pop() {
            Some(free) => self.peers[free] = peer,
            None => self.peers.push(peer),
        }
        self.by_client.insert(client, number);
        // A later client at this address that gets no socket is another one, and counts.
        self.without.remove(&client);
        Ok(number)
    }

    /// Closes the sockets of clients that have ended; were there any? Only when others need them: until then, a client that was silent
    /// for longer all the same is not cut off. What the system still sends to one that has ended finds nobody, as without a relay.
    fn close_ended(&mut self, now_ns: u64) -> bool {
        if now_ns < self.all_live_until_ns {
            return false;
        }
        let before = self.closed;
        let mut longest_silent_ns = now_ns;
        for (number, place) in self.peers.iter_mut().enumerate() {
            let Some(peer) = place else { continue };
            if peer.has_ended(now_ns) {
                self.by_client.remove(&peer.client);
                *place = None;
                self.free.push(number);
                self.closed += 1;
            } else {
                longest_silent_ns = longest_silent_ns.min(peer.used_ns);
            }
        }
        self.all_live_until_ns = longest_silent_ns.saturating_add(ENDED_AFTER_NS);
        self.closed > before
    }
}

impl Peer {
    /// What came for it and was not read yet is forwarded first.
    fn has_ended(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.used_ns) >= ENDED_AFTER_NS && self.socket.received_memory_bytes() == 0
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

    use pubmark_testing::assert_count_eq;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    /// Longest wait for what takes microseconds.
    const LIMIT: Duration = Duration::from_secs(10);

    fn bound() -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        socket
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
            assert!(began.elapsed() < LIMIT, "it never happened");
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
        exchange.up(0, &mut counters, &mut turn, &mut unserved, &mut |_: usize, _: BorrowedFd<'_>| Ok(()));
        assert_eq!(exchange.waiting_bytes(), 0);
        let (_, from) = system.recv_from(&mut [0; 5]).unwrap();
        system.send_to(b"back", from).unwrap();
        wait_until(|| exchange.waiting_bytes() > 0);
        exchange.down(0, 0, &mut counters, &mut turn);
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
            exchange.up(0, &mut counters, &mut turn, &mut unserved, &mut fail);
            counters.dropped == 3
        });
        assert_eq!(unserved, Unserved { refused: 0, exhausted: 1 });
    }

    /// A relay with sockets for two clients, and the system.
    struct Small {
        system: UdpSocket,
        exchange: Exchange,
        at: SocketAddr,
        counters: [RelayCounters; 2],
        turn: Turn,
        unserved: Unserved,
    }

    impl Small {
        fn new() -> Small {
            let system = bound();
            let (exchange, at) = exchange(system.local_addr().unwrap());
            let counters = [RelayCounters::new(true), RelayCounters::new(true)];
            Small { system, exchange, at, counters, turn: Turn::new(), unserved: Unserved::default() }
        }

        /// A client sends a datagram at this time. The address that the system has it from; `None` if the relay drops it.
        fn sends(&mut self, client: &UdpSocket, now_ns: u64) -> Option<SocketAddr> {
            let Small { system, exchange, at, counters: [up, _], turn, unserved } = self;
            let (reads, dropped) = (up.reads, up.dropped);
            client.send_to(b"there", *at).unwrap();
            let mut two = |number: usize, _: BorrowedFd<'_>| match number {
                0 | 1 => Ok(()),
                _ => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            };
            wait_until(|| {
                exchange.up(now_ns, up, turn, unserved, &mut two);
                (up.reads, up.dropped) != (reads, dropped)
            });
            (up.dropped == dropped).then(|| system.recv_from(&mut [0; 5]).unwrap().1)
        }

        /// The system sends a datagram to a client, whose socket has this number; the relay forwards it at this time.
        fn responds(&mut self, client: SocketAddr, number: usize, now_ns: u64) {
            self.system.send_to(b"back", client).unwrap();
            wait_until(|| self.exchange.waiting_bytes() > 0);
            self.exchange.down(now_ns, number, &mut self.counters[1], &mut self.turn);
        }
    }

    #[test]
    fn a_client_that_was_silent_for_5_minutes_makes_room_for_a_new_one() {
        let mut relay = Small::new();
        let [first, second, third] = [(); 3].map(|()| bound());
        let from_first = relay.sends(&first, 0).unwrap();
        relay.sends(&second, 100 * SECOND).unwrap();
        // What a client receives is a sign of life, too.
        relay.responds(from_first, 0, 200 * SECOND);
        assert_eq!(relay.sends(&third, 400 * SECOND - 1), None);
        assert_count_eq!((relay.unserved.exhausted, relay.exchange.closed()), (1, 0));
        let from_third = relay.sends(&third, 400 * SECOND).unwrap();
        assert_ne!(from_third, from_first);
        assert_count_eq!((relay.unserved.exhausted, relay.exchange.closed()), (1, 1));
        // Whoever is left has the socket that it had, and the number of the other one leads to the new client.
        assert_eq!(relay.sends(&first, 401 * SECOND), Some(from_first));
        relay.responds(from_third, 1, 402 * SECOND);
        assert_eq!(third.recv_from(&mut [0; 5]).unwrap(), (4, relay.at));
        assert_count_eq!((relay.counters[0].dropped, relay.counters[1].dropped), (1, 0));
        // There is no room for a third one again: each client that gets none counts.
        assert_eq!(relay.sends(&second, 403 * SECOND), None);
        assert_count_eq!((relay.unserved.exhausted, relay.exchange.closed()), (2, 1));
    }

    #[test]
    fn what_came_for_a_silent_client_is_forwarded_before_its_socket_is_closed() {
        let mut relay = Small::new();
        let [first, second, third] = [(); 3].map(|()| bound());
        let from_first = relay.sends(&first, 0).unwrap();
        relay.sends(&second, 300 * SECOND).unwrap();
        relay.system.send_to(b"late", from_first).unwrap();
        wait_until(|| relay.exchange.waiting_bytes() > 0);
        assert_eq!(relay.sends(&third, 301 * SECOND), None);
        relay.exchange.down(301 * SECOND, 0, &mut relay.counters[1], &mut relay.turn);
        assert_eq!(first.recv_from(&mut [0; 5]).unwrap(), (4, relay.at));
        assert_count_eq!((relay.unserved.exhausted, relay.exchange.closed()), (1, 0));
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
            exchange.up(0, &mut counters, &mut turn, &mut unserved, &mut |_: usize, _: BorrowedFd<'_>| Ok(()));
            counters.reads == 10
        });
        assert_eq!((counters.dropped, unserved), (0, Unserved::default()));
    }
}
