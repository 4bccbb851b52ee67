//! CONNECT: a client requests a session (MQTT 5.0 §3.1, MQTT 3.1.1 §3.1).

use pubmark_model::qos::Qos;

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::writer::{field_bytes, put_field, put_fixed_header, put_two};

const PACKET: PacketType = PacketType::Connect;
const NAME: &str = "MQTT";

const CLEAN_START: u8 = 0b0000_0010;
const WILL: u8 = 0b0000_0100;
const WILL_QOS_SHIFT: u8 = 3;
const WILL_RETAIN: u8 = 0b0010_0000;
const PASSWORD: u8 = 0b0100_0000;
const USER_NAME: u8 = 0b1000_0000;

/// A message that the server publishes when the connection ends without a goodbye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// Delivery level.
    pub qos: Qos,
    /// The server retains it.
    pub retain: bool,
    /// Where to.
    pub topic: &'a str,
    /// The payload, at most 65,535 B.
    pub payload: &'a [u8],
    /// Properties (5.0).
    pub properties: Properties<'a>,
}

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// The version of the connection.
    pub version: Version,
    /// Clean session (3.1.1), clean start (5.0).
    pub clean_start: bool,
    /// Seconds of silence after which the connection counts as dead (times one and a half); 0 for never.
    pub keep_alive_s: u16,
    /// Client identifier; empty to be given one.
    pub client_id: &'a str,
    /// The will.
    pub will: Option<Will<'a>>,
    /// User name.
    pub user: Option<&'a str>,
    /// Password, any bytes; needs a user name in 3.1.1.
    pub password: Option<&'a [u8]>,
    /// Properties (5.0).
    pub properties: Properties<'a>,
}

/// Reads a CONNECT of either version.
///
/// # Errors
/// A [`DecodeError`] with the reason; [`DecodeError::ProtocolLevel`] for unsupported versions.
pub fn decode_connect<'a>(frame: &Frame<'a>) -> Result<Connect<'a>, DecodeError> {
    let found = frame.packet_type().ok_or(DecodeError::ReservedType)?;
    if found != PACKET {
        return Err(DecodeError::OtherType { expected: PACKET, found });
    }
    if frame.flags() != 0 {
        return Err(DecodeError::Flags { packet: PACKET, flags: frame.flags() });
    }
    let mut reader = Reader::new(PACKET, frame.body);
    let name = reader.text("protocol name")?;
    let level = reader.byte("protocol level")?;
    let version = match (name, level) {
        (NAME, 4) => Version::V311,
        (NAME, 5) => Version::V5,
        (NAME | "MQIsdp", _) => return Err(DecodeError::ProtocolLevel { level }),
        _ => return Err(DecodeError::ProtocolName),
    };
    let flags = reader.byte("connect flags")?;
    check_flags(version, flags).map_err(|()| reader.value("connect flags", flags.into()))?;
    let keep_alive_s = reader.two("keep alive")?;
    let properties = Properties::read(version, &mut reader, PropertyContext::Packet(PACKET))?;
    let client_id = reader.text("client identifier")?;
    let will = if flags & WILL != 0 { Some(read_will(version, flags, &mut reader)?) } else { None };
    let user = if flags & USER_NAME != 0 { Some(reader.text("user name")?) } else { None };
    let password = if flags & PASSWORD != 0 { Some(reader.binary("password")?) } else { None };
    reader.end()?;
    let clean_start = flags & CLEAN_START != 0;
    Ok(Connect { version, clean_start, keep_alive_s, client_id, will, user, password, properties })
}

fn check_flags(version: Version, flags: u8) -> Result<(), ()> {
    let will_qos = flags >> WILL_QOS_SHIFT & 3;
    let reserved = flags & 1 != 0;
    let will_parts_without_will = flags & WILL == 0 && (will_qos != 0 || flags & WILL_RETAIN != 0);
    let lonely_password = version == Version::V311 && flags & PASSWORD != 0 && flags & USER_NAME == 0;
    if reserved || will_qos == 3 || will_parts_without_will || lonely_password { Err(()) } else { Ok(()) }
}

fn read_will<'a>(version: Version, flags: u8, reader: &mut Reader<'a>) -> Result<Will<'a>, DecodeError> {
    let level = flags >> WILL_QOS_SHIFT & 3;
    let qos = Qos::from_level(level).ok_or_else(|| reader.value("will QoS", level.into()))?;
    let properties = Properties::read(version, reader, PropertyContext::Will)?;
    let topic = reader.topic("will topic")?;
    let payload = reader.binary("will payload")?;
    Ok(Will { qos, retain: flags & WILL_RETAIN != 0, topic, payload, properties })
}

/// Appends a CONNECT.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_connect(connect: &Connect<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let version = connect.version;
    let mut flags = if connect.clean_start { CLEAN_START } else { 0 };
    let mut remaining = field_bytes(NAME.as_bytes())? + 1 + 1 + 2;
    remaining += connect.properties.encoded_bytes(version)? + field_bytes(connect.client_id.as_bytes())?;
    if let Some(will) = &connect.will {
        flags |= WILL | will.qos.level() << WILL_QOS_SHIFT | if will.retain { WILL_RETAIN } else { 0 };
        remaining += will.properties.encoded_bytes(version)?;
        remaining += field_bytes(will.topic.as_bytes())? + field_bytes(will.payload)?;
    }
    if let Some(user) = connect.user {
        flags |= USER_NAME;
        remaining += field_bytes(user.as_bytes())?;
    }
    if let Some(password) = connect.password {
        flags |= PASSWORD;
        remaining += field_bytes(password)?;
    }
    put_fixed_header(PACKET.first_byte(0), remaining, out)?;
    put_field(NAME.as_bytes(), out);
    out.push(version.level());
    out.push(flags);
    put_two(connect.keep_alive_s, out);
    connect.properties.put(version, out);
    put_field(connect.client_id.as_bytes(), out);
    if let Some(will) = &connect.will {
        will.properties.put(version, out);
        put_field(will.topic.as_bytes(), out);
        put_field(will.payload, out);
    }
    if let Some(user) = connect.user {
        put_field(user.as_bytes(), out);
    }
    if let Some(password) = connect.password {
        put_field(password, out);
    }
    Ok(())
}
