//! Messages that a client library refuses while its connection is open are refused, and not skipped because of the connection.

use std::sync::atomic::AtomicBool;

use pubmark_engine::run::{Sides, run};
use pubmark_model::load::{self, LoadOptions};
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Connected, Event, Sink};
use pubmark_testing::assert_count_eq;

use crate::late_begin::{Silent, plan_of};

const WORKLOAD: &str = "
name: declined
devices:
  - {name: device, count: 1, arrival: periodic, every: 20ms, payload: 100B, topic: 'declined/{device}'}
subscribers: []
";

/// Clients of a library that takes every second message.
#[derive(Default)]
struct Choosy {
    sessions: u32,
    connecting: Vec<SessionId>,
    submitted: Vec<(SessionId, Outgoing)>,
}

impl Clients for Choosy {
    fn open(_: ShardConfig) -> Result<Choosy, OpenError> {
        Ok(Choosy::default())
    }

    fn add_session(&mut self, _: SessionConfig) -> SessionId {
        self.sessions += 1;
        SessionId(self.sessions - 1)
    }

    fn connect(&mut self, session: SessionId, _: &mut impl Sink) {
        self.connecting.push(session);
    }

    fn disconnect(&mut self, session: SessionId, _: Goodbye, sink: &mut impl Sink) {
        sink.event(session, Event::Closed(Cause::Ours));
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        self.submitted.push((session, message));
        SendOutcome::Accepted
    }

    fn flush(&mut self, _: SessionId, sink: &mut impl Sink) {
        for (session, message) in std::mem::take(&mut self.submitted) {
            let (token, now_ns) = (message.token(), clock::monotonic_ns());
            sink.event(
                session,
                match token.sequence % 2 {
                    0 => Event::Declined(token),
                    _ => Event::Written { token, write_start_ns: now_ns, written_ns: now_ns, own_ns: 0 },
                },
            );
        }
    }

    fn wait(&mut self, until_ns: Option<u64>) -> std::io::Result<u64> {
        Ok(crate::sleep_until(until_ns))
    }

    fn has_unread(&self) -> bool {
        false
    }

    fn serve(&mut self, _: u64, sink: &mut impl Sink) {
        for session in std::mem::take(&mut self.connecting) {
            sink.event(session, Event::Connected(Connected::default()));
        }
    }

    fn waker(&self) -> Waker {
        Waker::new(|| {})
    }

    fn unsent_bytes(&self) -> u64 {
        0
    }
}

#[test]
fn a_message_that_the_library_refuses_is_refused_and_not_skipped() {
    let workload = load::parse("declined.yaml", WORKLOAD, &LoadOptions::default()).unwrap();
    let plan = plan_of(workload);
    let outcome = run(&plan, Sides::both::<Choosy>(), None, &AtomicBool::new(false), &mut Silent).unwrap();
    let delivery = &outcome.books.delivery;
    assert_count_eq!((delivery.offered, delivery.sent, delivery.refused), (50, 25, 25));
    assert_count_eq!((delivery.skipped_disconnected, delivery.unsent, delivery.lost), (0, 0, 0));
}
