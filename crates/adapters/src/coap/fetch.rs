//! The rest of a notification (RFC 7641 §3.4) or a response that did not fit a datagram (RFC 7959, Block2): fetched block by
//! block.
//!
//! Its blocks belong together as long as their ETag stays the same. If the resource changes in the meantime, or a newer
//! notification arrives, the blocks fetched so far are useless: they are dropped, and the message counts as lost. Our own
//! broker stores each notification until it was fetched.

use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Delivery, Event, Sink};
use pubmark_wire::coap::{Block, Code, Exchange, Kind, Message, Step, encode_path, number};

use super::link::{Link, Shared};
use super::observing::Observing;
use super::request::Request;
use super::response::acknowledges;

/// Most memory that is retained for the next one, bytes.
const SPARE_BYTES: usize = 4 << 20;

/// Bytes of an ETag at most (RFC 7252 §5.10).
const LONGEST_ETAG_BYTES: usize = 8;

/// A notification or a reply that is being assembled.
#[derive(Debug)]
pub(super) struct Fetch {
    body: Vec<u8>,
    etag: ([u8; LONGEST_ETAG_BYTES], usize),
    exponent: u8,
    salt: u16,
    /// Of the request for the next block.
    pub(super) message_id: u16,
    pub(super) exchange: Exchange,
}

/// Result of a block's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is none for the present request.
    Ignore,
    /// More are to be fetched.
    Continue,
    /// That was the last one.
    Whole,
    /// The rest is gone, or too large.
    Drop,
}

fn etag_of(message: &Message<'_>) -> ([u8; LONGEST_ETAG_BYTES], usize) {
    let value = message.options.get(number::ETAG).unwrap_or(&[]);
    let mut bytes = [0; LONGEST_ETAG_BYTES];
    let length = value.len().min(LONGEST_ETAG_BYTES);
    bytes[..length].copy_from_slice(&value[..length]);
    (bytes, length)
}

impl Fetch {
    /// Stores the first block; the caller requests the next.
    pub(super) fn begin(shared: &mut Shared, block: Block, message: &Message<'_>, salt: u16) -> Fetch {
        let mut body = std::mem::take(&mut shared.spare);
        body.clear();
        body.extend_from_slice(message.payload);
        Fetch {
            body,
            etag: etag_of(message),
            exponent: block.exponent,
            salt,
            message_id: 0,
            exchange: shared.exchange(clock::monotonic_ns()),
        }
    }

    /// The block to request.
    pub(super) fn next_block(&self) -> Block {
        Block::at(self.body.len(), false, self.exponent)
    }

    /// The bytes that have arrived.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Retains its memory for the next one.
    pub(super) fn end(self, shared: &mut Shared) {
        if self.body.capacity() <= SPARE_BYTES {
            shared.spare = self.body;
        }
    }

    /// Adds a block.
    pub(super) fn take(&mut self, message: &Message<'_>, most_bytes: usize) -> Next {
        if acknowledges(message).is_some_and(|message_id| message_id != self.message_id) {
            return Next::Ignore;
        }
        if message.code != Code::CONTENT || etag_of(message) != self.etag {
            return Next::Drop;
        }
        let Some(block) = message.options.get(number::BLOCK2).and_then(Block::read) else { return Next::Drop };
        if block.offset() != self.body.len() {
            return Next::Ignore;
        }
        let fits =
            if block.more { message.payload.len() == block.bytes() } else { message.payload.len() <= block.bytes() };
        if !fits || block.exponent > self.exponent || self.body.len() + message.payload.len() > most_bytes {
            return Next::Drop;
        }
        self.exponent = block.exponent;
        self.body.extend_from_slice(message.payload);
        if block.more { Next::Continue } else { Next::Whole }
    }
}

impl Observing {
    /// Is a block of this fetch awaited?
    pub(super) fn fetches(&self, index: u16, salt: u16) -> bool {
        let observation = self.observations.get(usize::from(index));
        observation.and_then(|observation| observation.fetch.as_ref()).is_some_and(|fetch| fetch.salt == salt)
    }

    /// Stores the first block and requests the next.
    pub(super) fn begin_fetch(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: u16,
        block: Block,
        message: &Message<'_>,
    ) -> Result<(), Cause> {
        self.fetch_count = self.fetch_count.wrapping_add(1);
        let fetch = Fetch::begin(shared, block, message, self.fetch_count);
        self.observations[usize::from(index)].fetch = Some(Box::new(fetch));
        self.request_next(link, shared, index)
    }

    fn request_next(&mut self, link: &mut Link, shared: &mut Shared, index: u16) -> Result<(), Cause> {
        let Some(fetch) = &mut self.observations[usize::from(index)].fetch else { return Ok(()) };
        link.unread.note_part();
        fetch.message_id = link.message_id();
        fetch.exchange = shared.exchange(clock::monotonic_ns());
        link.wake_by(shared, fetch.exchange.due_ns());
        ask(link, shared, index, fetch)
    }

    /// A block came; false if none is awaited. `delivery` has the times of its datagram.
    pub(super) fn on_block(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        (index, salt): (u16, u16),
        message: &Message<'_>,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        let observation = self.observations.get_mut(usize::from(index));
        let fetch = observation.and_then(|observation| observation.fetch.as_mut());
        let Some(fetch) = fetch.filter(|fetch| fetch.salt == salt) else { return Ok(false) };
        match fetch.take(message, shared.config.connections.maximum_packet_bytes) {
            Next::Ignore => {}
            Next::Continue => self.request_next(link, shared, index)?,
            Next::Drop => self.drop_fetch(shared, index),
            Next::Whole => {
                sink.event(link.id, Event::Delivered(Delivery { payload: &fetch.body, ..delivery }));
                self.drop_fetch(shared, index);
            }
        }
        Ok(true)
    }

    pub(super) fn repeat_fetch(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: u16,
        now_ns: u64,
    ) -> Result<(), Cause> {
        let Some(fetch) = &mut self.observations[usize::from(index)].fetch else { return Ok(()) };
        match fetch.exchange.step(&shared.times, now_ns) {
            Step::Wait => Ok(()),
            Step::Repeat => ask(link, shared, index, fetch),
            Step::GiveUp => {
                self.drop_fetch(shared, index);
                Ok(())
            }
        }
    }

    /// Drops a fetch and retains its memory for the next one.
    pub(super) fn drop_fetch(&mut self, shared: &mut Shared, index: u16) {
        if let Some(fetch) = self.observations[usize::from(index)].fetch.take() {
            fetch.end(shared);
        }
    }
}

fn ask(link: &mut Link, shared: &mut Shared, index: u16, fetch: &Fetch) -> Result<(), Cause> {
    let token = Request::Fetch { index, salt: fetch.salt }.token();
    let block = fetch.next_block();
    link.ask(shared, (Kind::Confirmable, Code::GET), fetch.message_id, token.as_bytes(), |writer, config| {
        encode_path(writer, &config.subscriptions[usize::from(index)].filter);
        writer.uint(number::BLOCK2, block.value());
    })
}
