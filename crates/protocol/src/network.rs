//! Networks that sockets are made in.

use std::fmt::Debug;
use std::io;

/// A network of its own, for instance a namespace behind an emulated link. A socket always belongs to the network that it was
/// made in, whichever thread uses it later.
pub trait Network: Debug + Send + Sync {
    /// Runs `make` on this thread, so that the sockets it makes belong to this network; the thread is in its own network again
    /// afterwards.
    ///
    /// # Errors
    /// The network cannot be entered, or the error of `make`.
    fn within(&self, make: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;
}
