//! Connections: their number is limited, and each has limits of time and size.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

/// Connections of `pubmark serve` at once; further ones wait in the kernel's queue until one ends.
pub const MOST_CONNECTIONS: usize = 256;
/// Longest time for the head of a request, and between two requests of a connection.
pub const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// Longest TLS handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// Largest head of a request, bytes.
const HEAD_BYTES: usize = 16 << 10;
/// Lines of a head, at most.
const HEAD_LINES: usize = 64;
/// Wait after a failure to accept: without descriptors, the next attempt fails, too.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Accepts connections, so many at once, and answers on them, for ever.
pub async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, most: usize) {
    let room = Arc::new(Semaphore::new(most));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, tls.clone(), router.clone(), permit));
            }
            // The client is gone already, or there are no descriptors.
            Err(_) => tokio::time::sleep(AFTER_FAILURE).await,
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, _permit: OwnedSemaphorePermit) {
    // Small responses should not wait for each other; a socket that refuses is slower, not wrong.
    let _ = stream.set_nodelay(true);
    match tls {
        None => answer(stream, router).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await {
                answer(stream, router).await;
            }
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    // What goes wrong on a connection is the client's matter: it is closed.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_headers(HEAD_LINES)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
}
