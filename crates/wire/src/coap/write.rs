//! Appends messages to a buffer.

use super::code::Code;
use super::message::{Kind, LONGEST_TOKEN_BYTES, VERSION_BITS};
use super::option::{PAYLOAD_MARKER, write_head};

/// A message being appended: options in the order of their numbers, then the payload.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    number: u16,
}

impl<'a> Writer<'a> {
    /// Appends header and token; a token has at most eight bytes, further ones are left out.
    pub fn new(kind: Kind, code: Code, message_id: u16, token: &[u8], out: &'a mut Vec<u8>) -> Writer<'a> {
        let token = &token[..token.len().min(LONGEST_TOKEN_BYTES)];
        let [high, low] = message_id.to_be_bytes();
        out.extend_from_slice(&[VERSION_BITS | kind.bits() << 4 | token.len() as u8, code.0, high, low]);
        out.extend_from_slice(token);
        Writer { out, number: 0 }
    }

    /// Appends an option; its number is not below that of the one before.
    pub fn option(&mut self, number: u16, value: &[u8]) {
        debug_assert!(number >= self.number, "options come in the order of their numbers");
        write_head(u32::from(number.saturating_sub(self.number)), value.len(), self.out);
        self.out.extend_from_slice(value);
        self.number = number;
    }

    /// Appends an option whose value is a number, in as few bytes as it takes (RFC 7252 §3.2).
    pub fn uint(&mut self, number: u16, value: u32) {
        let bytes = value.to_be_bytes();
        self.option(number, &bytes[value.leading_zeros() as usize / 8..]);
    }

    /// Ends the options: what is appended to the buffer from here on is the payload, which must not stay empty.
    pub fn payload(self) -> &'a mut Vec<u8> {
        self.out.push(PAYLOAD_MARKER);
        self.out
    }

    /// Ends the message with a payload, if there is one.
    pub fn end(self, payload: &[u8]) {
        if !payload.is_empty() {
            self.payload().extend_from_slice(payload);
        }
    }
}

/// Appends a message that carries nothing: a ping, an acknowledgement alone, a reset.
pub fn encode_empty(kind: Kind, message_id: u16, out: &mut Vec<u8>) {
    Writer::new(kind, Code::EMPTY, message_id, &[], out).end(&[]);
}
