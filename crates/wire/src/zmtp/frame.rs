//! Cuts a greeting, commands and the frames of messages out of a stream of bytes (37/ZMTP, "Framing").
//!
//! Frames are given one by one: a peer may put a command between two frames of a message, as libzmq does with PONG.

use super::error::DecodeError;
use super::greeting::{self, Greeting, SIGNATURE_FIRST};
use crate::front::Front;

/// More frames of the message follow.
pub(super) const MORE: u8 = 0x01;
/// The size has eight bytes.
pub(super) const LONG: u8 = 0x02;
/// It is a command.
pub(super) const COMMAND: u8 = 0x04;
/// Longest body of a command that is accepted: SUBSCRIBE with the longest topic of MQTT's syntax.
pub const LONGEST_COMMAND_BYTES: usize = 10 + 65_535;

/// What a peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// Its greeting. That it comes first, and once, is for the caller to see.
    Greeting(Greeting),
    /// The body of a command; [`super::Command::read`] decodes it.
    Command(&'a [u8]),
    /// A frame of a message.
    Frame {
        /// More of them follow.
        more: bool,
        /// What is in it.
        body: &'a [u8],
    },
}

/// What is at the front of `bytes`, which are not empty.
///
/// # Errors
/// As soon as it cannot be anything, or announces more than `most_bytes` (a command: more than [`LONGEST_COMMAND_BYTES`]), so
/// that a reader never has to hold more.
#[inline]
pub fn next(bytes: &[u8], most_bytes: usize) -> Result<Front<Item<'_>>, DecodeError> {
    let flags = match bytes.first() {
        None => return Ok(Front::Partial(Some(1))),
        Some(&SIGNATURE_FIRST) => return greeting::next(bytes),
        Some(flags) => *flags,
    };
    if flags & !(MORE | LONG | COMMAND) != 0 || flags & (MORE | COMMAND) == MORE | COMMAND {
        return Err(DecodeError::Flags(flags));
    }
    let (size, body_at) = if flags & LONG == 0 {
        let Some(size) = bytes.get(1) else { return Ok(Front::Partial(Some(2))) };
        (u64::from(*size), 2)
    } else {
        let Some(size) = bytes.get(1..9).and_then(|size| size.try_into().ok()) else {
            return Ok(Front::Partial(Some(9)));
        };
        (u64::from_be_bytes(size), 9)
    };
    let is_command = flags & COMMAND != 0;
    let limit = if is_command { most_bytes.min(LONGEST_COMMAND_BYTES) } else { most_bytes };
    let end = usize::try_from(size).ok().and_then(|size| size.checked_add(body_at));
    let Some(end) = end.filter(|end| *end - body_at <= limit && *end <= most_bytes) else {
        return Err(DecodeError::TooLarge { bytes: size, limit });
    };
    let Some(body) = bytes.get(body_at..end) else { return Ok(Front::Partial(Some(end))) };
    let item = if is_command { Item::Command(body) } else { Item::Frame { more: flags & MORE != 0, body } };
    Ok(Front::Whole { packet: item, bytes: end })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_both_sizes_are_read() {
        let frame = |more, body| Item::Frame { more, body };
        for (bytes, item) in [
            (&b"\x00\x02hi"[..], frame(false, &b"hi"[..])),
            (b"\x01\x01a", frame(true, b"a")),
            (b"\x00\x00", frame(false, b"")),
            (b"\x02\0\0\0\0\0\0\0\x02hi", frame(false, b"hi")),
            (b"\x03\0\0\0\0\0\0\0\x01a", frame(true, b"a")),
            (b"\x04\x05\x04PONG", Item::Command(b"\x04PONG")),
            (b"\x06\0\0\0\0\0\0\0\x05\x04PONG", Item::Command(b"\x04PONG")),
        ] {
            let whole = Ok(Front::Whole { packet: item, bytes: bytes.len() });
            assert_eq!(next(bytes, 1_000), whole);
            assert_eq!(next(&[bytes, b"\xff"].concat(), 1_000), whole);
            for length in 1..bytes.len() {
                let Ok(Front::Partial(Some(least))) = next(&bytes[..length], 1_000) else { panic!("{length}") };
                assert!(least > length && least <= bytes.len(), "{length}: {least}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused_and_no_length_exceeds_the_limit() {
        for flags in [0x05, 0x07, 0x08, 0x10, 0x15, 0x48, 0xfe] {
            assert_eq!(next(&[flags], 1_000), Err(DecodeError::Flags(flags)));
        }
        let long = |flags: u8, size: u64| [&[flags][..], &size.to_be_bytes()].concat();
        assert_eq!(next(&long(0x02, 991), 1_000), Ok(Front::Partial(Some(1_000))));
        for size in [992, 1 << 40, u64::MAX] {
            assert_eq!(next(&long(0x02, size), 1_000), Err(DecodeError::TooLarge { bytes: size, limit: 1_000 }));
        }
        let longest = LONGEST_COMMAND_BYTES as u64;
        assert_eq!(next(&long(0x06, longest), usize::MAX), Ok(Front::Partial(Some(LONGEST_COMMAND_BYTES + 9))));
        assert!(matches!(next(&long(0x06, longest + 1), usize::MAX), Err(DecodeError::TooLarge { .. })));
    }
}
