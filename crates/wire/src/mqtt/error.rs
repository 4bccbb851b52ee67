//! What can be wrong with a packet that was read, and with one that is to be written.

use super::packet_type::PacketType;
use super::reason;

/// Why bytes are no MQTT packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The first byte names no type of packet.
    #[error("packet type 0 is reserved")]
    ReservedType,
    /// The remaining length has more than four bytes.
    #[error("remaining length is longer than 4 bytes")]
    RemainingLength,
    /// The packet exceeds the reader's limit; known as soon as its length was read.
    #[error("packet of {packet_bytes} B exceeds the limit of {maximum_packet_bytes} B")]
    TooLarge {
        /// Bytes of the whole packet as it announces them.
        packet_bytes: usize,
        /// The limit.
        maximum_packet_bytes: usize,
    },
    /// The lower four bits of the first byte are not as they must be.
    #[error("{packet} has the flags {flags:#06b}")]
    Flags {
        /// Type of the packet.
        packet: PacketType,
        /// Its flags.
        flags: u8,
    },
    /// A packet of a type that this version does not have, or not here.
    #[error("{packet} does not exist in this version")]
    NotInVersion {
        /// Type of the packet.
        packet: PacketType,
    },
    /// A packet of another type than the function reads.
    #[error("{found} where {expected} was expected")]
    OtherType {
        /// Expected type.
        expected: PacketType,
        /// Type that the packet has.
        found: PacketType,
    },
    /// The packet ends inside a field.
    #[error("{packet} ends inside its {field}")]
    Truncated {
        /// Type of the packet.
        packet: PacketType,
        /// The field.
        field: &'static str,
    },
    /// Bytes are left after the last field.
    #[error("{packet} has {surplus_bytes} B after its last field")]
    Surplus {
        /// Type of the packet.
        packet: PacketType,
        /// How many.
        surplus_bytes: usize,
    },
    /// A text that is not UTF-8 or contains U+0000.
    #[error("{packet} has a {field} that is not valid text")]
    Text {
        /// Type of the packet.
        packet: PacketType,
        /// The field.
        field: &'static str,
    },
    /// A topic that is empty or contains a wildcard.
    #[error("{packet} has a {field} that is no topic name")]
    Topic {
        /// Type of the packet.
        packet: PacketType,
        /// The field.
        field: &'static str,
    },
    /// A topic filter that the standard does not allow.
    #[error("{packet} has an invalid topic filter")]
    Filter {
        /// Type of the packet.
        packet: PacketType,
    },
    /// A field with an invalid value.
    #[error("{packet} has the value {value} in its {field}")]
    Value {
        /// Type of the packet.
        packet: PacketType,
        /// The field.
        field: &'static str,
        /// The value.
        value: u32,
    },
    /// The packet identifier is 0.
    #[error("{packet} has packet identifier 0")]
    ZeroPacketId {
        /// Type of the packet.
        packet: PacketType,
    },
    /// CONNECT for a protocol of another name.
    #[error("CONNECT is for another protocol")]
    ProtocolName,
    /// CONNECT for an unsupported version.
    #[error("CONNECT asks for protocol level {level}")]
    ProtocolLevel {
        /// The requested level.
        level: u8,
    },
    /// A property that does not exist or does not belong in this packet.
    #[error("{packet} has property {identifier:#04x}, which does not belong there")]
    PropertyPlace {
        /// Type of the packet.
        packet: PacketType,
        /// The property's number.
        identifier: u32,
    },
    /// A property twice that may be there once.
    #[error("{packet} has property {identifier:#04x} twice")]
    PropertyTwice {
        /// Type of the packet.
        packet: PacketType,
        /// The property's number.
        identifier: u32,
    },
    /// Something required is missing.
    #[error("{packet} lacks {field}")]
    Missing {
        /// Type of the packet.
        packet: PacketType,
        /// What is missing.
        field: &'static str,
    },
}

impl DecodeError {
    /// The reason code for a 5.0 peer in DISCONNECT or CONNACK (MQTT 5.0 §4.13).
    pub fn reason_code(&self) -> u8 {
        match self {
            DecodeError::TooLarge { .. } => reason::PACKET_TOO_LARGE,
            DecodeError::ProtocolName | DecodeError::ProtocolLevel { .. } => reason::UNSUPPORTED_PROTOCOL_VERSION,
            DecodeError::Topic { .. } => reason::TOPIC_NAME_INVALID,
            DecodeError::Filter { .. } => reason::TOPIC_FILTER_INVALID,
            DecodeError::ZeroPacketId { .. }
            | DecodeError::PropertyTwice { .. }
            | DecodeError::NotInVersion { .. }
            | DecodeError::OtherType { .. }
            | DecodeError::Missing { .. } => reason::PROTOCOL_ERROR,
            _ => reason::MALFORMED_PACKET,
        }
    }
}

/// Why a packet cannot be written; nothing was appended then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A text or binary field is longer than 65,535 B.
    #[error("field of {bytes} B exceeds 65535 B")]
    FieldTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The packet is longer than MQTT allows: 268,435,455 B after the fixed header.
    #[error("packet of {bytes} B exceeds 268435455 B")]
    TooLarge {
        /// Bytes behind the fixed header.
        bytes: usize,
    },
    /// A message at QoS 1 or 2 needs a packet identifier that is not 0; one at QoS 0 has none.
    #[error("packet identifier does not fit the QoS")]
    PacketId,
    /// The number of a subscription identifier exceeds 268,435,455.
    #[error("subscription identifier {number} exceeds 268435455")]
    SubscriptionIdentifier {
        /// The number.
        number: u32,
    },
    /// The packet exists in MQTT 5.0 only.
    #[error("{packet} does not exist in this version")]
    NotInVersion {
        /// Type of the packet.
        packet: PacketType,
    },
}
