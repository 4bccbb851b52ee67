//! ZMTP 3.1, the protocol of ZeroMQ (<https://rfc.zeromq.org/spec/37/>; 3.0 is <https://rfc.zeromq.org/spec/23/>), as far as
//! publishing and subscribing need it: greeting, the mechanisms NULL and PLAIN (<https://rfc.zeromq.org/spec/24/>), commands,
//! frames of messages.

mod command;
mod error;
mod frame;
mod greeting;
mod metadata;
mod prefix;
mod write;

pub use command::Command;
pub use error::DecodeError;
pub use frame::{Item, LONGEST_COMMAND_BYTES, next};
pub use greeting::{GREETING_BYTES, Greeting, Mechanism};
pub use metadata::{Metadata, SocketType};
pub use prefix::prefix;
pub use write::{
    LONGEST_LOG_IN_BYTES, append_frame_front, encode_cancel, encode_greeting_front, encode_greeting_rest, encode_hello,
    encode_initiate, encode_ping, encode_pong, encode_ready, encode_subscribe, encode_subscription_message,
    encode_welcome,
};
