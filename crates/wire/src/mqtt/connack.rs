//! CONNACK: the server's response to CONNECT (MQTT 5.0 §3.2, MQTT 3.1.1 §3.2).

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::reason;
use super::writer::put_fixed_header;

const PACKET: PacketType = PacketType::Connack;
/// Highest return code of MQTT 3.1.1.
const LAST_RETURN_CODE: u8 = 5;

/// The server's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connack<'a> {
    /// The server still had the session.
    pub session_present: bool,
    /// 0 for accepted; otherwise a reason code (5.0) or return code (3.1.1).
    pub code: u8,
    /// Properties (5.0).
    pub properties: Properties<'a>,
}

/// Reads a CONNACK.
///
/// # Errors
/// A [`DecodeError`] with the reason; [`DecodeError::OtherType`] for another packet.
pub fn decode_connack<'a>(version: Version, frame: &Frame<'a>) -> Result<Connack<'a>, DecodeError> {
    let found = frame.packet_type().ok_or(DecodeError::ReservedType)?;
    if found != PACKET {
        return Err(DecodeError::OtherType { expected: PACKET, found });
    }
    if frame.flags() != 0 {
        return Err(DecodeError::Flags { packet: PACKET, flags: frame.flags() });
    }
    let mut reader = Reader::new(PACKET, frame.body);
    let flags = reader.byte("acknowledge flags")?;
    let code = reader.byte("code")?;
    let known = match version {
        Version::V311 => code <= LAST_RETURN_CODE,
        Version::V5 => reason::is_carried_by(code, PACKET),
    };
    if !known {
        return Err(reader.value("code", code.into()));
    }
    // A refusal has no session (MQTT 5.0 §3.2.2.1.1).
    if flags > 1 || (flags == 1 && code != 0) {
        return Err(reader.value("acknowledge flags", flags.into()));
    }
    // A server that refuses an unsupported version may respond in 3.1.1.
    let properties = if version == Version::V5 && code != 0 && reader.rest.is_empty() {
        Properties::NONE
    } else {
        Properties::read(version, &mut reader, PropertyContext::Packet(PACKET))?
    };
    reader.end()?;
    Ok(Connack { session_present: flags == 1, code, properties })
}

/// Appends a CONNACK.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_connack(version: Version, connack: &Connack<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    put_fixed_header(PACKET.first_byte(0), 2 + connack.properties.encoded_bytes(version)?, out)?;
    out.push(connack.session_present.into());
    out.push(connack.code);
    connack.properties.put(version, out);
    Ok(())
}
