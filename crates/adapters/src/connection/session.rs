//! One session: its connection, its dialect, and how a connection begins and ends.

use pubmark_protocol::clients::{Goodbye, Outgoing, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_protocol::outbox::FULL_BYTES;
use pubmark_protocol::reactor::Ready;
use pubmark_protocol::requests::OutgoingReply;

use super::dialect::{Dialect, Refusal};
use super::link::{Blocked, Link, Phase, Shared};

/// A session.
pub(super) struct Session<D> {
    pub(super) link: Link,
    pub(super) dialect: D,
}

impl<D: Dialect> Session<D> {
    pub(super) fn new(id: SessionId, config: SessionConfig) -> Session<D> {
        Session { dialect: D::new(&config), link: Link::new(id, config) }
    }

    /// Starts connecting.
    pub(super) fn connect(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        if self.link.phase != Phase::Closed {
            return;
        }
        if let Err(cause) = self.link.open(shared, D::TLS_FIRST) {
            self.end(shared, cause, sink);
        }
    }

    /// Goes on where the socket can.
    pub(super) fn on_ready(&mut self, shared: &mut Shared, ready: Ready, sink: &mut impl Sink) {
        if let Err(cause) = self.go_on(shared, ready, sink) {
            self.end(shared, cause, sink);
        }
        self.report_writable(sink);
    }

    fn go_on(&mut self, shared: &mut Shared, ready: Ready, sink: &mut impl Sink) -> Result<(), Cause> {
        if self.link.phase == Phase::Connecting {
            if !ready.writable {
                return Ok(());
            }
            self.begin(shared)?;
        }
        let link = &mut self.link;
        if ready.writable && std::mem::take(&mut link.full) {
            link.outbox.note_full(shared.reactor.quiet_at_ns());
        }
        link.ended |= ready.ended;
        // A socket not read empty last time is among the unread ones already, and has its turn there.
        if ready.readable && link.drained {
            link.empty_at_ns = link.empty_at_ns.max(shared.reactor.quiet_at_ns());
            return self.receive_and_write(shared, sink);
        }
        self.write(shared, sink)
    }

    /// Reads, and writes the responses.
    pub(super) fn receive_and_write(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        self.receive(shared, sink)?;
        self.write(shared, sink)?;
        self.link.unread.note_written(self.link.sent_at_ns);
        Ok(())
    }

    /// TCP is connected, or failed to be.
    fn begin(&mut self, shared: &mut Shared) -> Result<(), Cause> {
        let Some(stream) = &self.link.stream else { return Ok(()) };
        stream.connected().map_err(|error| Cause::Unreachable(error.to_string()))?;
        self.link.phase = Phase::Opening;
        self.link.note_handshake();
        self.dialect.begin(&mut self.link, shared)
    }

    /// Goes on reading a socket that was not read empty last time.
    pub(super) fn read_on(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        if let Err(cause) = self.receive_and_write(shared, sink) {
            self.end(shared, cause, sink);
        }
        self.report_writable(sink);
    }

    /// Accepts a message; the outcome otherwise.
    pub(super) fn send(&mut self, shared: &mut Shared, message: Outgoing) -> SendOutcome {
        self.take(shared.reactor.quiet_at_ns(), |dialect, link| dialect.send(link, shared, message))
    }

    /// Accepts a reply; the outcome otherwise.
    pub(super) fn reply(&mut self, shared: &mut Shared, reply: &OutgoingReply<'_>) -> SendOutcome {
        self.take(shared.reactor.quiet_at_ns(), |dialect, link| dialect.reply(link, shared, reply))
    }

    /// `before_ns` is a time before this one.
    fn take(&mut self, before_ns: u64, append: impl FnOnce(&mut D, &mut Link) -> Result<(), Refusal>) -> SendOutcome {
        let taken = match self.link.blocked_now() {
            None => append(&mut self.dialect, &mut self.link),
            Some(blocked) => Err(Refusal::Blocked(blocked)),
        };
        match taken {
            Ok(()) => SendOutcome::Accepted,
            Err(Refusal::TooLarge(bytes)) => SendOutcome::TooLarge(bytes),
            Err(Refusal::Blocked(blocked)) => {
                if self.link.blocked.is_none() {
                    self.link.blocked_since_ns = before_ns;
                }
                (self.link.blocked, self.link.free_since_ns) = (Some(blocked), None);
                SendOutcome::WouldBlock
            }
        }
    }

    /// Writes what waits, if the socket is not known to be full.
    pub(super) fn flush(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        if let Err(cause) = self.write(shared, sink) {
            self.end(shared, cause, sink);
        }
        self.report_writable(sink);
    }

    pub(super) fn write(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        if self.link.broken.is_some() {
            return self.end_when_read(shared, sink);
        }
        let Session { link, dialect } = self;
        let Some(stream) = &mut link.stream else { return Ok(()) };
        let idle = link.outbox.is_empty() && !stream.wants_write();
        if link.full || idle || link.phase == Phase::Connecting {
            return Ok(());
        }
        let id = link.id;
        let result = stream.write(&mut link.outbox, &mut shared.pool, |message, write_start_ns, written_ns| {
            if message.tag != 0 {
                dialect.written(message.tag);
            }
            if message.withheld {
                sink.event(id, Event::Withheld(message.token));
            }
            let own_ns = message.timing.since_submitted_ns(write_start_ns);
            sink.event(id, Event::Written { token: message.token, write_start_ns, written_ns, own_ns });
        });
        match result {
            Ok(result) => {
                link.full = result.full;
                link.sent_at_ns = result.at_ns.unwrap_or(link.sent_at_ns);
                Ok(())
            }
            // Packets that the server sent before it closed explain more than the failed write, and messages among them arrived.
            Err(error) => {
                self.link.note_broken(error);
                self.receive(shared, sink)?;
                self.end_when_read(shared, sink)
            }
        }
    }

    /// A write has failed: the cause once all that had arrived is handled.
    fn end_when_read(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        self.abandon(shared, sink);
        if self.link.at_work || !self.link.drained {
            return Ok(());
        }
        match self.link.broken.take() {
            Some(error) => Err(self.link.cause_of(shared, *error)),
            None => Ok(()),
        }
    }

    /// Drops what waits to be written, and reports the messages in it.
    fn abandon(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        let Session { link, dialect } = self;
        let id = link.id;
        link.outbox.abandon(&mut shared.pool, |message| {
            if message.tag != 0 {
                dialect.abandoned(message.tag);
            }
            sink.event(id, Event::Abandoned(message.token));
        });
    }

    /// Reports the session as writable if an earlier send would have blocked.
    pub(super) fn report_writable(&mut self, sink: &mut impl Sink) {
        if self.is_free_again() {
            self.link.blocked = None;
            sink.event(self.link.id, Event::Writable);
        }
    }

    /// Records how long the system prevented the session from sending, if what arrived, which was not there at `absent_at_ns`, ended
    /// that.
    pub(super) fn note_if_free(&mut self, absent_at_ns: u64) {
        if self.link.free_since_ns.is_none() && self.is_free_again() {
            self.link.free_since_ns = Some(absent_at_ns);
        }
    }

    /// Was it blocked, and can it send now?
    fn is_free_again(&self) -> bool {
        let Some(blocked) = self.link.blocked else { return false };
        self.link.phase == Phase::Open
            && self.link.broken.is_none()
            && match blocked {
                Blocked::NotOpen => true,
                Blocked::Outbox => self.link.outbox.pending_bytes() < FULL_BYTES,
                Blocked::Window => self.dialect.has_room(),
            }
    }

    /// Ends the connection at our own request. With the protocol's goodbye if the session is open and the socket accepts it;
    /// otherwise the socket is just closed, and the server sees the end of the stream (or a reset, if it still had data to
    /// send).
    pub(super) fn disconnect(&mut self, shared: &mut Shared, goodbye: Goodbye, sink: &mut impl Sink) {
        if self.link.phase == Phase::Closed {
            return;
        }
        if goodbye != Goodbye::Cut && self.link.phase == Phase::Open && self.link.broken.is_none() {
            self.dialect.send_goodbye(&mut self.link, shared, goodbye);
            // If this finds the connection broken, what was not written is abandoned like anything else.
            let is_written = self.write(shared, sink).is_ok() && self.link.broken.is_none();
            let link = &mut self.link;
            if let Some(stream) = link.stream.as_mut().filter(|_| is_written && link.outbox.is_empty()) {
                link.said_goodbye = !link.full && !stream.socket().is_silent();
                stream.close_notify();
            }
        }
        self.end(shared, Cause::Ours, sink);
    }

    /// Ends the connection and reports the result of everything in it.
    pub(super) fn end(&mut self, shared: &mut Shared, cause: Cause, sink: &mut impl Sink) {
        let leaves_will = self.leaves_will(&cause);
        shared.retain_if_silenced(self.link.close());
        self.abandon(shared, sink);
        let Session { link, dialect } = self;
        if !link.config.persistent {
            dialect.forget(link.id, sink);
        }
        if leaves_will {
            sink.event(link.id, Event::WillLeft);
        }
        sink.event(link.id, Event::Closed(cause));
    }

    /// Has the server accepted a session with a will, or may it have done so, and is there no goodbye?
    fn leaves_will(&self, cause: &Cause) -> bool {
        let link = &self.link;
        if !self.dialect.has_will() || link.said_goodbye {
            return false;
        }
        match link.phase {
            Phase::Open => true,
            Phase::Opening => {
                let is_refused = matches!(cause, Cause::Refused(_) | Cause::NotAuthorized(_) | Cause::Tls(_));
                let is_written = link.outbox.is_empty() && !link.full;
                is_written && !is_refused
            }
            Phase::Closed | Phase::Connecting => false,
        }
    }

    /// The run is over: delivery of what was written and not acknowledged is unknown.
    pub(super) fn forget(&mut self, sink: &mut impl Sink) {
        self.dialect.forget(self.link.id, sink);
    }
}
