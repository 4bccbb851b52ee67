//! One session: how it begins and ends, its pings, and the dispatch of datagrams.

use pubmark_protocol::clients::{Goodbye, Outgoing, SendOutcome, SessionConfig, SessionId};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Connected, Event, Sink};
use pubmark_protocol::reactor::Ready;
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::coap::{Exchange, Kind, Step};

use super::link::{Blocked, Link, Phase, Shared};
use super::observing::Observing;
use super::publishing::Publishing;
use super::requesting::Requesting;
use super::serving::Serving;

/// Shortest time that an open session's server has to respond to a ping, in ACK_TIMEOUTs: sufficient for two retransmissions.
const PATIENCE: u64 = 4;

/// A ping (RFC 7252 §4.3): an empty confirmable message that the peer rejects.
#[derive(Clone, Copy, Debug)]
struct Ping {
    message_id: u16,
    since_ns: u64,
    exchange: Exchange,
}

/// A session.
pub(super) struct Session {
    pub(super) link: Link,
    pub(super) publishing: Publishing,
    pub(super) observing: Observing,
    /// Its messages are requests.
    pub(super) requesting: Option<Box<Requesting>>,
    /// State of a session that replies to requests.
    pub(super) serving: Option<Box<Serving>>,
    ping: Option<Ping>,
}

impl Session {
    pub(super) fn new(id: SessionId, config: SessionConfig) -> Session {
        Session {
            publishing: Publishing::new(&config),
            observing: Observing::new(&config),
            requesting: Requesting::new(&config).map(Box::new),
            serving: Serving::new(&config).map(Box::new),
            link: Link::new(id, config),
            ping: None,
        }
    }

    /// Starts to connect: there is no connection, so the session is open when the server has responded to a ping.
    pub(super) fn connect(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        if self.link.phase != Phase::Closed {
            return;
        }
        let begun = match &self.serving {
            Some(serving) => serving.listen(&mut self.link, shared, sink),
            None => self.link.open(shared).and_then(|()| self.start_ping(shared, clock::monotonic_ns())),
        };
        self.settle(shared, begun, sink);
    }

    fn start_ping(&mut self, shared: &mut Shared, now_ns: u64) -> Result<(), Cause> {
        let message_id = self.link.message_id();
        let exchange = shared.exchange(now_ns);
        self.ping = Some(Ping { message_id, since_ns: now_ns, exchange });
        self.link.wake_by(shared, exchange.due_ns());
        self.link.send_empty(shared, Kind::Confirmable, message_id)
    }

    /// A reset or an acknowledgement for this message arrived: is it the response to a ping?
    pub(super) fn on_pong(
        &mut self,
        shared: &mut Shared,
        message_id: u16,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        if self.ping.is_none_or(|ping| ping.message_id != message_id) {
            return Ok(false);
        }
        self.ping = None;
        if self.link.phase == Phase::Opening {
            self.link.phase = Phase::Open;
            sink.event(
                self.link.id,
                Event::Connected(Connected {
                    receive_maximum: self.publishing.lowered_window(),
                    ..Connected::default()
                }),
            );
            self.observing.register_all(&mut self.link, shared)?;
            if let Some(requesting) = &self.requesting {
                requesting.listen(&self.link, sink);
            }
            if let Some(due_ns) = self.life_due_ns(shared) {
                self.link.wake_by(shared, due_ns);
            }
        }
        Ok(true)
    }

    /// Goes on where the socket can.
    pub(super) fn on_ready(&mut self, shared: &mut Shared, ready: Ready, sink: &mut impl Sink) {
        if ready.writable && std::mem::take(&mut self.link.full) {
            let until_ns = shared.reactor.quiet_at_ns();
            self.publishing.note_full(until_ns);
            if let Some(requesting) = &mut self.requesting {
                requesting.note_full(until_ns);
            }
        }
        self.link.ended |= ready.ended;
        let mut result = Ok(());
        // A socket not read empty last time is among the unread ones already, and has its turn there.
        if ready.readable && self.link.drained {
            self.link.empty_at_ns = self.link.empty_at_ns.max(shared.reactor.quiet_at_ns());
            result = self.receive(shared, sink);
        }
        let result = result.and_then(|()| self.write(shared, sink));
        self.settle(shared, result, sink);
    }

    /// Goes on reading a socket that was not read empty last time.
    pub(super) fn read_on(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        let result = self.receive(shared, sink).and_then(|()| self.write(shared, sink));
        self.settle(shared, result, sink);
    }

    /// Accepts a message; the outcome otherwise.
    pub(super) fn send(&mut self, message: Outgoing) -> SendOutcome {
        let taken = match (self.link.phase, &mut self.requesting) {
            (Phase::Open, Some(requesting)) => requesting.take(message),
            (Phase::Open, None) => self.publishing.take(&self.link.config, message),
            _ => Err(Blocked::NotOpen),
        };
        self.taken(taken)
    }

    /// Accepts a reply; the outcome otherwise.
    pub(super) fn reply(&mut self, reply: &OutgoingReply<'_>) -> SendOutcome {
        let taken = match (self.link.phase, &mut self.serving) {
            (Phase::Open, Some(serving)) => serving.take(reply),
            _ => Err(Blocked::NotOpen),
        };
        self.taken(taken)
    }

    fn taken(&mut self, taken: Result<SendOutcome, Blocked>) -> SendOutcome {
        taken.unwrap_or_else(|blocked| {
            if self.link.blocked.is_none() {
                self.link.late_before_ns = self.late_ns();
            }
            (self.link.blocked, self.link.free_since_ns) = (Some(blocked), None);
            SendOutcome::WouldBlock
        })
    }

    /// How long its messages in blocks waited for pubmark so far, at most, ns.
    fn late_ns(&self) -> u64 {
        let of_requests = self.requesting.as_ref().map_or(0, |requesting| requesting.late_ns());
        self.publishing.late_ns().saturating_add(of_requests)
    }

    fn has_room(&self, blocked: Blocked) -> bool {
        match (&self.requesting, &self.serving) {
            (Some(requesting), _) => requesting.has_room(),
            (None, Some(serving)) => serving.has_room(),
            (None, None) => self.publishing.has_room(blocked),
        }
    }

    /// Writes what waits, if the socket is not known to be full.
    pub(super) fn flush(&mut self, shared: &mut Shared, sink: &mut impl Sink) {
        let result = self.write(shared, sink);
        self.settle(shared, result, sink);
    }

    fn write(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        if self.link.phase != Phase::Open || self.link.full || self.link.broken.is_some() {
            return Ok(());
        }
        if let Some(requesting) = &mut self.requesting {
            requesting.write(&mut self.link, shared, sink)?;
        }
        if let Some(serving) = &mut self.serving {
            serving.write(&mut self.link, shared, sink);
        }
        self.publishing.write(&mut self.link, shared, sink)
    }

    /// Ends the session if something failed; reports it as writable if an earlier send would have blocked.
    fn settle(&mut self, shared: &mut Shared, result: Result<(), Cause>, sink: &mut impl Sink) {
        if let Err(cause) = self.end_when_read(shared, result, sink) {
            self.end(shared, cause, sink);
        }
        if self.is_free_again() {
            self.link.blocked = None;
            sink.event(self.link.id, Event::Writable);
        }
    }

    /// If the socket has failed: the cause, once all that had arrived by then is handled.
    fn end_when_read(
        &mut self,
        shared: &mut Shared,
        mut result: Result<(), Cause>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if self.link.broken.is_none() {
            return result;
        }
        if result.is_err() || self.link.drained {
            result = self.receive(shared, sink);
        }
        if result.is_ok() && !self.link.drained {
            // It is among the unread ones, and has its turn again.
            return Ok(());
        }
        self.link.broken.take().map_or(result, |error| Err(self.link.cause_of(&error)))
    }

    /// Records how long the system prevented the session from sending, if what arrived, which was not there at `absent_at_ns`, ended
    /// that. What waited for a message in blocks waited for pubmark as long as that message did.
    pub(super) fn note_if_free(&mut self, absent_at_ns: u64) {
        if self.link.free_since_ns.is_none() && self.is_free_again() {
            let late_ns = self.late_ns().saturating_sub(self.link.late_before_ns);
            self.link.free_since_ns = Some(absent_at_ns.saturating_sub(late_ns));
        }
    }

    /// Was it blocked, and can it send now?
    fn is_free_again(&self) -> bool {
        self.link.blocked.is_some_and(|blocked| self.link.phase == Phase::Open && self.has_room(blocked))
    }

    /// A deadline of this session expired: retransmits, pings, gives up.
    pub(super) fn check(&mut self, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) {
        if self.link.phase == Phase::Closed || self.link.check_at_ns == 0 || now_ns < self.link.check_at_ns {
            return;
        }
        self.link.check_at_ns = 0;
        let checked = self
            .check_life(shared, now_ns)
            .and_then(|()| self.publishing.repeat(&mut self.link, shared, now_ns, sink))
            .and_then(|()| self.observing.repeat(&mut self.link, shared, now_ns, sink))
            .and_then(|()| self.repeat_requests(shared, now_ns, sink))
            .and_then(|()| self.write(shared, sink));
        self.settle(shared, checked, sink);
        let requesting = self.requesting.as_ref().and_then(|requesting| requesting.due_ns());
        let serving = self.serving.as_ref().and_then(|serving| serving.due_ns());
        let due = [self.life_due_ns(shared), self.publishing.due_ns(), self.observing.due_ns(), requesting, serving];
        if let Some(due_ns) = due.into_iter().flatten().min().filter(|_| self.link.phase != Phase::Closed) {
            self.link.wake_by(shared, due_ns);
        }
    }

    fn repeat_requests(&mut self, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) -> Result<(), Cause> {
        if let Some(serving) = &mut self.serving {
            serving.repeat(&mut self.link, shared, now_ns, sink);
        }
        match &mut self.requesting {
            Some(requesting) if self.link.phase == Phase::Open => {
                requesting.repeat(&mut self.link, shared, now_ns, sink)
            }
            _ => Ok(()),
        }
    }

    /// Pings when the server was silent; gives up if there is no response.
    fn check_life(&mut self, shared: &mut Shared, now_ns: u64) -> Result<(), Cause> {
        if self.serving.is_some() {
            return Ok(());
        }
        let opening = self.link.phase == Phase::Opening;
        let keep_alive_ns = u64::from(shared.config.connections.keep_alive_s) * 1_000_000_000;
        let Some(ping) = &mut self.ping else {
            let silent = keep_alive_ns > 0 && now_ns >= self.link.received_at_ns.saturating_add(keep_alive_ns);
            return if silent { self.start_ping(shared, now_ns) } else { Ok(()) };
        };
        if !opening && self.link.received_at_ns > ping.since_ns {
            self.ping = None;
            return Ok(());
        }
        if !opening && now_ns >= ping.since_ns + keep_alive_ns.max(PATIENCE * shared.times.acknowledge_ns) {
            return Err(Cause::Silent);
        }
        match ping.exchange.step(&shared.times, now_ns) {
            Step::Wait => Ok(()),
            Step::Repeat => {
                let message_id = ping.message_id;
                self.link.send_empty(shared, Kind::Confirmable, message_id)
            }
            Step::GiveUp if opening => Err(Cause::Unreachable("no response to a ping".to_owned())),
            Step::GiveUp => Err(Cause::Silent),
        }
    }

    /// When [`Session::check_life`] has something to do.
    fn life_due_ns(&self, shared: &Shared) -> Option<u64> {
        if self.serving.is_some() {
            return None;
        }
        let keep_alive_ns = u64::from(shared.config.connections.keep_alive_s) * 1_000_000_000;
        match &self.ping {
            Some(ping) if self.link.phase == Phase::Opening => Some(ping.exchange.due_ns()),
            Some(ping) => {
                let end_ns = ping.since_ns + keep_alive_ns.max(PATIENCE * shared.times.acknowledge_ns);
                Some(ping.exchange.due_ns().min(end_ns))
            }
            None => (keep_alive_ns > 0).then(|| self.link.received_at_ns + keep_alive_ns),
        }
    }

    /// Ends the session at our own request; with the protocol's goodbye if there is one: an observer deregisters.
    pub(super) fn disconnect(&mut self, shared: &mut Shared, goodbye: Goodbye, sink: &mut impl Sink) {
        if self.link.phase == Phase::Closed {
            return;
        }
        if goodbye != Goodbye::Cut && self.link.phase == Phase::Open {
            // If this finds that no socket is bound at the peer, the session ends below anyway.
            let _ = self.write(shared, sink).and_then(|()| self.observing.leave(&mut self.link, shared));
        }
        self.end(shared, Cause::Ours, sink);
    }

    /// Ends the session and reports the result of everything in it.
    fn end(&mut self, shared: &mut Shared, cause: Cause, sink: &mut impl Sink) {
        self.report_overflow(sink);
        let reused = self.link.take_reused_ids();
        if reused > 0 {
            sink.event(self.link.id, Event::IdsReused(reused));
        }
        self.link.close();
        self.ping = None;
        self.publishing.end(&self.link, sink);
        self.observing.end(shared);
        if let Some(requesting) = &mut self.requesting {
            requesting.end(&self.link, sink);
        }
        if let Some(serving) = &mut self.serving {
            serving.end(&self.link, sink);
        }
        sink.event(self.link.id, Event::Closed(cause));
    }

    /// Bytes that have not left for all we know.
    pub(super) fn unsent_bytes(&self) -> u64 {
        let in_socket = self.link.socket.as_ref().map_or(0, |socket| socket.unsent_bytes());
        let asked = self.requesting.as_ref().map_or(0, |requesting| requesting.unsent_bytes());
        let answered = self.serving.as_ref().map_or(0, |serving| serving.unsent_bytes());
        in_socket + self.publishing.unsent_bytes() + asked + answered
    }
}
