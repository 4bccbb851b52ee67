//! Replies that do not fit a datagram (RFC 7959, Block2): the responder sends the first block, the rest is fetched.

use pubmark_protocol::clock;
use pubmark_protocol::events::{Cause, Delivery, Event, Sink, Token};
use pubmark_wire::coap::{Block, Code, Kind, Message, Step, encode_levels, number};

use super::super::fetch::{Fetch, Next};
use super::super::link::{Link, Shared};
use super::super::request::{OCTET_STREAM, Request};
use super::Requesting;

/// Most replies that are fetched at once: those of the window and as many late ones, and never fewer than these.
const FEWEST_FETCHES: usize = 64;

impl Requesting {
    /// May one more be fetched? Limits the state for a responder that begins replies without end.
    pub(super) fn may_fetch(&self) -> bool {
        self.fetches.len() < (2 * self.window).max(FEWEST_FETCHES)
    }

    /// Stores the first block and requests the next.
    pub(super) fn begin_fetch(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        request: Token,
        block: Block,
        message: &Message<'_>,
    ) -> Result<(), Cause> {
        let fetch = Fetch::begin(shared, block, message, 0);
        request_next(link, shared, request, self.fetches.entry(request).or_insert(fetch))
    }

    /// A response arrived for a request whose reply is being fetched.
    pub(super) fn on_fetched(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        request: Token,
        message: &Message<'_>,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let Some(fetch) = self.fetches.get_mut(&request) else { return Ok(()) };
        match fetch.take(message, shared.config.connections.maximum_packet_bytes) {
            Next::Ignore => return Ok(()),
            Next::Continue => return request_next(link, shared, request, fetch),
            // The blocks fetched so far are not a reply: the request has none.
            Next::Drop => {}
            Next::Whole => {
                sink.event(
                    link.id,
                    Event::Replied { request: Some(request), delivery: Delivery { payload: fetch.body(), ..delivery } },
                );
            }
        }
        if let Some(fetch) = self.fetches.remove(&request) {
            fetch.end(shared);
        }
        Ok(())
    }

    pub(super) fn repeat_fetches(&mut self, link: &mut Link, shared: &mut Shared, now_ns: u64) -> Result<(), Cause> {
        let mut result = Ok(());
        self.fetches.retain(|request, fetch| match fetch.exchange.step(&shared.times, now_ns) {
            Step::Wait => true,
            Step::Repeat => {
                if result.is_ok() {
                    result = ask(link, shared, *request, fetch);
                }
                true
            }
            Step::GiveUp => false,
        });
        result
    }
}

fn request_next(link: &mut Link, shared: &mut Shared, request: Token, fetch: &mut Fetch) -> Result<(), Cause> {
    link.unread.note_part();
    fetch.message_id = link.message_id();
    fetch.exchange = shared.exchange(clock::monotonic_ns());
    link.wake_by(shared, fetch.exchange.due_ns());
    ask(link, shared, request, fetch)
}

/// Requests the next block: like the first request, without its body (RFC 7959 §2.7).
fn ask(link: &mut Link, shared: &mut Shared, request: Token, fetch: &Fetch) -> Result<(), Cause> {
    let Token { publication, sequence } = request;
    let token = Request::Once { publication, sequence }.token();
    let block = fetch.next_block();
    link.ask(shared, (Kind::Confirmable, Code::FETCH), fetch.message_id, token.as_bytes(), |writer, config| {
        encode_levels(writer, &config.publications[usize::from(publication)].topic);
        writer.uint(number::CONTENT_FORMAT, OCTET_STREAM);
        writer.uint(number::BLOCK2, block.value());
        writer.option(number::REQUEST_TAG, token.as_bytes());
    })
}
