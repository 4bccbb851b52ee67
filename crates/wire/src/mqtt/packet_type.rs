//! The protocol's versions and the fifteen types of packets.

use std::fmt;

/// The version of MQTT of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// MQTT 3.1.1 (protocol level 4).
    V311,
    /// MQTT 5.0 (protocol level 5).
    V5,
}

impl Version {
    /// The protocol level that CONNECT carries.
    pub fn level(self) -> u8 {
        match self {
            Version::V311 => 4,
            Version::V5 => 5,
        }
    }
}

/// The type of a packet: the upper four bits of its first byte (MQTT 5.0 §2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    /// Client requests a session.
    Connect = 1,
    /// Server's response to CONNECT.
    Connack = 2,
    /// A message.
    Publish = 3,
    /// Acknowledges a message at QoS 1.
    Puback = 4,
    /// A message at QoS 2 was received.
    Pubrec = 5,
    /// Its identifier may be released.
    Pubrel = 6,
    /// It was released.
    Pubcomp = 7,
    /// Requests subscriptions.
    Subscribe = 8,
    /// Response to SUBSCRIBE.
    Suback = 9,
    /// Gives subscriptions up.
    Unsubscribe = 10,
    /// Response to UNSUBSCRIBE.
    Unsuback = 11,
    /// Keep-alive.
    Pingreq = 12,
    /// Response to PINGREQ.
    Pingresp = 13,
    /// Last packet of a connection.
    Disconnect = 14,
    /// Extended authentication (5.0 only).
    Auth = 15,
}

impl PacketType {
    /// All types in the order of their numbers.
    pub const ALL: [PacketType; 15] = [
        PacketType::Connect,
        PacketType::Connack,
        PacketType::Publish,
        PacketType::Puback,
        PacketType::Pubrec,
        PacketType::Pubrel,
        PacketType::Pubcomp,
        PacketType::Subscribe,
        PacketType::Suback,
        PacketType::Unsubscribe,
        PacketType::Unsuback,
        PacketType::Pingreq,
        PacketType::Pingresp,
        PacketType::Disconnect,
        PacketType::Auth,
    ];

    /// The type in a packet's first byte; `None` for the reserved number 0.
    pub fn of(first_byte: u8) -> Option<PacketType> {
        PacketType::ALL.get(usize::from(first_byte >> 4).wrapping_sub(1)).copied()
    }

    /// First byte of a packet of this type with these flags (lower four bits).
    pub(crate) fn first_byte(self, flags: u8) -> u8 {
        (self as u8) << 4 | flags
    }

    /// The name as the standard writes it.
    pub fn name(self) -> &'static str {
        match self {
            PacketType::Connect => "CONNECT",
            PacketType::Connack => "CONNACK",
            PacketType::Publish => "PUBLISH",
            PacketType::Puback => "PUBACK",
            PacketType::Pubrec => "PUBREC",
            PacketType::Pubrel => "PUBREL",
            PacketType::Pubcomp => "PUBCOMP",
            PacketType::Subscribe => "SUBSCRIBE",
            PacketType::Suback => "SUBACK",
            PacketType::Unsubscribe => "UNSUBSCRIBE",
            PacketType::Unsuback => "UNSUBACK",
            PacketType::Pingreq => "PINGREQ",
            PacketType::Pingresp => "PINGRESP",
            PacketType::Disconnect => "DISCONNECT",
            PacketType::Auth => "AUTH",
        }
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
