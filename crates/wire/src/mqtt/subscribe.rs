//! SUBSCRIBE: a client requests subscriptions (MQTT 5.0 §3.8).

use std::fmt;

use pubmark_model::qos::Qos;

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::text::check_filter;
use super::writer::{field_bytes, put_field, put_fixed_header, put_two};

const PACKET: PacketType = PacketType::Subscribe;
const FLAGS: u8 = 0b0010;

const NO_LOCAL: u8 = 0b0000_0100;
const RETAIN_AS_PUBLISHED: u8 = 0b0000_1000;
const RETAIN_HANDLING_SHIFT: u8 = 4;

/// Which retained messages a new subscription gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetainHandling {
    /// All that match; 3.1.1 knows only this.
    #[default]
    Always,
    /// All that match, unless the subscription was there already.
    IfNew,
    /// None.
    Never,
}

/// One requested subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscribeRequest<'a> {
    /// Topic filter.
    pub filter: &'a str,
    /// Highest delivery level wanted.
    pub qos: Qos,
    /// Messages of this client shall not come back (5.0).
    pub no_local: bool,
    /// The retain flag shall stay as published (5.0).
    pub retain_as_published: bool,
    /// Which retained messages are wanted (5.0).
    pub retain_handling: RetainHandling,
}

impl<'a> SubscribeRequest<'a> {
    /// A subscription with the defaults of 5.0, which are what 3.1.1 always does.
    pub fn new(filter: &'a str, qos: Qos) -> SubscribeRequest<'a> {
        let retain_handling = RetainHandling::Always;
        SubscribeRequest { filter, qos, no_local: false, retain_as_published: false, retain_handling }
    }

    fn read(version: Version, reader: &mut Reader<'a>) -> Result<SubscribeRequest<'a>, DecodeError> {
        let filter = reader.text("topic filter")?;
        check_filter(filter).map_err(|_| DecodeError::Filter { packet: PACKET })?;
        let options = reader.byte("subscription options")?;
        let wrong = || DecodeError::Value { packet: PACKET, field: "subscription options", value: options.into() };
        let qos = Qos::from_level(options & 3).ok_or_else(wrong)?;
        let retain_handling = match options >> RETAIN_HANDLING_SHIFT {
            0 => RetainHandling::Always,
            1 => RetainHandling::IfNew,
            2 => RetainHandling::Never,
            _ => return Err(wrong()),
        };
        let no_local = options & NO_LOCAL != 0;
        if version == Version::V311 && options > 2 || no_local && filter.starts_with("$share/") {
            return Err(wrong());
        }
        let retain_as_published = options & RETAIN_AS_PUBLISHED != 0;
        Ok(SubscribeRequest { filter, qos, no_local, retain_as_published, retain_handling })
    }

    fn options(&self, version: Version) -> u8 {
        let level = self.qos.level();
        match version {
            Version::V311 => level,
            Version::V5 => {
                level
                    | if self.no_local { NO_LOCAL } else { 0 }
                    | if self.retain_as_published { RETAIN_AS_PUBLISHED } else { 0 }
                    | (self.retain_handling as u8) << RETAIN_HANDLING_SHIFT
            }
        }
    }
}

/// The subscriptions of one packet: those of one that was read (checked, still in its buffer), or a list to be written.
#[derive(Clone, Copy)]
pub struct Filters<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Encoded(Version, &'a [u8]),
    List(&'a [SubscribeRequest<'a>]),
}

impl<'a> Filters<'a> {
    /// A list to be written; it should not be empty.
    pub const fn new(list: &'a [SubscribeRequest<'a>]) -> Filters<'a> {
        Filters(Source::List(list))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = SubscribeRequest<'a>> + use<'a> {
        let (mut encoded, list) = match self.0 {
            Source::Encoded(version, bytes) => (Some((version, bytes)), &[][..]),
            Source::List(list) => (None, list),
        };
        let read = std::iter::from_fn(move || {
            let (version, bytes) = encoded?;
            let mut reader = Reader::new(PACKET, bytes);
            let request = SubscribeRequest::read(version, &mut reader).ok()?;
            encoded = Some((version, reader.rest));
            Some(request)
        });
        read.chain(list.iter().copied())
    }
}

impl PartialEq for Filters<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Filters<'_> {}

impl fmt::Debug for Filters<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// A client's request for subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Identifier that the SUBACK repeats, not 0.
    pub packet_id: u16,
    /// Properties (5.0).
    pub properties: Properties<'a>,
    /// The requested subscriptions, at least one.
    pub filters: Filters<'a>,
}

/// Reads a SUBSCRIBE.
///
/// # Errors
/// A [`DecodeError`] with the reason; [`DecodeError::OtherType`] for another packet.
pub fn decode_subscribe<'a>(version: Version, frame: &Frame<'a>) -> Result<Subscribe<'a>, DecodeError> {
    let found = frame.packet_type().ok_or(DecodeError::ReservedType)?;
    if found != PACKET {
        return Err(DecodeError::OtherType { expected: PACKET, found });
    }
    if frame.flags() != FLAGS {
        return Err(DecodeError::Flags { packet: PACKET, flags: frame.flags() });
    }
    let mut reader = Reader::new(PACKET, frame.body);
    let packet_id = reader.packet_id()?;
    let properties = Properties::read(version, &mut reader, PropertyContext::Packet(PACKET))?;
    if reader.rest.is_empty() {
        return Err(DecodeError::Missing { packet: PACKET, field: "a topic filter" });
    }
    let filters = Filters(Source::Encoded(version, reader.rest));
    while !reader.rest.is_empty() {
        SubscribeRequest::read(version, &mut reader)?;
    }
    Ok(Subscribe { packet_id, properties, filters })
}

/// Appends a SUBSCRIBE. In 3.1.1 only filter and QoS are written.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_subscribe(version: Version, subscribe: &Subscribe<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if subscribe.packet_id == 0 {
        return Err(EncodeError::PacketId);
    }
    let mut remaining = 2 + subscribe.properties.encoded_bytes(version)?;
    for request in subscribe.filters.iter() {
        remaining += field_bytes(request.filter.as_bytes())? + 1;
    }
    put_fixed_header(PACKET.first_byte(FLAGS), remaining, out)?;
    put_two(subscribe.packet_id, out);
    subscribe.properties.put(version, out);
    for request in subscribe.filters.iter() {
        put_field(request.filter.as_bytes(), out);
        out.push(request.options(version));
    }
    Ok(())
}
