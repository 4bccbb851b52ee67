//! The sections of a message (part 3, §3.2); ours have one for requests and replies, and one for the body.

use std::borrow::Cow;

use super::error::DecodeError;
use super::fields::{Fields, code};
use super::value::{self, Described, Value};
use super::writer::{composite, sized, sized_head};

/// Properties of a message about requests and replies (part 3, §3.2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    /// Destination of the message, if its link has none.
    pub to: Option<&'a str>,
    /// Address for its reply.
    pub reply_to: Option<&'a str>,
    /// The correlation that a reply repeats, encoded: a number, a UUID, bytes or text. Empty if there is none.
    pub correlation_id: &'a [u8],
}

/// A message that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    properties: Option<Described<'a>>,
    application_properties: Option<Described<'a>>,
    /// Its data sections as one, or what its value is if that is bytes or text, or any other body as it is encoded. A message
    /// without a body has none.
    pub body: Cow<'a, [u8]>,
}

/// Code of the section of application properties.
const APPLICATION_PROPERTIES: u8 = 0x74;

/// Bytes of a message with a body of that many, and no properties.
pub fn message_bytes(body_bytes: usize) -> usize {
    body_bytes + if body_bytes < 256 { 5 } else { 8 }
}

/// Appends the front of a message's data section; its body is to follow.
#[inline]
pub fn encode_data_front(body_bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x00, 0x53, 0x75]);
    sized_head(0xa0, body_bytes, out);
}

/// Appends text as an identifier has it.
pub fn encode_text(text: &str, out: &mut Vec<u8>) {
    sized(0xa1, text.as_bytes(), out);
}

/// The text that an identifier is, if it is one.
pub fn text_of(mut identifier: &[u8]) -> Option<&str> {
    match value::take(&mut identifier) {
        Ok(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// Appends the section of application properties (part 3, §3.2.5), one by one; it is complete once it was finished.
#[derive(Debug)]
pub struct ApplicationProperties<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    count: u32,
    first: Option<usize>,
}

impl<'a> ApplicationProperties<'a> {
    /// Begins the section.
    pub fn begin(out: &'a mut Vec<u8>) -> ApplicationProperties<'a> {
        out.extend_from_slice(&[0x00, 0x53, APPLICATION_PROPERTIES, 0xd1]);
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        ApplicationProperties { out, start, count: 0, first: None }
    }

    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        self.count += 2;
        sized(0xa1, name.as_bytes(), self.out);
        self.out
    }

    /// Appends a text.
    pub fn text(&mut self, name: &str, value: &str) {
        sized(0xa1, value.as_bytes(), self.name(name));
        self.first.get_or_insert(self.out.len() - value.len());
    }

    /// Appends a number of 64 bits.
    pub fn double(&mut self, name: &str, value: f64) {
        let out = self.name(name);
        out.push(0x82);
        out.extend_from_slice(&value.to_bits().to_be_bytes());
    }

    /// Appends a truth value.
    pub fn boolean(&mut self, name: &str, value: bool) {
        self.name(name).push(if value { 0x41 } else { 0x42 });
    }

    /// Ends the section; returns where in the buffer the first text begins.
    pub fn finish(self) -> usize {
        let ApplicationProperties { out, start, count, first } = self;
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
        out[start + 4..start + 8].copy_from_slice(&count.to_be_bytes());
        first.unwrap_or(out.len())
    }
}

/// [`Message::body`] alone.
///
/// # Errors
/// Bytes that are no message.
pub fn body(message: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
    Message::decode(message).map(|message| message.body)
}

impl<'a> Properties<'a> {
    /// Appends the section. [`Properties::correlation_id`] must be empty or one encoded value.
    pub fn encode(&self, out: &mut Vec<u8>) {
        composite(0x73, out, |fields| {
            // Its own identifier, and whose it is.
            (0..2).for_each(|_| fields.null());
            fields.optional_text(self.to);
            // Subject.
            fields.null();
            fields.optional_text(self.reply_to);
            fields.encoded(self.correlation_id);
        });
    }

    fn decode(section: &Described<'a>) -> Result<Properties<'a>, DecodeError> {
        let mut fields = Fields::of("properties", section)?;
        fields.skip(2)?;
        let to = fields.text("to")?;
        fields.skip(1)?;
        let reply_to = fields.text("reply-to")?;
        Ok(Properties { to, reply_to, correlation_id: fields.identifier("correlation-id")? })
    }
}

impl<'a> Message<'a> {
    /// Reads a whole message; its properties are only found, not looked at.
    ///
    /// # Errors
    /// Bytes that are no message.
    pub fn decode(mut message: &'a [u8]) -> Result<Message<'a>, DecodeError> {
        let mut body = Cow::Borrowed(&[][..]);
        let (mut found, mut properties, mut application_properties) = (false, None, None);
        while !message.is_empty() {
            let before = message;
            let Value::Described(section) = value::take(&mut message)? else { return Err(DecodeError::Section) };
            let encoded = &before[..before.len() - message.len()];
            let part = match (code(&section)?, section.value()?) {
                (0x73, _) => {
                    properties = Some(section);
                    continue;
                }
                (0x74, Value::Map(_)) => {
                    application_properties = Some(section);
                    continue;
                }
                (0x70..=0x74 | 0x78, _) => continue,
                (0x75, Value::Binary(bytes)) | (0x77, Value::Binary(bytes)) => bytes,
                (0x77, Value::Text(text)) => text.as_bytes(),
                (0x76 | 0x77, _) => encoded,
                _ => return Err(DecodeError::Section),
            };
            if found {
                body.to_mut().extend_from_slice(part);
            } else {
                body = Cow::Borrowed(part);
                found = true;
            }
        }
        Ok(Message { properties, application_properties, body })
    }

    /// The text of one of its application properties; `None` if it has none of this name, or one of another type; empty if it
    /// has several.
    pub fn application_property(&self, name: &str) -> Option<&'a str> {
        let Ok(Value::Map(mut items)) = self.application_properties.as_ref()?.value() else { return None };
        let mut found = None;
        while let Ok(Some(key)) = items.take() {
            let value = items.take().ok()??;
            match value {
                Value::Text(_) if key == Value::Text(name) && found.is_some() => return Some(""),
                Value::Text(text) if key == Value::Text(name) => found = Some(text),
                _ => {}
            }
        }
        found
    }

    /// The properties of a request or a reply.
    ///
    /// # Errors
    /// Properties of other types than the standard has.
    pub fn properties(&self) -> Result<Properties<'a>, DecodeError> {
        self.properties.as_ref().map_or_else(|| Ok(Properties::default()), Properties::decode)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn with(properties: Properties<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        properties.encode(&mut out);
        encode_data_front(3, &mut out);
        out.extend_from_slice(b"one");
        out
    }

    #[test]
    fn properties_of_a_request_are_read_back_with_the_type_of_its_correlation() {
        let mut text = Vec::new();
        encode_text("0-17", &mut text);
        assert_eq!(text_of(&text), Some("0-17"));
        let uuid = [&[0x98][..], &[7; 16]].concat();
        for correlation_id in [&[][..], &text, &uuid, &[0x44], &[0x80, 0, 0, 0, 0, 0, 0, 1, 0], b"\xa0\x02\xff\xfe"] {
            let long = "a".repeat(300);
            for (to, reply_to) in [(None, None), (Some("there"), None), (None, Some(&*long)), (Some("a"), Some("b"))] {
                let properties = Properties { to, reply_to, correlation_id };
                let bytes = with(properties);
                let message = Message::decode(&bytes).unwrap();
                assert_eq!((message.properties(), &*message.body), (Ok(properties), &b"one"[..]));
            }
        }
        for other in [&[0x98][..], &[0x44], b"\xa0\x01a", &[]] {
            assert_eq!(text_of(other), None);
        }
    }

    #[test]
    fn application_properties_are_read_back_by_name() {
        let long = "v".repeat(300);
        let mut bytes = vec![9; 3];
        let mut section = ApplicationProperties::begin(&mut bytes);
        section.text("pubmark", "c1");
        section.text("site", &long);
        let at = section.finish();
        assert_eq!(&bytes[at..at + 2], b"c1");
        encode_data_front(3, &mut bytes);
        bytes.extend_from_slice(b"one");
        let message = Message::decode(&bytes[3..]).unwrap();
        assert_eq!((message.application_property("pubmark"), &*message.body), (Some("c1"), &b"one"[..]));
        assert_eq!((message.application_property("site"), message.application_property("x")), (Some(&*long), None));
        let mut twice = Vec::new();
        let mut section = ApplicationProperties::begin(&mut twice);
        section.text("pubmark", "c1");
        section.text("pubmark", "c2");
        section.finish();
        encode_data_front(0, &mut twice);
        assert_eq!(Message::decode(&twice).unwrap().application_property("pubmark"), Some(""));
        // A number under the name; a map with a key and no value is no message.
        let with = |map: &[u8]| [b"\0\x53\x74", map, b"\0\x53\x75\xa0\x03one"].concat();
        let number = with(b"\xc1\x0a\x02\xa1\x06number\x43");
        assert_eq!(Message::decode(&number).unwrap().application_property("number"), None);
        assert!(Message::decode(&with(b"\xc1\x09\x01\xa1\x06number")).is_err());
    }

    #[test]
    fn application_properties_have_types() {
        let mut out = vec![];
        let mut section = ApplicationProperties::begin(&mut out);
        section.double("n", 1.5);
        section.boolean("y", true);
        section.boolean("z", false);
        section.text("t", "x");
        assert_eq!(section.finish(), out.len() - 1);
        let head = b"\0\x53\x74\xd1\0\0\0\x1e\0\0\0\x08";
        let pairs = b"\xa1\x01n\x82\x3f\xf8\0\0\0\0\0\0\xa1\x01y\x41\xa1\x01z\x42\xa1\x01t\xa1\x01x";
        assert_eq!(out, [&head[..], pairs].concat(), "{}", out.escape_ascii());
    }

    #[test]
    fn properties_of_other_types_are_an_error_of_their_own() {
        // A list as the correlation id, a number as the address.
        for fields in [&[0x40, 0x40, 0x40, 0x40, 0x40, 0x45][..], &[0x40, 0x40, 0x40, 0x40, 0x43]] {
            let list = [&[0, 0x53, 0x73, 0xc0, fields.len() as u8 + 1, fields.len() as u8][..], fields].concat();
            let bytes = [&list[..], b"\0\x53\x75\xa0\x03one"].concat();
            let message = Message::decode(&bytes).unwrap();
            assert!(message.properties().is_err());
            assert_eq!(message.body, &b"one"[..]);
        }
    }

    #[test]
    fn a_body_is_found_among_other_sections() {
        let header = [0, 0x53, 0x70, 0xc0, 2, 1, 0x41];
        let annotations = [0, 0x53, 0x72, 0xc1, 1, 0];
        let footer = [0, 0x53, 0x78, 0xc1, 1, 0];
        let data: &[u8] = b"\0\x53\x75\xa0\x03one";
        let named: &[u8] = b"\0\xa3\x10amqp:data:binary\xa0\x03two";
        assert_eq!(body(data).unwrap(), &b"one"[..]);
        assert_eq!(body(named).unwrap(), &b"two"[..]);
        let all = [&header[..], &annotations, data, named, &footer].concat();
        assert_eq!(body(&all).unwrap(), &b"onetwo"[..]);
        assert_eq!(body(b"\0\x53\x77\xa1\x04text").unwrap(), &b"text"[..]);
        assert_eq!(body(b"\0\x53\x77\x41").unwrap(), &b"\0\x53\x77\x41"[..]);
        assert_eq!(body(&header).unwrap(), &b""[..]);
        assert_eq!(body(b"").unwrap(), &b""[..]);
        for wrong in [&b"\x41"[..], b"\0\x53\x75\xa1\x01a", b"\0\x53\x24\x45", b"\0\x53\x75\xa0\x05one"] {
            assert!(body(wrong).is_err(), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn the_length_of_a_message_is_known_before_it_is_encoded() {
        for bytes in [0, 16, 255, 256, 65_536] {
            let mut out = Vec::new();
            encode_data_front(bytes, &mut out);
            assert_eq!(out.len() + bytes, message_bytes(bytes));
        }
    }
}
