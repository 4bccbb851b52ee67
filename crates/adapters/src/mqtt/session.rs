//! One session: its connection, what it remembers between connections, and how a connection ends.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Goodbye, SessionConfig, SessionId, ShardConfig};
use pubmark_protocol::events::{Cause, Sink};
use pubmark_protocol::outbox::{BufferPool, FULL_BYTES, Outbox};
use pubmark_protocol::reactor::{Reactor, Ready};
use pubmark_protocol::receive::WallOffset;
use pubmark_protocol::socket::SocketFactory;
use pubmark_protocol::stream::{ReadBuffers, Stream, StreamError};
use pubmark_protocol::tls::TlsSetup;
use pubmark_protocol::wheel::Wheel;
use pubmark_wire::mqtt::{Disconnect, Properties, Property, Version, encode_disconnect, reason};

use super::in_flight::{InFlight, Progress};
use super::received_ids::ReceivedIds;

/// What all sessions of a shard share.
pub struct Shared {
    pub version: Version,
    pub config: ShardConfig,
    pub reactor: Reactor,
    pub sockets: SocketFactory,
    pub tls: Vec<Option<TlsSetup>>,
    pub pool: BufferPool,
    pub buffers: ReadBuffers,
    pub wheel: Wheel,
    pub offset: WallOffset,
    /// Memory of the last incomplete packet, for the next one.
    pub spare: Vec<u8>,
    /// Sessions whose sockets were not read empty yet.
    pub unread: Vec<u32>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    Closed,
    /// TCP is being connected.
    Connecting,
    /// TLS is being agreed, or CONNECT is on its way; CONNACK is awaited.
    Opening,
    /// The server has accepted the session.
    Open,
}

/// Why a message was not taken: what must change before the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The session is not open.
    NotOpen,
    /// Too many bytes wait for the socket.
    Outbox,
    /// Too many messages wait for their acknowledgement.
    Window,
}

/// A session.
pub struct Session {
    pub id: SessionId,
    pub config: SessionConfig,
    pub phase: Phase,
    pub stream: Option<Stream>,
    /// Counts connections, so that an event of an earlier one is told apart.
    pub generation: u32,
    pub outbox: Outbox,
    /// The socket took less than it was offered.
    pub full: bool,
    pub blocked: Option<Blocked>,
    /// The front of a packet whose rest has not come.
    pub partial: Vec<u8>,
    /// The end of the stream is behind the bytes in the socket: it must be read up to there.
    pub ended: bool,
    /// The last read left the socket empty, and a time when it was empty.
    pub drained: bool,
    pub empty_at_ns: u64,
    /// The server's limits.
    pub maximum_packet_bytes: u32,
    pub maximum_qos: Qos,
    pub in_flight: InFlight,
    pub received_ids: ReceivedIds,
    /// Subscriptions answered since the server last had no session.
    pub answered: usize,
    /// 0 for no keep-alive.
    pub keep_alive_ns: u64,
    pub sent_at_ns: u64,
    pub received_at_ns: u64,
    pub pinged_at_ns: Option<u64>,
    /// When the wheel brings this session next; entries for other times are out of date.
    pub check_at_ns: u64,
}

impl Session {
    pub fn new(id: SessionId, config: SessionConfig) -> Session {
        Session {
            id,
            config,
            phase: Phase::Closed,
            stream: None,
            generation: 0,
            outbox: Outbox::default(),
            full: false,
            blocked: None,
            partial: Vec::new(),
            ended: false,
            drained: true,
            empty_at_ns: 0,
            maximum_packet_bytes: u32::MAX,
            maximum_qos: Qos::ExactlyOnce,
            in_flight: InFlight::new(0),
            received_ids: ReceivedIds::default(),
            answered: 0,
            keep_alive_ns: 0,
            sent_at_ns: 0,
            received_at_ns: 0,
            pinged_at_ns: None,
            check_at_ns: 0,
        }
    }

    /// The key of the present connection's events.
    pub fn key(&self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.id.0)
    }

    /// Goes on where the socket can.
    pub fn on_ready(&mut self, shared: &mut Shared, ready: Ready, sink: &mut impl Sink) {
        if let Err(cause) = self.go_on(shared, ready, sink) {
            self.end(shared, cause, sink);
        }
        self.tell_if_writable(sink);
    }

    fn go_on(&mut self, shared: &mut Shared, ready: Ready, sink: &mut impl Sink) -> Result<(), Cause> {
        if self.phase == Phase::Connecting {
            if !ready.writable {
                return Ok(());
            }
            self.begin(shared)?;
        }
        if ready.writable {
            self.full = false;
        }
        self.ended |= ready.ended;
        // A socket not read empty last time is among the unread ones already, and has its turn there.
        if ready.readable && self.drained {
            self.empty_at_ns = self.empty_at_ns.max(shared.reactor.quiet_at_ns());
            self.receive(shared, sink)?;
        }
        self.write(shared, sink)
    }

    /// Goes on reading a socket that was not read empty last time.
    pub fn read_on(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        if let Err(cause) = self.receive(shared, sink).and_then(|()| self.write(shared, sink)) {
            self.end(shared, cause, sink);
        }
        self.tell_if_writable(sink);
    }

    /// Writes what waits, if the socket is not known to be full.
    pub fn flush(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        if let Err(cause) = self.write(shared, sink) {
            self.end(shared, cause, sink);
        }
        self.tell_if_writable(sink);
    }

    fn write(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let idle = self.outbox.is_empty() && !stream.wants_write();
        if self.full || idle || self.phase == Phase::Connecting {
            return Ok(());
        }
        let (id, in_flight) = (self.id, &mut self.in_flight);
        let wrote = stream.write(&mut self.outbox, &mut shared.pool, |message, write_start_ns, written_ns| {
            if message.tag != 0 {
                in_flight.written(message.tag);
            }
            sink.written(id, message.token, write_start_ns, written_ns);
        });
        match wrote {
            Ok(wrote) => {
                self.full = wrote.full;
                self.sent_at_ns = wrote.at_ns.unwrap_or(self.sent_at_ns);
                Ok(())
            }
            // What the server said before it closed explains more than the failed write.
            Err(error) => {
                self.receive(shared, sink)?;
                Err(self.cause_of(error))
            }
        }
    }

    /// The words for a connection that failed.
    pub fn cause_of(&self, error: StreamError) -> Cause {
        match error {
            StreamError::Tls(error) => Cause::Tls(error.to_string()),
            StreamError::Socket(error) if self.stream.as_ref().is_some_and(Stream::is_handshaking) => {
                Cause::Tls(error.to_string())
            }
            StreamError::Socket(error) => Cause::Dropped(error.to_string()),
        }
    }

    /// Tells the engine that a message can be tried again, if it was told that none could.
    pub fn tell_if_writable(&mut self, sink: &mut impl Sink) {
        let Some(blocked) = self.blocked else { return };
        let free = self.phase == Phase::Open
            && match blocked {
                Blocked::NotOpen => true,
                Blocked::Outbox => self.outbox.pending_bytes() < FULL_BYTES,
                Blocked::Window => self.in_flight.has_room(),
            };
        if free {
            self.blocked = None;
            sink.writable(self.id);
        }
    }

    /// Ends the connection because we want to. With DISCONNECT if the session is open and the socket takes it; otherwise
    /// the socket is just closed, and the server sees the end of the stream (or a reset, if it had more to say).
    pub fn disconnect(&mut self, shared: &mut Shared, goodbye: Goodbye, sink: &mut impl Sink) {
        if self.phase == Phase::Closed {
            return;
        }
        if goodbye != Goodbye::Cut && self.phase == Phase::Open {
            let version = shared.version;
            // MQTT 3.1.1 cannot end a session with a DISCONNECT; the property is left out there.
            let ends_session = [Property::SessionExpiryInterval(0)];
            let ends = goodbye == Goodbye::Final && self.config.persistent;
            let properties = if ends { Properties::new(&ends_session) } else { Properties::NONE };
            let words = Disconnect { reason: reason::SUCCESS, properties };
            self.outbox.append(&mut shared.pool, |out| {
                encode_disconnect(version, &words, out).expect("a DISCONNECT like this has no field to be too long");
            });
            // If this finds the connection broken, what was not written is abandoned below like anything else.
            let _ = self.write(shared, sink);
            if let Some(stream) = self.stream.as_mut().filter(|_| self.outbox.is_empty()) {
                stream.close_notify();
            }
        }
        self.end(shared, Cause::Ours, sink);
    }

    /// Ends the connection and says what became of everything in it.
    pub fn end(&mut self, shared: &mut Shared, cause: Cause, sink: &mut impl Sink) {
        self.stream = None;
        self.phase = Phase::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.partial = Vec::new();
        (self.full, self.ended, self.drained, self.pinged_at_ns) = (false, false, true, None);
        let (id, in_flight) = (self.id, &mut self.in_flight);
        self.outbox.abandon(&mut shared.pool, |message| {
            in_flight.remove(message.tag);
            sink.abandoned(id, message.token);
        });
        if !self.config.persistent {
            self.forget(sink);
        }
        sink.closed(self.id, cause);
    }

    /// The server has nothing of us any more: what was written and not acknowledged nobody can know.
    pub fn forget(&mut self, sink: &mut impl Sink) {
        for entry in self.in_flight.drain() {
            if entry.progress == Progress::Written {
                sink.unanswered(self.id, entry.token);
            }
        }
        self.received_ids.clear();
        self.answered = 0;
    }

    /// Bytes that have not reached the server for all we know.
    pub fn unsent_bytes(&self) -> u64 {
        self.stream.as_ref().map_or(0, Stream::unsent_bytes) + self.outbox.pending_bytes() as u64
    }
}
