//! All sessions of a shard, and the loop that serves them.

use std::net::SocketAddr;

use pubmark_protocol::capabilities::Capabilities;
use pubmark_protocol::clients::{
    Break, Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::clock;
use pubmark_protocol::events::Sink;
use pubmark_protocol::outbox::BufferPool;
use pubmark_protocol::reactor::{Reactor, Ready};
use pubmark_protocol::receive::WallOffset;
use pubmark_protocol::requests::OutgoingReply;
use pubmark_protocol::socket::SocketFactory;
use pubmark_protocol::stream::ReadBuffers;
use pubmark_protocol::tls::TlsSetup;
use pubmark_protocol::traffic::Traffic;
use pubmark_protocol::wheel::Wheel;

use super::dialect::Dialect;
use super::link::{LISTENING, Shared};
use super::session::Session;

/// All sessions of a shard over one dialect.
pub struct StreamClients<D> {
    pub(super) shared: Shared,
    pub(super) sessions: Vec<Session<D>>,
    ready: Vec<Ready>,
    /// Listeners with new connections.
    pub(super) pending_accepts: Vec<u32>,
    /// Sessions that must check their keep-alive.
    due: Vec<u32>,
}

impl<D: Dialect> StreamClients<D> {
    /// What these clients can do.
    pub const fn capabilities() -> Capabilities {
        D::CAPABILITIES
    }

    /// What a session's protocol knows.
    #[cfg(any(feature = "redis", feature = "zeromq"))]
    pub(crate) fn dialect(&mut self, session: SessionId) -> &mut D {
        &mut self.sessions[session.0 as usize].dialect
    }

    /// See [`Reactor::served_until_ns`].
    #[cfg(feature = "zeromq")]
    pub(crate) fn served_until_ns(&self) -> u64 {
        self.shared.reactor.served_until_ns()
    }

    fn serve_ready(&mut self, sink: &mut impl Sink) {
        for position in 0..self.ready.len() {
            let ready = self.ready[position];
            if (ready.key >> 32) as u32 == LISTENING {
                self.pending_accepts.push(ready.key as u32);
                continue;
            }
            // The lower half of a key is the session, see `Link::key`.
            let session = &mut self.sessions[ready.key as u32 as usize];
            if session.link.key() == ready.key {
                session.on_ready(&mut self.shared, ready, sink);
            }
        }
    }

    /// Goes on with sessions that had their turn before their sockets were empty.
    fn serve_unread(&mut self, unread: Vec<u32>, sink: &mut impl Sink) {
        for index in unread {
            let session = &mut self.sessions[index as usize];
            if !session.link.drained {
                session.read_on(&mut self.shared, sink);
            }
        }
    }

    fn check_lives(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if self.shared.wheel.next_ns().is_none_or(|next_ns| now_ns < next_ns) {
            return;
        }
        self.shared.wheel.advance(now_ns, &mut self.due);
        for index in std::mem::take(&mut self.due) {
            self.sessions[index as usize].check_life(&mut self.shared, now_ns, sink);
        }
    }
}

impl<D: Dialect> Clients for StreamClients<D> {
    const BREAKS: bool = true;
    const PAUSES: bool = D::ONE_MESSAGE_A_PACKET;

    fn open(config: ShardConfig) -> Result<StreamClients<D>, OpenError> {
        let reactor =
            Reactor::new().map_err(|source| OpenError::System { what: "open epoll and its timer", source })?;
        let shared = Shared {
            reactor,
            sockets: SocketFactory::new(&config),
            tls: config
                .endpoints
                .iter()
                .map(|endpoint| endpoint.tls.as_ref().map(TlsSetup::new).transpose())
                .collect::<Result<_, _>>()?,
            pool: BufferPool::default(),
            buffers: ReadBuffers::default(),
            wheel: Wheel::new(clock::monotonic_ns()),
            offset: WallOffset::default(),
            spare: Vec::new(),
            unread: Vec::new(),
            given_up: Vec::new(),
            silenced: Vec::new(),
            config,
        };
        Ok(StreamClients {
            shared,
            sessions: Vec::new(),
            ready: Vec::new(),
            pending_accepts: Vec::new(),
            due: Vec::new(),
        })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        let id = SessionId(self.sessions.len() as u32);
        self.sessions.push(Session::new(id, config));
        id
    }

    fn connect(&mut self, session: SessionId, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].connect(&mut self.shared, sink);
    }

    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].disconnect(&mut self.shared, goodbye, sink);
    }

    fn break_connection(&mut self, session: SessionId, how: Break, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].break_connection(&mut self.shared, how, sink);
    }

    fn silenced(&self) -> Vec<SocketAddr> {
        self.shared.silenced.clone()
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        self.sessions[session.0 as usize].send(&mut self.shared, message)
    }

    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome {
        self.sessions[session.0 as usize].reply(&mut self.shared, reply)
    }

    fn flush(&mut self, session: SessionId, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].flush(&mut self.shared, sink);
    }

    fn resume(&mut self, session: SessionId, due_ns: u64, sink: &mut impl Sink) {
        self.sessions[session.0 as usize].resume(&mut self.shared, due_ns, sink);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64> {
        let until_ns = match (until_ns, self.shared.wheel.next_ns()) {
            _ if !self.shared.unread.is_empty() => Some(0),
            (Some(until_ns), Some(check_ns)) => Some(until_ns.min(check_ns)),
            (until_ns, check_ns) => until_ns.or(check_ns),
        };
        let awake = self.shared.reactor.wait(until_ns, &mut self.ready)?;
        if self.shared.unread.is_empty() {
            self.shared.reactor.note_all_read();
        }
        Ok(awake.at_ns)
    }

    fn has_unread(&self) -> bool {
        !self.shared.unread.is_empty() || self.shared.reactor.has_more()
    }

    fn take_free_since_ns(&mut self, session: SessionId) -> Option<u64> {
        let free_since_ns = self.sessions[session.0 as usize].link.free_since_ns.take();
        Some(free_since_ns.unwrap_or(self.shared.reactor.served_until_ns()))
    }

    fn serve(&mut self, now_ns: u64, sink: &mut impl Sink) {
        let unread = std::mem::take(&mut self.shared.unread);
        self.serve_ready(sink);
        self.serve_unread(unread, sink);
        self.check_lives(now_ns, sink);
    }

    fn waker(&self) -> Waker {
        self.shared.reactor.waker()
    }

    fn unsent_bytes(&self) -> u64 {
        self.sessions.iter().map(|session| session.link.unsent_bytes()).sum()
    }

    fn held_bytes(&self) -> u64 {
        self.sessions.iter().map(|session| session.link.held_bytes()).sum()
    }

    fn traffic(&self, session: SessionId) -> Option<Traffic> {
        self.sessions[session.0 as usize].link.traffic()
    }

    fn finish(&mut self, sink: &mut impl Sink) {
        for session in &mut self.sessions {
            session.forget(sink);
        }
    }
}
