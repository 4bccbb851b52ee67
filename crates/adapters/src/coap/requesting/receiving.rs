//! Datagrams at a requester's socket: replies, refusals, and others.

use pubmark_protocol::events::{Cause, Delivery, Event, Reason, Sink, Token};
use pubmark_wire::coap::{Block, Code, Message, number};

use super::super::link::{Link, Shared};
use super::super::request::Request;
use super::super::response::{acknowledges, reason};
use super::{Open, Requesting, is_acknowledged};

impl Requesting {
    /// Does this token name a request that the session can have sent?
    pub(in super::super) fn knows(&self, link: &Link, token: &[u8]) -> bool {
        asked(link, token).is_some()
    }

    /// A response; false if it belongs to no request that pubmark sent. Such a response is reported as a reply without a request, so
    /// that it is counted.
    pub(in super::super) fn on_response(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) -> Result<bool, Cause> {
        let Some(request) = asked(link, message.token) else {
            sink.event(link.id, Event::Replied { request: None, delivery });
            return Ok(false);
        };
        if let Some(message_id) = acknowledges(message) {
            let lifetime_ns = shared.times.exchange_lifetime_ns();
            let awaited = self.awaited(request);
            // A reply that is not awaited is a copy, or of a request that was given up.
            if self.answered.is_repetition(message_id, delivery.at_ns, lifetime_ns) && awaited != Some(message_id) {
                return Ok(true);
            }
            if awaited.is_some_and(|awaited| awaited != message_id) {
                sink.event(link.id, Event::Replied { request: None, delivery });
                return Ok(true);
            }
        }
        if self.fetches.contains_key(&request) {
            self.on_fetched(link, shared, request, message, delivery, sink)?;
        } else if self.sending.as_ref().is_some_and(|open| open.token() == request) {
            self.on_block_response(link, shared, (message, &delivery), sink)?;
        } else if !message.code.is_success() || message.code == Code::CONTINUE {
            self.refuse(link, request, reason(message.code, message.payload), delivery, sink);
        } else {
            self.on_reply(link, shared, request, message, delivery, sink)?;
        }
        Ok(true)
    }

    /// A reply, or its first block.
    fn on_reply(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        request: Token,
        message: &Message<'_>,
        delivery: Delivery<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if self.open.remove(&request).is_some() && is_acknowledged(link, request) {
            sink.event(link.id, Event::Acknowledged { token: request, outcome: Ok(()) });
        }
        match message.options.get(number::BLOCK2).map(Block::read) {
            None => sink.event(link.id, Event::Replied { request: Some(request), delivery }),
            Some(Some(block)) if !block.more && block.number == 0 => {
                sink.event(link.id, Event::Replied { request: Some(request), delivery });
            }
            Some(Some(block))
                if block.more && block.number == 0 && message.payload.len() == block.bytes() && self.may_fetch() =>
            {
                self.begin_fetch(link, shared, request, block, message)?;
            }
            // A block that cannot be the first one, or one of more replies than were requested.
            Some(_) => sink.event(link.id, Event::Replied { request: None, delivery }),
        }
        Ok(())
    }

    fn refuse(&mut self, link: &Link, request: Token, reason: Reason, delivery: Delivery<'_>, sink: &mut impl Sink) {
        // A request that is not awaited any more was given up already: its refusal is too late to change how it was counted.
        if self.open.remove(&request).is_some() || !is_acknowledged(link, request) {
            sink.event(link.id, Event::Acknowledged { token: request, outcome: Err(reason) });
        } else {
            sink.event(link.id, Event::Replied { request: None, delivery });
        }
    }

    /// The identifier of the message by which a request awaits its reply.
    fn awaited(&self, request: Token) -> Option<u16> {
        let fetched = self.fetches.get(&request).map(|fetch| fetch.message_id);
        let sending = || self.sending.as_ref().filter(|open| open.token() == request).map(|open| open.message_id);
        fetched.or_else(sending).or_else(|| self.open.get(&request).map(|open| open.message_id))
    }

    /// The message that waits for an acknowledgement with this identifier.
    fn with_id(&mut self, message_id: u16) -> Option<&mut Open> {
        self.open.values_mut().chain(self.sending.as_deref_mut()).find(|open| open.message_id == message_id)
    }

    /// An acknowledgement without the response.
    pub(in super::super) fn on_acknowledgement(&mut self, shared: &Shared, message_id: u16, now_ns: u64) {
        if let Some(open) = self.with_id(message_id) {
            open.accepted = true;
            open.exchange.acknowledge(&shared.times, now_ns);
        } else if let Some(fetch) = self.fetches.values_mut().find(|fetch| fetch.message_id == message_id) {
            fetch.exchange.acknowledge(&shared.times, now_ns);
        }
    }

    /// The responder could not process a message that pubmark sent: that is a refusal without a code.
    pub(in super::super) fn on_reset(
        &mut self,
        link: &Link,
        message_id: u16,
        delivery: &Delivery<'_>,
        sink: &mut impl Sink,
    ) {
        let reason = Reason::words("rejected with a reset");
        let Some(request) = self.with_id(message_id).map(|open| open.token()) else {
            self.fetches.retain(|_, fetch| fetch.message_id != message_id);
            return;
        };
        if self.open.remove(&request).is_some() {
            sink.event(link.id, Event::Acknowledged { token: request, outcome: Err(reason) });
        } else {
            self.refuse_block(link, delivery, reason, sink);
        }
    }
}

/// The request that a token names, if the session has such a publication.
fn asked(link: &Link, token: &[u8]) -> Option<Token> {
    match Request::of(token)? {
        Request::Once { publication, sequence } if usize::from(publication) < link.config.publications.len() => {
            Some(Token { publication, sequence })
        }
        _ => None,
    }
}
