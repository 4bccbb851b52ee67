//! SUBACK and UNSUBACK: one code for each filter of the request (MQTT 5.0 §3.9, §3.11).

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::reason;
use super::writer::{put_fixed_header, put_two};

/// Response to SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suback<'a> {
    /// Identifier of the request, not 0.
    pub packet_id: u16,
    /// Properties (5.0).
    pub properties: Properties<'a>,
    /// For each filter the QoS granted, 0 to 2, or 0x80 and above for a refusal.
    pub codes: &'a [u8],
}

/// Response to UNSUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsuback<'a> {
    /// Identifier of the request, not 0.
    pub packet_id: u16,
    /// Properties (5.0).
    pub properties: Properties<'a>,
    /// For each filter a reason code; empty in 3.1.1.
    pub codes: &'a [u8],
}

/// Reads a SUBACK, whose type is known.
pub(crate) fn decode_suback<'a>(version: Version, frame: &Frame<'a>) -> Result<Suback<'a>, DecodeError> {
    let (packet_id, properties, codes) = read(version, PacketType::Suback, frame)?;
    Ok(Suback { packet_id, properties, codes })
}

/// Reads an UNSUBACK, whose type is known.
pub(crate) fn decode_unsuback<'a>(version: Version, frame: &Frame<'a>) -> Result<Unsuback<'a>, DecodeError> {
    let (packet_id, properties, codes) = read(version, PacketType::Unsuback, frame)?;
    Ok(Unsuback { packet_id, properties, codes })
}

fn read<'a>(
    version: Version,
    packet: PacketType,
    frame: &Frame<'a>,
) -> Result<(u16, Properties<'a>, &'a [u8]), DecodeError> {
    if frame.flags() != 0 {
        return Err(DecodeError::Flags { packet, flags: frame.flags() });
    }
    let mut reader = Reader::new(packet, frame.body);
    let packet_id = reader.packet_id()?;
    let properties = Properties::read(version, &mut reader, PropertyContext::Packet(packet))?;
    let codes = reader.rest;
    match (version, packet) {
        (Version::V311, PacketType::Unsuback) => reader.end()?,
        _ if codes.is_empty() => return Err(DecodeError::Missing { packet, field: "a reason code" }),
        _ => {}
    }
    let unknown = codes.iter().find(|&&code| match version {
        Version::V311 => !matches!(code, 0..=2 | 0x80),
        Version::V5 => !reason::is_carried_by(code, packet),
    });
    match unknown {
        Some(&code) => Err(reader.value("reason code", code.into())),
        None => Ok((packet_id, properties, codes)),
    }
}

/// Appends a SUBACK.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_suback(version: Version, suback: &Suback<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    write(version, PacketType::Suback, (suback.packet_id, &suback.properties, suback.codes), out)
}

/// Appends an UNSUBACK; in 3.1.1 without codes.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_unsuback(version: Version, unsuback: &Unsuback<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let codes = if version == Version::V311 { &[][..] } else { unsuback.codes };
    write(version, PacketType::Unsuback, (unsuback.packet_id, &unsuback.properties, codes), out)
}

fn write(
    version: Version,
    packet: PacketType,
    (packet_id, properties, codes): (u16, &Properties<'_>, &[u8]),
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if packet_id == 0 {
        return Err(EncodeError::PacketId);
    }
    put_fixed_header(packet.first_byte(0), 2 + properties.encoded_bytes(version)? + codes.len(), out)?;
    put_two(packet_id, out);
    properties.put(version, out);
    out.extend_from_slice(codes);
    Ok(())
}
