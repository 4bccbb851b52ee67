//! Small servers beside one command, on a thread of their own with the lowest priority: its live view, its metrics.

mod live;

pub use live::LiveServer;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use tokio::sync::oneshot;

use crate::{listener, server};

/// Connections at once: a few scrapers, a few tabs of a browser.
const MOST_CONNECTIONS: usize = 16;
/// Longest wait for responses under way at the end.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Why nobody can be answered.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// The address.
    #[error("failed to listen on `{address}`")]
    Listen {
        /// It.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Who reaches an address of other machines would see what only the owner of the terminal should.
    #[error("`{address}` can be reached from other machines")]
    NotLoopback {
        /// It.
        address: SocketAddr,
    },
    /// What the kernel gives: a thread, random bytes.
    #[error("failed to start the thread that answers at `{address}`")]
    Thread {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Listens; answers once it is started, until it is dropped.
pub(crate) struct Beside {
    address: SocketAddr,
    listener: Option<TcpListener>,
    /// Dropped to end the thread.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Beside {
    /// Takes the address; starts no thread, so that a run may still enter a network of its own.
    pub(crate) fn bind(address: SocketAddr) -> Result<Beside, BesideError> {
        let failed = |source| BesideError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Beside { address, listener: Some(listener), running: None })
    }

    /// Where it listens, with the port that was chosen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers by these routes from now on, on a thread of this name, which does `besides` as well.
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
                // A listener that the runtime does not take is one that nobody reaches.
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = listener::accept(listener, None, router, MOST_CONNECTIONS) => {}
                    () = besides => {}
                    // Dropping the other end is the request to end.
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
            // A thread that panicked answers nobody: the run is not concerned.
            let _ = thread.join();
        }
    }
}
