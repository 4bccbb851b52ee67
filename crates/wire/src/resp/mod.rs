//! RESP3, the protocol of Redis and Valkey (<https://redis.io/docs/latest/develop/reference/protocol-spec/>), as far as
//! publish/subscribe and streams need it: commands out, replies and pushes in.

mod error;
mod glob;
mod parse;
mod values;
mod write;

pub use error::DecodeError;
pub use glob::{filter_matches, pattern};
pub use parse::{MOST_PARTS, Parts, Reply, next};
pub use values::{Value, Values};
pub use write::{append_bulk_front, encode_command, encode_command_front};

/// The end of a line, and of a bulk string.
pub const END: &[u8] = b"\r\n";
