//! The broker's state and its loop.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pubmark_protocol::clock::monotonic_ns;
use pubmark_wire::mqtt::{DecodeError, Frame, PacketType, Version, frame, reason};

use super::message::Retained;
use super::pace::Pace;
use super::peer::{Farewell, Peer};
use super::publish::Target;
use super::session::Session;
use super::subscribe::Options;
use crate::error::BrokerError;
use crate::net::{Accepted, Connection, Events, Key, Listener, Poll, Ready, Received, Slab, Stream};
use crate::settings::Settings;
use crate::statistics::Statistics;
use crate::topic_tree::TopicTree;

/// How often time-outs are checked, and the longest delay until a stop is noticed.
const TICK: Duration = Duration::from_millis(100);
/// Bytes waiting for a subscriber from which on they are written before the wake-up ends.
pub(super) const EARLY_FLUSH_BYTES: usize = 256 * 1024;

/// An MQTT broker for 3.1.1 and 5.0 on one port. All its state is in memory.
#[derive(Debug)]
pub struct Broker {
    pub(super) settings: Settings,
    pub(super) poll: Poll,
    listener: Listener,
    /// The listener is not polled: no descriptor was left.
    is_exhausted: bool,
    pub(super) peers: Slab<Peer>,
    pub(super) sessions: Slab<Session>,
    pub(super) by_client_id: HashMap<Rc<str>, Key>,
    pub(super) tree: TopicTree<Key, Options>,
    pub(super) retained: Retained,
    /// Connections with something to write.
    pub(super) dirty: Vec<Key>,
    /// Messages routed so far.
    pub(super) routed: u64,
    /// Reused for every message.
    pub(super) targets: Vec<Target>,
    pub(super) statistics: Statistics,
    /// Time of the current wake-up, ns of `CLOCK_MONOTONIC`.
    pub(super) now_ns: u64,
    last_tick_ns: u64,
    /// Present only if the capacity is limited.
    pub(super) pace: Option<Pace>,
}

impl Broker {
    /// Binds and listens; clients can connect from here on and are served by [`Broker::run`].
    ///
    /// # Errors
    /// [`BrokerError::Listen`] if the address is in use or not an address of this machine.
    pub fn bind(settings: Settings) -> Result<Broker, BrokerError> {
        let address = settings.listen;
        let listener = Listener::bind(address).map_err(|source| BrokerError::Listen { address, source })?;
        let failed = |source| BrokerError::System { what: "watch a socket", source };
        let poll = Poll::open().map_err(failed)?;
        poll.add_listener(listener.descriptor()).map_err(failed)?;
        let pace = settings.most_messages_per_s.map(Pace::new);
        Ok(Broker {
            settings,
            pace,
            poll,
            listener,
            is_exhausted: false,
            peers: Slab::new(),
            sessions: Slab::new(),
            by_client_id: HashMap::new(),
            tree: TopicTree::new(),
            retained: Retained::default(),
            dirty: Vec::new(),
            routed: 0,
            targets: Vec::new(),
            statistics: Statistics::default(),
            now_ns: monotonic_ns(),
            last_tick_ns: 0,
        })
    }

    /// The address that it listens on, with the port that the kernel chose.
    ///
    /// # Errors
    /// [`BrokerError::System`] if the kernel does not return it.
    pub fn local_address(&self) -> Result<SocketAddr, BrokerError> {
        self.listener.local_address().map_err(|source| BrokerError::System { what: "ask for our address", source })
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Serves clients until `stop` is set (noticed within 100 ms, at once where a signal set it).
    ///
    /// # Errors
    /// [`BrokerError::System`] if waiting for sockets or accepting connections fails; what one client does is never an error.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), BrokerError> {
        let failed = |source| BrokerError::System { what: "serve sockets", source };
        let mut events = Events::new();
        let mut buffer = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            self.serve_ready(&mut events, &mut buffer, TICK).map_err(failed)?;
        }
        self.end_all();
        Ok(())
    }

    /// One wake-up: waits for sockets at most this long, and serves those that are ready.
    pub(super) fn serve_ready(
        &mut self,
        events: &mut Events,
        buffer: &mut Vec<u8>,
        longest: Duration,
    ) -> io::Result<()> {
        self.poll.wait(events, longest)?;
        self.now_ns = monotonic_ns();
        for index in 0..events.len() {
            match events.get(index) {
                Some(Ready::Listener) => self.accept()?,
                Some(Ready::Connection { key, readable, writable }) => {
                    if writable {
                        self.flush(key);
                    }
                    if readable || self.is_paused(key) {
                        self.read(key, buffer);
                    }
                }
                None => {}
            }
        }
        self.tick()?;
        self.flush_dirty();
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept()? {
                Accepted::Nobody => return Ok(()),
                Accepted::Exhausted => {
                    // Polled again at the next tick: otherwise the kernel would wake us without end.
                    self.statistics.descriptors_exhausted += 1;
                    self.is_exhausted = true;
                    return self.poll.remove(self.listener.descriptor());
                }
                Accepted::Stream(socket) => {
                    self.statistics.connections += 1;
                    let Ok(stream) = Stream::new(socket, self.settings.tls.as_ref()) else {
                        self.statistics.protocol_errors += 1;
                        continue;
                    };
                    let connection = Connection::new(stream);
                    let descriptor = connection.descriptor();
                    let key = self.peers.insert(Peer {
                        connection,
                        session: None,
                        version: Version::V311,
                        authentication: None,
                        silence_limit_ns: u64::from(self.settings.connect_timeout_s) * 1_000_000_000,
                        last_progress_ns: self.now_ns,
                        maximum_packet_bytes: usize::MAX,
                        is_dirty: false,
                    });
                    self.poll.add(descriptor, key)?;
                }
            }
        }
    }

    fn read(&mut self, key: Key, buffer: &mut Vec<u8>) {
        loop {
            if self.must_pause(key) {
                return;
            }
            let Some(peer) = self.peers.get_mut(key) else { return };
            match peer.connection.receive(buffer) {
                Ok(Received::Some { filled_bytes, more }) => {
                    peer.note_progress(self.now_ns);
                    self.read_packets(key, &buffer[..filled_bytes]);
                    if !more {
                        return;
                    }
                }
                Ok(Received::Nothing) => {
                    if peer.connection.wants_flush() {
                        self.mark_dirty(key);
                    }
                    return;
                }
                Ok(Received::End) | Err(_) => return self.end(key, Farewell::Lost),
            }
        }
    }

    /// Handles all complete packets in `bytes`, which has at least one byte, and stores the rest for the next read.
    fn read_packets(&mut self, key: Key, bytes: &[u8]) {
        let limit = self.settings.maximum_packet_bytes as usize;
        let mut rest = bytes;
        let is_stranger =
            self.peers.get(key).is_some_and(|peer| peer.session.is_none() && peer.authentication.is_none());
        if is_stranger && PacketType::of(rest[0]) != Some(PacketType::Connect) {
            // Not a CONNECT: the end of the packet is not waited for.
            self.statistics.protocol_errors += 1;
            return self.end(key, Farewell::Lost);
        }
        loop {
            match frame(rest, limit) {
                Ok(Some(packet)) => {
                    if let Err(farewell) = self.handle(key, &packet) {
                        return self.end(key, farewell);
                    }
                    rest = &rest[packet.total_bytes..];
                }
                Ok(None) => break,
                Err(error) => return self.break_off(key, &error),
            }
        }
        if let Some(peer) = self.peers.get_mut(key) {
            peer.connection.keep(rest);
        }
    }

    /// Handles one packet; an error ends the connection.
    fn handle(&mut self, key: Key, packet: &Frame<'_>) -> Result<(), Farewell> {
        let Some(peer) = self.peers.get(key) else { return Err(Farewell::Lost) };
        let version = peer.version;
        let Some(session) = peer.session else {
            return match &peer.authentication {
                Some(_) => self.continue_connect(key, packet),
                None => self.connect(key, packet),
            };
        };
        match packet.packet_type() {
            Some(PacketType::Publish) => self.publish(key, session, version, packet),
            Some(PacketType::Puback | PacketType::Pubrec | PacketType::Pubrel | PacketType::Pubcomp) => {
                self.acknowledge(key, session, version, packet)
            }
            _ => self.handle_rare(key, session, version, packet),
        }
    }

    /// Ends a connection because of bytes that are not a packet, or not one for a server.
    pub(super) fn break_off(&mut self, key: Key, error: &DecodeError) {
        self.statistics.protocol_errors += 1;
        self.end(key, Farewell::Ours(error.reason_code()));
    }

    /// The same for use inside a handler.
    pub(super) fn broken(&mut self, error: DecodeError) -> Farewell {
        self.violation(error.reason_code())
    }

    /// The client violated a rule that is not about a single packet.
    pub(super) fn violation(&mut self, reason: u8) -> Farewell {
        self.statistics.protocol_errors += 1;
        Farewell::Ours(reason)
    }

    /// Marks a connection that has something to write at the end of this wake-up.
    pub(super) fn mark_dirty(&mut self, key: Key) {
        if let Some(peer) = self.peers.get_mut(key)
            && !peer.is_dirty
        {
            peer.is_dirty = true;
            self.dirty.push(key);
        }
    }

    pub(super) fn flush(&mut self, key: Key) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let pending_bytes = peer.connection.pending_bytes();
        if peer.connection.flush(&self.poll, key).is_err() {
            return self.end(key, Farewell::Lost);
        }
        if peer.connection.is_paused() && peer.connection.pending_bytes() < pending_bytes {
            peer.note_progress(self.now_ns);
        }
    }

    fn flush_dirty(&mut self) {
        // Ending a connection can publish its will and so make others dirty.
        while let Some(key) = self.dirty.pop() {
            if let Some(peer) = self.peers.get_mut(key) {
                peer.is_dirty = false;
            }
            self.flush(key);
        }
    }

    /// Waits for the time that a message costs, if the capacity is limited. Pending output is written first.
    pub(super) fn work_off(&mut self) {
        if self.pace.as_ref().is_some_and(|pace| pace.debt().is_some()) {
            self.flush_dirty();
            // Computed again: writing took time as well.
            if let Some(left) = self.pace.as_ref().and_then(Pace::debt) {
                std::thread::sleep(left);
            }
            self.now_ns = monotonic_ns();
        }
    }

    fn tick(&mut self) -> io::Result<()> {
        if self.now_ns.saturating_sub(self.last_tick_ns) < TICK.as_nanos() as u64 {
            return Ok(());
        }
        self.last_tick_ns = self.now_ns;
        if self.is_exhausted {
            self.is_exhausted = false;
            self.poll.add_listener(self.listener.descriptor())?;
        }
        self.end_silent();
        self.end_expired();
        self.expire();
        Ok(())
    }

    fn end_silent(&mut self) {
        let now_ns = self.now_ns;
        let is_silent = |peer: &Peer| {
            peer.silence_limit_ns > 0 && now_ns.saturating_sub(peer.last_progress_ns) > peer.silence_limit_ns
        };
        let silent: Vec<Key> = self.peers.iter().filter(|(_, peer)| is_silent(peer)).map(|(key, _)| key).collect();
        for key in silent {
            if self.is_paused(key) {
                // The poll reports a socket as writable only once a third of its buffer is free, which takes a slow reader long.
                self.flush(key);
            }
            if self.peers.get(key).is_some_and(is_silent) {
                self.statistics.silent += 1;
                self.end(key, Farewell::Ours(reason::KEEP_ALIVE_TIMEOUT));
            }
        }
    }

    /// Ends connections whose token has expired (MQTT 5.0 §4.12.1 leaves it to the broker).
    fn end_expired(&mut self) {
        if self.settings.tokens.is_none() {
            return;
        }
        let now_ns = self.now_ns;
        let has_expired = |peer: &Peer| peer.authentication.as_ref().is_some_and(|found| found.has_expired(now_ns));
        let expired: Vec<Key> = self.peers.iter().filter(|(_, peer)| has_expired(peer)).map(|(key, _)| key).collect();
        for key in expired {
            self.statistics.tokens_expired += 1;
            self.end(key, Farewell::Ours(reason::NOT_AUTHORIZED));
        }
    }

    fn end_all(&mut self) {
        let keys: Vec<Key> = self.peers.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.send_goodbye(key, reason::SERVER_SHUTTING_DOWN);
            self.peers.remove(key);
        }
    }
}
