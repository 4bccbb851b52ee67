//! An open session of the library's, and the gate that decides who may still put into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::zenoh::Session;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::pubsub::Subscriber;
use ::zenoh::qos::CongestionControl;
use pubmark_protocol::clients::Publication;

use super::requesting::Requesting;

/// Marks a closed gate; the bits below count.
const CLOSED: u64 = 1 << 63;

/// Counts the messages that were begun to be handed over, until it is closed: so it is known of each message whether the
/// library may have it.
#[derive(Debug, Default)]
pub struct Gate(AtomicU64);

impl Gate {
    /// Begins one more; false if the gate is closed.
    pub fn enter(&self) -> bool {
        let next = |now: u64| (now & CLOSED == 0).then_some(now + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// Closes it; how many were begun.
    pub fn close(&self) -> u64 {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED
    }
}

/// An open session.
pub struct Connection {
    pub(super) session: Session,
    /// What it publishes, each with its topic, which the other side knows by a number. They are not declared as publishers: a
    /// declared one sends nothing until it knows a subscription, which takes time after a reconnect.
    pub(super) publications: Vec<(KeyExpr<'static>, Publication)>,
    /// Undeclared where they are dropped, so with the session.
    pub(super) _subscribers: Vec<Subscriber<()>>,
    pub(super) congestion: CongestionControl,
    /// Its messages are requests.
    pub(super) requesting: Option<Arc<Requesting>>,
    pub(super) gate: Gate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_enters_a_closed_gate() {
        let gate = Gate::default();
        assert!(gate.enter() && gate.enter());
        assert_eq!(gate.close(), 2);
        assert!(!gate.enter());
        assert_eq!(gate.close(), 2);
    }
}
