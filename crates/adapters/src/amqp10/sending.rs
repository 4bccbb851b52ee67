//! Outgoing messages: sent, in several transfers if they are large, and their outcomes.

use pubmark_model::payload::HEADER_PROPERTY;
use pubmark_model::predicate::{Scalar, SelectorFields};
use pubmark_model::qos::Qos;
use pubmark_protocol::clients::{Outgoing as Message, SessionConfig, ShardConfig};
use pubmark_protocol::events::{Cause, Event, Reason, Sink, Token};
use pubmark_protocol::header::{LONGEST_TEXT, REACTION};
use pubmark_protocol::outbox;
use pubmark_protocol::requests;
use pubmark_wire::amqp10::{
    ApplicationProperties, Disposition, MOST_TRANSFER_BYTES, Properties, Role, State, Transfer, encode_data_front,
    encode_text, message_bytes,
};

use super::opening::CHANNEL;
use super::session::Amqp10;
use crate::connection::{Link, Progress, Refusal, Shared};
use crate::payload;

/// A message to send.
pub(super) struct MessageToSend {
    /// On this sender of ours.
    pub(super) sender: u16,
    /// The message, or a reply in this form.
    pub(super) message: Message,
    /// Where in the properties its header is, if it is not in its payload.
    pub(super) header_at: Option<usize>,
}

impl Amqp10 {
    /// Appends a message; the refusal otherwise.
    pub(super) fn publish(&mut self, link: &mut Link, shared: &mut Shared, message: Message) -> Result<(), Refusal> {
        self.properties.clear();
        if link.config.options.reply_topic.is_some() {
            self.ask(message.token());
        }
        let publication = &link.config.publications[usize::from(message.publication)];
        let fields = link.config.options.selector_fields.as_deref();
        let mut header_at = None;
        if payload::has_properties(publication) || fields.is_some() {
            let mut space = [0; LONGEST_TEXT];
            let header = payload::header_text(&shared.config, publication, &message, &mut space);
            let mut section = ApplicationProperties::begin(&mut self.properties);
            // The header comes first, so that it is in the first frame.
            let own = payload::properties(&publication.properties, None);
            let all = header.map(|header| (HEADER_PROPERTY, header)).into_iter().chain(own);
            all.for_each(|(name, value)| section.text(name, value));
            if let Some(fields) = fields {
                self.payload.clear();
                payload::append(&shared.config, publication, &message, &mut self.payload);
                append_fields(fields, payload::body(publication, &message, &self.payload), &mut section);
            }
            let first = section.finish();
            header_at = header.map(|_| first);
        }
        let sender = self.outgoing.sender_of(message.publication);
        self.post(link, shared, &MessageToSend { sender, message, header_at }, |config, session, out| {
            let publication = &session.publications[usize::from(message.publication)];
            payload::append(config, publication, &message, out);
        })
    }

    /// The properties of a request.
    fn ask(&mut self, request: Token) {
        self.correlation.clear();
        requests::correlation_as_text(request, &mut self.correlation);
        self.identifier.clear();
        encode_text(&self.correlation, &mut self.identifier);
        let (reply_to, correlation_id) = (Some(&*self.reply_to), &*self.identifier);
        Properties { to: None, reply_to, correlation_id }.encode(&mut self.properties);
    }

    /// Appends a message with the properties that were made for it and the payload that `write` appends; the refusal otherwise.
    pub(super) fn post(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        posting: &MessageToSend,
        write: impl FnOnce(&ShardConfig, &SessionConfig, &mut Vec<u8>),
    ) -> Result<(), Refusal> {
        let MessageToSend { sender, message, header_at } = *posting;
        let payload_bytes = message.payload_bytes as usize;
        let bytes = self.properties.len() + message_bytes(payload_bytes);
        let part_bytes = self.frame_bytes - MOST_TRANSFER_BYTES;
        if bytes > part_bytes && header_end(self.properties.len(), payload_bytes, header_at) > part_bytes {
            return Err(Refusal::TooLarge(part_bytes as u32));
        }
        let transfers = u32::try_from(bytes.div_ceil(part_bytes)).unwrap_or(u32::MAX);
        let handle = self.handle_of_sender(sender);
        let outgoing = &mut self.outgoing;
        outgoing.admit(sender, bytes, transfers)?;
        let delivery = outgoing.count(sender, transfers);
        let settled = outgoing.senders[usize::from(sender)].settles;
        let mut tag = 0;
        if !settled {
            tag = outgoing.in_flight.add(message, Qos::AtLeastOnce);
            outgoing.unsettled.push(delivery, tag, sender);
        }
        let delivery_tag = delivery.to_be_bytes();
        let first = Transfer {
            handle,
            delivery_id: Some(delivery),
            delivery_tag: Some(&delivery_tag),
            settled: Some(settled),
            more: transfers > 1,
            aborted: false,
            payload: &[],
        };
        let entry =
            outbox::Message { token: message.token(), timing: message.timing, tag, repeated: false, withheld: false };
        let (config, session, properties) = (&shared.config, &link.config, &self.properties);
        let content = |out: &mut Vec<u8>| {
            let start = out.len();
            out.extend_from_slice(properties);
            encode_data_front(payload_bytes, out);
            let at = out.len();
            write(config, session, out);
            header_at.map_or(at, |header_at| start + header_at)
        };
        link.outbox.append_message(&mut shared.pool, entry, |out| {
            if transfers > 1 {
                let mut whole = Vec::with_capacity(bytes);
                let header_at = content(&mut whole);
                append_parts(&whole, header_at, &first, part_bytes, out)
            } else {
                first.encode_front(CHANNEL, bytes, out);
                content(out)
            }
        });
        Ok(())
    }

    /// Handles the outcome of messages that pubmark sent.
    pub(super) fn on_disposition(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        disposition: &Disposition<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let Disposition { role, first, last, settled, state } = *disposition;
        if role == Role::Sender {
            // Of messages to us, which we have settled when we accepted them.
            return Ok(());
        }
        if (last.wrapping_sub(first) as i32) < 0 {
            return Err(Cause::Protocol(format!("a disposition of deliveries {first} to {last}")));
        }
        if (last.wrapping_sub(self.outgoing.next_delivery) as i32) >= 0 {
            return Err(Cause::Protocol(format!("a disposition of delivery {last}, which was never sent")));
        }
        let Some(outcome) = outcome(state, settled)? else { return Ok(()) };
        let in_flight = &mut self.outgoing.in_flight;
        self.outgoing.unsettled.settle(first, last, |tag| {
            if in_flight.get(tag).is_some_and(|entry| entry.progress == Progress::Handed) {
                return Err(Cause::Protocol("an outcome of a message that is not written yet".to_owned()));
            }
            if let Some(entry) = in_flight.remove(tag) {
                sink.event(link.id, Event::Acknowledged { token: entry.token(), outcome: outcome.clone() });
            }
            Ok(())
        })?;
        if !settled {
            // It waits for us to forget it, too.
            let ours = Disposition { role: Role::Sender, first, last, settled: true, state: None };
            link.respond(shared, |out| ours.encode(CHANNEL, out));
        }
        Ok(())
    }
}

/// Appends the fields of a JSON body that selectors name; none of a body that is no JSON.
fn append_fields(fields: &SelectorFields, body: &[u8], section: &mut ApplicationProperties<'_>) {
    // Checked before the run for every device whose messages a selector filters.
    let _ = fields.visit(body, |name, value| match value {
        Scalar::Number(number) => section.double(name, number + 0.0),
        Scalar::Text(text) => section.text(name, text),
        Scalar::Truth(truth) => section.boolean(name, *truth),
    });
}

/// Bytes of a message from its beginning to behind its header, at most: the header is completed when the message is written, and so
/// must be in its first part.
fn header_end(properties_bytes: usize, payload_bytes: usize, header_at: Option<usize>) -> usize {
    let front = message_bytes(payload_bytes) - payload_bytes;
    header_at.map_or(properties_bytes + front + REACTION.min(payload_bytes), |at| at + LONGEST_TEXT)
}

/// Appends a message that is larger than the server's frames, in parts of `part_bytes`. Its payload's header is at `header_at`
/// in it, and in the first part; returns where in `out`.
fn append_parts(message: &[u8], header_at: usize, first: &Transfer<'_>, part_bytes: usize, out: &mut Vec<u8>) -> usize {
    let mut parts = message.chunks(part_bytes);
    let payload = parts.next().unwrap_or(&[]);
    Transfer { payload, ..*first }.encode(CHANNEL, out);
    let at = out.len() - payload.len() + header_at;
    let mut left = parts.len();
    for payload in parts {
        left -= 1;
        let head = Transfer { delivery_id: None, delivery_tag: None, settled: None, ..*first };
        Transfer { more: left > 0, payload, ..head }.encode(CHANNEL, out);
    }
    at
}

/// The outcome of a message that pubmark sent in this state; `None` if it is still to come.
fn outcome(state: Option<State<'_>>, settled: bool) -> Result<Option<Result<(), Reason>>, Cause> {
    let refused = |words: &'static str| Ok(Some(Err(Reason::words(words))));
    match state {
        Some(State::Accepted) => Ok(Some(Ok(()))),
        Some(State::Rejected(Some(error))) => Ok(Some(Err(Reason::words(format!("rejected: {error}"))))),
        Some(State::Rejected(None)) => refused("rejected"),
        Some(State::Released) => refused("released"),
        Some(State::Modified { undeliverable_here: true, .. }) => refused("modified: undeliverable here"),
        Some(State::Modified { failed: true, .. }) => refused("modified: delivery failed"),
        Some(State::Modified { .. }) => refused("modified"),
        Some(State::Other(code)) => Err(Cause::Protocol(format!("a disposition with the unknown state {code:#x}"))),
        None | Some(State::Received) if settled => refused("settled without an outcome"),
        None | Some(State::Received) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::header_end;

    #[test]
    fn a_header_ends_behind_the_properties_or_within_them() {
        assert_eq!(header_end(0, 1_000, None), 8 + 32);
        assert_eq!(header_end(3_200, 20, None), 3_200 + 5 + 20);
        assert_eq!(header_end(3_200, 1_000, Some(30)), 30 + 64);
    }
}
