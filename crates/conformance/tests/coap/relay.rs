//! A network in between: datagrams are lost, doubled or overtaken, by a seed.

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

/// How often the relay looks whether it is to stop, and lets go what it held back, ns.
const TICK_NS: u64 = 2_000_000;

/// What happens to datagrams, each direction alike; shares of 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
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
    /// A relay in front of `server`: each client of its is a client of the server's, with an address of its own.
    pub fn start(server: SocketAddr, weather: Weather, seed: u64) -> Relay {
        let front = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        front.enlarge_receive_buffer(4 << 20).unwrap();
        let address = front.local_address().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || Work::new(front, server, weather, seed).run(&seen));
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
    weather: Weather,
    random: Stream,
    drawn: u64,
    reactor: Reactor,
    clients: Vec<(SocketAddr, DatagramSocket)>,
    by_address: HashMap<SocketAddr, usize>,
    /// Held back until another one has passed: client, to the server, bytes.
    held: Vec<(usize, bool, Vec<u8>)>,
}

impl Work {
    fn new(front: DatagramSocket, server: SocketAddr, weather: Weather, seed: u64) -> Work {
        let reactor = Reactor::new().unwrap();
        reactor.add(front.as_fd(), u64::from(u32::MAX)).unwrap();
        let (clients, by_address, held) = (Vec::new(), HashMap::new(), Vec::new());
        Work { front, server, weather, random: Stream::new(seed, 1), drawn: 0, reactor, clients, by_address, held }
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
        if self.chance(self.weather.lost) {
            return;
        }
        if self.chance(self.weather.overtaken) {
            self.held.push((client, to_server, bytes.to_vec()));
            return;
        }
        self.send(client, to_server, bytes);
        if self.chance(self.weather.doubled) {
            self.send(client, to_server, bytes);
        }
    }

    /// What finds no room or nobody is lost as well.
    fn send(&self, client: usize, to_server: bool, bytes: &[u8]) {
        let (address, socket) = &self.clients[client];
        let _ = if to_server { socket.send(bytes) } else { self.front.send_to(bytes, *address) };
    }
}
