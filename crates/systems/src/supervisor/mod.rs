//! The process that supervises a broker, so that nothing of the broker remains after pubmark ends, for whatever reason.
//!
//! pubmark starts its own program again as `pubmark supervisor`, once for each broker ([`supervised::Supervised`]), and
//! registers what the supervisor must remove before it is created ([`messages`]). The supervisor ([`serve`]) is a child
//! subreaper (prctl(2)): programs that put themselves into the background, in their own session, become its children.
//! When its standard input ends, it kills all its descendants, runs the clean-up commands, removes control groups and
//! folders, and ends. If a supervisor is killed, the kernel kills its program, and pubmark removes the rest.

pub mod messages;
pub(crate) mod releasing;
mod serving;
mod starting;
pub mod supervised;

use std::ffi::CStr;
use std::process::ExitCode;

pub use serving::serve;

/// Name of the supervisor's process, by which [`crate::tree`] recognises it. At most 15 bytes (prctl(2)).
pub const NAME: &CStr = c"pubmark-superv";
/// Command-line argument that makes a program that contains a supervisor run as one.
pub const VERB: &str = "supervisor";
/// Environment variable of all processes of a broker, with a value that is unique to one start.
pub const MARK: &str = "PUBMARK_HELD_BY";

/// The main function of a supervisor's program: it serves until its owner has ended.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The owner notices that the supervisor did not become ready.
        Err(_) => ExitCode::FAILURE,
    }
}
