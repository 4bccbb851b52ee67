//! Replies to requests: on one link for all of them if the server accepts the address in the message, otherwise on a link for
//! each address, which is attached with the first reply to it and detached for another one's when there are too many.

use std::collections::HashMap;

use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Event, Reason, Sink};
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::amqp10::{Attach, Detach, Properties, Role, SenderSettles, Terminus};

use super::opening::CHANNEL;
use super::outgoing::{LinkState, SenderContent};
use super::sending::MessageToSend;
use super::session::Amqp10;
use crate::connection::{Link, Refusal, Shared};
use crate::payload;

/// Most addresses that a session has links for at once: some 400 B each, and requests can name any address.
pub const MOST_LINKS: usize = 1_024;

/// A session's state of its reply addresses.
#[derive(Debug, Default)]
pub struct Replying {
    /// The sender for all replies.
    pub all: Option<u16>,
    /// The sender for each address.
    pub by_address: HashMap<Box<str>, u16>,
    /// Links for addresses, at most.
    pub most_links: usize,
}

impl Amqp10 {
    /// Appends a reply; the refusal otherwise.
    pub(super) fn publish_reply(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        answer: &OutgoingReply<'_>,
    ) -> Result<(), Refusal> {
        let address = answer.to.address;
        let (sender, to) = match self.replying.all {
            Some(sender) => (sender, Some(address)),
            None => (self.sender_for(link, shared, answer)?, None),
        };
        self.properties.clear();
        Properties { to, reply_to: None, correlation_id: answer.to.correlation }.encode(&mut self.properties);
        let posting = MessageToSend { sender, message: answer.message(), header_at: None };
        self.post(link, shared, &posting, |config, _, out| payload::append_reply(config, answer, out))
    }

    /// The sender to the address of a reply; it may still be unattached.
    fn sender_for(&mut self, link: &mut Link, shared: &mut Shared, answer: &OutgoingReply<'_>) -> Result<u16, Refusal> {
        let address = answer.to.address;
        if let Some(&place) = self.replying.by_address.get(address) {
            if self.outgoing.senders[usize::from(place)].state != LinkState::Ended {
                return Ok(place);
            }
            // The server accepted no messages there. The next reply is tried again.
            self.replying.by_address.remove(address);
            return Err(Refusal::TooLarge(0));
        }
        if self.replying.most_links == 0 {
            return Err(Refusal::TooLarge(0));
        }
        let asked = self.outgoing.senders.len() - self.outgoing.fixed;
        if asked >= self.replying.most_links && self.outgoing.ended_sender().is_none() {
            self.detach_idle_sender(link, shared);
            return Err(self.outgoing.block_for_sender());
        }
        Ok(self.add_sender(link, shared, address, answer.qos == Qos::BestEffort))
    }

    /// Ends the link that was not used for longest.
    fn detach_idle_sender(&mut self, link: &mut Link, shared: &mut Shared) {
        let Some(place) = self.outgoing.idle_sender() else { return };
        self.forget_address_of(place);
        self.outgoing.senders[usize::from(place)].state = LinkState::Leaving;
        self.send_detach(link, shared, self.handle_of_sender(place));
    }

    fn forget_address_of(&mut self, place: u16) {
        if let SenderContent::RepliesTo(address) = &self.outgoing.senders[usize::from(place)].carries {
            self.replying.by_address.remove(address);
        }
    }

    fn add_sender(&mut self, link: &mut Link, shared: &mut Shared, address: &str, settles: bool) -> u16 {
        if let Some(ended) = self.outgoing.ended_sender() {
            self.forget_address_of(ended);
        }
        let place = self.outgoing.add_sender(SenderContent::RepliesTo(address.into()), settles);
        self.replying.by_address.insert(address.into(), place);
        self.attach_sender(link, shared, place, Terminus::at(Some(address)));
        place
    }

    /// Attaches a sender to this target.
    pub(super) fn attach_sender(&self, link: &mut Link, shared: &mut Shared, place: u16, target: Terminus<'_>) {
        let settles = self.outgoing.senders[usize::from(place)].settles;
        let attach = Attach {
            name: &super::links::sender_name(place),
            handle: self.handle_of_sender(place),
            role: Role::Sender,
            sender_settles: if settles { SenderSettles::Settled } else { SenderSettles::Unsettled },
            source: Some(Terminus::at(Some(&link.config.client_id))),
            target: Some(target),
            initial_delivery_count: Some(0),
            max_message_bytes: None,
        };
        link.outbox.append(&mut shared.pool, |out| attach.encode(CHANNEL, out));
    }

    /// The server detaches a link for replies to one address, has none, or confirms its end.
    pub(super) fn on_reply_sender_detached(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        place: u16,
        detach: &Detach<'_>,
        sink: &mut impl Sink,
    ) {
        self.links[detach.handle as usize] = None;
        let sender = &mut self.outgoing.senders[usize::from(place)];
        if std::mem::replace(&mut sender.state, LinkState::Ended) == LinkState::Leaving {
            return;
        }
        sender.credit = 0;
        self.send_detach(link, shared, self.handle_of_sender(place));
        // There will be no outcome for deliveries on it.
        let reason = super::causes::words(detach.error, "it ended the link to where the answer was to go");
        self.refuse_all_of(link, place, &reason, sink);
    }

    fn refuse_all_of(&mut self, link: &Link, place: u16, reason: &Reason, sink: &mut impl Sink) {
        let in_flight = &mut self.outgoing.in_flight;
        self.outgoing.unsettled.settle_sender(place, |tag| {
            if let Some(entry) = in_flight.remove(tag) {
                sink.event(link.id, Event::Acknowledged { token: entry.token(), outcome: Err(reason.clone()) });
            }
        });
    }

    fn send_detach(&self, link: &mut Link, shared: &mut Shared, handle: u32) {
        let ours = Detach { handle, closed: true, error: None };
        link.outbox.append(&mut shared.pool, |out| ours.encode(CHANNEL, out));
    }
}
