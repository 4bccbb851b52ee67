//! MQTT 3.1.1 and 5.0.
//!
//! Reading: [`frame()`] cuts one packet off the front of a buffer, [`decode()`] (or a function for one type of packet, which
//! is quicker) turns it into a structure that borrows from the buffer. Writing: an `encode_…` function appends to a `Vec<u8>`.
//! Everything that the standards call malformed or a protocol error within one packet is an error here; what takes more than
//! one packet to judge (packet identifiers in use, topic aliases, order of packets) is the caller's.

mod ack;
mod connack;
mod connect;
mod error;
mod frame;
mod leave;
mod packet;
mod packet_type;
mod properties;
mod property;
mod publish;
mod reader;
pub mod reason;
mod suback;
mod subscribe;
mod text;
mod unsubscribe;
mod writer;

pub use ack::{Ack, AckKind, decode_ack, encode_ack};
pub use connack::{Connack, decode_connack, encode_connack};
pub use connect::{Connect, Will, decode_connect, encode_connect};
pub use error::{DecodeError, EncodeError};
pub use frame::{Frame, MAXIMUM_REMAINING_LENGTH, frame};
pub use leave::{Auth, Disconnect, encode_auth, encode_disconnect, encode_pingreq, encode_pingresp};
pub use packet::{Packet, decode, encode};
pub use packet_type::{PacketType, Version};
pub use properties::Properties;
pub use property::Property;
pub use publish::{Publish, PublishHead, decode_publish, encode_publish, encode_publish_head};
pub use reason::{connack_return_name, reason_name};
pub use suback::{Suback, Unsuback, encode_suback, encode_unsuback};
pub use subscribe::{Filters, RetainHandling, Subscribe, SubscribeRequest, decode_subscribe, encode_subscribe};
pub use text::{FilterError, check_filter, check_topic};
pub use unsubscribe::{TopicFilters, Unsubscribe, encode_unsubscribe};
