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
use crate::net::{Accepted, Connection, Events, Key, Listener, Poll, Ready, Received, Slab, Stream, TURN_BYTES};
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
    pub(super) peers: Slab<Peer>,
    pub(super) sessions: Slab<Session>,
    pub(super) by_client_id: HashMap<Rc<str>, Key>,
    pub(super) tree: TopicTree<Key, Options>,
    pub(super) retained: Retained,
    /// Connections with something to write.
    pub(super) dirty: Vec<Key>,
    /// Connections that wait for their next turn, to read bytes that the poll may not report.
    unfinished: Vec<Key>,
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
            peers: Slab::new(),
            sessions: Slab::new(),
            by_client_id: HashMap::new(),
            tree: TopicTree::new(),
            retained: Retained::default(),
            dirty: Vec::new(),
            unfinished: Vec::new(),
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
        let unfinished = std::mem::take(&mut self.unfinished);
        self.poll.wait(events, if unfinished.is_empty() { longest } else { Duration::ZERO })?;
        self.now_ns = monotonic_ns();
        for index in 0..events.len() {
            match events.get(index) {
                Some(Ready::Listener) => self.accept()?,
                Some(Ready::Connection { key, readable, writable }) => {
                    if writable {
                        self.flush(key);
                    }
                    // An unfinished one has its turn below.
                    if (readable || self.is_paused(key)) && !self.is_unfinished(key) {
                        self.read(key, buffer);
                    }
                }
                None => {}
            }
        }
        for key in unfinished {
            if let Some(peer) = self.peers.get_mut(key) {
                peer.is_unfinished = false;
                self.read(key, buffer);
            }
        }
        self.tick(buffer);
        self.flush_dirty();
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept()? {
                Accepted::Nobody => return Ok(()),
                Accepted::Exhausted => return self.pause_accepting(),
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
                        is_unfinished: false,
                    });
                    if self.poll.add(descriptor, key).is_err() {
                        self.peers.remove(key);
                        return self.pause_accepting();
                    }
                }
            }
        }
    }

    /// Accepts no connections until the next tick, because there is no descriptor or memory for one.
    fn pause_accepting(&mut self) -> io::Result<()> {
        self.statistics.descriptors_exhausted += 1;
        self.listener.pause(&self.poll)
    }

    fn is_unfinished(&self, key: Key) -> bool {
        self.peers.get(key).is_some_and(|peer| peer.is_unfinished)
    }

    /// Reads and handles the bytes of one turn. If more may be available that the poll does not report, the connection is
    /// unfinished and has another turn.
    fn read(&mut self, key: Key, buffer: &mut Vec<u8>) {
        let mut left_bytes = TURN_BYTES;
        loop {
            if self.must_pause(key) {
                return;
            }
            let Some(peer) = self.peers.get_mut(key) else { return };
            match peer.connection.receive(buffer) {
                Ok(Received::Some { filled_bytes, more }) => {
                    peer.note_progress(self.now_ns);
                    let (filled, incoming) = (&buffer[..filled_bytes], peer.connection.take_incoming());
                    let used = self.read_packets(key, if incoming.is_empty() { filled } else { &incoming[..] });
                    let Some(peer) = self.peers.get_mut(key) else { return };
                    peer.connection.keep(incoming, filled, used);
                    if !more {
                        return;
                    }
                    left_bytes = left_bytes.saturating_sub(filled_bytes);
                    if left_bytes == 0 {
                        if !std::mem::replace(&mut peer.is_unfinished, true) {
                            self.unfinished.push(key);
                        }
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

    /// Handles all complete packets in `bytes`, which has at least one byte, and returns their length.
    fn read_packets(&mut self, key: Key, bytes: &[u8]) -> usize {
        let limit = self.settings.maximum_packet_bytes as usize;
        let mut rest = bytes;
        let is_stranger =
            self.peers.get(key).is_some_and(|peer| peer.session.is_none() && peer.authentication.is_none());
        if is_stranger && PacketType::of(rest[0]) != Some(PacketType::Connect) {
            // Not a CONNECT: the end of the packet is not waited for.
            self.statistics.protocol_errors += 1;
            self.end(key, Farewell::Lost);
            return bytes.len();
        }
        loop {
            match frame(rest, limit) {
                Ok(Some(packet)) => {
                    rest = &rest[packet.total_bytes..];
                    if let Err(farewell) = self.handle(key, &packet) {
                        self.end(key, farewell);
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.break_off(key, &error);
                    break;
                }
            }
        }
        bytes.len() - rest.len()
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

    fn tick(&mut self, buffer: &mut Vec<u8>) {
        if self.now_ns.saturating_sub(self.last_tick_ns) < TICK.as_nanos() as u64 {
            return;
        }
        self.last_tick_ns = self.now_ns;
        self.listener.resume(&self.poll);
        self.end_silent(buffer);
        self.end_expired();
        self.expire();
    }

    fn end_silent(&mut self, buffer: &mut Vec<u8>) {
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
            // If the broker was late, what the client sent may not have been read: a wake-up serves a limited number of sockets,
            // and more may have arrived since.
            self.read(key, buffer);
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
            if let Some(peer) = self.peers.remove(key) {
                peer.connection.close();
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::Arc;
    use std::time::Instant;

    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::super::served::{CONNACK, CONNECT, PATIENCE, PINGREQ, PINGRESP, Served};
    use super::*;
    use crate::net::ServerTls;

    /// A connected client with TLS whose socket does not block.
    struct TlsClient {
        socket: TcpStream,
        tls: ClientConnection,
    }

    impl TlsClient {
        /// A broker with TLS, and a client of it.
        fn of_a_broker() -> (Served, TlsClient) {
            let folder = tempfile::tempdir().unwrap();
            let (certificate, key) = (folder.path().join("server.crt"), folder.path().join("server.key"));
            let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
            std::fs::write(&certificate, made.cert.pem()).unwrap();
            std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
            let tls = ServerTls::read(&certificate, &key).unwrap();
            let mut served = Served::with(|settings| settings.tls = Some(tls));
            let client = TlsClient::connect(&mut served, made.cert.der().clone());
            (served, client)
        }

        fn connect(served: &mut Served, authority: CertificateDer<'static>) -> TlsClient {
            let mut roots = RootCertStore::empty();
            roots.add(authority).unwrap();
            let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let tls = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
            let mut client = TlsClient { socket: served.socket(), tls };
            client.tls.set_buffer_limit(None);
            client.tls.writer().write_all(&CONNECT).unwrap();
            let until = Instant::now() + PATIENCE;
            let mut found = [0; 64];
            loop {
                client.exchange();
                match client.tls.reader().read(&mut found) {
                    Ok(read) => {
                        assert_eq!(found[..read], CONNACK);
                        return client;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
                served.wake_up();
                assert!(Instant::now() < until, "no CONNACK came");
            }
        }

        /// Moves the bytes that can be moved now; whether the broker has said that no more follow.
        fn exchange(&mut self) -> bool {
            while self.tls.wants_write() {
                if let Err(error) = self.tls.write_tls(&mut self.socket) {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
            if let Err(error) = self.tls.read_tls(&mut self.socket) {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
            }
            self.tls.process_new_packets().unwrap().peer_has_closed()
        }
    }

    #[test]
    fn a_fast_client_with_tls_has_a_limited_turn_and_loses_nothing() {
        const MESSAGES: u64 = 4_096;
        const MESSAGE_BYTES: usize = 1_024;
        // The last read of a turn may go beyond its length by some TLS records.
        const MOST: u64 = (TURN_BYTES / MESSAGE_BYTES + 64) as u64;
        let (mut served, mut client) = TlsClient::of_a_broker();
        let mut message = vec![0x30, 0xfd, 0x07, 0, 1, b't'];
        message.resize(MESSAGE_BYTES, b'x');
        client.tls.writer().write_all(&message.repeat(MESSAGES as usize)).unwrap();
        let until = Instant::now() + PATIENCE;
        let mut before = 0;
        while before < MESSAGES {
            client.exchange();
            served.wake_up();
            let received = served.broker.statistics.messages_received;
            assert!(received - before <= MOST, "{} messages in one turn", received - before);
            assert!(Instant::now() < until, "{received} messages");
            before = received;
        }
        assert_eq!((before, served.broker.statistics.protocol_errors), (MESSAGES, 0));
    }

    #[test]
    fn a_client_with_tls_learns_that_its_connection_has_ended_in_order() {
        let (mut served, mut client) = TlsClient::of_a_broker();
        client.tls.writer().write_all(&[0xe0, 0]).unwrap();
        let until = Instant::now() + PATIENCE;
        while !client.exchange() {
            served.wake_up();
            assert!(Instant::now() < until, "no close_notify came");
        }
    }

    #[test]
    fn a_client_that_sent_in_time_is_not_ended_by_a_late_broker() {
        let mut served = Served::with(|_| {});
        let mut client = served.client_with_keep_alive(b'c', 5);
        let key = served.only_peer();
        client.write_all(&PINGREQ).unwrap();
        served.wait_until_readable(key);
        // The broker was busy for longer than the keep-alive, and has not read yet.
        served.broker.now_ns = monotonic_ns();
        served.broker.peers.get_mut(key).unwrap().last_progress_ns = 0;
        served.broker.end_silent(&mut served.buffer);
        assert_eq!((served.broker.peers.len(), served.broker.statistics.silent), (1, 0));
        assert_eq!(served.received(&mut client, PINGRESP.len()), PINGRESP);
        served.broker.peers.get_mut(key).unwrap().last_progress_ns = 0;
        served.broker.end_silent(&mut served.buffer);
        assert_eq!((served.broker.peers.len(), served.broker.statistics.silent), (0, 1));
    }
}
