//! AMQP 1.0 (OASIS standard, ISO/IEC 19464): types, transport, messaging, log-in, as far as a client of a broker needs them.
//!
//! [`next`] finds a protocol header or a frame at the front of some bytes. A frame's body is a [`Performative`], or
//! [`SaslFrame`] during the log-in; both borrow from the bytes. Lists, maps and arrays stay bytes until a caller reads
//! an element ([`value`]), so nothing here holds memory in proportion to what a peer announces.

mod address;
mod condition;
mod connection;
mod delivery;
mod error;
mod fields;
mod frame;
mod link;
mod message;
mod performative;
mod sasl;
pub mod value;
mod writer;

pub use address::{AddressError, Naming, ReplyAddress, virtual_host, words};
pub use condition::{Condition, State};
pub use connection::{Begin, Open, encode_close, encode_end};
pub use delivery::{Disposition, MOST_TRANSFER_BYTES, Transfer};
pub use error::DecodeError;
pub use frame::{Frame, FrameKind, Packet, ProtocolHeader, SMALLEST_FRAME_LIMIT, encode_empty, encode_frame, next};
pub use link::{Attach, Detach, Flow, Role, SenderSettles, Terminus};
pub use message::{
    ApplicationProperties, Message, Properties, body, encode_data_front, encode_text, message_bytes, text_of,
};
pub use performative::Performative;
pub use sasl::{SaslFrame, encode_anonymous, encode_plain, outcome_name};
pub use writer::{FieldWriter, composite};
