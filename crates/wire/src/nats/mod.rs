//! The NATS client protocol (<https://docs.nats.io/reference/reference-protocols/nats-protocol>): decodes what a server sends,
//! and encodes what a client sends. Lines end with CR LF; a payload follows its line and has a CR LF of its own.

mod error;
pub mod jetstream;
mod operation;
mod parse;
mod subject;
mod write;

pub use error::DecodeError;
pub use operation::{Info, Message, Operation};
pub use parse::{LONGEST_LINE_BYTES, next};
pub use subject::{SubjectError, subjects};
pub use write::{
    Connect, HEADER_BYTES, HEADERS_BYTES, HEADERS_END_BYTES, encode_connect, encode_publish,
    encode_publish_with_headers, encode_subscribe, encode_unsubscribe,
};

/// The keep-alive request.
pub const PING: &[u8] = b"PING\r\n";
/// The response to it.
pub const PONG: &[u8] = b"PONG\r\n";
/// The end of a line, and of a payload.
pub const END: &[u8] = b"\r\n";
