//! Frames (RFC 6455 §5): decodes the server's as their bytes arrive, encodes and masks ours.

use super::{CLOSE, Fault, PONG};

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const PING: u8 = 0x9;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
/// Payload of a control frame at most (§5.5).
const LONGEST_CONTROL: usize = 125;
/// Longest header of a frame without a mask.
const LONGEST_HEADER: usize = 10;

/// Content of a control frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control<'a> {
    /// The response must repeat the same bytes.
    Ping(&'a [u8]),
    /// The server closes the WebSocket.
    Close { code: Option<u16>, reason: String },
}

/// The frame whose payload is being received.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    is_final: bool,
    /// Bytes of its payload that have not arrived.
    left: u64,
}

/// Decodes the server's frames.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    /// The front of a header that is not complete.
    header: [u8; LONGEST_HEADER],
    held: usize,
    frame: Option<Frame>,
    /// Payload of the present control frame so far.
    control: Vec<u8>,
    /// A message was begun, and its last frame has not arrived.
    in_message: bool,
    ends_with_data: bool,
}

impl FrameReader {
    pub(super) fn ends_with_data(&self) -> bool {
        self.ends_with_data
    }

    /// Appends the payload of data frames to `out` and passes control frames to `control`, in order.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        mut control: impl FnMut(Control<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        while !bytes.is_empty() {
            self.ends_with_data = false;
            match self.frame.as_mut() {
                None => bytes = self.read_header(bytes)?,
                Some(frame) => {
                    let most = usize::try_from(frame.left).unwrap_or(usize::MAX);
                    let (payload, rest) = bytes.split_at(bytes.len().min(most));
                    frame.left -= payload.len() as u64;
                    if is_control(frame.opcode) {
                        self.control.extend_from_slice(payload);
                    } else {
                        out.extend_from_slice(payload);
                        self.ends_with_data = true;
                    }
                    bytes = rest;
                }
            }
            if let Some(frame) = self.frame.take_if(|frame| frame.left == 0) {
                self.finish(frame, &mut control)?;
            }
        }
        Ok(())
    }

    /// Reads bytes of a header; the frame starts when it is complete. Returns the bytes after it.
    fn read_header<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Fault> {
        let missing = self.header_bytes() - self.held;
        let (part, rest) = bytes.split_at(missing.min(bytes.len()));
        self.header[self.held..self.held + part.len()].copy_from_slice(part);
        self.held += part.len();
        if self.held == 2 {
            check_front(self.header[0], self.header[1], self.in_message)?;
        }
        if self.held >= 2 && self.held == self.header_bytes() {
            let left = length(&self.header[1..self.held])?;
            self.frame = Some(Frame { opcode: self.header[0] & 0x0f, is_final: self.header[0] & FINAL != 0, left });
            self.held = 0;
        }
        Ok(rest)
    }

    /// Bytes of the present header, as far as its front shows.
    fn header_bytes(&self) -> usize {
        match self.header[1] & !MASKED {
            _ if self.held < 2 => 2,
            126 => 4,
            127 => LONGEST_HEADER,
            _ => 2,
        }
    }

    /// The last byte of a frame has arrived.
    fn finish(
        &mut self,
        frame: Frame,
        control: &mut impl FnMut(Control<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if !is_control(frame.opcode) {
            self.in_message = !frame.is_final;
            return Ok(());
        }
        let result = match frame.opcode {
            PING => control(Control::Ping(&self.control)),
            CLOSE => close(&self.control).and_then(control),
            // An unsolicited pong needs no response (§5.5.3).
            _ => Ok(()),
        };
        self.control = Vec::new();
        result
    }
}

fn is_control(opcode: u8) -> bool {
    opcode & 0x8 != 0
}

/// The first two bytes of a header, before the rest is waited for.
fn check_front(first: u8, second: u8, in_message: bool) -> Result<(), Fault> {
    let opcode = first & 0x0f;
    let what = match opcode {
        _ if first & RESERVED != 0 => "a frame with reserved bits",
        _ if second & MASKED != 0 => "a masked frame of the server's",
        CLOSE | PING | PONG if first & FINAL == 0 => "a control frame in parts",
        CLOSE | PING | PONG if usize::from(second) > LONGEST_CONTROL => "a control frame of more than 125 B",
        CLOSE | PING | PONG => return Ok(()),
        CONTINUATION if in_message => return Ok(()),
        CONTINUATION => "a continuation of nothing",
        TEXT => "a frame of text where bytes were agreed on",
        BINARY if in_message => "a new message inside another",
        BINARY => return Ok(()),
        _ => "a frame of an unknown kind",
    };
    Err(Fault::Frame(what))
}

/// The length in a header after its first byte; as short as possible (§5.2).
fn length(bytes: &[u8]) -> Result<u64, Fault> {
    let value = bytes.iter().skip(1).fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    match bytes {
        [126, ..] if value < 126 => Err(Fault::Frame("a length longer than it needs to be")),
        [127, ..] if value <= u64::from(u16::MAX) => Err(Fault::Frame("a length longer than it needs to be")),
        [127, ..] if value >> 63 != 0 => Err(Fault::Frame("a length with its highest bit")),
        [126 | 127, ..] => Ok(value),
        [short, ..] => Ok(u64::from(*short)),
        [] => Ok(0),
    }
}

/// Decodes a close frame (§5.5.1).
fn close(payload: &[u8]) -> Result<Control<'static>, Fault> {
    match payload {
        [] => Ok(Control::Close { code: None, reason: String::new() }),
        [_] => Err(Fault::Frame("a close frame with half a code")),
        [high, low, reason @ ..] => Ok(Control::Close {
            code: Some(u16::from_be_bytes([*high, *low])),
            reason: printable(&String::from_utf8_lossy(reason), LONGEST_CONTROL),
        }),
    }
}

/// A server's text in printable form: one line, no control characters, not longer than `most` letters.
pub(super) fn printable(text: &str, most: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(most).collect()
}

/// Appends a final, masked frame (§5.2, §5.3).
pub(super) fn append_frame(opcode: u8, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
    out.push(FINAL | opcode);
    match payload.len() {
        short @ 0..126 => out.push(MASKED | short as u8),
        middle @ 126..0x1_0000 => {
            out.push(MASKED | 126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let begin = out.len();
    out.extend_from_slice(payload);
    let twice = u64::from_ne_bytes([mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3]]);
    let (words, rest) = out[begin..].as_chunks_mut::<8>();
    words.iter_mut().for_each(|word| *word = (u64::from_ne_bytes(*word) ^ twice).to_ne_bytes());
    rest.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}
