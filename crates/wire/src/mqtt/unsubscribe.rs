//! UNSUBSCRIBE: a client gives subscriptions up (MQTT 5.0 §3.10).

use std::fmt;

use super::error::{DecodeError, EncodeError};
use super::frame::Frame;
use super::packet_type::{PacketType, Version};
use super::properties::Properties;
use super::property::PropertyContext;
use super::reader::Reader;
use super::text::check_filter;
use super::writer::{field_bytes, put_field, put_fixed_header, put_two};

const PACKET: PacketType = PacketType::Unsubscribe;
const FLAGS: u8 = 0b0010;

/// The filters of one packet: those of one that was read (checked, still in its buffer), or a list to be written.
#[derive(Clone, Copy)]
pub struct TopicFilters<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Encoded(&'a [u8]),
    List(&'a [&'a str]),
}

impl<'a> TopicFilters<'a> {
    /// A list to be written; it should not be empty.
    pub const fn new(list: &'a [&'a str]) -> TopicFilters<'a> {
        TopicFilters(Source::List(list))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let (mut encoded, list) = match self.0 {
            Source::Encoded(bytes) => (bytes, &[][..]),
            Source::List(list) => (&[][..], list),
        };
        let read = std::iter::from_fn(move || {
            let mut reader = Reader::new(PACKET, encoded);
            let filter = reader.text("topic filter").ok()?;
            encoded = reader.rest;
            Some(filter)
        });
        read.chain(list.iter().copied())
    }
}

impl PartialEq for TopicFilters<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for TopicFilters<'_> {}

impl fmt::Debug for TopicFilters<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// A client's request to end subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Identifier that the UNSUBACK repeats, not 0.
    pub packet_id: u16,
    /// Properties (5.0).
    pub properties: Properties<'a>,
    /// What is given up, at least one.
    pub filters: TopicFilters<'a>,
}

/// Reads an UNSUBSCRIBE, whose type is known.
pub(crate) fn decode_unsubscribe<'a>(version: Version, frame: &Frame<'a>) -> Result<Unsubscribe<'a>, DecodeError> {
    if frame.flags() != FLAGS {
        return Err(DecodeError::Flags { packet: PACKET, flags: frame.flags() });
    }
    let mut reader = Reader::new(PACKET, frame.body);
    let packet_id = reader.packet_id()?;
    let properties = Properties::read(version, &mut reader, PropertyContext::Packet(PACKET))?;
    if reader.rest.is_empty() {
        return Err(DecodeError::Missing { packet: PACKET, field: "a topic filter" });
    }
    let filters = TopicFilters(Source::Encoded(reader.rest));
    while !reader.rest.is_empty() {
        check_filter(reader.text("topic filter")?).map_err(|_| DecodeError::Filter { packet: PACKET })?;
    }
    Ok(Unsubscribe { packet_id, properties, filters })
}

/// Appends an UNSUBSCRIBE.
///
/// # Errors
/// An [`EncodeError`], and nothing is appended.
pub fn encode_unsubscribe(
    version: Version,
    unsubscribe: &Unsubscribe<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if unsubscribe.packet_id == 0 {
        return Err(EncodeError::PacketId);
    }
    let mut remaining = 2 + unsubscribe.properties.encoded_bytes(version)?;
    for filter in unsubscribe.filters.iter() {
        remaining += field_bytes(filter.as_bytes())?;
    }
    put_fixed_header(PACKET.first_byte(FLAGS), remaining, out)?;
    put_two(unsubscribe.packet_id, out);
    unsubscribe.properties.put(version, out);
    for filter in unsubscribe.filters.iter() {
        put_field(filter.as_bytes(), out);
    }
    Ok(())
}
