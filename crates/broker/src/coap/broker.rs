//! The broker's state and its loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use pubmark_model::random::mix;
use pubmark_protocol::clock::monotonic_ns;
use pubmark_protocol::datagram::{AT_A_TIME, DatagramSocket, Datagrams};
use pubmark_protocol::reactor::Reactor;
use pubmark_wire::coap::{Code, Exchange, Kind, Step, decode, encode_empty, peek};

use super::observer::{Observer, Publication};
use super::peer::Peer;
use super::settings::CoapSettings;
use super::statistics::CoapStatistics;
use crate::error::BrokerError;
use crate::net::{Key, Slab};
use crate::topic_tree::TopicTree;

/// Longest delay until a stop is noticed, ns.
const TICK_NS: u64 = 100_000_000;
/// Interval between searches for clients that are gone, ns.
const SWEEP_NS: u64 = 5_000_000_000;
/// Time without a message after which an observer is pinged, ns.
const SILENCE_NS: u64 = 30_000_000_000;
/// Requested receive buffer of the socket, bytes; all clients send to this one socket.
const RECEIVE_BUFFER_BYTES: i32 = 32 << 20;
/// Reads before the timers are handled.
const READS_AT_A_TIME: usize = 16;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// An observer, by the bits of its key.
    Observer(u64),
    /// A client.
    Peer(u64),
}

/// A CoAP broker. All its state is in memory.
#[derive(Debug)]
pub struct CoapBroker {
    pub(super) settings: CoapSettings,
    socket: DatagramSocket,
    reactor: Reactor,
    pub(super) peers: Slab<Peer>,
    by_address: HashMap<SocketAddr, Key>,
    pub(super) observers: Slab<Observer>,
    pub(super) tree: TopicTree<Key, ()>,
    /// The last publication of each topic.
    pub(super) kept: HashMap<Box<str>, Rc<Publication>>,
    /// Bytes of their payloads.
    pub(super) kept_bytes: usize,
    /// Bytes of payloads of which only some blocks have arrived.
    pub(super) upload_bytes: usize,
    pub(super) published: u32,
    /// The socket would block; observers with something to send.
    full: bool,
    pub(super) waiting: Vec<Key>,
    timers: BinaryHeap<Reverse<(u64, Task)>>,
    swept_ns: u64,
    drawn: u64,
    /// The datagram that is being encoded.
    pub(super) out: Vec<u8>,
    /// Reused for every publication.
    pub(super) targets: Vec<Key>,
    pub(super) statistics: CoapStatistics,
    /// Time of the current wake-up, ns of `CLOCK_MONOTONIC`.
    pub(super) now_ns: u64,
}

impl CoapBroker {
    /// Binds the socket; clients are served by [`CoapBroker::run`].
    ///
    /// # Errors
    /// [`BrokerError::Listen`] if the address is in use or not an address of this machine.
    pub fn bind(settings: CoapSettings) -> Result<CoapBroker, BrokerError> {
        let address = settings.listen;
        let listen = |source| BrokerError::Listen { address, source };
        let failed = |source| BrokerError::System { what: "watch a socket", source };
        let socket = DatagramSocket::bind(address).map_err(listen)?;
        socket.enlarge_receive_buffer(RECEIVE_BUFFER_BYTES).map_err(failed)?;
        let reactor = Reactor::new().map_err(failed)?;
        reactor.add(socket.as_fd(), 0).map_err(failed)?;
        let now_ns = monotonic_ns();
        Ok(CoapBroker {
            settings,
            socket,
            reactor,
            peers: Slab::new(),
            by_address: HashMap::new(),
            observers: Slab::new(),
            tree: TopicTree::new(),
            kept: HashMap::new(),
            kept_bytes: 0,
            upload_bytes: 0,
            published: 0,
            full: false,
            waiting: Vec::new(),
            timers: BinaryHeap::new(),
            swept_ns: now_ns,
            drawn: now_ns,
            out: Vec::new(),
            targets: Vec::new(),
            statistics: CoapStatistics::default(),
            now_ns,
        })
    }

    /// The address that it listens on, with the port that the kernel chose.
    ///
    /// # Errors
    /// [`BrokerError::System`] if the kernel does not return it.
    pub fn local_address(&self) -> Result<SocketAddr, BrokerError> {
        self.socket.local_address().map_err(|source| BrokerError::System { what: "ask for our address", source })
    }

    /// The counters so far.
    pub fn statistics(&self) -> CoapStatistics {
        CoapStatistics { dropped_by_kernel: self.socket.overflowed().unwrap_or(0), ..self.statistics }
    }

    /// Serves clients until `stop` is set (noticed within 100 ms).
    ///
    /// # Errors
    /// [`BrokerError::System`] if waiting or reading fails; what one client does is never an error.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), BrokerError> {
        let failed = |source| BrokerError::System { what: "serve a socket", source };
        let (mut ready, mut datagrams) = (Vec::new(), Datagrams::default());
        let mut drained = true;
        while !stop.load(Ordering::Relaxed) {
            let next_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
            let until_ns = if drained { next_ns.min(monotonic_ns() + TICK_NS) } else { 0 };
            let awake = self.reactor.wait(Some(until_ns), &mut ready).map_err(failed)?;
            self.now_ns = awake.at_ns;
            for found in &ready {
                drained &= !found.readable;
                self.full &= !found.writable;
            }
            if !drained {
                drained = self.read(&mut datagrams).map_err(failed)?;
            }
            self.advance_waiting();
            self.serve_timers();
            self.sweep();
        }
        Ok(())
    }

    /// Reads and handles the datagrams that have arrived; true if the socket is empty.
    fn read(&mut self, datagrams: &mut Datagrams) -> std::io::Result<bool> {
        for _ in 0..READS_AT_A_TIME {
            let count = match datagrams.read(self.socket.as_fd()) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            for index in 0..count {
                let Some(datagram) = datagrams.get(index) else { continue };
                if let Some(from) = datagram.from {
                    self.on_datagram(from, datagram.bytes);
                }
            }
            if count < AT_A_TIME {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn on_datagram(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.statistics.datagrams_received += 1;
        let known = self.by_address.get(&from).copied();
        if let Some(peer) = known.and_then(|key| self.peers.get_mut(key)) {
            peer.last_received_ns = self.now_ns;
        }
        match decode(bytes) {
            Ok(message) if message.code.is_request() => self.on_request(from, &message),
            Ok(message) => match message.kind {
                // A ping, or a response without a request.
                Kind::Confirmable => self.send_empty(from, Kind::Reset, message.message_id),
                Kind::NonConfirmable => {}
                Kind::Acknowledgement => self.on_acknowledgement(known, message.message_id, false),
                Kind::Reset => self.on_acknowledgement(known, message.message_id, true),
            },
            Err(_) => {
                self.statistics.malformed += 1;
                if let Some((Kind::Confirmable, message_id)) = peek(bytes) {
                    self.send_empty(from, Kind::Reset, message_id);
                }
            }
        }
    }

    /// The client with this address; `None` if the limit of clients is reached.
    pub(super) fn peer_at(&mut self, address: SocketAddr) -> Option<Key> {
        if let Some(key) = self.by_address.get(&address) {
            return Some(*key);
        }
        if self.peers.len() >= self.settings.maximum_peers {
            return None;
        }
        let first_message_id = self.random() as u16;
        let key = self.peers.insert(Peer::new(address, first_message_id, self.now_ns));
        self.by_address.insert(address, key);
        Some(key)
    }

    fn random(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.drawn)
    }

    /// The retransmission state of a confirmable message that is sent now.
    pub(super) fn exchange(&mut self) -> Exchange {
        let random = self.random();
        Exchange::start(&self.settings.times, self.now_ns, random)
    }

    /// Sends the datagram in `out`; false if the socket would block.
    pub(super) fn transmit(&mut self, to: SocketAddr) -> bool {
        if self.full {
            return false;
        }
        match self.socket.send_to(&self.out, to) {
            Ok(()) => self.statistics.datagrams_sent += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.full = true,
            // For the client it is a lost datagram like any other.
            Err(_) => self.statistics.send_failures += 1,
        }
        !self.full
    }

    /// Sends a response; if the socket would block it is dropped, and the client repeats its request.
    pub(super) fn transmit_response(&mut self, to: SocketAddr) {
        if !self.transmit(to) {
            self.statistics.dropped_answers += 1;
        }
    }

    pub(super) fn send_empty(&mut self, to: SocketAddr, kind: Kind, message_id: u16) {
        self.out.clear();
        encode_empty(kind, message_id, &mut self.out);
        self.transmit_response(to);
    }

    /// Sets the timer of an observer to the next time at which it must be checked.
    pub(super) fn set_observer_timer(&mut self, key: Key) {
        let Some(observer) = self.observers.get_mut(key) else { return };
        let Some(due_ns) = observer.due_ns() else { return };
        if observer.timer_ns == 0 || due_ns < observer.timer_ns {
            observer.timer_ns = due_ns;
            self.timers.push(Reverse((due_ns, Task::Observer(key.to_bits()))));
        }
    }

    fn serve_timers(&mut self) {
        while let Some(Reverse((at_ns, task))) = self.timers.peek().copied().filter(|next| next.0.0 <= self.now_ns) {
            self.timers.pop();
            match task {
                Task::Observer(bits) => {
                    let key = Key::from_bits(bits);
                    match self.observers.get_mut(key) {
                        Some(observer) if observer.timer_ns == at_ns => observer.timer_ns = 0,
                        // The timer was set to another time, or the observer is gone.
                        _ => continue,
                    }
                    self.check_observer(key);
                    self.set_observer_timer(key);
                }
                Task::Peer(bits) => self.check_peer(Key::from_bits(bits), at_ns),
            }
        }
    }

    /// Searches for clients that are gone, and drops their state.
    fn sweep(&mut self) {
        if self.now_ns < self.swept_ns + SWEEP_NS {
            return;
        }
        self.swept_ns = self.now_ns;
        let keys: Vec<Key> = self.peers.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.drop_late_uploads(key);
            let Some(peer) = self.peers.get_mut(key) else { continue };
            let silent_ns = self.now_ns.saturating_sub(peer.last_received_ns);
            let forgotten = peer.answered.forget(self.now_ns) && peer.uploads.is_empty();
            if !peer.observers.is_empty() {
                if silent_ns > SILENCE_NS && peer.ping.is_none() {
                    self.start_ping(key);
                }
            } else if forgotten && silent_ns > self.settings.times.exchange_lifetime_ns() {
                let address = peer.address;
                self.peers.remove(key);
                self.by_address.remove(&address);
            }
        }
    }

    fn start_ping(&mut self, key: Key) {
        let exchange = self.exchange();
        let Some(peer) = self.peers.get_mut(key) else { return };
        let (message_id, address) = (peer.message_id(), peer.address);
        peer.ping = Some((message_id, exchange));
        peer.timer_ns = exchange.due_ns();
        self.timers.push(Reverse((exchange.due_ns(), Task::Peer(key.to_bits()))));
        self.send_empty(address, Kind::Confirmable, message_id);
    }

    fn check_peer(&mut self, key: Key, at_ns: u64) {
        let (times, now_ns) = (self.settings.times, self.now_ns);
        let Some(peer) = self.peers.get_mut(key).filter(|peer| peer.timer_ns == at_ns) else { return };
        peer.timer_ns = 0;
        let (address, since_ns) = (peer.address, peer.last_received_ns);
        let Some((message_id, exchange)) = &mut peer.ping else { return };
        let message_id = *message_id;
        match exchange.step(&times, now_ns) {
            // A message arrived in the meantime, which is as good as a ping response.
            _ if now_ns.saturating_sub(since_ns) < SILENCE_NS => peer.ping = None,
            Step::Wait => {}
            Step::GiveUp => self.drop_silent(key),
            Step::Repeat => {
                let due_ns = exchange.due_ns();
                peer.timer_ns = due_ns;
                self.timers.push(Reverse((due_ns, Task::Peer(key.to_bits()))));
                self.send_empty(address, Kind::Confirmable, message_id);
            }
        }
    }

    /// A client does not respond: its subscriptions end (RFC 7641 §4.5).
    pub(super) fn drop_silent(&mut self, key: Key) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        peer.ping = None;
        for observer in peer.observers.clone() {
            self.statistics.observers_silent += 1;
            self.remove_observer(observer);
        }
    }

    /// Handles an empty acknowledgement or a reset for a message of the broker.
    fn on_acknowledgement(&mut self, known: Option<Key>, message_id: u16, rejected: bool) {
        let Some(peer) = known.and_then(|key| self.peers.get_mut(key)) else { return };
        if peer.ping.is_some_and(|(id, _)| id == message_id) {
            peer.ping = None;
            return;
        }
        let observers = &self.observers;
        let is_of = |key: &&Key| {
            observers.get(**key).is_some_and(|observer| {
                observer.outstanding.as_ref().map(|outstanding| outstanding.message_id) == Some(message_id)
                    || observer.last_message_id == Some(message_id)
            })
        };
        if let Some(key) = peer.observers.iter().find(is_of).copied() {
            self.on_settled(key, message_id, rejected);
        }
    }

    /// Counts a response whose code is an error.
    pub(super) fn count_refusal(&mut self, code: Code) {
        self.statistics.refused += u64::from(!code.is_success());
    }
}
