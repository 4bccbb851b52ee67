//! Signs of life: a ping after a silence, and the end of a connection whose server does not answer it.

use pubmark_protocol::events::{Cause, Sink};

use super::dialect::Dialect;
use super::link::{Phase, Shared};
use super::session::Session;

impl<D: Dialect> Session<D> {
    /// The wheel brought this session: pings, gives up, or looks again later.
    ///
    /// A silence in either direction is ended by a ping: MQTT asks for it where we say nothing, and without it a server
    /// that has gone would not be noticed by a client that only sends.
    pub(super) fn check_life(&mut self, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) {
        let link = &mut self.link;
        if link.phase != Phase::Open || link.keep_alive_ns == 0 || now_ns < link.check_at_ns {
            return;
        }
        if link.pinged_at_ns.is_some_and(|pinged_at_ns| link.received_at_ns >= pinged_at_ns) {
            link.pinged_at_ns = None;
        }
        let silent_since_ns = link.sent_at_ns.min(link.received_at_ns);
        let next_ns = match link.pinged_at_ns {
            Some(pinged_at_ns) if now_ns >= pinged_at_ns + link.keep_alive_ns => {
                self.end(shared, Cause::Silent, sink);
                return;
            }
            Some(pinged_at_ns) => pinged_at_ns + link.keep_alive_ns,
            None if now_ns >= silent_since_ns + link.keep_alive_ns => {
                link.pinged_at_ns = Some(now_ns);
                link.outbox.append(&mut shared.pool, D::ping);
                now_ns + link.keep_alive_ns
            }
            None => silent_since_ns + link.keep_alive_ns,
        };
        link.check_at_ns = shared.wheel.set(link.id.0, next_ns);
        self.flush(shared, sink);
    }
}
