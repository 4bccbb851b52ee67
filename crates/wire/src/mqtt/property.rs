//! The properties of MQTT 5.0 (§2.2.2): numbers, types, and where each may stand.

use super::error::{DecodeError, EncodeError};
use super::frame::MAXIMUM_REMAINING_LENGTH;
use super::packet_type::PacketType;
use super::reader::Reader;
use super::writer::{field_bytes, put_field, put_variable, variable_bytes};

/// One property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property<'a> {
    /// The payload is text (true) or anything.
    PayloadFormatIndicator(bool),
    /// Seconds that a message stays wanted.
    MessageExpiryInterval(u32),
    /// What the payload is.
    ContentType(&'a str),
    /// Response topic: the topic for a reply.
    ResponseTopic(&'a str),
    /// Correlation data of a request.
    CorrelationData(&'a [u8]),
    /// Number of a subscription, from 1 to 268,435,455.
    SubscriptionIdentifier(u32),
    /// Seconds that a session outlives its connection, `u32::MAX` for ever.
    SessionExpiryInterval(u32),
    /// Client identifier that the server chose.
    AssignedClientIdentifier(&'a str),
    /// Keep-alive that the server requires, seconds.
    ServerKeepAlive(u16),
    /// Name of the extended authentication.
    AuthenticationMethod(&'a str),
    /// Data of the extended authentication.
    AuthenticationData(&'a [u8]),
    /// The server may send reason strings and user properties with any packet.
    RequestProblemInformation(bool),
    /// Seconds between the end of a connection and its will.
    WillDelayInterval(u32),
    /// The server shall send response information.
    RequestResponseInformation(bool),
    /// Base of response topics.
    ResponseInformation(&'a str),
    /// Another server.
    ServerReference(&'a str),
    /// A reason in words.
    ReasonString(&'a str),
    /// Messages at QoS 1 and 2 in flight at most, at least 1.
    ReceiveMaximum(u16),
    /// Highest topic alias accepted.
    TopicAliasMaximum(u16),
    /// Number that replaces a topic, at least 1.
    TopicAlias(u16),
    /// Highest QoS the server takes: false for 0, true for 1.
    MaximumQos(bool),
    /// The server supports retained messages.
    RetainAvailable(bool),
    /// Name and value of the users' own.
    UserProperty(&'a str, &'a str),
    /// Bytes of the largest packet accepted, at least 1.
    MaximumPacketSize(u32),
    /// The server takes wildcards.
    WildcardSubscriptionAvailable(bool),
    /// The server takes subscription identifiers.
    SubscriptionIdentifierAvailable(bool),
    /// The server takes shared subscriptions.
    SharedSubscriptionAvailable(bool),
}

/// Where a property stands: in a packet, or among a will's properties in CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PropertyContext {
    Packet(PacketType),
    Will,
}

impl PropertyContext {
    fn bit(self) -> u16 {
        match self {
            PropertyContext::Packet(packet) => 1 << packet as u16,
            // Number 0 is no packet's.
            PropertyContext::Will => 1,
        }
    }
}

const fn places(packets: &[PacketType]) -> u16 {
    let mut mask = 0;
    let mut index = 0;
    while index < packets.len() {
        mask |= 1 << packets[index] as u16;
        index += 1;
    }
    mask
}

const WILL: u16 = 1;
const MESSAGE: u16 = places(&[PacketType::Publish]) | WILL;
const CONNECTING: u16 = places(&[PacketType::Connect, PacketType::Connack]);
const CONNACK: u16 = places(&[PacketType::Connack]);
const CONNECT: u16 = places(&[PacketType::Connect]);
const ANSWERS: u16 = places(&[
    PacketType::Connack,
    PacketType::Puback,
    PacketType::Pubrec,
    PacketType::Pubrel,
    PacketType::Pubcomp,
    PacketType::Suback,
    PacketType::Unsuback,
    PacketType::Disconnect,
    PacketType::Auth,
]);
const EVERYWHERE: u16 = ANSWERS | MESSAGE | CONNECT | places(&[PacketType::Subscribe, PacketType::Unsubscribe]);

/// Where the property of this number may stand, as bits of [`PropertyContext`]; 0 for a number that is none (MQTT 5.0 table 2-4).
fn allowed_places(identifier: u32) -> u16 {
    match identifier {
        0x01 | 0x02 | 0x03 | 0x08 | 0x09 => MESSAGE,
        0x0b => places(&[PacketType::Publish, PacketType::Subscribe]),
        0x11 => CONNECTING | places(&[PacketType::Disconnect]),
        0x15 | 0x16 => CONNECTING | places(&[PacketType::Auth]),
        0x17 | 0x19 => CONNECT,
        0x18 => WILL,
        0x12 | 0x13 | 0x1a | 0x24 | 0x25 | 0x28 | 0x29 | 0x2a => CONNACK,
        0x1c => places(&[PacketType::Connack, PacketType::Disconnect]),
        0x1f => ANSWERS,
        0x21 | 0x22 | 0x27 => CONNECTING,
        0x23 => places(&[PacketType::Publish]),
        0x26 => EVERYWHERE,
        _ => 0,
    }
}

impl<'a> Property<'a> {
    /// The property's number.
    pub fn identifier(&self) -> u8 {
        match self {
            Property::PayloadFormatIndicator(_) => 0x01,
            Property::MessageExpiryInterval(_) => 0x02,
            Property::ContentType(_) => 0x03,
            Property::ResponseTopic(_) => 0x08,
            Property::CorrelationData(_) => 0x09,
            Property::SubscriptionIdentifier(_) => 0x0b,
            Property::SessionExpiryInterval(_) => 0x11,
            Property::AssignedClientIdentifier(_) => 0x12,
            Property::ServerKeepAlive(_) => 0x13,
            Property::AuthenticationMethod(_) => 0x15,
            Property::AuthenticationData(_) => 0x16,
            Property::RequestProblemInformation(_) => 0x17,
            Property::WillDelayInterval(_) => 0x18,
            Property::RequestResponseInformation(_) => 0x19,
            Property::ResponseInformation(_) => 0x1a,
            Property::ServerReference(_) => 0x1c,
            Property::ReasonString(_) => 0x1f,
            Property::ReceiveMaximum(_) => 0x21,
            Property::TopicAliasMaximum(_) => 0x22,
            Property::TopicAlias(_) => 0x23,
            Property::MaximumQos(_) => 0x24,
            Property::RetainAvailable(_) => 0x25,
            Property::UserProperty(..) => 0x26,
            Property::MaximumPacketSize(_) => 0x27,
            Property::WildcardSubscriptionAvailable(_) => 0x28,
            Property::SubscriptionIdentifierAvailable(_) => 0x29,
            Property::SharedSubscriptionAvailable(_) => 0x2a,
        }
    }

    /// May it occur more than once here?
    pub(crate) fn is_repeatable(&self, place: PropertyContext) -> bool {
        match self {
            Property::UserProperty(..) => true,
            Property::SubscriptionIdentifier(_) => place == PropertyContext::Packet(PacketType::Publish),
            _ => false,
        }
    }

    /// Reads and checks one property.
    pub(crate) fn read(reader: &mut Reader<'a>, place: PropertyContext) -> Result<Property<'a>, DecodeError> {
        let identifier = reader.variable("property identifier")?;
        if allowed_places(identifier) & place.bit() == 0 {
            return Err(DecodeError::PropertyPlace { packet: reader.packet, identifier });
        }
        Ok(match identifier {
            0x01 => Property::PayloadFormatIndicator(flag(reader, "payload format indicator")?),
            0x02 => Property::MessageExpiryInterval(reader.four("message expiry interval")?),
            0x03 => Property::ContentType(reader.text("content type")?),
            0x08 => Property::ResponseTopic(reader.topic("response topic")?),
            0x09 => Property::CorrelationData(reader.binary("correlation data")?),
            0x0b => {
                let number = reader.variable("subscription identifier")?;
                if number == 0 {
                    return Err(reader.value("subscription identifier", 0));
                }
                Property::SubscriptionIdentifier(number)
            }
            0x11 => Property::SessionExpiryInterval(reader.four("session expiry interval")?),
            0x12 => Property::AssignedClientIdentifier(reader.text("assigned client identifier")?),
            0x13 => Property::ServerKeepAlive(reader.two("server keep alive")?),
            0x15 => Property::AuthenticationMethod(reader.text("authentication method")?),
            0x16 => Property::AuthenticationData(reader.binary("authentication data")?),
            0x17 => Property::RequestProblemInformation(flag(reader, "request problem information")?),
            0x18 => Property::WillDelayInterval(reader.four("will delay interval")?),
            0x19 => Property::RequestResponseInformation(flag(reader, "request response information")?),
            0x1a => Property::ResponseInformation(reader.text("response information")?),
            0x1c => Property::ServerReference(reader.text("server reference")?),
            0x1f => Property::ReasonString(reader.text("reason string")?),
            0x21 => Property::ReceiveMaximum(two_above_zero(reader, "receive maximum")?),
            0x22 => Property::TopicAliasMaximum(reader.two("topic alias maximum")?),
            0x23 => Property::TopicAlias(two_above_zero(reader, "topic alias")?),
            0x24 => Property::MaximumQos(flag(reader, "maximum QoS")?),
            0x25 => Property::RetainAvailable(flag(reader, "retain available")?),
            0x26 => Property::UserProperty(reader.text("user property")?, reader.text("user property")?),
            0x27 => {
                let bytes = reader.four("maximum packet size")?;
                if bytes == 0 {
                    return Err(reader.value("maximum packet size", 0));
                }
                Property::MaximumPacketSize(bytes)
            }
            0x28 => Property::WildcardSubscriptionAvailable(flag(reader, "wildcard subscription available")?),
            0x29 => Property::SubscriptionIdentifierAvailable(flag(reader, "subscription identifier available")?),
            0x2a => Property::SharedSubscriptionAvailable(flag(reader, "shared subscription available")?),
            _ => return Err(DecodeError::PropertyPlace { packet: reader.packet, identifier }),
        })
    }

    /// Bytes of the property in a packet.
    pub(crate) fn encoded_bytes(&self) -> Result<usize, EncodeError> {
        Ok(1 + match self.value() {
            Value::Byte(_) => 1,
            Value::Two(_) => 2,
            Value::Four(_) => 4,
            Value::Variable(number) => {
                if number as usize > MAXIMUM_REMAINING_LENGTH {
                    return Err(EncodeError::SubscriptionIdentifier { number });
                }
                variable_bytes(number as usize)
            }
            Value::Field(field) => field_bytes(field)?,
            Value::Pair(name, value) => field_bytes(name)? + field_bytes(value)?,
        })
    }

    /// Appends the property, which [`Property::encoded_bytes`] has checked.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.identifier());
        match self.value() {
            Value::Byte(byte) => out.push(byte),
            Value::Two(number) => out.extend_from_slice(&number.to_be_bytes()),
            Value::Four(number) => out.extend_from_slice(&number.to_be_bytes()),
            Value::Variable(number) => put_variable(number as usize, out),
            Value::Field(field) => put_field(field, out),
            Value::Pair(name, value) => {
                put_field(name, out);
                put_field(value, out);
            }
        }
    }

    fn value(&self) -> Value<'a> {
        match *self {
            Property::PayloadFormatIndicator(flag)
            | Property::RequestProblemInformation(flag)
            | Property::RequestResponseInformation(flag)
            | Property::MaximumQos(flag)
            | Property::RetainAvailable(flag)
            | Property::WildcardSubscriptionAvailable(flag)
            | Property::SubscriptionIdentifierAvailable(flag)
            | Property::SharedSubscriptionAvailable(flag) => Value::Byte(flag.into()),
            Property::ServerKeepAlive(number)
            | Property::ReceiveMaximum(number)
            | Property::TopicAliasMaximum(number)
            | Property::TopicAlias(number) => Value::Two(number),
            Property::MessageExpiryInterval(number)
            | Property::SessionExpiryInterval(number)
            | Property::WillDelayInterval(number)
            | Property::MaximumPacketSize(number) => Value::Four(number),
            Property::SubscriptionIdentifier(number) => Value::Variable(number),
            Property::ContentType(text)
            | Property::ResponseTopic(text)
            | Property::AssignedClientIdentifier(text)
            | Property::AuthenticationMethod(text)
            | Property::ResponseInformation(text)
            | Property::ServerReference(text)
            | Property::ReasonString(text) => Value::Field(text.as_bytes()),
            Property::CorrelationData(bytes) | Property::AuthenticationData(bytes) => Value::Field(bytes),
            Property::UserProperty(name, value) => Value::Pair(name.as_bytes(), value.as_bytes()),
        }
    }
}

/// What stands behind a property's number.
enum Value<'a> {
    Byte(u8),
    Two(u16),
    Four(u32),
    Variable(u32),
    Field(&'a [u8]),
    Pair(&'a [u8], &'a [u8]),
}

fn flag(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match reader.byte(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.value(field, other.into())),
    }
}

fn two_above_zero(reader: &mut Reader<'_>, field: &'static str) -> Result<u16, DecodeError> {
    match reader.two(field)? {
        0 => Err(reader.value(field, 0)),
        number => Ok(number),
    }
}
