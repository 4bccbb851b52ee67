//! Replies to requests (MQTT 5.0 §4.10): to the response topic that the request named, with its correlation data.

use pubmark_model::qos::Qos;
use pubmark_protocol::requests::OutgoingReply;
use pubmark_wire::mqtt::{
    EncodeError, MAXIMUM_REMAINING_LENGTH, Properties, Property, PublishHead, Version, encode_publish_head,
};

use super::sending::length_bytes;
use super::session::Mqtt;
use super::version::ProtocolVersion;
use crate::connection::{Blocked, Link, Refusal, Shared};
use crate::payload;

impl<V: ProtocolVersion> Mqtt<V> {
    /// Appends a reply; the refusal otherwise.
    pub(super) fn publish_reply(
        &mut self,
        link: &mut Link,
        shared: &mut Shared,
        answer: &OutgoingReply<'_>,
    ) -> Result<(), Refusal> {
        let qos = answer.qos.min(self.maximum_qos);
        let acknowledged = qos != Qos::BestEffort;
        if acknowledged && !self.in_flight.has_room() {
            return Err(Refusal::Blocked(Blocked::Window));
        }
        let payload_bytes = payload::reply_bytes(answer);
        let (bytes, remaining) = packet_bytes::<V>(answer, acknowledged, payload_bytes);
        if answer.to.address.len() > usize::from(u16::MAX) || remaining > MAXIMUM_REMAINING_LENGTH {
            return Err(Refusal::TooLarge(MAXIMUM_REMAINING_LENGTH as u32));
        }
        if bytes > self.maximum_packet_bytes as usize {
            return Err(Refusal::TooLarge(self.maximum_packet_bytes));
        }
        let packet_id = acknowledged.then(|| self.in_flight.add(answer.message(), qos));
        link.append_reply(
            shared,
            answer,
            packet_id.unwrap_or(0),
            |out| encode::<V>(answer, qos, packet_id, payload_bytes, out).expect("lengths were checked"),
            &[],
        );
        Ok(())
    }
}

/// Bytes of a whole reply, and those after its fixed header; its correlation is short
/// ([`pubmark_protocol::requests::LONGEST_CORRELATION_BYTES`]), so the length of its properties has one byte.
fn packet_bytes<V: ProtocolVersion>(
    answer: &OutgoingReply<'_>,
    acknowledged: bool,
    payload_bytes: usize,
) -> (usize, usize) {
    let mark_bytes = if answer.to.correlation.is_empty() { 0 } else { 3 + answer.to.correlation.len() };
    let property_bytes = if V::VERSION == Version::V5 { 1 + mark_bytes } else { 0 };
    let identifier_bytes = if acknowledged { 2 } else { 0 };
    let remaining = 2 + answer.to.address.len() + identifier_bytes + property_bytes + payload_bytes;
    (1 + length_bytes(remaining) + remaining, remaining)
}

fn encode<V: ProtocolVersion>(
    answer: &OutgoingReply<'_>,
    qos: Qos,
    packet_id: Option<u16>,
    payload_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let correlation = [Property::CorrelationData(answer.to.correlation)];
    let head = PublishHead {
        dup: false,
        qos,
        retain: false,
        topic: answer.to.address,
        packet_id,
        properties: Properties::new(if answer.to.correlation.is_empty() { &[] } else { &correlation }),
    };
    encode_publish_head(V::VERSION, &head, payload_bytes, out)
}
