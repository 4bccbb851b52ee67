//! Answers `GET /metrics` for one command, on a thread of its own with the lowest priority.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use super::{CONTENT_TYPE, Exposed, text};
use crate::{listener, server};

/// Connections at once: a few scrapers.
const MOST_CONNECTIONS: usize = 16;
/// Longest wait for responses under way at the end.
const END_LIMIT: Duration = Duration::from_secs(1);

/// Why metrics cannot be scraped.
#[derive(Debug, thiserror::Error)]
pub enum MetricsServerError {
    /// The address.
    #[error("failed to listen on `{address}` for who scrapes metrics")]
    Listen {
        /// It.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its thread.
    #[error("failed to start the thread that answers who scrapes metrics")]
    Thread(#[source] io::Error),
}

/// What is shown. The lock is held for a pointer's sake alone: the run does not wait for a thread of the lowest priority.
type Shown = Arc<Mutex<Arc<Exposed>>>;

/// Listens; answers once it is started, until it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    listener: Option<TcpListener>,
    exposed: Shown,
    /// Dropped to end the thread.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl MetricsServer {
    /// Takes the address; starts no thread, so that a run may still enter a network of its own.
    ///
    /// # Errors
    /// The address cannot be used, as another program has it.
    pub fn bind(address: SocketAddr) -> Result<MetricsServer, MetricsServerError> {
        let failed = |source| MetricsServerError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(MetricsServer { address, listener: Some(listener), exposed: Arc::default(), running: None })
    }

    /// Where it listens, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows what is handed over from now on.
    pub fn shows(&self) -> impl Fn(Exposed) + Send + Sync + use<> {
        let shown = Arc::clone(&self.exposed);
        move |exposed| *shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(exposed)
    }

    /// Answers from now on.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(&mut self) -> Result<(), MetricsServerError> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(MetricsServerError::Thread)?;
        let (end, ended) = oneshot::channel::<()>();
        let exposed = Arc::clone(&self.exposed);
        let answer = move || {
            server::be_nice();
            runtime.block_on(async {
                // A listener that the runtime does not take is one that nobody reaches.
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = listener::accept(listener, None, router(exposed), MOST_CONNECTIONS) => {}
                    // Dropping the other end is the request to end.
                    _ = ended => {}
                }
            });
            runtime.shutdown_timeout(END_LIMIT);
        };
        let thread =
            std::thread::Builder::new().name("metrics".to_owned()).spawn(answer).map_err(MetricsServerError::Thread)?;
        self.running = Some((end, thread));
        Ok(())
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            // A thread that panicked answers nobody: the run is not concerned.
            let _ = thread.join();
        }
    }
}

fn router(exposed: Shown) -> Router {
    let answer = move || async move {
        let exposed = Arc::clone(&exposed.lock().unwrap_or_else(PoisonError::into_inner));
        response(&exposed)
    };
    Router::new()
        .route("/metrics", get(answer))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is no such path; try /metrics\n") })
}

/// All that is exposed as a response.
pub(crate) fn response(exposed: &Exposed) -> Response {
    match text(exposed) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed to write the metrics\n").into_response(),
    }
}
