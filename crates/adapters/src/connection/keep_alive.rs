//! Keep-alive: a ping after a time without packets, and the end of a connection whose server does not respond to it.

use pubmark_protocol::events::{Cause, Sink};

use super::dialect::Dialect;
use super::link::{Link, Phase, Shared};
use super::session::Session;

impl<D: Dialect> Session<D> {
    /// A deadline of this session expired: pings, gives up, or checks again later.
    pub(super) fn check_life(&mut self, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) {
        if self.link.phase == Phase::Opening {
            self.check_wait(shared, now_ns, sink);
            return;
        }
        if self.link.broken.is_some() {
            // It only handles what had arrived, and ends then.
            return;
        }
        self.check_renewal(shared, now_ns, sink);
        if self.link.at_work {
            // Packets of the server may be unread, so the server does not count as silent.
            self.link.received_at_ns = now_ns;
        }
        let link = &self.link;
        if link.phase != Phase::Open || link.keep_alive_ns == 0 || now_ns < link.check_at_ns {
            return;
        }
        let next_ns = if D::ANSWERS_PINGS { self.ping(shared, now_ns) } else { self.beat(shared, now_ns) };
        let Some(next_ns) = next_ns else {
            self.end(shared, Cause::Silent, sink);
            return;
        };
        self.link.check_at_ns = shared.wheel.set(self.link.id.0, next_ns);
        self.flush(shared, sink);
    }

    /// A dialect waits for something before it opens the session: its time may be over.
    fn check_wait(&mut self, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) {
        let Link { id, waits_until, .. } = &mut self.link;
        if waits_until.as_mut().is_some_and(|until| until.has_come(&mut shared.wheel, id.0, now_ns)) {
            *waits_until = None;
            self.dialect.wait_expired(&mut self.link, shared, sink);
            self.flush(shared, sink);
        }
    }

    /// Authenticates again where the time for it has come.
    fn check_renewal(&mut self, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) {
        let Link { id, phase, renewal, .. } = &mut self.link;
        if *phase == Phase::Open
            && renewal.as_mut().is_some_and(|renewal| renewal.has_come(&mut shared.wheel, id.0, now_ns))
        {
            *renewal = None;
            match self.dialect.renew(&mut self.link, shared) {
                Ok(()) => self.flush(shared, sink),
                Err(cause) => self.end(shared, cause, sink),
            }
        }
    }

    /// A silence in either direction is ended by a ping: MQTT asks for it where we say nothing, and without it a server
    /// that has gone would not be noticed by a client that only sends. When to look again; `None` if nothing answered.
    fn ping(&mut self, shared: &mut Shared, now_ns: u64) -> Option<u64> {
        let link = &mut self.link;
        if link.pinged_at_ns.is_some_and(|pinged_at_ns| link.received_at_ns >= pinged_at_ns) {
            link.pinged_at_ns = None;
        }
        let silent_since_ns = link.sent_at_ns.min(link.received_at_ns);
        match link.pinged_at_ns {
            Some(pinged_at_ns) if now_ns >= pinged_at_ns + link.keep_alive_ns => None,
            Some(pinged_at_ns) => Some(pinged_at_ns + link.keep_alive_ns),
            None if now_ns >= silent_since_ns + link.keep_alive_ns => {
                link.pinged_at_ns = Some(now_ns);
                link.pings = link.pings.wrapping_add(1);
                link.outbox.append(&mut shared.pool, D::ping);
                Some(now_ns + link.keep_alive_ns)
            }
            None => Some(silent_since_ns + link.keep_alive_ns),
        }
    }

    /// A heartbeat after half a keep-alive without a frame from pubmark, as servers expect one in each interval. The server sends
    /// its own; two missing ones in a row end the connection (AMQP 0-9-1 §4.2.7). Returns the next check; `None` at the end.
    fn beat(&mut self, shared: &mut Shared, now_ns: u64) -> Option<u64> {
        let link = &mut self.link;
        let idle_limit_ns = match link.idle_limit_ns {
            0 => link.keep_alive_ns.saturating_mul(2),
            within_ns => within_ns,
        };
        let (half_ns, end_ns) = (link.keep_alive_ns / 2, link.received_at_ns.saturating_add(idle_limit_ns));
        if now_ns >= end_ns {
            return None;
        }
        if now_ns < link.sent_at_ns + half_ns {
            return Some(end_ns.min(link.sent_at_ns + half_ns));
        }
        // Bytes that wait for the socket will be a sign of life, too.
        if link.outbox.is_empty() {
            link.outbox.append(&mut shared.pool, D::ping);
        }
        Some(end_ns.min(now_ns + half_ns))
    }
}
