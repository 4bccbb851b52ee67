//! Any packet.

use super::ack::{Ack, decode_ack};
use super::connack::{Connack, decode_connack};
use super::connect::{Connect, decode_connect};
use super::error::DecodeError;
use super::frame::Frame;
use super::leave::{Auth, Disconnect, decode_auth, decode_disconnect, decode_empty};
use super::packet_type::{PacketType, Version};
use super::publish::{Publish, decode_publish};
use super::suback::{Suback, Unsuback, decode_suback, decode_unsuback};
use super::subscribe::{Subscribe, decode_subscribe};
use super::unsubscribe::{Unsubscribe, decode_unsubscribe};

/// A packet of any of the fifteen types; the four acknowledgements share a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// CONNECT.
    Connect(Connect<'a>),
    /// CONNACK.
    Connack(Connack<'a>),
    /// PUBLISH.
    Publish(Publish<'a>),
    /// PUBACK, PUBREC, PUBREL or PUBCOMP.
    Ack(Ack<'a>),
    /// SUBSCRIBE.
    Subscribe(Subscribe<'a>),
    /// SUBACK.
    Suback(Suback<'a>),
    /// UNSUBSCRIBE.
    Unsubscribe(Unsubscribe<'a>),
    /// UNSUBACK.
    Unsuback(Unsuback<'a>),
    /// PINGREQ.
    Pingreq,
    /// PINGRESP.
    Pingresp,
    /// DISCONNECT.
    Disconnect(Disconnect<'a>),
    /// AUTH.
    Auth(Auth<'a>),
}

/// Reads a packet of any type. `version` is the connection's; a CONNECT brings its own.
///
/// # Errors
/// A [`DecodeError`] that says what is wrong with it.
pub fn decode<'a>(version: Version, frame: &Frame<'a>) -> Result<Packet<'a>, DecodeError> {
    let packet = frame.packet_type().ok_or(DecodeError::ReservedType)?;
    Ok(match packet {
        PacketType::Connect => Packet::Connect(decode_connect(frame)?),
        PacketType::Connack => Packet::Connack(decode_connack(version, frame)?),
        PacketType::Publish => Packet::Publish(decode_publish(version, frame)?),
        PacketType::Puback | PacketType::Pubrec | PacketType::Pubrel | PacketType::Pubcomp => {
            Packet::Ack(decode_ack(version, frame)?)
        }
        PacketType::Subscribe => Packet::Subscribe(decode_subscribe(version, frame)?),
        PacketType::Suback => Packet::Suback(decode_suback(version, frame)?),
        PacketType::Unsubscribe => Packet::Unsubscribe(decode_unsubscribe(version, frame)?),
        PacketType::Unsuback => Packet::Unsuback(decode_unsuback(version, frame)?),
        PacketType::Pingreq => {
            decode_empty(packet, frame)?;
            Packet::Pingreq
        }
        PacketType::Pingresp => {
            decode_empty(packet, frame)?;
            Packet::Pingresp
        }
        PacketType::Disconnect => Packet::Disconnect(decode_disconnect(version, frame)?),
        PacketType::Auth => Packet::Auth(decode_auth(version, frame)?),
    })
}
