//! Reads the fields of one packet, never past its end.

use super::error::DecodeError;
use super::packet_type::PacketType;
use super::text::check_topic;

/// What is left of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) packet: PacketType,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(packet: PacketType, body: &'a [u8]) -> Reader<'a> {
        Reader { rest: body, packet }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(DecodeError::Truncated { packet: self.packet, field }),
        }
    }

    pub(crate) fn byte(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.bytes(1, field)?[0])
    }

    #[inline]
    pub(crate) fn two(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        let bytes = self.bytes(2, field)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(crate) fn four(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let bytes = self.bytes(4, field)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A number of one to four bytes, in its shortest form.
    pub(crate) fn variable(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let mut number = 0;
        for index in 0..4 {
            let byte = self.byte(field)?;
            number |= u32::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return if index > 0 && byte == 0 { Err(self.value(field, number)) } else { Ok(number) };
            }
        }
        Err(self.value(field, number))
    }

    pub(crate) fn binary(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.two(field)?;
        self.bytes(usize::from(length), field)
    }

    #[inline]
    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        let bytes = self.binary(field)?;
        match std::str::from_utf8(bytes) {
            Ok(text) if !bytes.contains(&0) => Ok(text),
            _ => Err(DecodeError::Text { packet: self.packet, field }),
        }
    }

    pub(crate) fn topic(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        let topic = self.text(field)?;
        if check_topic(topic) { Ok(topic) } else { Err(DecodeError::Topic { packet: self.packet, field }) }
    }

    #[inline]
    pub(crate) fn packet_id(&mut self) -> Result<u16, DecodeError> {
        match self.two("packet identifier")? {
            0 => Err(DecodeError::ZeroPacketId { packet: self.packet }),
            packet_id => Ok(packet_id),
        }
    }

    /// No byte may be left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            surplus_bytes => Err(DecodeError::Surplus { packet: self.packet, surplus_bytes }),
        }
    }

    pub(crate) fn value(&self, field: &'static str, value: u32) -> DecodeError {
        DecodeError::Value { packet: self.packet, field, value }
    }
}
