//! The client program protocol, version 1: pubmark has schedule, payload headers and accounting, and a program of a third party
//! is the client. Frames over the program's standard input and output; bytes in, borrowed frames out, and back.
//!
//! The specification is docs/reference/client-protocol.md; its frames are tested against
//! clients/test-vectors.json. Nothing here does I/O.

mod command;
mod decode;
mod encode;
mod frames;
mod hello;
mod misreport;

pub use command::{ClientProgram, CommandError};
pub use decode::{Frame, Malformed, next_frame};
pub use encode::{begin_publish, finish};
pub use frames::{End, FromProgram, How, ToProgram};
pub use hello::{Begin, BeginEndpoint, BeginTls, Claims, Hello, HelloError};
pub use misreport::Misreport;

/// Environment variable of every client program: by it their processes are told from all others below pubmark's.
pub const MARK: &str = "PUBMARK_CLIENT_PROGRAM";
/// Version of the protocol.
pub const VERSION: u32 = 1;
/// Bytes of the length in front of each frame.
pub const LENGTH_BYTES: usize = 4;
/// Longest handshake frame, bytes after its length: an unknown program may send no more.
pub const LONGEST_HANDSHAKE: usize = 64 * 1024;
/// Most bytes of a frame besides its payload.
pub const LONGEST_HEAD: usize = 64;
/// Longest name, filter or reason that is sent or read, bytes.
pub const LONGEST_TEXT: usize = u16::MAX as usize;
/// Largest payload, bytes.
pub const LARGEST_PAYLOAD: usize = 16 << 20;
/// Shortest part of a payload that a program may send instead of all of it: the longest header of pubmark's.
pub const SHORTEST_PART: usize = crate::header::REACTION;
