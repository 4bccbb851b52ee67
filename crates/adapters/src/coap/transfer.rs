//! A message that does not fit a datagram, in blocks (RFC 7959, Block1): each is sent after the response to the one before.
//!
//! Blocks are confirmable at every level, as one lost block loses the message. The message is *written* when the socket
//! accepted its last block; if the server refuses an earlier one, it is reported as written and refused, as the server decided
//! about it.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Outgoing;
use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Delivery, Event, Reason, Sink, Token};
use pubmark_protocol::header;
use pubmark_wire::coap::{BLOCK_BYTES, Block, Code, Exchange, Kind, Message, Writer, encode_path, number};

use super::block_wait::BlockWait;
use super::link::{Link, Shared};
use super::publishing::Publishing;
use super::request::Request;
use super::response::{acknowledges, outcome};
use crate::payload;

/// The exponent of [`BLOCK_BYTES`].
const LARGEST_EXPONENT: u8 = 6;

/// A message that is sent block by block.
#[derive(Debug)]
pub(super) struct Transfer {
    message: Outgoing,
    salt: u16,
    /// Of the present block.
    pub(super) message_id: u16,
    pub(super) exchange: Exchange,
    offset: usize,
    exponent: u8,
    /// When the present block was first sent.
    pub(super) block_at_ns: u64,
    /// Of the first block.
    write_start_ns: u64,
    /// The present block is not written yet, because the socket would block.
    waits: bool,
    /// Since the first block.
    block_wait: BlockWait,
    /// The last block is in the socket.
    written: bool,
}

/// Result of a response.
enum Next {
    /// It is none for the present block.
    Ignore,
    /// The next block.
    Continue(u8),
    /// The message is the server's, or is not.
    Done(Result<(), Reason>),
}

impl Transfer {
    /// Sends the first block; `None` if the socket is full.
    pub(super) fn begin(
        link: &mut Link,
        shared: &mut Shared,
        message: Outgoing,
        salt: u16,
        sink: &mut impl Sink,
    ) -> Result<Option<Transfer>, Cause> {
        let now_ns = clock::monotonic_ns();
        let mut transfer = Transfer {
            message,
            salt,
            message_id: link.message_id(),
            exchange: shared.exchange(now_ns),
            offset: 0,
            exponent: LARGEST_EXPONENT,
            block_at_ns: now_ns,
            write_start_ns: now_ns,
            waits: true,
            block_wait: BlockWait::new(now_ns),
            written: false,
        };
        transfer.send_block(link, shared, sink)?;
        link.wake_by(shared, transfer.exchange.due_ns());
        Ok((!transfer.waits).then_some(transfer))
    }

    fn token(&self) -> Token {
        self.message.token()
    }

    fn block_bytes(&self) -> usize {
        (16 << self.exponent).min(self.message.payload_bytes as usize - self.offset)
    }

    fn is_last(&self) -> bool {
        self.offset + self.block_bytes() >= self.message.payload_bytes as usize
    }

    /// Sends the present block, again or for the first time.
    pub(super) fn send_block(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let at_ns = clock::monotonic_ns();
        let taken = self.put(link, shared)?;
        if self.waits {
            self.block_wait.note_attempt(at_ns);
        }
        self.waits &= !taken;
        if taken && self.is_last() {
            self.note_written(link, sink);
        }
        Ok(())
    }

    /// The present block is sent again, which was due before.
    pub(super) fn note_repetition(&mut self, due_ns: u64) {
        if !self.waits {
            self.block_wait.note_repetition(due_ns, clock::monotonic_ns());
        }
    }

    fn put(&self, link: &mut Link, shared: &mut Shared) -> Result<bool, Cause> {
        let publication = &link.config.publications[usize::from(self.message.publication)];
        let Outgoing { timing, payload_bytes, .. } = self.message;
        let mut out = std::mem::take(&mut shared.scratch);
        out.clear();
        let token = Request::Transfer { salt: self.salt }.token();
        let mut writer = Writer::new(Kind::Confirmable, Code::PUT, self.message_id, token.as_bytes(), &mut out);
        encode_path(&mut writer, &publication.topic);
        writer.uint(number::BLOCK1, Block::at(self.offset, !self.is_last(), self.exponent).value());
        if self.offset == 0 {
            writer.uint(number::SIZE1, payload_bytes);
        }
        if payload_bytes > 0 {
            writer.payload();
        }
        let at = out.len();
        let part = self.offset..self.offset + self.block_bytes();
        payload::append_part(&shared.config, publication, &self.message, part, &mut out);
        if self.offset == 0 {
            header::patch_write_start(&mut out[at..], &timing, self.write_start_ns);
        }
        let taken = link.transmit(&out);
        shared.scratch = out;
        taken
    }

    fn next(&self, message: &Message<'_>) -> Next {
        if acknowledges(message).is_some_and(|message_id| message_id != self.message_id) {
            return Next::Ignore;
        }
        let block = message.options.get(number::BLOCK1).and_then(Block::read);
        // A server may respond with smaller blocks; it counts them in its own size then, from the same offset.
        if block.is_some_and(|block| block.offset() != self.offset) {
            return Next::Ignore;
        }
        match (message.code, block) {
            (code, Some(block)) if code.is_success() && !self.is_last() => {
                Next::Continue(block.exponent.min(self.exponent))
            }
            (code, None) if code.is_success() && !self.is_last() => {
                Next::Done(Err(Reason::words(format!("{code} for the first block of {}", self.message.payload_bytes))))
            }
            _ => Next::Done(outcome(message)),
        }
    }

    /// Reports once that all of the message is written.
    fn note_written(&mut self, link: &Link, sink: &mut impl Sink) {
        if std::mem::replace(&mut self.written, true) {
            return;
        }
        let (token, write_start_ns) = (self.token(), self.write_start_ns);
        let own_ns = self.message.timing.since_submitted_ns(write_start_ns).saturating_add(self.block_wait.late_ns());
        sink.event(link.id, Event::Written { token, write_start_ns, written_ns: clock::monotonic_ns(), own_ns });
    }

    /// The server refused the message.
    pub(super) fn refuse(mut self, link: &Link, delivery: &Delivery<'_>, reason: Reason, sink: &mut impl Sink) {
        self.block_wait.note_response(delivery, self.block_at_ns);
        self.block_wait.note_attempt(clock::monotonic_ns());
        self.note_written(link, sink);
        sink.event(link.id, Event::Acknowledged { token: self.token(), outcome: Err(reason) });
    }

    /// There will be no response any more.
    pub(super) fn forget(self, link: &Link, sink: &mut impl Sink) {
        if !self.written {
            sink.event(link.id, Event::Abandoned(self.token()));
        } else if is_acknowledged(link, &self.message) {
            sink.event(link.id, Event::Unacknowledged(self.token()));
        }
    }

    /// Bytes that were not sent.
    pub(super) fn unsent_bytes(&self) -> u64 {
        if self.written { 0 } else { u64::from(self.message.payload_bytes) - self.offset as u64 }
    }
}

fn is_acknowledged(link: &Link, message: &Outgoing) -> bool {
    link.config.publications[usize::from(message.publication)].qos != Qos::BestEffort
}

impl Publishing {
    /// Is the response to a block of this transfer awaited?
    pub(super) fn transfers(&self, salt: u16) -> bool {
        self.transfer.as_ref().is_some_and(|transfer| transfer.salt == salt && !transfer.waits)
    }

    /// The socket was full until this time.
    pub(super) fn note_full(&mut self, until_ns: u64) {
        if let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.waits) {
            transfer.block_wait.note_full(until_ns);
        }
    }

    /// Ends the transfer; what waited for its end waited for pubmark as long as it did.
    pub(super) fn take_transfer(&mut self) -> Option<Box<Transfer>> {
        self.late_before_ns = self.late_ns();
        self.transfer.take()
    }

    /// How long transfers waited for pubmark so far, at most, ns.
    pub(super) fn late_ns(&self) -> u64 {
        let of_present = self.transfer.as_ref().map_or(0, |transfer| transfer.block_wait.late_ns());
        self.late_before_ns.saturating_add(of_present)
    }

    /// Sends the present block if the socket would have blocked before.
    pub(super) fn resume_transfer(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        match &mut self.transfer {
            Some(transfer) if transfer.waits => transfer.send_block(link, shared, sink),
            _ => Ok(()),
        }
    }

    /// A response to a block; false if none awaits it.
    pub(super) fn on_block_response(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        salt: u16,
        (message, delivery): (&Message<'_>, &Delivery<'_>),
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.salt == salt && !transfer.waits) else {
            return Ok(false);
        };
        match transfer.next(message) {
            Next::Ignore => Ok(true),
            Next::Continue(exponent) => {
                transfer.offset += transfer.block_bytes();
                transfer.exponent = exponent;
                transfer.message_id = link.message_id();
                transfer.block_wait.note_response(delivery, transfer.block_at_ns);
                transfer.block_at_ns = clock::monotonic_ns();
                transfer.exchange = shared.exchange(transfer.block_at_ns);
                transfer.waits = true;
                transfer.send_block(link, shared, sink)?;
                link.wake_by(shared, transfer.exchange.due_ns());
                Ok(true)
            }
            Next::Done(outcome) => {
                let Some(transfer) = self.take_transfer() else { return Ok(false) };
                match outcome {
                    Err(reason) => transfer.refuse(link, delivery, reason, sink),
                    Ok(()) if is_acknowledged(link, &transfer.message) => {
                        sink.event(link.id, Event::Acknowledged { token: transfer.token(), outcome: Ok(()) });
                    }
                    Ok(()) => {}
                }
                Ok(true)
            }
        }
    }
}

const _: () = assert!(16 << LARGEST_EXPONENT == BLOCK_BYTES);
