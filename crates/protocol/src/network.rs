//! Networks that sockets are made in.

use std::fmt::Debug;
use std::io;

/// A network of its own, for instance a namespace behind an emulated link. A socket belongs for ever to the network that it was
/// made in, whichever thread uses it later.
pub trait Network: Debug + Send + Sync {
    /// Runs `make` on this thread, so that the sockets it makes are this network's; the thread is back where it was afterwards.
    ///
    /// # Errors
    /// The network cannot be entered, or what `make` says.
    fn within(&self, make: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;
}
