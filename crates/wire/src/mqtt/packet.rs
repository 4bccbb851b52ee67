//! Any packet.

use super::ack::{Ack, decode_ack, encode_ack};
use super::connack::{Connack, decode_connack, encode_connack};
use super::connect::{Connect, decode_connect, encode_connect};
use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::leave::{Auth, Disconnect, decode_auth, decode_disconnect, decode_empty};
use super::leave::{encode_auth, encode_disconnect, encode_pingreq, encode_pingresp};
use super::packet_type::{PacketType, Version};
use super::publish::{Publish, decode_publish, encode_publish};
use super::suback::{Suback, Unsuback, decode_suback, decode_unsuback, encode_suback, encode_unsuback};
use super::subscribe::{Subscribe, decode_subscribe, encode_subscribe};
use super::unsubscribe::{Unsubscribe, decode_unsubscribe, encode_unsubscribe};

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

/// Reads a packet of any type. `version` is the connection's; a CONNECT has its own.
///
/// # Errors
/// A [`DecodeError`] with the reason.
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

/// Appends a packet of any type. `version` is the connection's; a CONNECT brings its own.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode(version: Version, packet: &Packet<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match packet {
        Packet::Connect(connect) => encode_connect(connect, out),
        Packet::Connack(connack) => encode_connack(version, connack, out),
        Packet::Publish(publish) => encode_publish(version, publish, out),
        Packet::Ack(ack) => encode_ack(version, ack, out),
        Packet::Subscribe(subscribe) => encode_subscribe(version, subscribe, out),
        Packet::Suback(suback) => encode_suback(version, suback, out),
        Packet::Unsubscribe(unsubscribe) => encode_unsubscribe(version, unsubscribe, out),
        Packet::Unsuback(unsuback) => encode_unsuback(version, unsuback, out),
        Packet::Pingreq => {
            encode_pingreq(out);
            Ok(())
        }
        Packet::Pingresp => {
            encode_pingresp(out);
            Ok(())
        }
        Packet::Disconnect(disconnect) => encode_disconnect(version, disconnect, out),
        Packet::Auth(auth) => encode_auth(version, auth, out),
    }
}
