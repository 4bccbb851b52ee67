//! A subscriber with a processing time for each message: meanwhile its session handles and reads nothing more, so that the
//! system sees a slow client: acknowledgements arrive one by one, and then TCP's window closes.

use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Sink};

use super::dialect::Dialect;
use super::link::Shared;
use super::receiving::Times;
use super::session::Session;

/// Bytes that were read after a message that its subscriber processes: the result of one read of a socket, at most.
#[derive(Debug, Default)]
pub(super) struct HeldBytes {
    bytes: Vec<u8>,
    /// Where those begin that were not handled.
    from: usize,
}

impl HeldBytes {
    /// The last `left` of these bytes, which were just read.
    pub(super) fn end_of(bytes: &[u8], left: usize) -> HeldBytes {
        HeldBytes { bytes: bytes[bytes.len() - left..].to_vec(), from: 0 }
    }

    /// Is there nothing in it?
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.bytes.len()
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.from
    }
}

impl<D: Dialect> Session<D> {
    /// The subscriber was done at `due_ns`: gives it what follows.
    pub(super) fn resume(&mut self, shared: &mut Shared, due_ns: u64, sink: &mut impl Sink) {
        self.link.at_work = false;
        self.link.resumed_ns = due_ns;
        self.link.empty_at_ns = self.link.empty_at_ns.max(due_ns);
        let gone_on = self.handle_held(shared, sink).and_then(|()| match self.link.at_work || self.link.drained {
            true => self.write(shared, sink),
            false => self.receive_and_write(shared, sink),
        });
        if let Err(cause) = gone_on {
            self.end(shared, cause, sink);
        }
        self.report_writable(sink);
    }

    fn handle_held(&mut self, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        let mut held = std::mem::take(&mut self.link.held);
        if held.is_empty() {
            return Ok(());
        }
        // A sign of life: it lay here, unread. It was read before the subscriber was done: at the latest together with the
        // first message of its read, and the subscriber has processed that one since.
        self.link.received_at_ns = clock::monotonic_ns();
        let unread = self.link.unread;
        let times = Times::held(self.link.received_at_ns, self.link.empty_at_ns, unread.all());
        let left = self.consume(shared, &held.bytes[held.from..], times, sink)?;
        self.note_if_free(self.link.empty_at_ns);
        held.from = held.bytes.len() - left;
        if !held.is_empty() {
            self.link.held = held;
        }
        Ok(())
    }
}
