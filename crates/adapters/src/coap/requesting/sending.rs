//! Outgoing requests: whole ones, and those that go in blocks (RFC 7959, Block1), one after another.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Delivery, Event, Reason, Sink};
use pubmark_protocol::header;
use pubmark_wire::coap::{BLOCK_BYTES, Block, Code, Kind, Message, Step, Writer, encode_levels, number};

use super::super::block_wait::BlockWait;
use super::super::link::{Link, Shared};
use super::super::request::{OCTET_STREAM, Request};
use super::super::response::reason;
use super::{Open, Requesting, token_of};
use crate::payload;

/// The exponent of [`BLOCK_BYTES`].
const LARGEST_EXPONENT: u8 = 6;

impl Open {
    fn block_bytes(&self) -> usize {
        (16 << self.exponent).min(self.message.payload_bytes as usize - self.offset)
    }

    fn is_last(&self) -> bool {
        self.offset + self.block_bytes() >= self.message.payload_bytes as usize
    }

    fn is_in_blocks(&self) -> bool {
        self.message.payload_bytes as usize > BLOCK_BYTES
    }
}

impl Requesting {
    /// The socket was full until this time.
    pub(in super::super) fn note_full(&mut self, until_ns: u64) {
        if let Some(open) = self.sending.as_mut().filter(|open| open.waits) {
            open.block_wait.note_full(until_ns);
        }
    }

    /// The request in blocks is written or given up; those behind it waited for pubmark as long as it did.
    pub(super) fn take_sending(&mut self) -> Option<Box<Open>> {
        self.late_before_ns = self.late_ns();
        self.sending.take()
    }

    /// How long requests in blocks waited for pubmark so far, at most, ns.
    pub(in super::super) fn late_ns(&self) -> u64 {
        let of_present = self.sending.as_ref().map_or(0, |open| open.block_wait.late_ns());
        self.late_before_ns.saturating_add(of_present)
    }

    /// Writes queued requests, as far as the socket accepts them; after a request in blocks the rest waits.
    pub(in super::super) fn write(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if self.sending.as_ref().is_some_and(|open| open.waits) {
            self.send_block(link, shared, sink)?;
        }
        while self.sending.is_none() {
            let Some((mut message, late_before_ns)) = self.queue.front().copied() else { return Ok(()) };
            // As in `super::super::publishing`, but for the time in which a request in blocks before it waited for pubmark.
            let late_ns = self.late_ns().saturating_sub(late_before_ns);
            message.timing = message.timing.waited_until(shared.reactor.served_until_ns().saturating_sub(late_ns));
            if !self.begin(link, shared, message, sink)? {
                return Ok(());
            }
            self.queue.pop_front();
        }
        Ok(())
    }

    /// Sends a request, or its first block; false if the socket is full.
    fn begin(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: Outgoing,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        let now_ns = clock::monotonic_ns();
        let open = Open {
            message,
            message_id: link.message_id(),
            exchange: shared.exchange(now_ns),
            accepted: false,
            write_start_ns: now_ns,
            sent_at_ns: now_ns,
            until_ns: now_ns.saturating_add(self.patience_ns),
            offset: 0,
            exponent: LARGEST_EXPONENT,
            waits: false,
            block_wait: BlockWait::new(now_ns),
        };
        if !put(link, shared, &open)? {
            return Ok(false);
        }
        if !open.is_last() {
            link.wake_by(shared, open.exchange.due_ns());
            self.sending = Some(Box::new(open));
            return Ok(true);
        }
        sink.event(link.id, open.written(clock::monotonic_ns()));
        if kind_of(link, &open) == Kind::Confirmable {
            link.wake_by(shared, open.due_ns());
            self.open.insert(token_of(&message), open);
        }
        Ok(true)
    }

    /// Sends the present block for the first time; behind the last one the next request can go.
    fn send_block(&mut self, link: &mut Link, shared: &mut Shared, sink: &mut impl Sink) -> Result<(), Cause> {
        let Some(open) = &mut self.sending else { return Ok(()) };
        open.block_wait.note_attempt(clock::monotonic_ns());
        open.waits = !put(link, shared, open)?;
        if open.waits {
            return Ok(());
        }
        link.wake_by(shared, open.due_ns());
        if open.is_last()
            && let Some(mut open) = self.take_sending()
        {
            let written_ns = clock::monotonic_ns();
            sink.event(link.id, open.written(written_ns));
            open.until_ns = written_ns.saturating_add(self.patience_ns);
            self.open.insert(open.token(), *open);
        }
        Ok(())
    }

    /// A response to a block that is not the last.
    pub(super) fn on_block_response(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        (message, delivery): (&Message<'_>, &Delivery<'_>),
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let Some(open) = &mut self.sending else { return Ok(()) };
        let block = message.options.get(number::BLOCK1).and_then(Block::read);
        match block {
            // A responder may respond with smaller blocks; it counts them in its own size then, from the same offset.
            Some(block) if message.code.is_success() && block.offset() == open.offset => {
                open.offset += open.block_bytes();
                open.exponent = open.exponent.min(block.exponent);
                open.message_id = link.message_id();
                open.block_wait.note_response(delivery, open.sent_at_ns);
                open.sent_at_ns = clock::monotonic_ns();
                open.exchange = shared.exchange(open.sent_at_ns);
                open.accepted = false;
                self.send_block(link, shared, sink)
            }
            Some(_) if message.code.is_success() => Ok(()),
            None if message.code.is_success() => {
                let bytes = open.message.payload_bytes;
                let reason = Reason::words(format!("{} for the first block of {bytes}", message.code));
                self.refuse_block(link, delivery, reason, sink);
                Ok(())
            }
            _ => {
                self.refuse_block(link, delivery, reason(message.code, message.payload), sink);
                Ok(())
            }
        }
    }

    /// The responder refuses a request of which not all blocks are sent: it is reported as written, as the responder decided
    /// about it.
    pub(super) fn refuse_block(&mut self, link: &Link, delivery: &Delivery<'_>, reason: Reason, sink: &mut impl Sink) {
        let Some(mut open) = self.take_sending() else { return };
        let written_ns = clock::monotonic_ns();
        open.block_wait.note_response(delivery, open.sent_at_ns);
        open.block_wait.note_attempt(written_ns);
        sink.event(link.id, open.written(written_ns));
        sink.event(link.id, Event::Acknowledged { token: open.token(), outcome: Err(reason) });
    }

    pub(super) fn repeat_block(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        now_ns: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let Some(open) = self.sending.as_mut().filter(|open| !open.waits) else { return Ok(()) };
        let due_ns = open.exchange.due_ns();
        let step = if now_ns >= open.until_ns { Step::GiveUp } else { open.exchange.step(&shared.times, now_ns) };
        match step {
            Step::Wait => Ok(()),
            Step::Repeat => {
                open.block_wait.note_repetition(due_ns, clock::monotonic_ns());
                put(link, shared, open).map(drop)
            }
            Step::GiveUp if super::is_silence(open, link, now_ns) => Err(Cause::Silent),
            Step::GiveUp => {
                if let Some(open) = self.take_sending() {
                    sink.event(link.id, Event::Abandoned(open.token()));
                }
                self.write(link, shared, sink)
            }
        }
    }
}

fn kind_of(link: &Link, open: &Open) -> Kind {
    let publication = &link.config.publications[usize::from(open.message.publication)];
    let once = publication.qos == Qos::BestEffort && !open.is_in_blocks();
    if once { Kind::NonConfirmable } else { Kind::Confirmable }
}

/// Sends a request or a block of it, again or for the first time; false if the socket is full. A repetition has the
/// bytes of the first transmission, its write start included.
pub(super) fn put(link: &mut Link, shared: &mut Shared, open: &Open) -> Result<bool, Cause> {
    let publication = &link.config.publications[usize::from(open.message.publication)];
    let Outgoing { publication: index, sequence, timing, payload_bytes, .. } = open.message;
    let mut out = std::mem::take(&mut shared.scratch);
    out.clear();
    let token = Request::Once { publication: index, sequence }.token();
    let mut writer = Writer::new(kind_of(link, open), Code::FETCH, open.message_id, token.as_bytes(), &mut out);
    encode_levels(&mut writer, &publication.topic);
    writer.uint(number::CONTENT_FORMAT, OCTET_STREAM);
    if open.is_in_blocks() {
        writer.uint(number::BLOCK1, Block::at(open.offset, !open.is_last(), open.exponent).value());
        if open.offset == 0 {
            writer.uint(number::SIZE1, payload_bytes);
        }
    }
    writer.option(number::REQUEST_TAG, token.as_bytes());
    if payload_bytes > 0 {
        writer.payload();
    }
    let at = out.len();
    let part = open.offset..open.offset + open.block_bytes();
    payload::append_part(&shared.config, publication, &open.message, part, &mut out);
    if open.offset == 0 {
        header::patch_write_start(&mut out[at..], &timing, open.write_start_ns);
    }
    let taken = link.transmit(&out);
    shared.scratch = out;
    taken
}

const _: () = assert!(16 << LARGEST_EXPONENT == BLOCK_BYTES);
