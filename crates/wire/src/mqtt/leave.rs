//! The small packets: DISCONNECT and AUTH (MQTT 5.0 §3.14, §3.15), PINGREQ and PINGRESP.

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::reason;
use super::writer::put_fixed_header;

/// Last packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// Reason code; 0 in 3.1.1.
    pub reason: u8,
    /// Properties (5.0).
    pub properties: Properties<'a>,
}

/// A step of an extended authentication (5.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Reason code.
    pub reason: u8,
    /// Properties.
    pub properties: Properties<'a>,
}

/// Reads a DISCONNECT, whose type is known.
pub(crate) fn decode_disconnect<'a>(version: Version, frame: &Frame<'a>) -> Result<Disconnect<'a>, DecodeError> {
    let (reason, properties) = read(version, PacketType::Disconnect, frame)?;
    Ok(Disconnect { reason, properties })
}

/// Reads an AUTH, whose type is known.
pub(crate) fn decode_auth<'a>(version: Version, frame: &Frame<'a>) -> Result<Auth<'a>, DecodeError> {
    if version == Version::V311 {
        return Err(DecodeError::NotInVersion { packet: PacketType::Auth });
    }
    let (reason, properties) = read(version, PacketType::Auth, frame)?;
    Ok(Auth { reason, properties })
}

/// Reads a packet without a body.
pub(crate) fn decode_empty(packet: PacketType, frame: &Frame<'_>) -> Result<(), DecodeError> {
    if frame.flags() != 0 {
        return Err(DecodeError::Flags { packet, flags: frame.flags() });
    }
    Reader::new(packet, frame.body).end()
}

fn read<'a>(version: Version, packet: PacketType, frame: &Frame<'a>) -> Result<(u8, Properties<'a>), DecodeError> {
    if frame.flags() != 0 {
        return Err(DecodeError::Flags { packet, flags: frame.flags() });
    }
    let mut reader = Reader::new(packet, frame.body);
    if reader.rest.is_empty() || version == Version::V311 {
        reader.end()?;
        return Ok((reason::SUCCESS, Properties::NONE));
    }
    let code = reader.byte("reason code")?;
    if !reason::is_carried_by(code, packet) {
        return Err(reader.value("reason code", code.into()));
    }
    let properties = if reader.rest.is_empty() {
        Properties::NONE
    } else {
        Properties::read(version, &mut reader, PropertyContext::Packet(packet))?
    };
    reader.end()?;
    Ok((code, properties))
}

/// Appends a DISCONNECT in its shortest form; in 3.1.1 without reason.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_disconnect(version: Version, disconnect: &Disconnect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    write(version, PacketType::Disconnect, disconnect.reason, &disconnect.properties, out)
}

/// Appends an AUTH in its shortest form.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_auth(version: Version, auth: &Auth<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if version == Version::V311 {
        return Err(EncodeError::NotInVersion { packet: PacketType::Auth });
    }
    write(version, PacketType::Auth, auth.reason, &auth.properties, out)
}

fn write(
    version: Version,
    packet: PacketType,
    code: u8,
    properties: &Properties<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if version == Version::V311 || (code == reason::SUCCESS && properties.is_empty()) {
        return put_fixed_header(packet.first_byte(0), 0, out);
    }
    if properties.is_empty() {
        put_fixed_header(packet.first_byte(0), 1, out)?;
        out.push(code);
        return Ok(());
    }
    put_fixed_header(packet.first_byte(0), 1 + properties.encoded_bytes(version)?, out)?;
    out.push(code);
    properties.put(version, out);
    Ok(())
}

/// Appends a PINGREQ.
pub fn encode_pingreq(out: &mut Vec<u8>) {
    out.extend_from_slice(&[PacketType::Pingreq.first_byte(0), 0]);
}

/// Appends a PINGRESP.
pub fn encode_pingresp(out: &mut Vec<u8>) {
    out.extend_from_slice(&[PacketType::Pingresp.first_byte(0), 0]);
}
