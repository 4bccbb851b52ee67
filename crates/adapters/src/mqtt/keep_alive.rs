//! Signs of life: a ping after a silence, and the end of a connection whose server does not answer it.

use pubmark_protocol::events::{Cause, Sink};
use pubmark_wire::mqtt::encode_pingreq;

use super::session::{Phase, Session, Shared};

impl Session {
    /// The wheel brought this session: pings, gives up, or looks again later.
    ///
    /// A silence in either direction is ended by a ping: the standard asks for it where we say nothing, and without it a
    /// server that has gone would not be noticed by a client that only sends.
    pub fn check_life(&mut self, shared: &mut Shared, now_ns: u64, sink: &mut impl Sink) {
        if self.phase != Phase::Open || self.keep_alive_ns == 0 || now_ns < self.check_at_ns {
            return;
        }
        if self.pinged_at_ns.is_some_and(|pinged_at_ns| self.received_at_ns >= pinged_at_ns) {
            self.pinged_at_ns = None;
        }
        let silent_since_ns = self.sent_at_ns.min(self.received_at_ns);
        let next_ns = match self.pinged_at_ns {
            Some(pinged_at_ns) if now_ns >= pinged_at_ns + self.keep_alive_ns => {
                self.end(shared, Cause::Silent, sink);
                return;
            }
            Some(pinged_at_ns) => pinged_at_ns + self.keep_alive_ns,
            None if now_ns >= silent_since_ns + self.keep_alive_ns => {
                self.pinged_at_ns = Some(now_ns);
                self.outbox.append(&mut shared.pool, encode_pingreq);
                now_ns + self.keep_alive_ns
            }
            None => silent_since_ns + self.keep_alive_ns,
        };
        self.check_at_ns = shared.wheel.set(self.id.0, next_ns);
        self.flush(shared, sink);
    }
}
