//! Answers `GET /metrics` for one command.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{CONTENT_TYPE, Exposed, text};
use crate::beside::{Beside, BesideError};

/// What is shown. The lock is held for a pointer's sake alone: the run does not wait for a thread of the lowest priority.
type Shown = Arc<Mutex<Arc<Exposed>>>;

/// Listens; answers once it is started, until it is dropped.
pub struct MetricsServer {
    beside: Beside,
    exposed: Shown,
}

impl MetricsServer {
    /// Takes the address; starts no thread, so that a run may still enter a network of its own.
    ///
    /// # Errors
    /// The address cannot be used, as another program has it.
    pub fn bind(address: SocketAddr) -> Result<MetricsServer, BesideError> {
        Ok(MetricsServer { beside: Beside::bind(address)?, exposed: Arc::default() })
    }

    /// Where it listens, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.beside.address()
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
    pub fn start(&mut self) -> Result<(), BesideError> {
        self.beside.start("metrics", router(Arc::clone(&self.exposed)), std::future::pending())
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
fn response(exposed: &Exposed) -> Response {
    match text(exposed) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed to write the metrics\n").into_response(),
    }
}
