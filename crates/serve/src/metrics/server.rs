//! Serves `GET /metrics` for one command.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{CONTENT_TYPE, Exposed, text};
use crate::beside::{Beside, BesideError};
use crate::guard::is_local_name;

/// The exposed values. The lock is held only to copy a pointer: the run must not wait for a thread of the lowest priority.
type Shown = Arc<Mutex<Arc<Exposed>>>;

/// Listens; serves requests from its start until it is dropped.
pub struct MetricsServer {
    beside: Beside,
    exposed: Shown,
}

impl MetricsServer {
    /// Binds the address; starts no thread, so that a run can still enter its own network namespace.
    ///
    /// # Errors
    /// The address cannot be used, for instance because another program uses it.
    pub fn bind(address: SocketAddr) -> Result<MetricsServer, BesideError> {
        Ok(MetricsServer { beside: Beside::bind(address)?, exposed: Arc::default() })
    }

    /// The address that it listens on, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.beside.address()
    }

    /// Returns a function that sets the exposed values.
    pub fn shows(&self) -> impl Fn(Exposed) + Send + Sync + use<> {
        let shown = Arc::clone(&self.exposed);
        move |exposed| *shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(exposed)
    }

    /// Starts to serve requests.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(&mut self) -> Result<(), BesideError> {
        let is_loopback = self.address().ip().is_loopback();
        self.beside.start("metrics", router(Arc::clone(&self.exposed), is_loopback), std::future::pending())
    }
}

/// The routes. The names of an address that other machines can reach are not known, so any name is accepted there.
fn router(exposed: Shown, is_loopback: bool) -> Router {
    let answer = move || async move {
        let exposed = Arc::clone(&exposed.lock().unwrap_or_else(PoisonError::into_inner));
        response(&exposed)
    };
    let check = move |request: Request, next: Next| async move {
        match is_loopback && !is_local_name(request.headers()) {
            true => (
                StatusCode::MISDIRECTED_REQUEST,
                "use `localhost` or an IP address as the host, or listen on another address than 127.0.0.1\n",
            )
                .into_response(),
            false => next.run(request).await,
        }
    };
    Router::new()
        .route("/metrics", get(answer))
        .fallback(|| async { (StatusCode::NOT_FOUND, "there is no such path; try /metrics\n") })
        .layer(from_fn(check))
}

/// The exposed values as a response.
fn response(exposed: &Exposed) -> Response {
    match text(exposed) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed to write the metrics\n").into_response(),
    }
}
