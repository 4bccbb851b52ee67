//! Who starts worker processes.

use std::fmt::Debug;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::progress::Progress;
use crate::shares::WorkerLocation;

/// Starts worker processes: whatever calls [`serve()`](super::serve()), on this machine or on another.
pub trait Launcher: Debug + Send + Sync {
    /// Starts one at a place of the plan, for shards by their index. What it counts is to appear in `progress`. A launcher that has to
    /// wait for others gives up when `stop` is set.
    ///
    /// # Errors
    /// It cannot be started, or not there.
    fn launch(
        &self,
        place: WorkerLocation,
        shards: &[u32],
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> io::Result<Started>;

    /// What devices speak, and what subscribers do, in words that [`serve()`](super::serve())'s caller understands.
    fn speaks(&self) -> [String; 2];

    /// The access network that a process at this place is to make for its clients, in words that the caller of
    /// [`serve()`](super::serve()) understands; `None` if it makes none.
    fn access(&self, place: WorkerLocation) -> Option<Vec<u8>> {
        let _ = place;
        None
    }
}

/// A worker process that was started.
#[derive(Debug)]
pub struct Started {
    /// Leads to the socket that it serves. It ends when this is closed.
    pub control: UnixStream,
    /// The process, if it is a child of this one: then its heartbeat is watched here. That of another machine is watched there.
    pub child: Option<Child>,
}
