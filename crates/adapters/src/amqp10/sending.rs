//! Messages on their way to the server: handed over, in parts if they are large, and what became of them.

use pubmark_model::qos::Qos;
use pubmark_protocol::clients::Outgoing as Message;
use pubmark_protocol::events::{Cause, Said, Sink, Token};
use pubmark_protocol::header::COMPACT;
use pubmark_protocol::outbox;
use pubmark_wire::amqp10::{Disposition, MOST_TRANSFER_BYTES, Role, State, Transfer, encode_data_front, message_bytes};

use super::opening::CHANNEL;
use super::session::Amqp10;
use crate::connection::{Link, Progress, Refusal, Sending, Shared};
use crate::payload;

impl Amqp10 {
    /// Appends a message, or says why not.
    pub(super) fn publish(&mut self, link: &mut Link, shared: &mut Shared, message: Message) -> Result<(), Refusal> {
        let payload_bytes = (message.payload_bytes as usize).max(COMPACT);
        let bytes = message_bytes(payload_bytes);
        let part_bytes = self.frame_bytes - MOST_TRANSFER_BYTES;
        let transfers = u32::try_from(bytes.div_ceil(part_bytes)).unwrap_or(u32::MAX);
        let outgoing = &mut self.outgoing;
        let sender = outgoing.sender_of(message.publication);
        outgoing.admit(sender, bytes, transfers)?;
        let delivery = outgoing.count(sender, transfers);
        let settled = outgoing.senders[usize::from(sender)].settles;
        let mut tag = 0;
        if !settled {
            let token = Token { publication: message.publication, sequence: message.sequence };
            tag = outgoing.in_flight.add(token, message.due_ns, payload_bytes as u32, Qos::AtLeastOnce);
            outgoing.unsettled.push(delivery, tag);
        }
        let delivery_tag = delivery.to_be_bytes();
        let first = Transfer {
            handle: u32::from(sender),
            delivery_id: Some(delivery),
            delivery_tag: Some(&delivery_tag),
            settled: Some(settled),
            more: transfers > 1,
            aborted: false,
            payload: &[],
        };
        let sending = Sending { tag, payload_bytes, repeated: false };
        if transfers > 1 {
            append_parts(link, shared, message, sending, &first, part_bytes);
        } else {
            let front = |out: &mut Vec<u8>| {
                first.encode_front(CHANNEL, bytes, out);
                encode_data_front(payload_bytes, out);
            };
            link.append_message(shared, message, sending, front, &[]);
        }
        Ok(())
    }

    /// What became of messages of ours.
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
                sink.acknowledged(link.id, entry.token, outcome.clone());
            }
            Ok(())
        })?;
        if !settled {
            // It waits for us to forget it, too.
            let ours = Disposition { role: Role::Sender, first, last, settled: true, state: None };
            link.outbox.append(&mut shared.pool, |out| ours.encode(CHANNEL, out));
        }
        Ok(())
    }
}

/// Appends a message that is larger than the server's frames, in parts of `part_bytes`.
fn append_parts(
    link: &mut Link,
    shared: &mut Shared,
    message: Message,
    sending: Sending,
    first: &Transfer<'_>,
    part_bytes: usize,
) {
    let Message { publication, sequence, due_ns, .. } = message;
    let Sending { tag, payload_bytes, repeated } = sending;
    let entry = outbox::Message { token: Token { publication, sequence }, due_ns, tag, repeated };
    let (config, publication) = (&shared.config, &link.config.publications[usize::from(publication)]);
    link.outbox.append_message(&mut shared.pool, entry, |out| {
        let mut whole = Vec::with_capacity(message_bytes(payload_bytes));
        encode_data_front(payload_bytes, &mut whole);
        let front_bytes = whole.len();
        payload::append(config, publication, sequence, due_ns, payload_bytes, &mut whole);
        let mut parts = whole.chunks(part_bytes);
        let payload = parts.next().unwrap_or(&[]);
        Transfer { payload, ..*first }.encode(CHANNEL, out);
        let at = out.len() - payload.len() + front_bytes;
        let mut left = parts.len();
        for payload in parts {
            left -= 1;
            let head = Transfer { delivery_id: None, delivery_tag: None, settled: None, ..*first };
            Transfer { more: left > 0, payload, ..head }.encode(CHANNEL, out);
        }
        at
    });
}

/// What a state says of a message of ours; `None` if its outcome is still to come.
fn outcome(state: Option<State<'_>>, settled: bool) -> Result<Option<Result<(), Said>>, Cause> {
    let refused = |words: &'static str| Ok(Some(Err(Said::words(words))));
    match state {
        Some(State::Accepted) => Ok(Some(Ok(()))),
        Some(State::Rejected(Some(error))) => Ok(Some(Err(Said::words(format!("rejected: {error}"))))),
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
