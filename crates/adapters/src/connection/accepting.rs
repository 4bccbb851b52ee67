//! Connections that others make: listeners beside the sessions, and sessions over accepted sockets.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use pubmark_protocol::clients::SessionId;
use pubmark_protocol::events::{Cause, Sink};
use pubmark_protocol::stream::Stream;

use super::clients::StreamClients;
use super::dialect::Dialect;
use super::link::{LISTENING, Link, Phase, Shared};
use super::session::Session;

impl Link {
    /// Goes on over a socket that is connected.
    fn adopt(&mut self, shared: &mut Shared, socket: TcpStream) -> Result<(), Cause> {
        // What is there already is a greeting: messages follow our subscriptions.
        self.note_begin();
        let dropped = |error: io::Error| Cause::Dropped(error.to_string());
        let socket = shared.sockets.adopt(socket).map_err(dropped)?;
        self.attach(shared, Stream::new(socket)).map_err(dropped)?;
        self.phase = Phase::Opening;
        Ok(())
    }
}

impl<D: Dialect> Session<D> {
    fn adopt(&mut self, shared: &mut Shared, socket: TcpStream, sink: &mut impl Sink) {
        let begun = self.link.adopt(shared, socket).and_then(|()| self.dialect.begin(&mut self.link, shared));
        match begun {
            Ok(()) => self.flush(shared, sink),
            Err(cause) => self.end(shared, cause, sink),
        }
    }
}

impl<D: Dialect> StreamClients<D> {
    /// Watches a listener; when a peer connects to it, its number is among [`StreamClients::take_pending_accepts`].
    pub(crate) fn listen(&mut self, listener: &TcpListener, number: u32) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.shared.reactor.add(listener.as_fd(), u64::from(LISTENING) << 32 | u64::from(number))
    }

    /// Listeners with new connections; all that wait there must be accepted.
    pub(crate) fn take_pending_accepts(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.pending_accepts)
    }

    /// Goes on with a session that has no connection over one that was accepted.
    pub(crate) fn adopt(&mut self, session: SessionId, socket: TcpStream, sink: &mut impl Sink) {
        let session = &mut self.sessions[session.0 as usize];
        debug_assert!(session.link.phase == Phase::Closed, "a session has one connection");
        session.adopt(&mut self.shared, socket, sink);
    }

    /// Would a session take a message now? If not, [`pubmark_protocol::events::Event::Writable`] follows when it does.
    pub(crate) fn can_accept(&mut self, session: SessionId) -> bool {
        let link = &mut self.sessions[session.0 as usize].link;
        let Some(blocked) = link.blocked_now() else { return true };
        link.blocked = Some(blocked);
        false
    }

    /// Settings of the shard.
    pub(crate) fn config(&self) -> &pubmark_protocol::clients::ShardConfig {
        &self.shared.config
    }
}
