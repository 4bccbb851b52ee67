//! Shards in processes of their own. Whoever leads the run works out the plan, starts worker processes, and tells them over a
//! socket what it would tell threads; counters lie in memory that all of them map. Nothing is sent while a run measures.
//!
//! A worker process works out the same shards from the same plan and runs those that it was given, so that where a device runs
//! changes nothing about what it does, and its outcome is what a thread's would have been. See docs/explanation/engine.md.

mod allowance;
mod bounded;
mod frames;
mod heartbeat;
mod messages;
mod order;
mod process;
mod serve;

use std::fmt::Debug;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use bounded::{at_most, map_of_at_most};
pub use heartbeat::{HeartbeatWatch, beat};
pub(crate) use process::Process;
pub use serve::{follow_clock, serve};

use crate::progress::Progress;
use crate::shares::Place;

/// Starts worker processes: whatever calls [`serve()`], on this machine or on another.
pub trait Launcher: Debug + Send + Sync {
    /// Starts one at a place of the plan, for shards by their index. What it counts is to appear in `progress`. A launcher that has to
    /// wait for others gives up when `stop` is set.
    ///
    /// # Errors
    /// It cannot be started, or not there.
    fn launch(&self, place: Place, shards: &[u32], progress: &Arc<Progress>, stop: &AtomicBool) -> io::Result<Started>;

    /// What devices speak, and what subscribers do, in words that [`serve()`]'s caller understands.
    fn speaks(&self) -> [String; 2];
}

/// A worker process that was started.
#[derive(Debug)]
pub struct Started {
    /// Leads to the socket that it serves. It ends when this is closed.
    pub control: UnixStream,
    /// The process, if it is a child of this one: then its heartbeat is watched here. That of another machine is watched there.
    pub child: Option<Child>,
}
