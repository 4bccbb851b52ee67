//! Protocol headers and frames (part 2, §2.2 and §2.3).

use super::error::DecodeError;
use crate::front::Front;

/// Bytes of a protocol header, and of a frame's header.
pub const HEADER_BYTES: usize = 8;
/// Largest frame that everybody must take (part 2, §2.3.1, MIN-MAX-FRAME-SIZE).
pub const SMALLEST_FRAME_LIMIT: usize = 512;
/// Where every protocol header begins.
const NAME: &[u8] = b"AMQP";

/// The eight bytes with which each side begins: a protocol and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolHeader {
    /// 0 AMQP, 2 TLS, 3 SASL.
    pub id: u8,
    /// Major, minor, revision.
    pub version: [u8; 3],
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Connections, sessions, links.
    Amqp,
    /// The log-in.
    Sasl,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is for.
    pub kind: FrameKind,
    /// The channel; means nothing for SASL.
    pub channel: u16,
    /// What is in it; empty for a sign of life.
    pub body: &'a [u8],
}

/// What stands at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A protocol header.
    Header(ProtocolHeader),
    /// A frame.
    Frame(Frame<'a>),
}

impl ProtocolHeader {
    /// AMQP 1.0.0.
    pub const AMQP: ProtocolHeader = ProtocolHeader { id: 0, version: [1, 0, 0] };
    /// SASL for AMQP 1.0.0.
    pub const SASL: ProtocolHeader = ProtocolHeader { id: 3, version: [1, 0, 0] };

    /// Appends it.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(NAME);
        out.push(self.id);
        out.extend_from_slice(&self.version);
    }
}

impl std::fmt::Display for ProtocolHeader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, revision] = self.version;
        match (self.id, self.version) {
            // The older protocol puts its version elsewhere.
            (0, [0, 9, 1]) => formatter.write_str("AMQP 0-9-1"),
            (0, _) => write!(formatter, "AMQP {major}.{minor}.{revision}"),
            (2, _) => write!(formatter, "TLS for AMQP {major}.{minor}.{revision}"),
            (3, _) => write!(formatter, "SASL for AMQP {major}.{minor}.{revision}"),
            (id, _) => write!(formatter, "protocol {id} of AMQP {major}.{minor}.{revision}"),
        }
    }
}

/// The protocol header or frame at the front of `bytes`; frames of up to `most_bytes` are accepted.
pub fn next(bytes: &[u8], most_bytes: usize) -> Result<Front<Packet<'_>>, DecodeError> {
    let name = &bytes[..bytes.len().min(NAME.len())];
    if !bytes.is_empty() && NAME.starts_with(name) {
        return Ok(match bytes {
            [_, _, _, _, id, major, minor, revision, ..] => {
                let header = ProtocolHeader { id: *id, version: [*major, *minor, *revision] };
                Front::Whole { packet: Packet::Header(header), bytes: HEADER_BYTES }
            }
            _ => Front::Partial(Some(HEADER_BYTES)),
        });
    }
    let Some(size) = bytes.first_chunk::<4>() else { return Ok(Front::Partial(Some(HEADER_BYTES))) };
    let total = u32::from_be_bytes(*size) as usize;
    if total < HEADER_BYTES {
        return Err(DecodeError::FrameTooSmall { bytes: total });
    }
    if total > most_bytes {
        return Err(DecodeError::FrameTooLarge { bytes: total, limit: most_bytes });
    }
    let Some(&[_, _, _, _, offset, kind, high, low]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(Front::Partial(Some(total)));
    };
    let begin = usize::from(offset) * 4;
    if begin < HEADER_BYTES || begin > total {
        return Err(DecodeError::DataOffset { bytes: total, offset });
    }
    let kind = match kind {
        0 => FrameKind::Amqp,
        1 => FrameKind::Sasl,
        other => return Err(DecodeError::FrameType(other)),
    };
    let Some(body) = bytes.get(begin..total) else { return Ok(Front::Partial(Some(total))) };
    let frame = Frame { kind, channel: u16::from_be_bytes([high, low]), body };
    Ok(Front::Whole { packet: Packet::Frame(frame), bytes: total })
}

/// Appends a frame with what `write` appends as its body.
pub fn encode_frame(kind: FrameKind, channel: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = begin_frame(kind, channel, out);
    write(out);
    end_frame(start, 0, out);
}

/// Appends the header of a frame and returns its offset, for [`end_frame`].
pub fn begin_frame(kind: FrameKind, channel: u16, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    let [high, low] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, 2, u8::from(kind == FrameKind::Sasl), high, low]);
    start
}

/// Puts the size into the frame that begins at `start`; `more_bytes` will follow those there are.
pub fn end_frame(start: usize, more_bytes: usize, out: &mut [u8]) {
    let size = (out.len() - start + more_bytes) as u32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// Appends a sign of life: a frame with nothing in it.
pub fn encode_empty(out: &mut Vec<u8>) {
    encode_frame(FrameKind::Amqp, 0, out, |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_frames_are_distinguished_at_every_length() {
        let bytes = b"AMQP\x03\x01\x00\x00";
        for length in 1..8 {
            assert_eq!(next(&bytes[..length], 1_000), Ok(Front::Partial(Some(8))));
        }
        let packet = Packet::Header(ProtocolHeader::SASL);
        assert_eq!(next(bytes, 1_000), Ok(Front::Whole { packet, bytes: 8 }));
        let mut frame = Vec::new();
        encode_frame(FrameKind::Sasl, 0x102, &mut frame, |out| out.extend_from_slice(b"body"));
        assert_eq!(frame, b"\0\0\0\x0c\x02\x01\x01\x02body");
        for length in 1..12 {
            assert_eq!(next(&frame[..length], 12), Ok(Front::Partial(Some(if length < 4 { 8 } else { 12 }))));
        }
        let packet = Packet::Frame(Frame { kind: FrameKind::Sasl, channel: 0x102, body: b"body" });
        assert_eq!(next(&frame, 12), Ok(Front::Whole { packet, bytes: 12 }));
    }

    #[test]
    fn an_extended_header_is_skipped_and_a_bad_one_refused() {
        let extended = b"\0\0\0\x10\x03\0\0\0xxxxbody";
        let packet = Packet::Frame(Frame { kind: FrameKind::Amqp, channel: 0, body: b"body" });
        assert_eq!(next(extended, 100), Ok(Front::Whole { packet, bytes: 16 }));
        for (bytes, error) in [
            (&b"\0\0\0\x07"[..], DecodeError::FrameTooSmall { bytes: 7 }),
            (b"\0\0\0\x65", DecodeError::FrameTooLarge { bytes: 101, limit: 100 }),
            (b"AMQR", DecodeError::FrameTooLarge { bytes: 0x414d_5152, limit: 100 }),
            (b"HTTP/1.1", DecodeError::FrameTooLarge { bytes: 0x4854_5450, limit: 100 }),
            (b"\0\0\0\x10\x01\0\0\0", DecodeError::DataOffset { bytes: 16, offset: 1 }),
            (b"\0\0\0\x10\x05\0\0\0", DecodeError::DataOffset { bytes: 16, offset: 5 }),
            (b"\0\0\0\x10\x02\x02\0\0", DecodeError::FrameType(2)),
        ] {
            assert_eq!(next(bytes, 100), Err(error), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn protocols_have_names() {
        let shown = |id, version| ProtocolHeader { id, version }.to_string();
        assert_eq!(shown(0, [0, 9, 1]), "AMQP 0-9-1");
        assert_eq!(shown(0, [1, 0, 0]), "AMQP 1.0.0");
        assert_eq!(shown(3, [1, 0, 0]), "SASL for AMQP 1.0.0");
    }
}
