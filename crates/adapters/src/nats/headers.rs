//! What goes beside payloads, as headers of messages (`HPUB`, `HMSG`).

use pubmark_model::payload::HEADER_PROPERTY;
use pubmark_protocol::clients::{Outgoing, Publication};
use pubmark_protocol::events::Delivery;
use pubmark_wire::nats::{HEADER_BYTES, HEADERS_BYTES, HEADERS_END_BYTES, Message};

use crate::connection::Times;
use crate::payload;

/// Bytes of the headers of a message that has some.
pub fn headers_bytes(publication: &Publication, message: &Outgoing) -> usize {
    HEADERS_BYTES + payload::property_bytes(publication, message.root.is_some(), HEADER_BYTES)
}

/// Bytes from the header, which is the value of the last one, to the payload.
pub fn header_before(header: Option<&str>) -> usize {
    header.map_or(0, |header| header.len() + HEADERS_END_BYTES)
}

/// A message that came.
pub fn delivery<'a>(message: &Message<'a>, times: Times<'a>) -> Delivery<'a> {
    let header = if message.headers.is_empty() { None } else { message.header(HEADER_PROPERTY) };
    Delivery { header, ..times.delivery(message.payload, false) }
}
