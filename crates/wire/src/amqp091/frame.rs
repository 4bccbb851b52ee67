//! Cuts frames out of a stream of bytes (§4.2.3).

use super::error::DecodeError;
use super::{FRAME_END, FRAME_EXTRA_BYTES, PROTOCOL_HEADER};
use crate::front::Front;

/// Octets ahead of a frame's payload: type, channel, size.
const FRONT_BYTES: usize = 7;
/// What a protocol header begins with.
const NAME: &[u8] = b"AMQP";

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A method with its arguments.
    Method,
    /// The header of a message.
    Header,
    /// A part of a message.
    Body,
    /// Nothing.
    Heartbeat,
}

impl Kind {
    /// The kind with this octet.
    fn of(octet: u8) -> Option<Kind> {
        match octet {
            1 => Some(Kind::Method),
            2 => Some(Kind::Header),
            3 => Some(Kind::Body),
            8 => Some(Kind::Heartbeat),
            _ => None,
        }
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it carries.
    pub kind: Kind,
    /// Its channel; 0 is the connection.
    pub channel: u16,
    /// What it carries, without the octets around it.
    pub payload: &'a [u8],
}

/// The version that a server sends when it does not support ours: the last four octets of its protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub [u8; 4]);

/// AMQP 1.0 has an identifier, major, minor and revision (1.0 §2.2), 0-9-1 a zero and its three numbers.
impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [0, 0, major, minor] if major > 0 => write!(formatter, "AMQP 0-{major}-{minor}"),
            [0, major, minor, revision] => write!(formatter, "AMQP {major}.{minor}.{revision}"),
            [identifier, major, minor, _] => write!(formatter, "AMQP {major}.{minor} of kind {identifier}"),
        }
    }
}

/// A unit that a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// A protocol header: it does not support our version, and closes.
    Version(Version),
}

/// What is at the front of `buffer`, which is not empty.
///
/// # Errors
/// As soon as bytes cannot be a frame, or announce one of more than `most_bytes`, so that a reader never has to hold more.
#[inline]
pub fn next(buffer: &[u8], most_bytes: usize) -> Result<Front<Item<'_>>, DecodeError> {
    let Some(first) = buffer.first().copied() else { return Ok(Front::Partial(None)) };
    let Some(kind) = Kind::of(first) else { return protocol_header(buffer, first) };
    let Some(&[_, channel_high, channel_low, a, b, c, d]) = buffer.first_chunk::<FRONT_BYTES>() else {
        return Ok(Front::Partial(None));
    };
    let payload_bytes = u32::from_be_bytes([a, b, c, d]) as usize;
    let bytes = payload_bytes.saturating_add(FRAME_EXTRA_BYTES);
    if bytes > most_bytes {
        return Err(DecodeError::TooLarge { bytes, limit: most_bytes });
    }
    let Some(whole) = buffer.get(FRONT_BYTES..bytes) else { return Ok(Front::Partial(Some(bytes))) };
    match whole.split_last() {
        Some((&FRAME_END, payload)) => {
            let frame = Frame { kind, channel: u16::from_be_bytes([channel_high, channel_low]), payload };
            Ok(Front::Whole { packet: Item::Frame(frame), bytes })
        }
        Some((&end, _)) => Err(DecodeError::FrameEnd(end)),
        None => Ok(Front::Partial(Some(bytes))),
    }
}

/// A server that does not support our version sends the one that it does.
#[cold]
fn protocol_header(buffer: &[u8], first: u8) -> Result<Front<Item<'_>>, DecodeError> {
    if !NAME.iter().zip(buffer).all(|(expected, found)| expected == found) {
        return Err(DecodeError::FrameType(first));
    }
    let bytes = PROTOCOL_HEADER.len();
    Ok(match buffer.first_chunk::<8>() {
        Some(&[_, _, _, _, a, b, c, d]) => Front::Whole { packet: Item::Version(Version([a, b, c, d])), bytes },
        None => Front::Partial(Some(bytes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &[u8] = b"\x03\x00\x01\x00\x00\x00\x02hi\xce";

    #[test]
    fn frames_are_cut_and_every_front_waits_for_more() {
        let frame = Frame { kind: Kind::Body, channel: 1, payload: b"hi" };
        let two = [FRAME, super::super::HEARTBEAT].concat();
        assert_eq!(next(&two, 100), Ok(Front::Whole { packet: Item::Frame(frame), bytes: FRAME.len() }));
        let silence = Frame { kind: Kind::Heartbeat, channel: 0, payload: b"" };
        assert_eq!(next(&two[FRAME.len()..], 100), Ok(Front::Whole { packet: Item::Frame(silence), bytes: 8 }));
        for length in 0..FRAME.len() {
            let expected = if length < FRONT_BYTES { None } else { Some(FRAME.len()) };
            assert_eq!(next(&FRAME[..length], 100), Ok(Front::Partial(expected)), "{length}");
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused_as_early_as_possible() {
        assert_eq!(next(b"H", 100), Err(DecodeError::FrameType(b'H')));
        assert_eq!(next(b"AMX", 100), Err(DecodeError::FrameType(b'A')));
        assert_eq!(next(b"\x03\x00\x01\x00\x00\x00\x02hi\x00", 100), Err(DecodeError::FrameEnd(0)));
        let too_large = DecodeError::TooLarge { bytes: 101, limit: 100 };
        assert_eq!(next(b"\x03\x00\x01\x00\x00\x00\x5d", 100), Err(too_large));
        assert!(matches!(next(b"\x01\x00\x00\xff\xff\xff\xff", 100), Err(DecodeError::TooLarge { .. })));
    }

    #[test]
    fn a_server_of_another_version_names_it() {
        for (header, shown) in [
            (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1"),
            (b"AMQP\x00\x01\x00\x00", "AMQP 1.0.0"),
            (b"AMQP\x03\x01\x00\x00", "AMQP 1.0 of kind 3"),
        ] {
            let Ok(Front::Whole { packet: Item::Version(version), bytes: 8 }) = next(header, 100) else {
                panic!("{}", header.escape_ascii());
            };
            assert_eq!(version.to_string(), shown);
        }
        assert_eq!(next(b"AMQP\x00", 100), Ok(Front::Partial(Some(8))));
    }
}
