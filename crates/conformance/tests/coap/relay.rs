//! An emulated network: datagrams are lost, duplicated or reordered, by a seed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pubmark_model::random::Stream;
use pubmark_protocol::clock::monotonic_ns;
use pubmark_protocol::datagram::{DatagramSocket, Datagrams};
use pubmark_protocol::reactor::Reactor;
use pubmark_protocol::socket::SocketFactory;

/// Interval at which the relay checks whether to stop, and forwards delayed datagrams, ns.
const TICK_NS: u64 = 2_000_000;

/// Conditions of both directions; shares of 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkConditions {
    pub lost: f64,
    pub doubled: f64,
    pub overtaken: f64,
}

/// A running relay; stops when dropped.
pub struct Relay {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// A relay in front of `server`: each of its clients has a separate address towards the server.
    pub fn start(server: SocketAddr, conditions: NetworkConditions, seed: u64) -> Relay {
        let front = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        front.enlarge_receive_buffer(4 << 20).unwrap();
        let address = front.local_address().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || Work::new(front, server, conditions, seed).run(&seen));
        Relay { address, stop, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

struct Work {
    front: DatagramSocket,
    server: SocketAddr,
    conditions: NetworkConditions,
    random: Stream,
    drawn: u64,
    reactor: Reactor,
    clients: Vec<(SocketAddr, DatagramSocket)>,
    by_address: HashMap<SocketAddr, usize>,
    /// Delayed until another datagram has passed: client, direction to the server, bytes.
    held: Vec<(usize, bool, Vec<u8>)>,
}

impl Work {
    fn new(front: DatagramSocket, server: SocketAddr, conditions: NetworkConditions, seed: u64) -> Work {
        let reactor = Reactor::new().unwrap();
        reactor.add(front.as_fd(), u64::from(u32::MAX)).unwrap();
        let (clients, by_address, held) = (Vec::new(), HashMap::new(), Vec::new());
        Work { front, server, conditions, random: Stream::new(seed, 1), drawn: 0, reactor, clients, by_address, held }
    }

    fn run(&mut self, stop: &AtomicBool) {
        let (mut ready, mut datagrams) = (Vec::new(), Datagrams::default());
        while !stop.load(Ordering::Relaxed) {
            self.reactor.wait(Some(monotonic_ns() + TICK_NS), &mut ready).unwrap();
            for (client, to_server, bytes) in std::mem::take(&mut self.held) {
                self.send(client, to_server, &bytes);
            }
            while let Ok(count) = datagrams.read(self.front.as_fd()) {
                for datagram in (0..count).filter_map(|index| datagrams.get(index)) {
                    let client = self.client(datagram.from.unwrap());
                    self.pass(client, true, datagram.bytes);
                }
            }
            for client in 0..self.clients.len() {
                while let Ok(count) = datagrams.read(self.clients[client].1.as_fd()) {
                    for datagram in (0..count).filter_map(|index| datagrams.get(index)) {
                        self.pass(client, false, datagram.bytes);
                    }
                }
            }
        }
    }

    fn client(&mut self, address: SocketAddr) -> usize {
        if let Some(client) = self.by_address.get(&address) {
            return *client;
        }
        let socket = SocketFactory::default().connect_datagrams(None, self.server).unwrap();
        socket.enlarge_receive_buffer(4 << 20).unwrap();
        self.reactor.add(socket.as_fd(), self.clients.len() as u64).unwrap();
        self.clients.push((address, socket));
        self.by_address.insert(address, self.clients.len() - 1);
        self.clients.len() - 1
    }

    fn chance(&mut self, share: f64) -> bool {
        self.drawn += 1;
        self.random.unit(self.drawn) < share
    }

    fn pass(&mut self, client: usize, to_server: bool, bytes: &[u8]) {
        if self.chance(self.conditions.lost) {
            return;
        }
        if self.chance(self.conditions.overtaken) {
            self.held.push((client, to_server, bytes.to_vec()));
            return;
        }
        self.send(client, to_server, bytes);
        if self.chance(self.conditions.doubled) {
            self.send(client, to_server, bytes);
        }
    }

    /// Datagrams without buffer space or receiver are lost as well.
    fn send(&self, client: usize, to_server: bool, bytes: &[u8]) {
        let (address, socket) = &self.clients[client];
        let _ = if to_server { socket.send(bytes) } else { self.front.send_to(bytes, *address) };
    }
}
