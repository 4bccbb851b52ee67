//! The Constrained Application Protocol (RFC 7252) as datagrams carry it: one message each, with the options of observing
//! (RFC 7641), of block-wise transfer (RFC 7959) and of publish/subscribe (draft-ietf-core-coap-pubsub).
//!
//! [`decode`] checks all of a message once and borrows from its bytes; [`Writer`] appends one. Nothing here holds a payload.

mod block;
mod code;
mod error;
mod exchange;
mod message;
mod observe;
mod option;
mod topic;
mod write;

pub use block::{BLOCK_BYTES, Block, LARGEST_BODY_BYTES};
pub use code::Code;
pub use error::DecodeError;
pub use exchange::{Exchange, Step, Times};
pub use message::{Kind, LONGEST_TOKEN_BYTES, Message, decode, peek};
pub use observe::{FRESH_FOR_NS, is_fresh, observe_value};
pub use option::{Options, number, uint};
pub use topic::{
    LONGEST_TOPIC_BYTES, ROOT, TopicError, check_topic, decode_levels, decode_topic, encode_levels, encode_path,
};
pub use write::{Writer, encode_empty};
