//! Starts worker processes.

use std::fmt::Debug;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::progress::Progress;
use crate::shares::WorkerLocation;

/// Starts worker processes: programs that call [`serve()`](super::serve()), on this machine or on another.
pub trait Launcher: Debug + Send + Sync {
    /// Starts a process at a location of the plan, for shards by their index. Its counters must appear in `progress`. A
    /// launcher that has to wait for others returns when `stop` is set.
    ///
    /// # Errors
    /// The process cannot be started, or not at this location.
    fn launch(
        &self,
        place: WorkerLocation,
        shards: &[u32],
        progress: &Arc<Progress>,
        stop: &AtomicBool,
    ) -> io::Result<Started>;

    /// Names of the adapters of devices and of subscribers, which the caller of [`serve()`](super::serve())
    /// understands.
    fn adapter_names(&self) -> [String; 2];

    /// The access network that a process at this location must set up for its clients, encoded for the caller of
    /// [`serve()`](super::serve()); `None` if it sets up none.
    fn access(&self, place: WorkerLocation) -> Option<Vec<u8>> {
        let _ = place;
        None
    }
}

/// A worker process that was started.
#[derive(Debug)]
pub struct Started {
    /// Socket to the process. The process ends when this is closed.
    pub control: UnixStream,
    /// The process, if it is a child of this one: its heartbeat is then watched here. A process on another machine is
    /// watched there.
    pub child: Option<Child>,
}
