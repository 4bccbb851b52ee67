//! Messages of our consumers: acknowledged as the level requires.

use pubmark_model::qos::Qos;
use pubmark_protocol::events::{Cause, Event, Sink};
use pubmark_wire::nats::Message;
use pubmark_wire::nats::jetstream::{encode_ack, stream_sequence};

use super::opening::MAX_ACK_PENDING;
use super::responses::status;
use super::session::{INBOX, JetStream};
use crate::connection::{Link, Shared, Times};
use crate::nats::headers::delivery;

/// Most bytes of acknowledgements of a consumer's messages that wait for the socket; one has some 100 B to 200 B.
const MOST_ACK_BYTES: usize = MAX_ACK_PENDING as usize * 256;

impl JetStream {
    /// A message of a consumer.
    pub(super) fn on_delivery(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        message: &Message<'_>,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let number = message.subscription.checked_sub(INBOX + 1).and_then(|index| usize::try_from(index).ok());
        let count = self.listeners.len();
        if let Some(index) = number.and_then(|number| number.checked_sub(count)).filter(|index| *index < count) {
            self.on_revoked(link, index, "consumer deleted".to_owned(), sink);
            return Ok(());
        }
        let Some((index, listener)) = number.and_then(|index| Some((index, self.listeners.get(index)?))) else {
            return Err(Cause::Protocol(format!(
                "a message of subscription {}, which does not exist",
                message.subscription
            )));
        };
        if let Some(words) = status(message) {
            // Heartbeats and flow control, which are not requested, have 100; anything else ends the consumer.
            if !words.starts_with("100") {
                self.on_revoked(link, index, words.to_owned(), sink);
            }
            return Ok(());
        }
        if listener.qos == Qos::BestEffort {
            sink.event(link.id, Event::Delivered(delivery(message, times)));
            return Ok(());
        }
        let Some((to, sequence)) = message.reply.and_then(|to| Some((to, stream_sequence(to)?))) else {
            return Err(Cause::Protocol("a message without a subject for its acknowledgement".to_owned()));
        };
        if listener.qos == Qos::AtLeastOnce {
            let acknowledged = self.acknowledge(link, shared, to, None);
            sink.event(link.id, Event::Delivered(delivery(message, times)));
            return acknowledged;
        }
        let confirmed_to = self.inbox(&format!("k.{index}"), sequence);
        let acknowledged = self.acknowledge(link, shared, to, Some(&confirmed_to));
        if self.unconfirmed.insert((index, sequence)) {
            sink.event(link.id, Event::Delivered(delivery(message, times)));
        }
        if self.unconfirmed.len() > MAX_ACK_PENDING as usize * self.listeners.len() {
            return Err(Cause::Protocol(
                "more messages without confirmed acknowledgements than were agreed".to_owned(),
            ));
        }
        acknowledged
    }

    /// Acknowledges a message; the server confirms that at `confirmed_to`. The bound for other responses would be too low: a server
    /// may have sent all that it may have without acknowledgement before it reads the first one.
    fn acknowledge(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        to: &str,
        confirmed_to: Option<&str>,
    ) -> Result<(), Cause> {
        let waiting = link.outbox.pending_bytes();
        link.outbox.append(&mut shared.pool, |out| encode_ack(to, confirmed_to, out));
        // Of the earlier ones, no more can be left than what waits.
        self.waiting_ack_bytes = self.waiting_ack_bytes.min(waiting) + link.outbox.pending_bytes() - waiting;
        if self.waiting_ack_bytes > MOST_ACK_BYTES * self.listeners.len() {
            return Err(Cause::Dropped("ended by us: it does not read our answers".to_owned()));
        }
        Ok(())
    }
}
