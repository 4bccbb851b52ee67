//! Shards in processes of their own. Whoever leads the run works out the plan, starts worker processes, and tells them over a
//! socket what it would tell threads; counters lie in memory that all of them map. Nothing is sent while a run measures.
//!
//! A worker process works out the same shards from the same plan and runs those that it was given, so that where a device runs
//! changes nothing about what it does, and its outcome is what a thread's would have been. See docs/design/workers.md.

mod frames;
mod messages;
mod order;
mod process;
mod serve;

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;

pub(crate) use process::Process;
pub use serve::serve;

/// Starts worker processes: whatever calls [`serve()`] on its standard input, with its standard output as the memory.
pub trait Launcher: Debug + Send + Sync {
    /// Starts one inside a network of the plan.
    ///
    /// # Errors
    /// The process cannot be started, or not there.
    fn launch(&self, network: u16, control: OwnedFd, memory: OwnedFd) -> io::Result<Child>;

    /// What devices speak, and what subscribers do, in words that [`serve()`]'s caller understands.
    fn speaks(&self) -> [String; 2];
}
