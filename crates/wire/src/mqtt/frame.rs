//! Cuts packets out of a stream of bytes.

use super::error::DecodeError;
use super::packet_type::PacketType;

/// Largest number of bytes behind a fixed header (MQTT 5.0 §1.5.5).
pub const MAXIMUM_REMAINING_LENGTH: usize = 268_435_455;

/// One whole packet, still in the buffer it was read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Type and flags.
    pub first_byte: u8,
    /// Everything behind the fixed header.
    pub body: &'a [u8],
    /// Bytes of the whole packet: where the next one begins.
    pub total_bytes: usize,
}

impl Frame<'_> {
    /// The packet's type; `None` for the reserved number 0, which [`frame`] never returns.
    pub fn packet_type(&self) -> Option<PacketType> {
        PacketType::of(self.first_byte)
    }

    /// The lower four bits of the first byte.
    pub fn flags(&self) -> u8 {
        self.first_byte & 0x0f
    }
}

/// The packet at the front of `buffer`; `None` while it is not all there.
///
/// # Errors
/// [`DecodeError::ReservedType`], [`DecodeError::RemainingLength`], and [`DecodeError::TooLarge`] as soon as the fixed header
/// was read, so that a reader never has to hold more than `maximum_packet_bytes`.
#[inline]
pub fn frame(buffer: &[u8], maximum_packet_bytes: usize) -> Result<Option<Frame<'_>>, DecodeError> {
    let [first_byte, length, ..] = *buffer else {
        // One byte is enough to turn away a stream that is no MQTT.
        return match buffer.first() {
            Some(first) if first >> 4 == 0 => Err(DecodeError::ReservedType),
            _ => Ok(None),
        };
    };
    if first_byte >> 4 == 0 {
        return Err(DecodeError::ReservedType);
    }
    let (remaining, header_bytes) = if length < 0x80 {
        (usize::from(length), 2)
    } else {
        match long_length(buffer)? {
            Some(found) => found,
            None => return Ok(None),
        }
    };
    let total_bytes = header_bytes + remaining;
    if total_bytes > maximum_packet_bytes {
        return Err(DecodeError::TooLarge { packet_bytes: total_bytes, maximum_packet_bytes });
    }
    Ok(buffer.get(header_bytes..total_bytes).map(|body| Frame { first_byte, body, total_bytes }))
}

/// A remaining length of two to four bytes and the bytes of the fixed header.
fn long_length(buffer: &[u8]) -> Result<Option<(usize, usize)>, DecodeError> {
    let mut remaining = 0;
    for (index, byte) in buffer[1..].iter().take(4).enumerate() {
        remaining |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            // The standard requires the shortest form (MQTT 5.0 §1.5.5).
            return if index > 0 && *byte == 0 {
                Err(DecodeError::RemainingLength)
            } else {
                Ok(Some((remaining, index + 2)))
            };
        }
    }
    if buffer.len() >= 5 { Err(DecodeError::RemainingLength) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_cut_where_it_ends() {
        let buffer = [0x30, 2, b'a', b'b', 0xc0, 0];
        let first = frame(&buffer, 100).expect("well formed").expect("whole");
        assert_eq!((first.body, first.total_bytes), (&b"ab"[..], 4));
        let second = frame(&buffer[4..], 100).expect("well formed").expect("whole");
        assert_eq!((second.packet_type(), second.total_bytes), (Some(PacketType::Pingreq), 2));
        assert_eq!(frame(&[], 100), Ok(None));
    }

    #[test]
    fn every_prefix_of_a_packet_waits_for_more() {
        let mut buffer = vec![0x30, 0xc8, 0x01];
        buffer.resize(203, 7);
        for length in 0..buffer.len() {
            assert_eq!(frame(&buffer[..length], 1_000), Ok(None), "{length}");
        }
        assert_eq!(frame(&buffer, 1_000).expect("well formed").expect("whole").total_bytes, 203);
    }

    #[test]
    fn a_large_packet_is_refused_before_its_body_comes() {
        let refused = DecodeError::TooLarge { packet_bytes: 203, maximum_packet_bytes: 202 };
        assert_eq!(frame(&[0x30, 0xc8, 0x01], 202), Err(refused));
    }

    #[test]
    fn lengths_that_are_none_are_errors() {
        assert_eq!(frame(&[0x30, 0xff, 0xff, 0xff, 0xff], usize::MAX), Err(DecodeError::RemainingLength));
        assert_eq!(frame(&[0x30, 0x80, 0x00], usize::MAX), Err(DecodeError::RemainingLength));
        assert_eq!(frame(&[0x30, 0xff, 0xff, 0xff], usize::MAX), Ok(None));
        assert_eq!(frame(&[0x00], usize::MAX), Err(DecodeError::ReservedType));
    }
}
