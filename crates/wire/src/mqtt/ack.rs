//! PUBACK, PUBREC, PUBREL, PUBCOMP: the four steps behind a message (MQTT 5.0 §3.4 to §3.7).

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::reason;
use super::writer::{put_fixed_header, put_two};

/// Which of the four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AckKind {
    /// Acknowledges a message at QoS 1.
    Puback,
    /// A message at QoS 2 was received.
    Pubrec,
    /// Its identifier may be released.
    Pubrel,
    /// It was released.
    Pubcomp,
}

impl AckKind {
    /// The packet's type.
    pub fn packet_type(self) -> PacketType {
        match self {
            AckKind::Puback => PacketType::Puback,
            AckKind::Pubrec => PacketType::Pubrec,
            AckKind::Pubrel => PacketType::Pubrel,
            AckKind::Pubcomp => PacketType::Pubcomp,
        }
    }

    /// The kind of a packet; `None` for packets of other types.
    pub fn of(packet: PacketType) -> Option<AckKind> {
        match packet {
            PacketType::Puback => Some(AckKind::Puback),
            PacketType::Pubrec => Some(AckKind::Pubrec),
            PacketType::Pubrel => Some(AckKind::Pubrel),
            PacketType::Pubcomp => Some(AckKind::Pubcomp),
            _ => None,
        }
    }

    /// Flags of the fixed header: PUBREL has 0b0010 for historic reasons.
    fn flags(self) -> u8 {
        if self == AckKind::Pubrel { 0b0010 } else { 0 }
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Which of the four.
    pub kind: AckKind,
    /// Identifier of the message, not 0.
    pub packet_id: u16,
    /// Reason code; 0 in 3.1.1.
    pub reason: u8,
    /// Properties (5.0).
    pub properties: Properties<'a>,
}

impl Ack<'_> {
    /// An acknowledgement without properties.
    pub fn new(kind: AckKind, packet_id: u16, reason: u8) -> Ack<'static> {
        Ack { kind, packet_id, reason, properties: Properties::NONE }
    }
}

/// Reads a PUBACK, PUBREC, PUBREL or PUBCOMP.
///
/// # Errors
/// A [`DecodeError`] with the reason; [`DecodeError::OtherType`] (with PUBACK as the expected type) for a packet of another
/// type.
pub fn decode_ack<'a>(version: Version, frame: &Frame<'a>) -> Result<Ack<'a>, DecodeError> {
    let packet = frame.packet_type().ok_or(DecodeError::ReservedType)?;
    let Some(kind) = AckKind::of(packet) else {
        return Err(DecodeError::OtherType { expected: PacketType::Puback, found: packet });
    };
    if frame.flags() != kind.flags() {
        return Err(DecodeError::Flags { packet, flags: frame.flags() });
    }
    let mut reader = Reader::new(packet, frame.body);
    let packet_id = reader.packet_id()?;
    let mut ack = Ack::new(kind, packet_id, reason::SUCCESS);
    if version == Version::V5 && !reader.rest.is_empty() {
        ack.reason = reader.byte("reason code")?;
        if !reason::is_carried_by(ack.reason, packet) {
            return Err(reader.value("reason code", ack.reason.into()));
        }
        // Without properties their length may be left out too (MQTT 5.0 §3.4.2.2.1).
        if !reader.rest.is_empty() {
            ack.properties = Properties::read(version, &mut reader, PropertyContext::Packet(packet))?;
        }
    }
    reader.end()?;
    Ok(ack)
}

/// Appends an acknowledgement in its shortest form. MQTT 3.1.1 has no reason code here, so a refusal cannot be encoded.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_ack(version: Version, ack: &Ack<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if ack.packet_id == 0 {
        return Err(EncodeError::PacketId);
    }
    let with_properties = version == Version::V5 && !ack.properties.is_empty();
    let with_reason = version == Version::V5 && (with_properties || ack.reason != reason::SUCCESS);
    let properties_bytes = if with_properties { ack.properties.encoded_bytes(version)? } else { 0 };
    let first_byte = ack.kind.packet_type().first_byte(ack.kind.flags());
    put_fixed_header(first_byte, 2 + usize::from(with_reason) + properties_bytes, out)?;
    put_two(ack.packet_id, out);
    if with_reason {
        out.push(ack.reason);
    }
    if with_properties {
        ack.properties.put(version, out);
    }
    Ok(())
}
