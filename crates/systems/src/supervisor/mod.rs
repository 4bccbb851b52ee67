//! The process that supervises a broker, so that nothing of the broker remains after pubmark ends, for whatever reason.
//!
//! pubmark starts itself again as `pubmark supervisor`, one for each broker ([`supervised::Supervised`]), and tells it what to answer for
//! before that is made ([`messages`]). The supervisor ([`serve`]) is a child subreaper (prctl(2)): programs that put
//! themselves into the background, in a session of their own, come to it. When its standard input ends, it kills all that
//! came from it, runs the clean-up commands, removes control groups and folders, and ends. A supervisor that is killed takes
//! its program with it (the kernel sees to that); what else it held, pubmark takes back.

pub mod messages;
pub(crate) mod releasing;
mod serving;
mod starting;
pub mod supervised;

use std::ffi::CStr;
use std::process::ExitCode;

pub use serving::serve;

/// What the supervisor's process is called, by which [`crate::tree`] knows it. At most 15 bytes (prctl(2)).
pub const NAME: &CStr = c"pubmark-superv";
/// Command-line argument that starts any program that contains a supervisor as a supervisor.
pub const VERB: &str = "supervisor";
/// Environment variable that all processes of a broker have, with a value that is unique to this start.
pub const MARK: &str = "PUBMARK_HELD_BY";

/// What a supervisor's program does, called without anything else running: it serves until its owner is gone.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // Its owner sees a supervisor that never became ready.
        Err(_) => ExitCode::FAILURE,
    }
}
