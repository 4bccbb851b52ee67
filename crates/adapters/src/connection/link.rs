//! A session's connection and its buffers, and what the connections of a shard share.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use pubmark_protocol::client_certificate::CERTIFICATE_REQUESTED;
use pubmark_protocol::clients::{Outgoing, SessionConfig, SessionId, ShardConfig};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Event, Reason, Secured, Sink};
use pubmark_protocol::outbox::{BufferPool, FULL_BYTES, Message, Outbox};
use pubmark_protocol::reactor::Reactor;
use pubmark_protocol::receive::WallOffset;
use pubmark_protocol::requests::OutgoingReply;
use pubmark_protocol::socket::SocketFactory;
use pubmark_protocol::stream::{ReadBuffers, Stream, StreamError};
use pubmark_protocol::tls::{DeviceTls, TlsSetup};
use pubmark_protocol::traffic::Traffic;
use pubmark_protocol::websocket::{Fault, WebSocket};
use pubmark_protocol::wheel::Wheel;

use super::deadline::Deadline;
use super::working::HeldBytes;
use crate::payload;
use crate::unread::UnreadTimes;

/// Upper half of a listener's key; connections are counted below it.
pub(super) const LISTENING: u32 = u32::MAX;

/// Most bytes of responses that wait for the socket: several times the acknowledgements of MQTT's largest in-flight window.
const MOST_RESPONSE_BYTES: usize = 1 << 20;

/// What all sessions of a shard share.
pub struct Shared {
    /// The shard's settings.
    pub config: ShardConfig,
    /// Buffers for outboxes.
    pub pool: BufferPool,
    pub(super) reactor: Reactor,
    pub(super) sockets: SocketFactory,
    pub(super) tls: Vec<Option<TlsSetup>>,
    pub(super) buffers: ReadBuffers,
    pub(super) wheel: Wheel,
    pub(super) offset: WallOffset,
    /// Memory of the last incomplete packet, for the next one.
    pub(super) spare: Vec<u8>,
    /// Sessions whose sockets were not read empty yet.
    pub(super) unread: Vec<u32>,
    /// Connections that were given up without a packet: closing them would notify the server.
    pub(super) given_up: Vec<Stream>,
    /// See [`Clients::silenced`](pubmark_protocol::clients::Clients::silenced).
    pub(super) silenced: Vec<SocketAddr>,
}

impl Shared {
    /// A silenced connection stays open until the end of the run: closing it earlier would notify the server.
    pub(super) fn retain_if_silenced(&mut self, stream: Option<Stream>) {
        if let Some(stream) = stream.filter(|stream| stream.socket().is_silent()) {
            // A reset, so that nothing of it stays in the kernel; where that cannot be set it ends in its own time.
            let _ = stream.socket().close_by_reset();
            self.given_up.push(stream);
        }
    }
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is none.
    Closed,
    /// TCP is being connected.
    Connecting,
    /// TLS is being agreed, or the first words are on their way; the server's welcome is awaited.
    Opening,
    /// The server has accepted the session.
    Open,
}

/// Why a send would block: what must change before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The session is not open.
    NotOpen,
    /// Too many bytes wait for the socket.
    Outbox,
    /// Too many messages wait for their acknowledgement.
    Window,
}

/// How a message goes out.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Repeated when it is written or abandoned; 0 if that does not matter.
    pub tag: u16,
    /// Whole payload.
    pub payload_bytes: usize,
    /// It was reported as written before.
    pub repeated: bool,
    /// Bytes from its header to its payload: 0 if that begins with it.
    pub header_before: usize,
}

impl Sending {
    /// Sent for the first time, and not stored.
    pub fn once(payload_bytes: usize) -> Sending {
        Sending { tag: 0, payload_bytes, repeated: false, header_before: 0 }
    }
}

/// A session's connection, as it is at present.
pub struct Link {
    /// The session.
    pub id: SessionId,
    /// Its settings.
    pub config: SessionConfig,
    /// Its state.
    pub phase: Phase,
    /// Pings of the present connection, for dialects that count the responses.
    pub pings: u32,
    /// Outgoing bytes.
    pub outbox: Outbox,
    /// How many of them are responses, at most.
    response_bytes: usize,
    pub(super) stream: Option<Stream>,
    /// Traffic of earlier connections; `None` once that of one was unknown.
    past_traffic: Option<Traffic>,
    /// Counts connections, so that an event of an earlier one is recognised.
    pub(super) generation: u32,
    /// The socket took less than it was offered.
    pub(super) full: bool,
    pub(super) blocked: Option<Blocked>,
    /// A time before that began, ns of `CLOCK_MONOTONIC`.
    pub(super) blocked_since_ns: u64,
    /// The front of a packet that is not complete.
    pub(super) partial: Vec<u8>,
    /// Its subscriber processes a message: what follows waits.
    pub(super) at_work: bool,
    /// Packets that arrived together with the message that the subscriber processes.
    pub(super) held: HeldBytes,
    /// When its subscriber was last done: what arrived before waited for the subscriber, which is not receive lateness.
    pub(super) resumed_ns: u64,
    /// The end of the stream is behind the bytes in the socket: it must be read up to there.
    pub(super) ended: bool,
    /// The protocol's goodbye was written.
    pub(super) said_goodbye: bool,
    /// Why a write failed: nothing is written any more, and the connection ends when what had arrived is handled.
    pub(super) broken: Option<Box<StreamError>>,
    /// The last read left the socket empty, and a time when it was empty.
    pub(super) drained: bool,
    pub(super) empty_at_ns: u64,
    pub(super) unread: UnreadTimes,
    /// Number of packets that were handled, those of one message counted as one; it wraps.
    pub(super) packets: u32,
    /// For a session that was blocked and can send again: time until which the system prevented it, ns of `CLOCK_MONOTONIC`.
    pub(super) free_since_ns: Option<u64>,
    /// 0 for no keep-alive.
    pub(super) keep_alive_ns: u64,
    pub(super) sent_at_ns: u64,
    pub(super) received_at_ns: u64,
    /// Longest time without a packet from a server without ping responses; 0 for two keep-alives.
    pub(super) idle_limit_ns: u64,
    pub(super) pinged_at_ns: Option<u64>,
    /// The dialect waits for the server before it opens the session, until then.
    pub(super) waits_until: Option<Deadline>,
    /// When the session proves anew who it is.
    pub(super) renewal: Option<Deadline>,
    /// When the wheel brings this session next; entries for other times are out of date.
    pub(super) check_at_ns: u64,
    /// TLS state between its connections.
    tls: DeviceTls,
    /// How its TLS is set up, if it shows a certificate of its own; made with its first connection.
    own_tls: Option<Box<TlsSetup>>,
    /// Start of the TLS handshake; `None` before, and once the handshake was reported.
    pub(super) tls_began_ns: Option<u64>,
}

impl Link {
    pub(super) fn new(id: SessionId, config: SessionConfig) -> Link {
        Link {
            id,
            config,
            phase: Phase::Closed,
            pings: 0,
            outbox: Outbox::default(),
            response_bytes: 0,
            stream: None,
            past_traffic: Some(Traffic::default()),
            generation: 0,
            full: false,
            blocked: None,
            blocked_since_ns: 0,
            partial: Vec::new(),
            at_work: false,
            held: HeldBytes::default(),
            resumed_ns: 0,
            ended: false,
            said_goodbye: false,
            broken: None,
            drained: true,
            empty_at_ns: 0,
            unread: UnreadTimes::default(),
            packets: 0,
            free_since_ns: None,
            keep_alive_ns: 0,
            sent_at_ns: 0,
            received_at_ns: 0,
            idle_limit_ns: 0,
            pinged_at_ns: None,
            waits_until: None,
            renewal: None,
            check_at_ns: 0,
            tls: DeviceTls::default(),
            own_tls: None,
            tls_began_ns: None,
        }
    }

    /// The key of the present connection's events.
    pub(super) fn key(&self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.id.0)
    }

    /// Starts connecting.
    pub(super) fn open(&mut self, shared: &mut Shared, tls_first: bool) -> Result<(), Cause> {
        self.note_begin();
        let unreachable = |error: std::io::Error| Cause::Unreachable(error.to_string());
        let place = usize::from(self.config.endpoint);
        let address = shared.config.endpoints[place].address;
        let socket = shared.sockets.connect(self.config.network, address).map_err(unreachable)?;
        self.unread = UnreadTimes::new(address.ip().is_loopback());
        let mut stream = Stream::new(socket);
        if tls_first {
            self.encrypt_stream(&mut stream, shared)?;
        }
        if let Some(upgrade) = &shared.config.endpoints[place].upgrade {
            stream.upgrade(WebSocket::new(upgrade));
        }
        self.attach(shared, stream).map_err(unreachable)?;
        self.phase = Phase::Connecting;
        Ok(())
    }

    /// A connection begins now: nothing has arrived on it.
    pub(super) fn note_begin(&mut self) {
        self.empty_at_ns = clock::monotonic_ns();
        self.received_at_ns = self.empty_at_ns;
        self.unread = UnreadTimes::default();
    }

    /// Watches a stream, which was not read so far.
    pub(super) fn attach(&mut self, shared: &Shared, stream: Stream) -> std::io::Result<()> {
        shared.reactor.add(stream.as_fd(), self.key())?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Starts TLS from here on, if the endpoint requires it; for protocols that begin in the clear.
    pub fn encrypt(&mut self, shared: &Shared) -> Result<(), Cause> {
        let Some(mut stream) = self.stream.take() else { return Ok(()) };
        let done = self.encrypt_stream(&mut stream, shared);
        self.stream = Some(stream);
        done?;
        self.note_handshake();
        Ok(())
    }

    fn encrypt_stream(&mut self, stream: &mut Stream, shared: &Shared) -> Result<(), Cause> {
        let Some(all) = &shared.tls[usize::from(self.config.endpoint)] else { return Ok(()) };
        if let (Some(pem), None) = (&self.config.certificate, &self.own_tls) {
            self.own_tls = Some(Box::new(all.of_device(pem).map_err(Cause::Tls)?));
        }
        let setup = self.own_tls.as_deref().unwrap_or(all);
        let device = shared.config.connections.resumes_tls.then_some(&mut self.tls);
        stream.encrypt(setup.connection(device).map_err(|error| Cause::Tls(error.to_string()))?);
        Ok(())
    }

    /// How its TLS is set up.
    fn tls_setup<'a>(&'a self, shared: &'a Shared) -> Option<&'a TlsSetup> {
        self.own_tls.as_deref().or(shared.tls[usize::from(self.config.endpoint)].as_ref())
    }

    /// If TLS is to be agreed, that begins now.
    pub(super) fn note_handshake(&mut self) {
        let handshakes = self.stream.as_ref().is_some_and(Stream::is_handshaking);
        self.tls_began_ns = handshakes.then(clock::monotonic_ns);
    }

    /// Reports once that the TLS handshake is complete.
    pub(super) fn report_secured(&mut self, sink: &mut impl Sink) {
        let Some(began_ns) = self.tls_began_ns else { return };
        if let Some(agreed) = self.stream.as_ref().and_then(Stream::agreed_tls) {
            self.tls_began_ns = None;
            sink.event(self.id, Event::Secured(Secured { began_ns, done_ns: clock::monotonic_ns(), agreed }));
        }
    }

    /// Did the server request a client certificate when none was configured?
    pub(super) fn lacks_certificate(&self, shared: &Shared) -> bool {
        self.tls_setup(shared).is_some_and(TlsSetup::lacks_certificate)
    }

    /// Is the endpoint one that is to be encrypted?
    pub fn wants_tls(&self, shared: &Shared) -> bool {
        shared.tls[usize::from(self.config.endpoint)].is_some()
    }

    /// The server has accepted the session; silence of this length is ended by a ping, 0 for never.
    pub fn opened(&mut self, shared: &mut Shared, keep_alive_s: u16) {
        self.phase = Phase::Open;
        self.renewal = None;
        self.keep_alive_ns = u64::from(keep_alive_s) * 1_000_000_000;
        self.idle_limit_ns = 0;
        self.pinged_at_ns = None;
        if self.keep_alive_ns > 0 {
            self.check_at_ns = shared.wheel.set(self.id.0, clock::monotonic_ns() + self.keep_alive_ns);
        }
    }

    /// The server has accepted the session, and both sides send heartbeats. The server closes the connection if it receives
    /// nothing for `allowed_ms`; the client does so after `idle_limit_ms`. 0 means no limit.
    pub fn opened_with_heartbeats(&mut self, shared: &mut Shared, allowed_ms: u64, idle_limit_ms: u64) {
        let ns = |ms: u64| if ms == 0 { u64::MAX / 4 } else { ms.saturating_mul(1_000_000).min(u64::MAX / 4) };
        self.opened(shared, 0);
        (self.keep_alive_ns, self.idle_limit_ns) = (ns(allowed_ms), ns(idle_limit_ms));
        let first_ns = (self.keep_alive_ns / 2).min(self.idle_limit_ns);
        self.check_at_ns = shared.wheel.set(self.id.0, clock::monotonic_ns() + first_ns);
    }

    /// Appends a message: what `front` writes, its payload, and `end`.
    pub fn append_message(
        &mut self,
        shared: &mut Shared,
        message: Outgoing,
        sending: Sending,
        front: impl FnOnce(&mut Vec<u8>),
        end: &[u8],
    ) {
        let Sending { tag, repeated, header_before, .. } = sending;
        let entry = Message { token: message.token(), timing: message.timing, tag, repeated, withheld: false };
        let (config, publication) = (&shared.config, &self.config.publications[usize::from(message.publication)]);
        self.outbox.append_message(&mut shared.pool, entry, |out| {
            front(out);
            let at = out.len() - header_before;
            payload::append(config, publication, &message, out);
            out.extend_from_slice(end);
            at
        });
    }

    /// Accepts a message that is not sent, as it has no subscriber; it is reported in its turn.
    pub fn withhold(&mut self, shared: &mut Shared, message: Outgoing) {
        let entry = Message { token: message.token(), timing: message.timing, tag: 0, repeated: false, withheld: true };
        self.outbox.append_nothing(&mut shared.pool, entry, clock::monotonic_ns());
    }

    /// Lets the dialect know ([`super::Dialect::wait_expired`]) if the session is not open at this time, or up to 250
    /// ms later.
    pub fn wait(&mut self, shared: &mut Shared, until_ns: u64) {
        self.waits_until = Some(Deadline::new(&mut shared.wheel, self.id.0, until_ns));
    }

    /// Lets the dialect renew what the session has proved who it is with ([`super::Dialect::renew`]), after so long, or up to 250 ms
    /// later; the session is open.
    pub fn renew_after(&mut self, shared: &mut Shared, after: Duration) {
        let at_ns = clock::monotonic_ns() + after.as_nanos() as u64;
        self.renewal = Some(Deadline::new(&mut shared.wheel, self.id.0, at_ns));
    }

    /// The packet that is being handled has a part of what the server has, and the next part waits for our request.
    #[cfg(feature = "redis")]
    pub fn note_part(&mut self) {
        self.unread.note_part();
    }

    /// Appends a response to a packet of the server's, which alone decides how many there are: a PONG, an acknowledgement.
    pub fn respond(&mut self, shared: &mut Shared, encode: impl FnOnce(&mut Vec<u8>)) {
        let waiting = self.outbox.pending_bytes();
        self.outbox.append(&mut shared.pool, encode);
        // Of the earlier ones, no more can be left than what waits.
        self.response_bytes = self.response_bytes.min(waiting) + self.outbox.pending_bytes() - waiting;
    }

    /// The end of a connection whose server sends and does not read: the responses to it would fill the memory.
    pub(super) fn check_responses(&self) -> Result<(), Cause> {
        if self.response_bytes > MOST_RESPONSE_BYTES {
            return Err(Cause::Dropped("ended by us: it does not read our answers".to_owned()));
        }
        Ok(())
    }

    /// Appends an answer: what `front` writes, its payload, and `end`.
    pub fn append_reply(
        &mut self,
        shared: &mut Shared,
        answer: &OutgoingReply<'_>,
        tag: u16,
        front: impl FnOnce(&mut Vec<u8>),
        end: &[u8],
    ) {
        // Its header's time counts from the request's arrival.
        let entry = Message { token: answer.token(), timing: answer.timing, tag, repeated: false, withheld: false };
        let config = &shared.config;
        self.outbox.append_message(&mut shared.pool, entry, |out| {
            front(out);
            let at = out.len();
            payload::append_reply(config, answer, out);
            out.extend_from_slice(end);
            at
        });
    }

    /// Why it accepts no message, apart from what its dialect knows.
    pub(super) fn blocked_now(&self) -> Option<Blocked> {
        if self.phase != Phase::Open || self.broken.is_some() {
            return Some(Blocked::NotOpen);
        }
        (self.outbox.pending_bytes() >= FULL_BYTES).then_some(Blocked::Outbox)
    }

    /// A write failed: what had arrived is read to its end.
    pub(super) fn note_broken(&mut self, error: StreamError) {
        self.broken = Some(Box::new(error));
        (self.ended, self.drained) = (true, false);
    }

    /// The connection is gone. Returns its stream, which ends when it is dropped.
    pub(super) fn close(&mut self) -> Option<Stream> {
        self.past_traffic = self.traffic();
        let stream = self.stream.take();
        self.phase = Phase::Closed;
        self.generation = (self.generation + 1) % LISTENING;
        self.partial = Vec::new();
        (self.at_work, self.held) = (false, HeldBytes::default());
        (self.said_goodbye, self.broken) = (false, None);
        (self.pings, self.response_bytes) = (0, 0);
        (self.full, self.ended, self.drained, self.pinged_at_ns) = (false, false, true, None);
        (self.waits_until, self.tls_began_ns) = (None, None);
        stream
    }

    /// What all its connections have carried.
    pub(super) fn traffic(&self) -> Option<Traffic> {
        let mut all = self.past_traffic?;
        if let Some(stream) = self.stream.as_ref().filter(|_| self.phase != Phase::Connecting) {
            all.add(&stream.traffic()?);
        }
        Some(all)
    }

    /// The words for a connection that failed.
    pub(super) fn cause_of(&self, shared: &Shared, error: StreamError) -> Cause {
        match error {
            StreamError::Tls(error) => {
                let setup = self.tls_setup(shared);
                Cause::Tls(setup.map_or_else(|| error.to_string(), |setup| setup.explain(&error)))
            }
            StreamError::Socket(error)
                if self.stream.as_ref().is_some_and(|stream| stream.is_upgrading() && !stream.is_handshaking()) =>
            {
                Cause::Dropped(format!("{error} during the WebSocket handshake"))
            }
            StreamError::Socket(error) if self.phase != Phase::Open && self.lacks_certificate(shared) => {
                Cause::Tls(format!("{CERTIFICATE_REQUESTED} ({error})"))
            }
            StreamError::Socket(error) if self.stream.as_ref().is_some_and(Stream::is_handshaking) => {
                Cause::Tls(error.to_string())
            }
            StreamError::Socket(error) => Cause::Dropped(error.to_string()),
        }
    }

    /// The words for a WebSocket that is over; `None` while it is not.
    pub(super) fn cause_of_fault(&self) -> Option<Cause> {
        Some(match self.stream.as_ref()?.fault()? {
            Fault::Refused { status, reason } => {
                let reason = Reason::words(format!("HTTP {status} {reason}").trim_end().to_owned());
                // RFC 9110 §15.5.2, §15.5.4.
                if matches!(status, 401 | 403) { Cause::NotAuthorized(reason) } else { Cause::Refused(reason) }
            }
            Fault::Handshake(what) => Cause::Protocol(format!("{what} to the WebSocket handshake")),
            Fault::Frame(what) => Cause::Protocol(format!("WebSocket: {what}")),
            Fault::Closed { code, reason } => {
                let code_text = code.map_or_else(String::new, |code| format!(" with code {code}"));
                let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                let reason = Reason::words(format!("it closed the WebSocket{code_text}{reason}"));
                // RFC 6455 §7.4.1: a message too big to process.
                Cause::Server { reason, too_large: *code == Some(1_009) }
            }
        })
    }

    /// Bytes that reached this machine and wait until the subscriber has processed what came before them.
    pub(super) fn held_bytes(&self) -> u64 {
        let in_socket = self.stream.as_ref().filter(|_| self.at_work).map_or(0, Stream::unread_bytes);
        self.held.len() as u64 + in_socket
    }

    /// Bytes that have not reached the server for all we know.
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.stream.as_ref().map_or(0, Stream::unsent_bytes) + self.outbox.pending_bytes() as u64
    }
}
