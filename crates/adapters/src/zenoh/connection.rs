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
pub struct Gate {
    begun: AtomicU64,
    /// Those of them for which the library's call has returned.
    ended: AtomicU64,
}

impl Gate {
    /// Begins one more, for which [`Gate::leave`] follows; false if the gate is closed.
    pub fn enter(&self) -> bool {
        let next = |now: u64| (now & CLOSED == 0).then_some(now + 1);
        self.begun.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// The library's call for one that was begun has returned.
    pub fn leave(&self) {
        self.ended.fetch_add(1, Ordering::AcqRel);
    }

    /// Closes it; how many were begun.
    pub fn close(&self) -> u64 {
        self.begun.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED
    }

    /// Is a message being handed over?
    pub fn is_entered(&self) -> bool {
        self.ended.load(Ordering::Acquire) < self.begun.load(Ordering::Acquire) & !CLOSED
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

/// A connection whose session listens nowhere and connects to nobody.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) fn unconnected() -> Arc<Connection> {
    use ::zenoh::Wait as _;

    use super::settings::{Role, Settings};
    use super::variant::{Peers, Variant};

    let settings = Settings { source: None, keep_alive_s: 60, maximum_message_bytes: 1 << 20, credentials: None };
    let session = ::zenoh::open(settings.config(&Role::Connecting(vec![])).unwrap()).wait().unwrap();
    Arc::new(Connection {
        session,
        publications: vec![],
        _subscribers: vec![],
        congestion: Peers::CONGESTION,
        requesting: None,
        gate: Gate::default(),
    })
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

    #[test]
    fn a_closed_gate_is_entered_until_all_have_left() {
        let gate = Gate::default();
        assert!(!gate.is_entered() && gate.enter() && gate.enter());
        gate.leave();
        gate.close();
        assert!(gate.is_entered());
        gate.leave();
        assert!(!gate.is_entered());
    }
}
