//! The header of a message (§4.2.6.1).

use super::error::DecodeError;
use super::reader::Reader;

/// Class `basic`, the only one whose methods have a message behind them.
const BASIC: u16 = 60;

/// Bytes of the message whose header this payload is. Its properties are not looked at.
///
/// # Errors
/// It is none, or another class's.
#[inline]
pub fn read_content_header(payload: &[u8]) -> Result<u64, DecodeError> {
    let mut reader = Reader::new(payload);
    let parts = (reader.short(), reader.short(), reader.long_long(), reader.short());
    match parts {
        (Some(BASIC), Some(0), Some(body_bytes), Some(_flags)) => Ok(body_bytes),
        _ => Err(DecodeError::ContentHeader),
    }
}

/// Properties of a request or a reply (§1.8.1: properties of class `basic`); empty for other messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correlation<'a> {
    /// Queue for the reply.
    pub reply_to: &'a str,
    /// Correlation of the request.
    pub correlation_id: &'a str,
}

impl Correlation<'_> {
    /// Flags of the properties that are there, the delivery mode not among them.
    pub(super) fn flags(&self) -> u16 {
        let flag = |text: &str, flag: u16| if text.is_empty() { 0 } else { flag };
        flag(self.correlation_id, CORRELATION_ID) | flag(self.reply_to, REPLY_TO)
    }
}

/// Flags of properties, in the order in which those stand.
const CONTENT_TYPE: u16 = 1 << 15;
const CONTENT_ENCODING: u16 = 1 << 14;
pub(super) const HEADERS: u16 = 1 << 13;
pub(super) const DELIVERY_MODE: u16 = 1 << 12;
const PRIORITY: u16 = 1 << 11;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;

/// The properties of requests and replies in a header.
///
/// # Errors
/// Its properties are cut short, or a text is not UTF-8.
pub fn read_correlation(payload: &[u8]) -> Result<Correlation<'_>, DecodeError> {
    correlation(payload).ok_or(DecodeError::ContentHeader)
}

fn correlation(payload: &[u8]) -> Option<Correlation<'_>> {
    let mut reader = Reader::new(payload);
    let (_, _, _) = (reader.short()?, reader.short()?, reader.long_long()?);
    let flags = reader.short()?;
    if flags & (CORRELATION_ID | REPLY_TO) == 0 {
        return Some(Correlation::default());
    }
    let has = |flag: u16| flags & flag != 0;
    if has(CONTENT_TYPE) {
        reader.skip_short_text()?;
    }
    if has(CONTENT_ENCODING) {
        reader.skip_short_text()?;
    }
    if has(HEADERS) {
        reader.long_bytes()?;
    }
    if has(DELIVERY_MODE) {
        reader.octet()?;
    }
    if has(PRIORITY) {
        reader.octet()?;
    }
    let correlation_id = if has(CORRELATION_ID) { reader.short_text()? } else { "" };
    let reply_to = if has(REPLY_TO) { reader.short_text()? } else { "" };
    Some(Correlation { reply_to, correlation_id })
}

/// The text of one of a message's headers, given its content header's payload; `None` if it has none of this name, or one of
/// another type; empty if it has several.
pub fn read_header<'a>(payload: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut reader = Reader::new(payload);
    let (_, _, _) = (reader.short()?, reader.short()?, reader.long_long()?);
    let flags = reader.short()?;
    if flags & HEADERS == 0 {
        return None;
    }
    for _ in 0..(flags & (CONTENT_TYPE | CONTENT_ENCODING)).count_ones() {
        reader.skip_short_text()?;
    }
    let mut table = Reader::new(reader.long_bytes()?);
    let mut found = None;
    while table.left() > 0 {
        let key = table.short_text()?;
        let value = field_value(&mut table)?;
        if key == name {
            if found.is_some() {
                return Some(&[]);
            }
            found = Some(value);
        }
    }
    found?
}

/// The value of a field, if it is text or bytes; an outer `None` for a type that is not known. The letters are those that RabbitMQ
/// and Qpid use (<https://www.rabbitmq.com/amqp-0-9-1-errata>).
fn field_value<'a>(table: &mut Reader<'a>) -> Option<Option<&'a [u8]>> {
    let kind = table.octet()?;
    let octets = match kind {
        b'S' | b'x' => return table.long_bytes().map(Some),
        b'A' | b'F' => return table.long_bytes().map(|_| None),
        b'V' => 0,
        b't' | b'b' | b'B' => 1,
        b's' | b'u' | b'U' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'L' | b'l' | b'd' | b'T' => 8,
        _ => return None,
    };
    (0..octets).try_for_each(|_| table.octet().map(drop))?;
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_the_length_of_the_body() {
        let header = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x10\x00\x02";
        assert_eq!(read_content_header(header), Ok(256));
        assert_eq!(read_content_header(&header[..14]), Ok(256));
        assert_eq!(read_content_header(&header[..13]), Err(DecodeError::ContentHeader));
        assert_eq!(
            read_content_header(b"\x00\x3d\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x10\x00"),
            Err(DecodeError::ContentHeader)
        );
    }

    #[test]
    fn a_header_that_is_there_twice_is_empty() {
        let with = |fields: &[u8]| {
            let front = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x20\x00";
            [&front[..], &(fields.len() as u32).to_be_bytes(), fields].concat()
        };
        let (one, other): (&[u8], &[u8]) = (b"\x01pS\x00\x00\x00\x02c1", b"\x01qt\x01");
        assert_eq!(read_header(&with(&[one, other].concat()), "p"), Some(&b"c1"[..]));
        assert_eq!(read_header(&with(&[one, other, one].concat()), "p"), Some(&b""[..]));
        assert_eq!(read_header(&with(other), "p"), None);
        assert_eq!(read_header(&with(other), "q"), None);
    }

    #[test]
    fn a_request_has_its_reply_address_after_any_other_property() {
        let front = b"\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00";
        let header = |flags: [u8; 2], rest: &[u8]| [&front[..], &flags, rest].concat();
        let both = header([0x06, 0x00], b"\x03c-1\x01q");
        assert_eq!(read_correlation(&both), Ok(Correlation { reply_to: "q", correlation_id: "c-1" }));
        let all = header([0xfe, 0x00], b"\x01t\x01e\x00\x00\x00\x02xx\x02\x05\x01c\x01q");
        assert_eq!(read_correlation(&all), Ok(Correlation { reply_to: "q", correlation_id: "c" }));
        assert_eq!(read_correlation(&header([0x10, 0x00], b"\x02")), Ok(Correlation::default()));
        for cut in front.len()..both.len() {
            assert_eq!(read_correlation(&both[..cut]), Err(DecodeError::ContentHeader), "{cut}");
        }
        assert_eq!(read_correlation(&header([0x02, 0x00], b"\x01\xff")), Err(DecodeError::ContentHeader));
    }
}
