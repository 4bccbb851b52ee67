//! Small servers within one command, each on a separate thread with the lowest priority: live view and metrics.

mod live;

pub use live::LiveServer;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use tokio::sync::oneshot;

use crate::{listener, server};

/// Maximum number of connections: a few scrapers, a few tabs of a browser.
const MOST_CONNECTIONS: usize = 16;
/// Maximum wait at the end for responses in progress.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Reason why requests cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// Listening failed.
    #[error("failed to listen on `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
    /// An address that other machines can reach would show them what only the owner of the terminal should see.
    #[error("`{address}` can be reached from other machines")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// The kernel does not provide a thread or random bytes.
    #[error("failed to start the thread that answers at `{address}`")]
    Thread {
        /// The address.
        address: SocketAddr,
        /// Cause of the failure.
        #[source]
        source: io::Error,
    },
}

/// Listens; serves requests from its start until it is dropped.
pub(crate) struct Beside {
    address: SocketAddr,
    listener: Option<TcpListener>,
    /// Dropped to end the thread.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Beside {
    /// Binds the address; starts no thread, so that a run can still enter its own network namespace.
    pub(crate) fn bind(address: SocketAddr) -> Result<Beside, BesideError> {
        let failed = |source| BesideError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Beside { address, listener: Some(listener), running: None })
    }

    /// The address that it listens on, with the port that was chosen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to serve requests with these routes, on a thread with this name that also executes `besides`.
    pub(crate) fn start(
        &mut self,
        name: &str,
        router: Router,
        besides: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), BesideError> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let failed = |source| BesideError::Thread { address: self.address, source };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        let (end, ended) = oneshot::channel::<()>();
        let answer = move || {
            server::be_nice();
            runtime.block_on(async {
                // If the runtime does not accept the listener, no client can connect.
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = listener::accept(listener, None, router, MOST_CONNECTIONS) => {}
                    () = besides => {}
                    // Dropping the sender requests the end.
                    _ = ended => {}
                }
            });
            runtime.shutdown_timeout(END_LIMIT);
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(answer).map_err(failed)?;
        self.running = Some((end, thread));
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            // If the thread panicked, requests are not served, but the run is not affected.
            let _ = thread.join();
        }
    }
}
