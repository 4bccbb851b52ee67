//! A session's socket and its peer's state, and what the sessions of a shard share.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use pubmark_model::random::mix;
use pubmark_protocol::clients::{SessionConfig, SessionId, ShardConfig};
use pubmark_protocol::clock;
use pubmark_protocol::datagram::{DatagramSocket, Datagrams};
use pubmark_protocol::events::Cause;
use pubmark_protocol::reactor::Reactor;
use pubmark_protocol::receive::WallOffset;
use pubmark_protocol::socket::SocketFactory;
use pubmark_protocol::traffic::{self, Traffic};
use pubmark_protocol::wheel::Wheel;
use pubmark_wire::coap::{Code, Exchange, Kind, Times, Writer, encode_empty};

use super::message_ids::MessageIds;
use super::recent::{RESPONDER_IDS, RecentIds};
use crate::unread::UnreadTimes;

/// Requested receive buffer of a session with subscriptions, bytes: the kernel's default holds some ninety notifications of 1
/// KB, and further ones are dropped.
const RECEIVE_BUFFER_BYTES: i32 = 4 << 20;

/// What all sessions of a shard share.
pub struct Shared {
    pub(super) config: ShardConfig,
    pub(super) times: Times,
    pub(super) reactor: Reactor,
    pub(super) sockets: SocketFactory,
    pub(super) datagrams: Datagrams,
    pub(super) wheel: Wheel,
    pub(super) offset: WallOffset,
    /// The datagram being made.
    pub(super) scratch: Vec<u8>,
    /// Memory of the last large message that was put together, for the next one.
    pub(super) spare: Vec<u8>,
    /// Sessions whose sockets were not read empty yet.
    pub(super) unread: Vec<u32>,
    /// Random numbers drawn.
    pub(super) drawn: u64,
}

impl Shared {
    /// A number for a time; nothing that is measured depends on it.
    pub(super) fn random(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.drawn ^ u64::from(self.config.run) << 32)
    }

    /// A confirmable message that is sent now.
    pub(super) fn exchange(&mut self, now_ns: u64) -> Exchange {
        let random = self.random();
        Exchange::start(&self.times, now_ns, random)
    }
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is no socket.
    Closed,
    /// No response yet.
    Opening,
    /// The server has responded.
    Open,
}

/// Result of sending a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The socket took it.
    SendOutcome,
    /// The socket is full, which the reactor ends.
    Full,
    /// The kernel refuses to send to that address; sends to other peers are not affected.
    Refused,
}

/// Why a send would block: what must change before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The session is not open.
    NotOpen,
    /// Too many messages wait for the socket.
    Queue,
    /// Too many messages wait for their response.
    Window,
    /// A message is going in blocks, one after another.
    Transfer,
}

/// A session's socket, as it is at present.
pub struct Link {
    pub(super) id: SessionId,
    pub(super) config: SessionConfig,
    pub(super) phase: Phase,
    /// Before the socket: fields are dropped in this order.
    message_ids: MessageIds,
    pub(super) socket: Option<DatagramSocket>,
    /// Datagrams that the kernel has dropped because its buffer was full: as many as were reported.
    overflowed: u64,
    /// Counts sockets, so that an event of an earlier one is recognised.
    pub(super) generation: u32,
    /// The socket took no more.
    pub(super) full: bool,
    pub(super) blocked: Option<Blocked>,
    /// [`super::session::Session::late_ns`] when that began.
    pub(super) late_before_ns: u64,
    /// For a session that was blocked and can send again: time until which the system prevented it, ns of `CLOCK_MONOTONIC`.
    pub(super) free_since_ns: Option<u64>,
    /// The last read left the socket empty, and a time when it was empty.
    pub(super) drained: bool,
    pub(super) empty_at_ns: u64,
    pub(super) unread: UnreadTimes,
    /// An error waits in the socket behind what can be read.
    pub(super) ended: bool,
    /// The first error of the socket: nothing is sent any more, and the session ends when what had arrived is handled.
    pub(super) broken: Option<io::Error>,
    pub(super) received_at_ns: u64,
    /// When the wheel brings this session next, 0 for never; entries for other times are out of date.
    pub(super) check_at_ns: u64,
    pub(super) recent: RecentIds,
    /// What its sockets have carried.
    pub(super) traffic: Traffic,
    /// Of its packets, bytes.
    ip_header: u64,
}

impl Link {
    pub(super) fn new(id: SessionId, mut config: SessionConfig) -> Link {
        let targets = config.options.reply_topic.is_some();
        // A requester's one publication goes to where its responder is.
        if let Some(asked) = config.options.targets.first().filter(|_| targets) {
            config.endpoint = asked.endpoint;
        }
        Link {
            id,
            config,
            phase: Phase::Closed,
            socket: None,
            overflowed: 0,
            generation: 0,
            full: false,
            blocked: None,
            late_before_ns: 0,
            free_since_ns: None,
            drained: true,
            empty_at_ns: 0,
            unread: UnreadTimes::default(),
            ended: false,
            broken: None,
            received_at_ns: 0,
            check_at_ns: 0,
            traffic: Traffic::default(),
            ip_header: traffic::IPV4,
            recent: if targets { RecentIds::with_capacity(RESPONDER_IDS) } else { RecentIds::new() },
            message_ids: MessageIds::default(),
        }
    }

    /// The key of the present socket's events.
    pub(super) fn key(&self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.id.0)
    }

    /// Makes a socket of its own, with an address of its own.
    pub(super) fn open(&mut self, shared: &mut Shared) -> Result<(), Cause> {
        self.empty_at_ns = clock::monotonic_ns();
        self.received_at_ns = self.empty_at_ns;
        self.unread = UnreadTimes::default();
        let unreachable = |error: std::io::Error| Cause::Unreachable(error.to_string());
        let address = shared.config.endpoints[usize::from(self.config.endpoint)].address;
        self.ip_header = traffic::ip_header(address);
        let socket = shared.sockets.connect_datagrams(self.config.network, address).map_err(unreachable)?;
        if !self.config.subscriptions.is_empty() {
            socket.enlarge_receive_buffer(RECEIVE_BUFFER_BYTES).map_err(unreachable)?;
        }
        shared.reactor.add(socket.as_fd(), self.key()).map_err(unreachable)?;
        self.begin_message_ids(&socket, shared).map_err(unreachable)?;
        (self.socket, self.overflowed) = (Some(socket), 0);
        self.phase = Phase::Opening;
        Ok(())
    }

    /// Binds a socket that receives from any peer to the session's endpoint: it is open at once.
    pub(super) fn listen(&mut self, shared: &mut Shared) -> Result<(), Cause> {
        self.empty_at_ns = clock::monotonic_ns();
        let address = shared.config.endpoints[usize::from(self.config.endpoint)].address;
        self.ip_header = traffic::ip_header(address);
        let failed = |error: std::io::Error| Cause::Unreachable(format!("failed to listen on {address}: {error}"));
        let socket = shared.sockets.listen_datagrams(address).map_err(failed)?;
        socket.enlarge_receive_buffer(RECEIVE_BUFFER_BYTES).map_err(failed)?;
        shared.reactor.add(socket.as_fd(), self.key()).map_err(failed)?;
        self.begin_message_ids(&socket, shared).map_err(failed)?;
        (self.socket, self.overflowed) = (Some(socket), 0);
        self.phase = Phase::Open;
        Ok(())
    }

    fn begin_message_ids(&mut self, socket: &DatagramSocket, shared: &Shared) -> std::io::Result<()> {
        let port = socket.local_address()?.port();
        self.message_ids = MessageIds::begin(port, clock::monotonic_ns(), shared.times.exchange_lifetime_ns());
        Ok(())
    }

    /// The socket is gone.
    pub(super) fn close(&mut self) {
        self.message_ids = MessageIds::default();
        self.socket = None;
        self.phase = Phase::Closed;
        self.generation = self.generation.wrapping_add(1);
        (self.full, self.ended, self.drained, self.check_at_ns) = (false, false, true, 0);
        self.broken = None;
        self.recent.clear();
    }

    /// Datagrams that found the socket's buffer full since the last call; 0 without a socket, whose count goes with it.
    pub(super) fn take_overflowed(&mut self) -> u64 {
        let all = self.socket.as_ref().and_then(DatagramSocket::overflowed).unwrap_or(self.overflowed);
        all.saturating_sub(std::mem::replace(&mut self.overflowed, all))
    }

    /// A datagram came.
    pub(super) fn note_received(&mut self, datagram: &[u8]) {
        self.traffic.received.add(traffic::of_datagram(datagram.len(), self.ip_header));
    }

    /// An identifier for a message.
    pub(super) fn message_id(&mut self) -> u16 {
        self.message_ids.draw()
    }

    /// Messages since the last call whose identifier the socket had used shortly before.
    pub(super) fn take_reused_ids(&mut self) -> u64 {
        self.message_ids.take_reused()
    }

    /// Sends a datagram; false if the socket is full, which the reactor ends, or has failed before.
    pub(super) fn transmit(&mut self, datagram: &[u8]) -> Result<bool, Cause> {
        let Some(socket) = self.socket.as_ref().filter(|_| self.broken.is_none()) else { return Ok(false) };
        match socket.send(datagram) {
            Ok(()) => {
                self.traffic.sent.add(traffic::of_datagram(datagram.len(), self.ip_header));
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.full = true;
                Ok(false)
            }
            Err(error) => {
                let cause = self.cause_of(&error);
                self.broken = Some(error);
                Err(cause)
            }
        }
    }

    /// Sends a datagram to an address, from a bound socket.
    pub(super) fn transmit_to(&mut self, datagram: &[u8], to: SocketAddr) -> Sent {
        let Some(socket) = &self.socket else { return Sent::Full };
        match socket.send_to(datagram, to) {
            Ok(()) => {
                self.traffic.sent.add(traffic::of_datagram(datagram.len(), self.ip_header));
                Sent::SendOutcome
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.full = true;
                Sent::Full
            }
            Err(_) => Sent::Refused,
        }
    }

    /// Sends a message of the message layer or a request without a payload. One that the socket does not take is lost like
    /// any other datagram: who needs it sends it again.
    pub(super) fn say(&mut self, shared: &mut Shared, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), Cause> {
        shared.scratch.clear();
        encode(&mut shared.scratch);
        self.transmit(&shared.scratch).map(drop)
    }

    /// The same for one that carries nothing.
    pub(super) fn send_empty(&mut self, shared: &mut Shared, kind: Kind, message_id: u16) -> Result<(), Cause> {
        self.say(shared, |out| encode_empty(kind, message_id, out))
    }

    /// The same for a request, of this kind and method.
    pub(super) fn ask(
        &mut self,
        shared: &mut Shared,
        (kind, method): (Kind, Code),
        message_id: u16,
        token: &[u8],
        options: impl FnOnce(&mut Writer<'_>, &SessionConfig),
    ) -> Result<(), Cause> {
        let mut out = std::mem::take(&mut shared.scratch);
        out.clear();
        let mut writer = Writer::new(kind, method, message_id, token, &mut out);
        options(&mut writer, &self.config);
        writer.end(&[]);
        let result = self.transmit(&out).map(drop);
        shared.scratch = out;
        result
    }

    /// The wheel brings this session at `due_ns` or before.
    pub(super) fn wake_by(&mut self, shared: &mut Shared, due_ns: u64) {
        if self.check_at_ns == 0 || due_ns < self.check_at_ns {
            self.check_at_ns = shared.wheel.set(self.id.0, due_ns);
        }
    }

    /// The words for a socket that failed.
    pub(super) fn cause_of(&self, error: &std::io::Error) -> Cause {
        match self.phase {
            Phase::Open => Cause::Dropped(error.to_string()),
            _ => Cause::Unreachable(error.to_string()),
        }
    }
}
