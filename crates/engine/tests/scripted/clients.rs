//! Clients of a broker in memory. The messages that one shard publishes are delivered by the next poll of every
//! subscribers' shard.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use pubmark_protocol::events::{Cause, Connected, Delivery, Event, Sink, Token};
use pubmark_protocol::{clock, header};

/// Messages in transit.
static BUS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
/// How long the subscribers' shard pauses once its sessions are connected.
pub const PAUSE: Duration = Duration::from_millis(900);
/// When it resumed, ns of `CLOCK_MONOTONIC`.
pub static RESUMED_NS: AtomicU64 = AtomicU64::new(0);

/// The adapter of a shard.
pub struct InMemory {
    run: u32,
    sessions: Vec<SessionConfig>,
    connecting: Vec<SessionId>,
    submitted: Vec<(SessionId, Outgoing)>,
    /// Sessions that receive are connected, and the pause is still to come.
    pauses_next: bool,
}

impl InMemory {
    fn receives(&self) -> bool {
        self.sessions.iter().any(|session| !session.subscriptions.is_empty())
    }

    fn deliver(&self, sink: &mut impl Sink) {
        for payload in std::mem::take(&mut *BUS.lock().unwrap()) {
            let at_ns = clock::monotonic_ns();
            let delivery = Delivery { payload: &payload, at_ns, empty_at_ns: Some(at_ns), ..Delivery::default() };
            (0..self.sessions.len() as u32)
                .for_each(|session| sink.event(SessionId(session), Event::Delivered(delivery)));
        }
    }
}

impl Clients for InMemory {
    fn open(config: ShardConfig) -> Result<InMemory, OpenError> {
        let (sessions, connecting, submitted) = (vec![], vec![], vec![]);
        Ok(InMemory { run: config.run, sessions, connecting, submitted, pauses_next: false })
    }

    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        self.sessions.push(config);
        SessionId(self.sessions.len() as u32 - 1)
    }

    fn connect(&mut self, session: SessionId, _sink: &mut impl Sink) {
        self.connecting.push(session);
    }

    fn disconnect(&mut self, session: SessionId, _goodbye: Goodbye, sink: &mut impl Sink) {
        sink.event(session, Event::Closed(Cause::Ours));
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        self.submitted.push((session, message));
        SendOutcome::Accepted
    }

    fn flush(&mut self, _session: SessionId, sink: &mut impl Sink) {
        for (session, message) in std::mem::take(&mut self.submitted) {
            let publisher = self.sessions[session.0 as usize].publications[usize::from(message.publication)].publisher;
            let mut payload = Vec::new();
            let bytes = message.payload_bytes as usize;
            header::write(&mut payload, bytes, self.run, publisher, message.sequence, message.timing.due_ns);
            payload.resize(bytes, 0);
            BUS.lock().unwrap().push(payload);
            let now_ns = clock::monotonic_ns();
            sink.event(
                session,
                Event::Written {
                    token: Token { publication: message.publication, sequence: message.sequence },
                    write_start_ns: now_ns,
                    written_ns: now_ns,
                    own_ns: 0,
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
        if std::mem::take(&mut self.pauses_next) {
            std::thread::sleep(PAUSE);
            RESUMED_NS.store(clock::monotonic_ns(), Relaxed);
        }
        for session in std::mem::take(&mut self.connecting) {
            sink.event(session, Event::Connected(Connected::default()));
            for index in 0..self.sessions[session.0 as usize].subscriptions.len() {
                sink.event(session, Event::Subscribed { index, granted: Ok(Qos::BestEffort) });
                self.pauses_next = true;
            }
        }
        if self.receives() {
            self.deliver(sink);
        }
    }

    fn waker(&self) -> Waker {
        Waker::new(|| {})
    }

    fn unsent_bytes(&self) -> u64 {
        0
    }
}
