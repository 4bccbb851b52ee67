//! PUBLISH: a message (MQTT 5.0 §3.3).

use pubmark_model::qos::Qos;

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::text::check_topic;
use super::writer::{field_bytes, put_field, put_fixed_header, put_two};

const RETAIN: u8 = 0b0001;
const QOS_SHIFT: u8 = 1;
const DUP: u8 = 0b1000;

/// A message without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishHead<'a> {
    /// Sent before and perhaps received.
    pub dup: bool,
    /// Delivery level.
    pub qos: Qos,
    /// The server must retain it; towards a subscriber: it is a retained message.
    pub retain: bool,
    /// Where to; empty only in 5.0 with a topic alias.
    pub topic: &'a str,
    /// Not 0 at QoS 1 and 2, absent at QoS 0.
    pub packet_id: Option<u16>,
    /// Properties (5.0).
    pub properties: Properties<'a>,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Everything before the payload.
    pub head: PublishHead<'a>,
    /// The payload.
    pub payload: &'a [u8],
}

/// Reads a PUBLISH.
///
/// # Errors
/// A [`DecodeError`] with the reason; [`DecodeError::OtherType`] for another packet.
#[inline]
pub fn decode_publish<'a>(version: Version, frame: &Frame<'a>) -> Result<Publish<'a>, DecodeError> {
    const PACKET: PacketType = PacketType::Publish;
    if frame.first_byte >> 4 != PACKET as u8 {
        let found = frame.packet_type().ok_or(DecodeError::ReservedType)?;
        return Err(DecodeError::OtherType { expected: PACKET, found });
    }
    let flags = frame.flags();
    let dup = flags & DUP != 0;
    let qos = match Qos::from_level(flags >> QOS_SHIFT & 3) {
        // The flag repeats nothing at QoS 0 (MQTT 5.0 §3.3.1.1).
        Some(qos) if !(dup && qos == Qos::BestEffort) => qos,
        _ => return Err(DecodeError::Flags { packet: PACKET, flags }),
    };
    let mut reader = Reader::new(PACKET, frame.body);
    let topic = reader.text("topic")?;
    let packet_id = if qos == Qos::BestEffort { None } else { Some(reader.packet_id()?) };
    let properties = Properties::read(version, &mut reader, PropertyContext::Packet(PACKET))?;
    if !check_topic(topic) && (!topic.is_empty() || properties.topic_alias().is_none()) {
        return Err(DecodeError::Topic { packet: PACKET, field: "topic" });
    }
    let head = PublishHead { dup, qos, retain: flags & RETAIN != 0, topic, packet_id, properties };
    Ok(Publish { head, payload: reader.rest })
}

/// Appends everything of a PUBLISH but its payload: the caller appends `payload_bytes` bytes behind it.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
#[inline]
pub fn encode_publish_head(
    version: Version,
    head: &PublishHead<'_>,
    payload_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let packet_id = match (head.qos, head.packet_id) {
        (Qos::BestEffort, None) => None,
        (Qos::AtLeastOnce | Qos::ExactlyOnce, Some(packet_id @ 1..)) => Some(packet_id),
        _ => return Err(EncodeError::PacketId),
    };
    let flags = u8::from(head.retain) | head.qos.level() << QOS_SHIFT | if head.dup { DUP } else { 0 };
    let remaining = field_bytes(head.topic.as_bytes())?
        + if packet_id.is_some() { 2 } else { 0 }
        + head.properties.encoded_bytes(version)?
        + payload_bytes;
    put_fixed_header(PacketType::Publish.first_byte(flags), remaining, out)?;
    put_field(head.topic.as_bytes(), out);
    if let Some(packet_id) = packet_id {
        put_two(packet_id, out);
    }
    head.properties.put(version, out);
    Ok(())
}

/// Appends a PUBLISH with its payload.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_publish(version: Version, publish: &Publish<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_publish_head(version, &publish.head, publish.payload.len(), out)?;
    out.extend_from_slice(publish.payload);
    Ok(())
}
