//! WebSocket (RFC 6455) between the socket, or TLS, and a protocol: the client's side, without I/O.
//!
//! [`WebSocket`] is a layer of a connection: bytes of the server's go in and come out without frames, bytes of ours come out in
//! masked binary frames. Of the server's frames only the front of a header and a control frame's payload are stored, so their
//! announced lengths cost no memory. A protocol sees a stream of bytes: the boundaries of frames have no meaning for it (MQTT
//! 5.0 §6.0).

mod frames;
mod handshake;

pub use handshake::accept_key;

use std::ops::Range;

use ring::rand::{SecureRandom, SystemRandom};

use crate::clock;
use crate::endpoint::Upgrade;
use frames::{Control, FrameReader, append_frame};
use handshake::HandshakeResponse;

/// Plain bytes of one frame at most: with its header it fits a TLS record.
pub const FRAME_BYTES: usize = 16 * 1024 - 8;
/// Most memory for outgoing bytes that an idle connection retains.
const RETAINED_BYTES: usize = 1_024;
/// Close code of a normal closure (RFC 6455 §7.4.1).
const NORMAL_CLOSURE: u16 = 1_000;

const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PONG: u8 = 0xa;

/// Why a WebSocket ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server responded to the handshake with another status than 101.
    Refused {
        /// HTTP status.
        status: u16,
        /// The reason phrase.
        reason: String,
    },
    /// The response to the handshake is invalid, or does not match the request.
    Handshake(String),
    /// A frame that violates the protocol.
    Frame(&'static str),
    /// The server closed it.
    Closed {
        /// Its code, if it sent one.
        code: Option<u16>,
        /// Its reason.
        reason: String,
    },
}

#[derive(Debug)]
enum State {
    /// The response to the handshake is awaited.
    Opening(HandshakeResponse),
    Open,
    Over(Fault),
}

/// The client's side of a WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    state: State,
    reader: FrameReader,
    /// Bytes for the socket, of which the first `sent` are written.
    outgoing: Vec<u8>,
    sent: usize,
    /// The payload of the latest data frame in `outgoing`.
    payload: Range<usize>,
    /// Bytes of payload that were accepted since [`WebSocket::take_accepted`].
    accepted: usize,
    /// Payload of the newest ping without a pong; older ones need none (RFC 6455 §5.5.3).
    ping: Option<Vec<u8>>,
    masks: Masks,
}

impl WebSocket {
    /// A WebSocket whose handshake request is in its output.
    pub fn new(upgrade: &Upgrade) -> WebSocket {
        let (request, response) = handshake::begin(upgrade, random());
        WebSocket {
            state: State::Opening(response),
            reader: FrameReader::default(),
            outgoing: request,
            sent: 0,
            payload: 0..0,
            accepted: 0,
            ping: None,
            masks: Masks(u64::from_le_bytes(random())),
        }
    }

    /// Has the server agreed, and is it not over?
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// Is the server's response to the handshake awaited?
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening(_))
    }

    /// Why it is over, if it is.
    pub fn fault(&self) -> Option<&Fault> {
        match &self.state {
            State::Over(fault) => Some(fault),
            _ => None,
        }
    }

    /// Appends the payload of the server's bytes to `out`; true if the WebSocket has ended after them.
    pub fn read(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> bool {
        if let State::Opening(response) = &mut self.state {
            match response.read(bytes) {
                Ok(None) => return false,
                Ok(Some(used)) => {
                    bytes = &bytes[used..];
                    self.state = State::Open;
                }
                Err(fault) => self.state = State::Over(fault),
            }
        }
        if !self.is_open() {
            return true;
        }
        let ping = &mut self.ping;
        let result = self.reader.read(bytes, out, |control| match control {
            Control::Ping(payload) => {
                *ping = Some(payload.to_vec());
                Ok(())
            }
            Control::Close { code, reason } => Err(Fault::Closed { code, reason }),
        });
        let Err(fault) = result else { return false };
        if matches!(fault, Fault::Closed { .. }) {
            self.close();
        }
        self.state = State::Over(fault);
        true
    }

    /// Was the last byte read part of a data frame's payload, and not of its header or of a control frame?
    pub fn ends_with_data(&self) -> bool {
        self.reader.ends_with_data()
    }

    /// Puts plain bytes, [`FRAME_BYTES`] at most, into a frame after the output so far. Where their way is followed
    /// ([`WebSocket::take_accepted`]), the frame before must have been accepted whole.
    pub fn put(&mut self, plain: &[u8]) {
        append_frame(BINARY, plain, self.masks.draw(), &mut self.outgoing);
        self.payload = self.outgoing.len() - plain.len()..self.outgoing.len();
    }

    /// Sends a close frame; nothing of ours may follow.
    pub fn close(&mut self) {
        if self.is_open() {
            append_frame(CLOSE, &NORMAL_CLOSURE.to_be_bytes(), self.masks.draw(), &mut self.outgoing);
        }
    }

    /// Bytes for the socket.
    pub fn outgoing(&mut self) -> &[u8] {
        if let Some(payload) = self.ping.take_if(|_| self.sent == self.outgoing.len()) {
            append_frame(PONG, &payload, self.masks.draw(), &mut self.outgoing);
        }
        &self.outgoing[self.sent..]
    }

    /// Is there anything for the socket?
    pub fn wants_write(&self) -> bool {
        self.sent < self.outgoing.len() || self.ping.is_some()
    }

    /// Bytes that wait for the socket.
    pub fn waiting_bytes(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// Those of them that are payload of the latest data frame.
    pub fn waiting_payload_bytes(&self) -> usize {
        self.payload.end.saturating_sub(self.payload.start.max(self.sent))
    }

    /// How many bytes of payload were accepted since the last call: the peer may decode a frame as it arrives.
    pub fn take_accepted(&mut self) -> usize {
        std::mem::take(&mut self.accepted)
    }

    /// The first `bytes` of [`WebSocket::outgoing`] were accepted.
    pub fn took(&mut self, bytes: usize) {
        let before = self.waiting_payload_bytes();
        self.sent += bytes;
        self.accepted += before - self.waiting_payload_bytes();
        if self.sent >= self.outgoing.len() {
            self.sent = 0;
            self.payload = 0..0;
            self.outgoing.clear();
            // An idle connection must not retain memory for the largest frame it ever wrote.
            if self.outgoing.capacity() > RETAINED_BYTES {
                self.outgoing = Vec::new();
            }
        }
    }
}

/// Masks of a connection. They prevent proxies from taking a client's bytes for HTTP (RFC 6455 §10.3), so a web page must not
/// be able to choose them; pubmark sends its own data, so a generator seeded by the kernel for each connection is sufficient.
#[derive(Debug)]
struct Masks(u64);

impl Masks {
    /// The next one (splitmix64).
    fn draw(&mut self) -> [u8; 4] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) as u32).to_le_bytes()
    }
}

/// Unpredictable bytes.
fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // The kernel returned none, which does not happen on a running Linux: the time is better than the same bytes for all.
        let now = clock::monotonic_ns().to_le_bytes();
        bytes.iter_mut().zip(now.iter().cycle()).for_each(|(byte, part)| *byte = *part);
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "tests.rs"]
mod tests;
