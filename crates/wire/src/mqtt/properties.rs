//! The properties of one packet, read or to be written.

use std::fmt;

use super::error::{DecodeError, EncodeError};
use super::packet_type::Version;
use super::property::{Property, PropertyContext};
use super::reader::Reader;
use super::writer::{put_variable, variable_bytes};

/// The properties of a packet: those of one that was read (checked, still in its buffer), or a list to be written.
/// MQTT 3.1.1 has none; written in that version they are left out.
#[derive(Clone, Copy)]
pub struct Properties<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    /// Bytes that [`Properties::read`] has checked.
    Encoded(&'a [u8], PropertyContext),
    List(&'a [Property<'a>]),
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Properties<'static> = Properties(Source::List(&[]));

    /// A list to be written.
    pub const fn new(list: &'a [Property<'a>]) -> Properties<'a> {
        Properties(Source::List(list))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Property<'a>> + use<'a> {
        let (mut encoded, list) = match self.0 {
            Source::Encoded(bytes, place) => (Some((bytes, place)), &[][..]),
            Source::List(list) => (None, list),
        };
        let read = std::iter::from_fn(move || {
            let (bytes, place) = encoded?;
            let mut reader = Reader::new(super::packet_type::PacketType::Connect, bytes);
            let property = Property::read(&mut reader, place).ok()?;
            encoded = Some((reader.rest, place));
            Some(property)
        });
        read.chain(list.iter().copied())
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        match self.0 {
            Source::Encoded(bytes, _) => bytes.is_empty(),
            Source::List(list) => list.is_empty(),
        }
    }

    /// The first value that `choose` picks.
    pub fn find<T>(&self, choose: impl FnMut(Property<'a>) -> Option<T>) -> Option<T> {
        if self.is_empty() { None } else { self.iter().find_map(choose) }
    }

    /// Reads the length and the properties behind it; in 3.1.1 nothing.
    #[inline]
    pub(crate) fn read(
        version: Version,
        reader: &mut Reader<'a>,
        place: PropertyContext,
    ) -> Result<Properties<'a>, DecodeError> {
        if version == Version::V311 {
            return Ok(Properties::NONE);
        }
        match reader.variable("property length")? {
            0 => Ok(Properties::NONE),
            length => Properties::read_some(reader, length as usize, place),
        }
    }

    fn read_some(
        reader: &mut Reader<'a>,
        length: usize,
        place: PropertyContext,
    ) -> Result<Properties<'a>, DecodeError> {
        let bytes = reader.bytes(length, "properties")?;
        let mut inner = Reader::new(reader.packet, bytes);
        // One bit for each number that was seen; the largest is 0x2a.
        let mut seen = 0u64;
        while !inner.rest.is_empty() {
            let property = Property::read(&mut inner, place)?;
            let bit = 1 << property.identifier();
            if seen & bit != 0 && !property.is_repeatable(place) {
                let identifier = property.identifier().into();
                return Err(DecodeError::PropertyTwice { packet: reader.packet, identifier });
            }
            seen |= bit;
        }
        const METHOD: u64 = 1 << 0x15;
        const DATA: u64 = 1 << 0x16;
        if seen & DATA != 0 && seen & METHOD == 0 {
            return Err(DecodeError::Missing { packet: reader.packet, field: "an authentication method" });
        }
        Ok(Properties(Source::Encoded(bytes, place)))
    }

    /// Bytes of the properties without their length.
    fn list_bytes(&self) -> Result<usize, EncodeError> {
        match self.0 {
            Source::Encoded(bytes, _) => Ok(bytes.len()),
            Source::List(list) => list.iter().map(Property::encoded_bytes).sum(),
        }
    }

    /// Bytes of the properties with their length; 0 in 3.1.1.
    pub(crate) fn encoded_bytes(&self, version: Version) -> Result<usize, EncodeError> {
        if version == Version::V311 {
            return Ok(0);
        }
        let bytes = self.list_bytes()?;
        Ok(variable_bytes(bytes) + bytes)
    }

    /// Appends the length and the properties, which [`Properties::encoded_bytes`] has checked; in 3.1.1 nothing.
    pub(crate) fn put(&self, version: Version, out: &mut Vec<u8>) {
        if version == Version::V311 {
            return;
        }
        match self.0 {
            Source::Encoded(bytes, _) => {
                put_variable(bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Source::List([]) => out.push(0),
            Source::List(list) => {
                let bytes = self.list_bytes().expect("lengths were checked before the first byte was written");
                put_variable(bytes, out);
                list.iter().for_each(|property| property.put(out));
            }
        }
    }
}

impl Default for Properties<'_> {
    fn default() -> Self {
        Properties::NONE
    }
}

impl PartialEq for Properties<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Properties<'_> {}

impl fmt::Debug for Properties<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// The properties that appear once, by name.
macro_rules! single {
    ($($(#[$meta:meta])* $name:ident: $variant:ident -> $type:ty;)*) => {
        impl<'a> Properties<'a> {
            $($(#[$meta])*
            pub fn $name(&self) -> Option<$type> {
                self.find(|property| match property {
                    Property::$variant(value) => Some(value),
                    _ => None,
                })
            })*
        }
    };
}

single! {
    /// Seconds that the session outlives its connection.
    session_expiry_s: SessionExpiryInterval -> u32;
    /// Messages in flight at most.
    receive_maximum: ReceiveMaximum -> u16;
    /// Largest packet, bytes.
    maximum_packet_bytes: MaximumPacketSize -> u32;
    /// Highest QoS of the server: false for 0, true for 1; absent for 2.
    maximum_qos: MaximumQos -> bool;
    /// The server supports retained messages; absent for yes.
    retain_available: RetainAvailable -> bool;
    /// Client identifier that the server chose.
    assigned_client_id: AssignedClientIdentifier -> &'a str;
    /// Keep-alive that the server requires, seconds.
    server_keep_alive_s: ServerKeepAlive -> u16;
    /// Highest topic alias accepted.
    topic_alias_maximum: TopicAliasMaximum -> u16;
    /// Number that replaces a topic.
    topic_alias: TopicAlias -> u16;
    /// A reason in words.
    reason_string: ReasonString -> &'a str;
    /// Seconds that the message stays wanted.
    message_expiry_s: MessageExpiryInterval -> u32;
    /// Seconds between the end of a connection and its will.
    will_delay_s: WillDelayInterval -> u32;
    /// The first subscription identifier.
    subscription_id: SubscriptionIdentifier -> u32;
    /// Name of the extended authentication.
    authentication_method: AuthenticationMethod -> &'a str;
    /// Data of the extended authentication.
    authentication_data: AuthenticationData -> &'a [u8];
    /// Response topic: the topic for a reply.
    response_topic: ResponseTopic -> &'a str;
    /// Correlation data of a request.
    correlation_data: CorrelationData -> &'a [u8];
    /// What the payload is.
    content_type: ContentType -> &'a str;
}
