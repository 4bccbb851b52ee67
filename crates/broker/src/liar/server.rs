//! The lying broker's state and its loop.

use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::clock::monotonic_ns;
use pubmark_wire::mqtt::{Frame, Version, frame};

use super::arrival::{ArrivalCheck, processor};
use super::journal::{Event, Journal};
use super::script::Script;
use super::state::{Copy, HeldKey, Message, Peer, Phase, Session, Timed, Waiting};
use crate::error::BrokerError;
use crate::net::{
    Accepted, Connection, Events, Key, Listener, Poll, Ready, Received, ServerTls, Slab, Stream, TURN_BYTES, WebSocket,
};
use crate::topic_tree::TopicTree;

/// Longest delay until a stop is noticed.
const TICK: Duration = Duration::from_millis(100);
/// Largest packet accepted.
const MAXIMUM_PACKET_BYTES: usize = 256 * 1024 * 1024;

/// Settings of a lying broker.
#[derive(Clone, Debug)]
pub struct LiarSettings {
    /// Address to listen on; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// Encrypt every connection. The journal's `unwritten` lines are exact without encryption only.
    pub tls: Option<ServerTls>,
    /// Clients connect by WebSocket, without encryption. The journal's `unwritten` lines are then not exact.
    pub websocket: bool,
    /// Send small packets only when those before them are acknowledged, as Mosquitto does by default (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// The lies.
    pub script: Script,
    /// Path of the journal; an existing file is overwritten.
    pub journal: PathBuf,
}

/// The connection that was being served has ended.
pub(super) struct Gone;

/// An MQTT broker that lies as its script specifies and writes a journal of its actions.
#[derive(Debug)]
pub struct Liar {
    pub(super) script: Script,
    pub(super) journal: Journal,
    journal_path: PathBuf,
    tls: Option<ServerTls>,
    websocket: bool,
    nagle: bool,
    pub(super) poll: Poll,
    listener: Listener,
    pub(super) peers: Slab<Peer>,
    pub(super) sessions: Slab<Session>,
    pub(super) by_client: HashMap<Rc<str>, Key>,
    pub(super) tree: TopicTree<Key, Qos>,
    /// Retained messages.
    pub(super) retained: HashMap<Box<str>, Rc<Message>>,
    /// The last message of each topic, if a script replays them.
    pub(super) last: HashMap<Box<str>, Rc<Message>>,
    /// Messages held back until the next one of their publisher and topic.
    pub(super) held: HashMap<HeldKey, Vec<Copy>>,
    pub(super) timers: BinaryHeap<Waiting<Timed>>,
    /// Copies that wait for a number of further messages.
    pub(super) later: BinaryHeap<Waiting<Copy>>,
    /// Messages received, without repetitions.
    pub(super) received: u64,
    pub(super) first_message_ns: Option<u64>,
    /// The next stall is the last element.
    stalls: Vec<(Duration, Duration)>,
    pub(super) dirty: Vec<Key>,
    /// Connections that wait for their next turn, to read bytes that the poll may not report.
    unfinished: Vec<Key>,
    arrivals: ArrivalCheck,
    /// Until then a slow broker is busy.
    pub(super) busy_until_ns: u64,
    pub(super) connections: u64,
}

impl Liar {
    /// Binds, listens, and creates the journal.
    ///
    /// # Errors
    /// [`BrokerError::Listen`] if the address is in use or not an address of this machine, [`BrokerError::Journal`] if the file
    /// cannot be created.
    pub fn bind(settings: LiarSettings) -> Result<Liar, BrokerError> {
        let address = settings.listen;
        let listener = Listener::bind(address).map_err(|source| BrokerError::Listen { address, source })?;
        let failed = |source| BrokerError::System { what: "watch a socket", source };
        let poll = Poll::open().map_err(failed)?;
        poll.add_listener(listener.descriptor()).map_err(failed)?;
        let journal = Journal::create(&settings.journal).map_err(|error| journal_failed(&settings.journal, error))?;
        Ok(Liar {
            stalls: settings.script.stalls(),
            script: settings.script,
            journal,
            journal_path: settings.journal,
            tls: settings.tls,
            websocket: settings.websocket,
            nagle: settings.nagle,
            arrivals: ArrivalCheck::open().map_err(failed)?,
            poll,
            listener,
            peers: Slab::new(),
            sessions: Slab::new(),
            by_client: HashMap::new(),
            tree: TopicTree::new(),
            retained: HashMap::new(),
            last: HashMap::new(),
            held: HashMap::new(),
            timers: BinaryHeap::new(),
            later: BinaryHeap::new(),
            received: 0,
            first_message_ns: None,
            dirty: Vec::new(),
            unfinished: Vec::new(),
            busy_until_ns: 0,
            connections: 0,
        })
    }

    /// The address that it listens on, with the port that the kernel chose.
    ///
    /// # Errors
    /// [`BrokerError::System`] if the kernel does not return it.
    pub fn local_address(&self) -> Result<SocketAddr, BrokerError> {
        self.listener.local_address().map_err(|source| BrokerError::System { what: "ask for our address", source })
    }

    /// Serves clients until `stop` is set, then ends the journal. A broker runs once.
    ///
    /// # Errors
    /// [`BrokerError::System`] if waiting for sockets fails, [`BrokerError::Journal`] if the journal cannot be written.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), BrokerError> {
        let failed = |source| BrokerError::System { what: "serve sockets", source };
        // Delays are as exact as the kernel's timers: without this it may add 50 µs.
        // SAFETY: a plain system call about this thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let mut events = Events::new();
        let mut buffer = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let unfinished = std::mem::take(&mut self.unfinished);
            let longest = if unfinished.is_empty() { self.until_next() } else { Duration::ZERO };
            self.poll.wait(&mut events, longest).map_err(failed)?;
            self.listener.resume(&self.poll);
            self.stall(stop);
            self.fire_timers();
            self.serve_ready(&events, &mut buffer).map_err(failed)?;
            for key in unfinished {
                if let Some(peer) = self.peers.get_mut(key) {
                    peer.is_unfinished = false;
                    self.read(key, &mut buffer);
                }
            }
            self.end_overdue();
            self.flush_dirty();
            self.arrivals.check().map_err(failed)?;
            self.journal.check().map_err(|error| journal_failed(&self.journal_path, error))?;
        }
        self.end_all();
        self.journal.end().map_err(|error| journal_failed(&self.journal_path, error))
    }

    fn serve_ready(&mut self, events: &Events, buffer: &mut Vec<u8>) -> io::Result<()> {
        for index in 0..events.len() {
            match events.get(index) {
                Some(Ready::Listener) => self.accept()?,
                Some(Ready::Connection { key, readable, writable }) => {
                    if writable {
                        self.flush(key);
                    }
                    // An unfinished one has a turn of its own.
                    let is_unfinished = self.peers.get(key).is_some_and(|peer| peer.is_unfinished);
                    if readable && !is_unfinished {
                        self.read(key, buffer);
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Time until the next timer, a tick at most.
    fn until_next(&self) -> Duration {
        let now_ns = monotonic_ns();
        let timer = self.timers.peek().map(|timer| timer.due);
        let stall = self.next_stall_ns();
        let until = |due_ns: u64| Duration::from_nanos(due_ns.saturating_sub(now_ns));
        timer.into_iter().chain(stall).map(until).min().unwrap_or(TICK).min(TICK)
    }

    fn next_stall_ns(&self) -> Option<u64> {
        let (at, _) = self.stalls.last()?;
        Some(self.first_message_ns? + at.as_nanos() as u64)
    }

    /// Stalls if the script has a stall: nothing is read, written or timed.
    fn stall(&mut self, stop: &AtomicBool) {
        while self.next_stall_ns().is_some_and(|due_ns| due_ns <= monotonic_ns()) {
            let Some((_, lasting)) = self.stalls.pop() else { return };
            let end_ns = monotonic_ns() + lasting.as_nanos() as u64;
            self.journal.line(Event::Stalled).number(lasting.as_nanos() as u64).end();
            while !stop.load(Ordering::Relaxed) {
                let left = Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()));
                if left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(TICK));
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept()? {
                Accepted::Stream(socket) => socket,
                Accepted::Nobody => return Ok(()),
                Accepted::Exhausted => return self.listener.pause(&self.poll),
            };
            if self.nagle && socket.set_nodelay(false).is_err() {
                // The connection has ended already.
                continue;
            }
            let stream = match self.websocket {
                true => Stream::Framed(WebSocket::new(socket)),
                false => match Stream::new(socket, self.tls.as_ref()) {
                    Ok(stream) => stream,
                    Err(_) => continue,
                },
            };
            let connection = Connection::new(stream);
            let descriptor = connection.descriptor();
            self.connections += 1;
            let key = self.peers.insert(Peer {
                connection,
                phase: Phase::Stranger,
                client: format!("connection-{}", self.connections).into(),
                session: None,
                version: Version::V311,
                appended_bytes: 0,
                marks: Default::default(),
                accepted: None,
                is_dirty: false,
                is_unfinished: false,
            });
            if self.poll.add(descriptor, key).is_err() {
                self.peers.remove(key);
                return self.listener.pause(&self.poll);
            }
        }
    }

    /// Reads and handles the bytes of one turn. If more may be available that the poll does not report, the connection is
    /// unfinished and has another turn.
    fn read(&mut self, key: Key, buffer: &mut Vec<u8>) {
        let mut left_bytes = TURN_BYTES;
        loop {
            let Some(peer) = self.peers.get_mut(key) else { return };
            match peer.connection.receive(buffer) {
                Ok(Received::Some { filled_bytes, more }) => {
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
                Ok(Received::End) => return self.remove(key, "end"),
                Err(_) => return self.remove(key, "error"),
            }
        }
    }

    /// Handles all complete packets in `bytes`, and returns their length.
    fn read_packets(&mut self, key: Key, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        loop {
            let handled = match frame(rest, MAXIMUM_PACKET_BYTES) {
                Ok(None) => break,
                Ok(Some(packet)) => {
                    rest = &rest[packet.total_bytes..];
                    self.handle(key, &packet)
                }
                Err(_) => {
                    self.remove(key, "malformed");
                    Err(Gone)
                }
            };
            if handled.is_err() {
                break;
            }
        }
        bytes.len() - rest.len()
    }

    fn handle(&mut self, key: Key, packet: &Frame<'_>) -> Result<(), Gone> {
        let Some(peer) = self.peers.get(key) else { return Err(Gone) };
        match (peer.phase, peer.session) {
            (Phase::Stranger, _) => self.connect(key, packet),
            (Phase::Open, Some(session)) => self.serve(key, session, packet),
            _ => self.discard(key, packet),
        }
    }

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
        let processor_before = processor();
        let result = peer.connection.flush(&self.poll, key);
        let written = peer.appended_bytes - peer.connection.pending_bytes() as u64;
        while peer.marks.front().is_some_and(|(end, _)| *end <= written) {
            peer.accepted = peer.marks.pop_front().map(|(_, line)| line);
        }
        // TLS may hold what it accepted. A socket that is full delays the line: it is an upper bound of the time.
        if result.is_ok()
            && !peer.connection.is_blocked()
            && let Some(line) = peer.accepted.take()
        {
            self.arrivals.wait(processor_before);
            self.journal.line(Event::Written).text(&peer.client).number(line).end();
        }
        if result.is_err() {
            self.remove(key, "error");
        }
    }

    pub(super) fn flush_dirty(&mut self) {
        while let Some(key) = self.dirty.pop() {
            if let Some(peer) = self.peers.get_mut(key) {
                peer.is_dirty = false;
            }
            self.flush(key);
        }
    }
}

fn journal_failed(path: &Path, source: io::Error) -> BrokerError {
    BrokerError::Journal { path: path.to_path_buf(), source }
}
