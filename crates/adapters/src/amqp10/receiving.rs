//! Messages of the server's: put together from their parts, delivered, accepted.

use pubmark_model::payload::HEADER_PROPERTY;
use pubmark_protocol::events::{Cause, Delivery, Event, Sink};
use pubmark_protocol::requests::{ReplyTo, correlated_by_text};
use pubmark_wire::amqp10::{Disposition, Message, Role, State, Transfer, text_of};

use super::causes::broken;
use super::incoming::{CREDIT, PartialMessage, WINDOW};
use super::links::no_link;
use super::opening::CHANNEL;
use super::session::{Amqp10, End};
use crate::connection::{Link, Shared, Times};

/// Deliveries in a row that are accepted with one disposition at most: its server should not wait long for the first.
const ACCEPTED_AT_A_TIME: u32 = 100;

impl Amqp10 {
    pub(super) fn on_transfer(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        transfer: &Transfer<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let index = match self.link_of(transfer.handle) {
            Some(End::Receiver(index)) => index as usize,
            Some(End::Sender(_)) => {
                return Err(Cause::Protocol(format!("a transfer of handle {}, on which we send", transfer.handle)));
            }
            None => return Err(no_link("transfer", transfer.handle)),
        };
        self.count_transfer(index, transfer)?;
        if transfer.aborted {
            self.give_up(index);
        } else if transfer.more {
            self.keep(index, transfer, shared.config.connections.maximum_packet_bytes)?;
        } else {
            self.deliver(link, shared, index, transfer, times, sink)?;
        }
        if self.incoming.receivers[index].credit <= CREDIT / 2 {
            self.give_credit(link, shared, index);
        } else if self.incoming.window <= WINDOW / 2 {
            self.open_window(link, shared);
        }
        Ok(())
    }

    /// Counts it against our window, and the message that it begins against the receiver's credit.
    fn count_transfer(&mut self, index: usize, transfer: &Transfer<'_>) -> Result<(), Cause> {
        let incoming = &mut self.incoming;
        incoming.next_transfer = incoming.next_transfer.wrapping_add(1);
        let left = incoming.window.checked_sub(1);
        incoming.window = left.ok_or_else(|| Cause::Protocol("more transfers than its window".to_owned()))?;
        let receiver = &mut incoming.receivers[index];
        match (&mut receiver.partial, transfer.delivery_id) {
            (Some(partial), Some(delivery)) if partial.delivery != delivery => {
                let unfinished = partial.delivery;
                Err(Cause::Protocol(format!("delivery {delivery} begins on a link where {unfinished} has not ended")))
            }
            (Some(partial), _) => {
                // Settled by any of its parts (part 2, §2.7.5).
                partial.settled |= transfer.settled == Some(true);
                Ok(())
            }
            (None, None) => Err(Cause::Protocol("a delivery without a number".to_owned())),
            (None, Some(delivery)) => {
                let left = receiver.credit.checked_sub(1);
                receiver.credit = left.ok_or_else(|| Cause::Protocol("more messages than their credit".to_owned()))?;
                receiver.delivery_count = receiver.delivery_count.wrapping_add(1);
                receiver.partial =
                    Some(PartialMessage { delivery, settled: transfer.settled == Some(true), bytes: Vec::new() });
                Ok(())
            }
        }
    }

    fn give_up(&mut self, index: usize) -> Option<PartialMessage> {
        let partial = self.incoming.receivers[index].partial.take()?;
        self.incoming.partial_bytes -= partial.bytes.len();
        Some(partial)
    }

    /// Stores a part. All messages of a session that have begun share one limit.
    fn keep(&mut self, index: usize, transfer: &Transfer<'_>, most_bytes: usize) -> Result<(), Cause> {
        let bytes = self.incoming.partial_bytes + transfer.payload.len();
        if bytes > most_bytes {
            return Err(Cause::Protocol(format!(
                "{bytes} B of messages that have not ended, more than {most_bytes} B"
            )));
        }
        if let Some(partial) = &mut self.incoming.receivers[index].partial {
            partial.bytes.extend_from_slice(transfer.payload);
            self.incoming.partial_bytes = bytes;
        }
        Ok(())
    }

    /// The message is whole.
    fn deliver(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        index: usize,
        transfer: &Transfer<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let in_parts = self.incoming.receivers[index].partial.as_ref().is_some_and(|partial| !partial.bytes.is_empty());
        if in_parts {
            self.keep(index, transfer, shared.config.connections.maximum_packet_bytes)?;
        }
        let Some(partial) = self.give_up(index) else { return Ok(()) };
        let message = if in_parts { &partial.bytes[..] } else { transfer.payload };
        report_message(link, &Message::decode(message).map_err(broken)?, times, sink);
        if !partial.settled {
            self.accept(link, shared, partial.delivery);
        }
        Ok(())
    }

    /// Accepts a delivery with its neighbours.
    fn accept(&mut self, link: &mut Link, shared: &mut Shared, delivery: u32) {
        match &mut self.incoming.to_accept {
            Some((first, last)) if last.wrapping_add(1) == delivery => {
                *last = delivery;
                if delivery.wrapping_sub(*first) + 1 >= ACCEPTED_AT_A_TIME {
                    self.accept_all(link, shared);
                }
            }
            _ => {
                self.accept_all(link, shared);
                self.incoming.to_accept = Some((delivery, delivery));
            }
        }
    }

    /// Accepts deliveries that arrived and were not accepted yet.
    pub(super) fn accept_all(&mut self, link: &mut Link, shared: &mut Shared) {
        let Some((first, last)) = self.incoming.to_accept.take() else { return };
        let accepted = Disposition { role: Role::Receiver, first, last, settled: true, state: Some(State::Accepted) };
        link.respond(shared, |out| accepted.encode(CHANNEL, out));
    }
}

/// Reports a message by its kind: a request, a reply, or neither.
fn report_message(link: &Link, message: &Message<'_>, times: Times, sink: &mut impl Sink) {
    let header = message.application_property(HEADER_PROPERTY).map(str::as_bytes);
    let delivery = Delivery { header, ..times.delivery(&message.body, false) };
    // Another program's properties may violate the standard; such a message is neither a request nor a reply of this run.
    let properties = message.properties().unwrap_or_default();
    if let Some(address) = properties.reply_to.filter(|address| !address.is_empty()) {
        sink.event(
            link.id,
            Event::Requested { reply_to: ReplyTo { address, correlation: properties.correlation_id }, delivery },
        );
    } else if link.config.options.reply_topic.is_some() {
        sink.event(
            link.id,
            Event::Replied { request: text_of(properties.correlation_id).and_then(correlated_by_text), delivery },
        );
    } else {
        sink.event(link.id, Event::Delivered(delivery));
    }
}
