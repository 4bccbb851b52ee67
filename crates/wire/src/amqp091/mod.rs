//! AMQP 0-9-1 (<https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf>) with RabbitMQ's extensions, as far as
//! publish/subscribe needs it: decodes what a server sends, and encodes what a client sends.
//!
//! Everything is a frame ([`next()`]). A frame of method is read by [`Method::read`]; a message is such a method, a frame
//! with its header ([`read_content_header`]) and frames with its body.

mod content;
mod error;
mod frame;
mod method;
mod publish;
mod reader;
mod reply;
mod routing_key;
mod write;

pub use content::{Correlation, read_content_header, read_correlation, read_header};
pub use error::DecodeError;
pub use frame::{Frame, Item, Kind, Version, next};
pub use method::{CloseReason, Confirm, Deliver, Method, Start, Tune};
pub use publish::{Publish, append_body, append_reply};
pub use reply::{code, reply_name};
pub use routing_key::{LONGEST_BYTES, RoutingKeyError, filter_matches, routing_key};
pub use write::{
    Declare, Login, encode_ack, encode_bind, encode_cancel, encode_channel_close_ok, encode_channel_open, encode_close,
    encode_consume, encode_declare, encode_delete, encode_flow_ok, encode_open, encode_qos, encode_select,
    encode_start_ok, encode_tune_ok, encode_unbind,
};

/// First bytes of a client (§4.2.2).
pub const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";
/// A heartbeat frame (§4.2.7).
pub const HEARTBEAT: &[u8; 8] = b"\x08\x00\x00\x00\x00\x00\x00\xce";
/// Last octet of every frame (§4.2.3).
pub const FRAME_END: u8 = 0xce;
/// Octets of a frame besides its payload: type, channel, size, end.
pub const FRAME_EXTRA_BYTES: usize = 8;
/// Least frame that both sides must take (`frame-min-size`), bytes.
pub const LEAST_FRAME_BYTES: usize = 4_096;
