//! Frames to bytes: four of length, one of kind, the fields in the order of their documentation. All numbers little-endian.

use super::frames::{FromProgram, ToProgram};
use super::{LENGTH_BYTES, LONGEST_TEXT};

/// Numbers of the kinds of frames.
pub(super) mod kind {
    pub const BEGIN: u8 = 0x01;
    pub const PING: u8 = 0x02;
    pub const GOODBYE: u8 = 0x03;
    pub const TOPIC: u8 = 0x04;
    pub const CONNECT: u8 = 0x05;
    pub const SUBSCRIBE: u8 = 0x06;
    pub const PUBLISH: u8 = 0x07;
    pub const DISCONNECT: u8 = 0x08;
    pub const HELLO: u8 = 0x81;
    pub const PONG: u8 = 0x82;
    pub const GOODBYE_OF_PROGRAM: u8 = 0x83;
    pub const CONNECTED: u8 = 0x84;
    pub const CLOSED: u8 = 0x85;
    pub const GRANTED: u8 = 0x86;
    pub const WRITTEN: u8 = 0x87;
    pub const ABANDONED: u8 = 0x88;
    pub const ACKNOWLEDGED: u8 = 0x89;
    pub const DELIVERED: u8 = 0x8a;
    pub const REVOKED: u8 = 0x8b;
}

/// Begins a frame at the end of `out`; where it begins.
fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(kind);
    at
}

/// Ends the frame that begins at `at` and goes to the end of `out`.
pub fn finish(out: &mut [u8], at: usize) {
    let length = (out.len() - at - LENGTH_BYTES) as u32;
    out[at..at + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// Begins a frame of a session.
fn begin_of(out: &mut Vec<u8>, kind: u8, client: u32, connection: u32) -> usize {
    let at = begin(out, kind);
    out.extend_from_slice(&client.to_le_bytes());
    out.extend_from_slice(&connection.to_le_bytes());
    at
}

/// A text with its length in front, cut where it is too long for one.
fn text(out: &mut Vec<u8>, text: &str) {
    let text = cut(text);
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Begins [`ToProgram::Publish`] at the end of `out`: its payload is to be appended, then [`finish`] called with what this returns.
pub fn begin_publish(
    out: &mut Vec<u8>,
    (client, connection): (u32, u32),
    (publication, sequence): (u16, u32),
    due_ns: u64,
    ready_ns: u64,
) -> usize {
    let at = begin_of(out, kind::PUBLISH, client, connection);
    message(out, publication, sequence);
    out.extend_from_slice(&due_ns.to_le_bytes());
    out.extend_from_slice(&ready_ns.to_le_bytes());
    at
}

fn message(out: &mut Vec<u8>, publication: u16, sequence: u32) {
    out.extend_from_slice(&publication.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
}

impl ToProgram<'_> {
    /// Appends it to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = match *self {
            ToProgram::Begin(json) => {
                let at = begin(out, kind::BEGIN);
                out.extend_from_slice(json);
                at
            }
            ToProgram::Topic { client, publication, qos, retain, topic, device_type } => {
                let at = begin(out, kind::TOPIC);
                out.extend_from_slice(&client.to_le_bytes());
                out.extend_from_slice(&publication.to_le_bytes());
                out.extend_from_slice(&[qos, u8::from(retain)]);
                text(out, topic);
                text(out, device_type);
                at
            }
            ToProgram::Connect { client, connection, endpoint, window, client_id, login } => {
                let at = begin_of(out, kind::CONNECT, client, connection);
                out.extend_from_slice(&endpoint.to_le_bytes());
                out.extend_from_slice(&window.to_le_bytes());
                out.push(u8::from(login.is_some()));
                let (user, password) = login.unwrap_or_default();
                [client_id, user, password].iter().for_each(|one| text(out, one));
                at
            }
            ToProgram::Subscribe { client, connection, subscription, qos, filter, shared } => {
                let at = begin_of(out, kind::SUBSCRIBE, client, connection);
                out.extend_from_slice(&subscription.to_le_bytes());
                out.push(qos);
                text(out, filter);
                text(out, shared);
                at
            }
            ToProgram::Publish { client, connection, publication, sequence, due_ns, ready_ns, payload } => {
                let at = begin_publish(out, (client, connection), (publication, sequence), due_ns, ready_ns);
                out.extend_from_slice(payload);
                at
            }
            ToProgram::Disconnect { client, connection, how } => {
                let at = begin_of(out, kind::DISCONNECT, client, connection);
                out.push(how.number());
                at
            }
            ToProgram::Ping { number } => {
                let at = begin(out, kind::PING);
                out.extend_from_slice(&number.to_le_bytes());
                at
            }
            ToProgram::Goodbye => begin(out, kind::GOODBYE),
        };
        finish(out, at);
    }
}

impl FromProgram<'_> {
    /// Appends it to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = match *self {
            FromProgram::Hello(json) => {
                let at = begin(out, kind::HELLO);
                out.extend_from_slice(json);
                at
            }
            FromProgram::Connected { client, connection, receive_maximum, maximum_packet_bytes } => {
                let at = begin_of(out, kind::CONNECTED, client, connection);
                out.extend_from_slice(&receive_maximum.to_le_bytes());
                out.extend_from_slice(&maximum_packet_bytes.to_le_bytes());
                at
            }
            FromProgram::Closed { client, connection, end, code, reason } => {
                let at = begin_of(out, kind::CLOSED, client, connection);
                out.extend_from_slice(&[end.number(), code]);
                out.extend_from_slice(cut(reason).as_bytes());
                at
            }
            FromProgram::Granted { client, connection, subscription, qos, reason } => {
                let at = begin_of(out, kind::GRANTED, client, connection);
                out.extend_from_slice(&subscription.to_le_bytes());
                out.push(qos);
                out.extend_from_slice(cut(reason).as_bytes());
                at
            }
            FromProgram::Revoked { client, connection, subscription, code, reason } => {
                let at = begin_of(out, kind::REVOKED, client, connection);
                out.extend_from_slice(&subscription.to_le_bytes());
                out.push(code);
                out.extend_from_slice(cut(reason).as_bytes());
                at
            }
            FromProgram::Written { client, connection, publication, sequence, stamp_ns } => {
                let at = begin_of(out, kind::WRITTEN, client, connection);
                message(out, publication, sequence);
                out.extend_from_slice(&stamp_ns.to_le_bytes());
                at
            }
            FromProgram::Abandoned { client, connection, publication, sequence } => {
                let at = begin_of(out, kind::ABANDONED, client, connection);
                message(out, publication, sequence);
                at
            }
            FromProgram::Acknowledged { client, connection, publication, sequence, code, reason } => {
                let at = begin_of(out, kind::ACKNOWLEDGED, client, connection);
                message(out, publication, sequence);
                out.push(code);
                out.extend_from_slice(cut(reason).as_bytes());
                at
            }
            FromProgram::Delivered { client, connection, retained, stamp_ns, payload_bytes, payload } => {
                let at = begin_of(out, kind::DELIVERED, client, connection);
                out.push(u8::from(retained));
                out.extend_from_slice(&stamp_ns.to_le_bytes());
                out.extend_from_slice(&payload_bytes.to_le_bytes());
                out.extend_from_slice(payload);
                at
            }
            FromProgram::Pong { number, stamp_ns } => {
                let at = begin(out, kind::PONG);
                out.extend_from_slice(&number.to_le_bytes());
                out.extend_from_slice(&stamp_ns.to_le_bytes());
                at
            }
            FromProgram::Goodbye => begin(out, kind::GOODBYE_OF_PROGRAM),
        };
        finish(out, at);
    }
}
