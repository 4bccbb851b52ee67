//! [`Clients`] as a trait object: one compiled form for callers whose speed does not matter, such as readiness checks and
//! tests. The engine's shards are generic over their adapter.

use crate::clients::{
    Clients, Goodbye, OpenError, Outgoing, SendOutcome, SessionConfig, SessionId, ShardConfig, Waker,
};
use crate::events::{Event, Sink};
use crate::requests::OutgoingReply;

/// Opens an adapter with no sessions.
pub type Open = fn(ShardConfig) -> Result<Box<dyn AnyClients>, OpenError>;

/// [`Open`] of an adapter.
pub fn open<C: Clients + 'static>(config: ShardConfig) -> Result<Box<dyn AnyClients>, OpenError> {
    C::open(config).map(|clients| Box::new(clients) as Box<dyn AnyClients>)
}

/// What [`Clients`] does, method for method.
pub trait AnyClients {
    /// [`Clients::add_session`].
    fn add_session(&mut self, config: SessionConfig) -> SessionId;
    /// [`Clients::connect`].
    fn connect(&mut self, session: SessionId, sink: &mut dyn Sink);
    /// [`Clients::disconnect`].
    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut dyn Sink);
    /// [`Clients::send`].
    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome;
    /// [`Clients::reply`].
    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome;
    /// [`Clients::flush`].
    fn flush(&mut self, session: SessionId, sink: &mut dyn Sink);
    /// [`Clients::resume`].
    fn resume(&mut self, session: SessionId, due_ns: u64, sink: &mut dyn Sink);
    /// [`Clients::poll`].
    fn poll(&mut self, until_ns: Option<u64>, sink: &mut dyn Sink) -> std::io::Result<()>;
    /// [`Clients::waker`].
    fn waker(&self) -> Waker;
    /// [`Clients::unsent_bytes`].
    fn unsent_bytes(&self) -> u64;
    /// [`Clients::held_bytes`].
    fn held_bytes(&self) -> u64;
    /// [`Clients::finish`].
    fn finish(&mut self, sink: &mut dyn Sink);
}

impl<C: Clients> AnyClients for C {
    fn add_session(&mut self, config: SessionConfig) -> SessionId {
        Clients::add_session(self, config)
    }

    fn connect(&mut self, session: SessionId, sink: &mut dyn Sink) {
        Clients::connect(self, session, &mut Through(sink));
    }

    fn disconnect(&mut self, session: SessionId, goodbye: Goodbye, sink: &mut dyn Sink) {
        Clients::disconnect(self, session, goodbye, &mut Through(sink));
    }

    fn send(&mut self, session: SessionId, message: Outgoing) -> SendOutcome {
        Clients::send(self, session, message)
    }

    fn reply(&mut self, session: SessionId, reply: &OutgoingReply<'_>) -> SendOutcome {
        Clients::reply(self, session, reply)
    }

    fn flush(&mut self, session: SessionId, sink: &mut dyn Sink) {
        Clients::flush(self, session, &mut Through(sink));
    }

    fn resume(&mut self, session: SessionId, due_ns: u64, sink: &mut dyn Sink) {
        Clients::resume(self, session, due_ns, &mut Through(sink));
    }

    fn poll(&mut self, until_ns: Option<u64>, sink: &mut dyn Sink) -> std::io::Result<()> {
        Clients::poll(self, until_ns, &mut Through(sink))
    }

    fn waker(&self) -> Waker {
        Clients::waker(self)
    }

    fn unsent_bytes(&self) -> u64 {
        Clients::unsent_bytes(self)
    }

    fn held_bytes(&self) -> u64 {
        Clients::held_bytes(self)
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        Clients::finish(self, &mut Through(sink));
    }
}

/// A sink of a known size in front of one that has none.
struct Through<'a>(&'a mut dyn Sink);

impl Sink for Through<'_> {
    fn event(&mut self, session: SessionId, event: Event<'_>) {
        self.0.event(session, event);
    }

    fn is_at_work(&self, session: SessionId) -> bool {
        self.0.is_at_work(session)
    }
}
